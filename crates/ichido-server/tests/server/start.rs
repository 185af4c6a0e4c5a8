//! What a start tells and leaves behind: handlers that cannot work, a port that is taken.

use std::{fs, net::TcpListener};

use ichido_testkit::Database;

use crate::common::Site;

const ENDPOINT: &str = "[endpoint.billing]\nprovider = \"stripe\"\nsecrets = [\"env:SECRET\"]\n\
                        handlers = { \"invoice.paid\" = \"paid.sql\" }";
const PAID: &str = "INSERT INTO missing (id) VALUES (:event_id)";

#[test]
fn on_sqlite_a_handler_that_lacks_a_table_keeps_serve_from_starting() {
    let site = Site::new(ENDPOINT).file("paid.sql", PAID);
    let (code, text) = site.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(code, Some(1), "{text}");
    for part in ["endpoint `billing`", "paid.sql:1", "no such table: missing"] {
        assert!(text.contains(part), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgres_a_handler_that_lacks_a_table_is_loud_and_not_ready_until_it_is_there() {
    let database = Database::fresh("start").await.expect("a database");
    let config = format!("{ENDPOINT}\n[database]\nurl = \"{}\"", database.url());
    let site = Site::new(&config).file("paid.sql", PAID);
    let (code, text) = site.run(&["migrate"]);
    assert_eq!(code, Some(0), "{text}");
    let server = site.serve();
    let log = server.wait_for("not ready");
    assert!(log.contains("ERROR") && log.contains("paid.sql:1"), "{log}");
    let ready = server.send("GET", "/readyz", &[], "");
    assert_eq!(ready.status, 503);
    for part in ["endpoint `billing`", "paid.sql:1", "\"missing\" does not exist", "migrate --app"]
    {
        assert!(ready.body.contains(part), "{ready:?}");
    }
    let client = database.client().await.expect("a client");
    client.batch_execute("CREATE TABLE missing (id text)").await.expect("made");
    let ready = async || (server.send("GET", "/readyz", &[], "").status == 200).then_some(());
    let within = std::time::Duration::from_secs(20);
    ichido_testkit::eventually("it is ready", within, ready).await.expect("ready");
    let log = server.wait_for("INFO ready");
    assert!(!log.contains("again"), "{log}");
}

#[test]
fn a_port_that_is_taken_leaves_no_file_behind() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("bound").to_string();
    let site = Site::new("");
    let (code, text) = site.run(&["serve", "--listen", &address]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains(&address), "{text}");
    let files: Vec<_> = fs::read_dir(site.path()).expect("there").flatten().collect();
    assert_eq!(files.len(), 1, "ichido.toml alone: {files:?}");
}
