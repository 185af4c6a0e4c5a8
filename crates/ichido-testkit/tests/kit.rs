//! The kit itself: what a test relies on must hold before the test does.
#![expect(clippy::unwrap_used, reason = "a test fails where its set-up fails")]

use std::{collections::HashMap, path::Path, time::Duration};

use ichido_testkit::{Cluster, Database, Fault, Process, Proxy, StopMode, eventually};
use tokio_postgres::{Client, NoTls};

async fn connect(port: u16, database: &str) -> Result<Client, tokio_postgres::Error> {
    let url = format!("postgres://postgres@127.0.0.1:{port}/{database}");
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

async fn count(client: &Client) -> i64 {
    client.query_one("SELECT count(*) FROM t", &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn each_database_is_its_own() {
    let (a, b) = (Database::fresh("own").await.unwrap(), Database::fresh("own").await.unwrap());
    a.client().await.unwrap().batch_execute("CREATE TABLE t ()").await.unwrap();
    b.client().await.unwrap().batch_execute("CREATE TABLE t ()").await.unwrap();
    assert_ne!(a.url(), b.url());
}

#[tokio::test]
async fn a_committed_row_survives_an_immediate_stop() {
    let mut cluster = Cluster::start(&[]).await.unwrap();
    let client = connect(cluster.port(), "postgres").await.unwrap();
    client.batch_execute("CREATE TABLE t (); INSERT INTO t DEFAULT VALUES").await.unwrap();
    cluster.stop(StopMode::Immediate).unwrap();
    assert!(connect(cluster.port(), "postgres").await.is_err());
    cluster.run().await.unwrap();
    assert_eq!(count(&connect(cluster.port(), "postgres").await.unwrap()).await, 1);
}

async fn cut(fault: Fault) -> (bool, i64) {
    let database = Database::fresh("cut").await.unwrap();
    let direct = database.client().await.unwrap();
    direct.batch_execute("CREATE TABLE t ()").await.unwrap();
    let config: tokio_postgres::Config = database.url().parse().unwrap();
    let proxy = Proxy::start(config.get_ports()[0]).await.unwrap();
    let through = connect(proxy.port(), config.get_dbname().unwrap()).await.unwrap();
    proxy.set(fault);
    let answer = through.batch_execute("BEGIN; INSERT INTO t DEFAULT VALUES; COMMIT").await;
    (answer.is_ok(), count(&direct).await)
}

#[tokio::test]
async fn a_commit_cut_before_the_server_leaves_no_row() {
    assert_eq!(cut(Fault::CutBeforeCommit).await, (false, 0));
}

#[tokio::test]
async fn a_commit_cut_after_the_server_leaves_a_row_and_an_error() {
    assert_eq!(cut(Fault::CutAfterCommit).await, (false, 1));
}

#[tokio::test]
async fn a_proxy_without_a_fault_changes_nothing() {
    assert_eq!(cut(Fault::None).await, (true, 1));
}

#[tokio::test]
async fn a_process_is_watched_and_ended() {
    let script = "echo ready; exec sleep 60";
    let args = ["-c", script];
    let mut process =
        Process::spawn(Path::new("/bin/sh"), args, &HashMap::new(), Path::new("/")).unwrap();
    process.line("ready", Duration::from_secs(10)).await.unwrap();
    process.kill().unwrap();
    assert!(!process.ended(Duration::from_secs(1)).await.unwrap().success());
}

#[tokio::test]
async fn waiting_ends_at_its_deadline_and_names_what_it_waited_for() {
    let never = || async { None::<()> };
    let error = eventually("the moon", Duration::from_millis(30), never).await.unwrap_err();
    assert!(error.to_string().contains("the moon"));
}
