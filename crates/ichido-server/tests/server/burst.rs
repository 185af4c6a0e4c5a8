//! Real events over HTTP to the real binary, which is killed, shared and cut off from its
//! database. Whatever was answered 2xx is there once.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use ichido_testkit::{Database, Fault, Proxy};
use tokio::runtime::Runtime;

use crate::common::{Server, Site, signed};

const DEADLINE: Duration = Duration::from_secs(40);

/// One signed `invoice.paid` to an address; `None` where no whole answer came.
fn pay(address: SocketAddr, number: usize) -> Option<(u16, String)> {
    let body = format!(
        r#"{{"id":"evt_{number}","object":"event","type":"invoice.paid","created":1760000000,
            "data":{{"object":{{"id":"in_{number}","customer":"cus_1","amount_paid":100}}}}}}"#
    );
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(DEADLINE)).ok()?;
    stream.write_all(&signed(body.as_bytes())).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let status = text.split(' ').nth(1)?.parse().ok()?;
    let (_, answer) = text.split_once("\r\n\r\n")?;
    answer.ends_with('}').then(|| (status, answer.to_owned()))
}

/// Rows and distinct invoices of the ledger.
type Ledger = (i64, i64);
const LEDGER: &str = "SELECT count(*), count(DISTINCT invoice_id) FROM ledger_entries";

fn in_postgres(runtime: &Runtime, database: &Database) -> Ledger {
    runtime.block_on(async {
        let client = database.client().await.expect("connects");
        let row = client.query_one(LEDGER, &[]).await.expect("a row");
        (row.get(0), row.get(1))
    })
}

fn in_sqlite(site: &Site) -> Ledger {
    let file = rusqlite::Connection::open(site.path().join("billing.db")).expect("opens");
    file.query_row(LEDGER, [], |row| Ok((row.get(0)?, row.get(1)?))).expect("a row")
}

/// A migrated database and the billing example on it.
fn on_postgres(runtime: &Runtime) -> (Database, Site) {
    let database = runtime.block_on(Database::fresh("server")).expect("a database");
    let site = Site::billing(Some(database.url().to_owned()));
    let (code, output) = site.run(&["migrate", "--app"]);
    assert_eq!(code, Some(0), "{output}");
    (database, site)
}

#[test]
fn eight_deliveries_to_two_servers_on_one_database_are_one_effect() {
    let runtime = Runtime::new().expect("a runtime");
    let (database, site) = on_postgres(&runtime);
    let servers = [site.serve(), site.serve()];
    let mut outcomes: Vec<_> = thread::scope(|scope| {
        let send = |n: usize| {
            let address = servers[n % 2].address;
            scope.spawn(move || pay(address, 1).expect("an answer"))
        };
        let deliveries: Vec<_> = (0..8).map(send).collect();
        deliveries.into_iter().map(|one| one.join().expect("no panic")).collect()
    });
    outcomes.sort();
    let duplicate = (200, r#"{"outcome":"duplicate"}"#.to_owned());
    assert_eq!(outcomes[..7], vec![duplicate; 7]);
    assert_eq!(outcomes[7], (200, r#"{"outcome":"processed"}"#.to_owned()));
    assert_eq!(in_postgres(&runtime, &database), (1, 1));
}

/// Sends `EVENTS` from four senders that go on until each is answered 2xx, and kills the server
/// again and again meanwhile.
fn burst_with_kills(site: &Site) {
    const EVENTS: usize = 400;
    const KILLS: usize = 3;
    let server = site.serve();
    let address = Mutex::new(server.address);
    let (next, answered) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let end = Instant::now() + DEADLINE;
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    if number >= EVENTS {
                        return;
                    }
                    while !matches!(
                        pay(*address.lock().expect("not poisoned"), number),
                        Some((200, _))
                    ) {
                        assert!(Instant::now() < end, "event {number} is never answered");
                        thread::park_timeout(Duration::from_millis(5));
                    }
                    answered.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let mut server = server;
        for kill in 1..=KILLS {
            while answered.load(Ordering::SeqCst) < kill * EVENTS / (KILLS + 1) {
                assert!(Instant::now() < end, "the burst does not go on");
                thread::park_timeout(Duration::from_millis(1));
            }
            server.kill();
            server = site.serve();
            *address.lock().expect("not poisoned") = server.address;
        }
        while answered.load(Ordering::SeqCst) < EVENTS {
            assert!(Instant::now() < end, "the burst does not end");
            thread::park_timeout(Duration::from_millis(5));
        }
    });
    let (code, output) = site.run(&["audit"]);
    assert_eq!(code, Some(0), "{output}");
}

#[test]
fn a_burst_with_kills_loses_and_doubles_nothing_on_postgres() {
    let runtime = Runtime::new().expect("a runtime");
    let (database, site) = on_postgres(&runtime);
    burst_with_kills(&site);
    assert_eq!(in_postgres(&runtime, &database), (400, 400));
}

#[test]
fn a_burst_with_kills_loses_and_doubles_nothing_on_sqlite() {
    let site = Site::billing(None);
    burst_with_kills(&site);
    assert_eq!(in_sqlite(&site), (400, 400));
}

fn readiness(server: &Server) -> u16 {
    server.send("GET", "/readyz", &[], "").status
}

#[test]
fn a_server_that_started_without_its_database_processes_once_it_is_there() {
    let runtime = Runtime::new().expect("a runtime");
    let (database, _) = on_postgres(&runtime);
    let (base, name) = database.url().rsplit_once('/').expect("a URL");
    let port = base.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    let proxy = runtime.block_on(Proxy::start(port)).expect("a proxy");
    proxy.set(Fault::Down);
    let url = format!("postgres://postgres@127.0.0.1:{}/{name}", proxy.port());
    let server = Site::billing(Some(url)).serve();
    assert_eq!(readiness(&server), 503);
    assert_eq!(pay(server.address, 1).expect("an answer").0, 503);
    proxy.set(Fault::None);
    let answer = pay(server.address, 1).expect("an answer");
    assert_eq!(answer, (200, r#"{"outcome":"processed"}"#.to_owned()));
    let end = Instant::now() + DEADLINE;
    while readiness(&server) != 200 {
        assert!(Instant::now() < end, "never ready");
        thread::park_timeout(Duration::from_millis(20));
    }
}

#[test]
fn a_second_server_on_the_file_is_refused_by_name() {
    let site = Site::billing(None);
    let _server = site.serve();
    let (code, output) = site.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("billing.db is in use by process"), "{output}");
}

#[test]
fn a_term_signal_lets_the_server_finish_and_exit_well() {
    let site = Site::billing(None);
    let mut server = site.serve();
    assert_eq!(pay(server.address, 1).expect("an answer").0, 200);
    assert_eq!(server.terminate(), Some(0));
    assert_eq!(in_sqlite(&site), (1, 1));
}
