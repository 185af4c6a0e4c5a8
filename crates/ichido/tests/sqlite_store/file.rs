//! The file: who may open it, which versions it has, what it says when it is full.

use std::time::Duration;

use bytes::Bytes;
use ichido::{
    ErrorKind, Event, Mode, Outcome, ReceiveError, Store,
    sqlite::{Sqlite, Tx},
    verify::{Request, Timestamp},
};
use rusqlite::Connection;
use sha2::{Digest, Sha256};

use crate::{PARENT_AND_CHILD, book, config, count, deliver, open, signed};

#[tokio::test]
async fn a_second_receiver_on_the_file_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let _first = open(config(folder.path()), |e| e).await;
    let refused = Sqlite::open(config(folder.path())).unwrap_err().to_string();
    let holder = format!("process {}", std::process::id());
    assert!(refused.contains("i.db") && refused.contains(&holder), "{refused}");
}

#[tokio::test]
async fn the_file_opens_again_after_its_receiver_has_gone() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = open(config(folder.path()), |e| e.on("*", book)).await;
    assert_eq!(deliver(&inbox, "evt_1").await.unwrap().outcome, Outcome::Processed);
    inbox.store().close().await;
    drop(inbox);
    let inbox = open(config(folder.path()), |e| e.on("*", book)).await;
    assert_eq!(deliver(&inbox, "evt_1").await.unwrap().outcome, Outcome::Duplicate);
}

#[tokio::test]
async fn a_full_disk_acknowledges_nothing_that_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    config.pages_max = Some(100);
    let inbox = open(config, |e| e.mode(Mode::Async).on("*", book)).await;
    let (mut taken, mut refused) = (0, 0);
    for number in 0..60 {
        match inbox.receive("billing", signed(&inbox, &format!("evt_{number}"), 20_000)).await {
            Ok(_) => taken += 1,
            Err(ReceiveError::Store(e)) if e.kind() == ErrorKind::Unavailable => refused += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(taken > 0 && refused > 0, "{taken} taken, {refused} refused");
    assert_eq!(count(folder.path(), "ichido_event"), taken);
    assert_eq!(count(folder.path(), "ichido_delivery"), taken);
}

#[tokio::test]
async fn a_disk_that_is_full_for_a_handler_is_no_failure_of_the_handler() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    config.pages_max = Some(100);
    let inbox = open(config, |e| {
        e.on("*", |tx: &mut Tx<'_>, event: &Event| {
            book(tx, event)?;
            let bytes = if event.id == "large" { 1 << 20 } else { 10 };
            tx.execute("INSERT INTO ledger VALUES (CAST(zeroblob(?1) AS TEXT))", [bytes]).map(drop)
        })
    })
    .await;
    for _ in 0..2 {
        let taken = deliver(&inbox, "large").await;
        let Err(ReceiveError::Store(error)) = taken else { panic!("{taken:?}") };
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert_eq!(count(folder.path(), "ichido_event WHERE event_id = 'large'"), 0);
    }
    assert_eq!(deliver(&inbox, "small").await.unwrap().outcome, Outcome::Processed);
    assert_eq!(count(folder.path(), "ledger"), 2);
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(config(folder.path()), |e| e).await);
    let file = Connection::open(folder.path().join("i.db")).unwrap();
    let newer = "INSERT INTO ichido_migration VALUES (999, 'later', x'00', 'now')";
    file.execute(newer, []).unwrap();
    let refused = || Sqlite::open(config(folder.path())).err().map(|e| e.to_string());
    let deadline = Duration::from_secs(5);
    // The first receiver lets go of its lock when its writer has ended.
    let look = || async { refused().filter(|why| why.contains("upgrade")) };
    ichido_testkit::eventually("refused as newer", deadline, look).await.unwrap();
}

#[tokio::test]
async fn statistics_are_read_beside_a_running_receiver() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = open(config(folder.path()), |e| e.mode(Mode::Async).on("*", book)).await;
    deliver(&inbox, "evt_1").await.unwrap();
    let reader = Sqlite::open_reader(folder.path().join("i.db")).unwrap();
    let stats = reader.stats().await.unwrap();
    assert_eq!(stats.unprocessed, 1);
    assert!(stats.oldest_age_seconds.is_some());
    assert_eq!(stats.received_last_hour.len(), 1);
}

#[tokio::test]
async fn a_script_that_cannot_commit_leaves_nothing_and_the_writer_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = open(config(folder.path()), |e| e.on("*", book)).await;
    inbox.store().apply(PARENT_AND_CHILD).await.unwrap();
    for script in [
        "CREATE TABLE rest (n); INSERT INTO child VALUES (1)",
        "CREATE TABLE rest (n); COMMIT; CREATE TABLE other (n); BEGIN",
        "CREATE TABLE rest (n); ROLLBACK; CREATE TABLE rest (n)",
    ] {
        inbox.store().apply(script).await.unwrap_err();
        assert_eq!(count(folder.path(), "sqlite_schema WHERE name = 'rest'"), 0, "{script}");
        // Nor is the file held: others write beside us.
        let other = Connection::open(folder.path().join("i.db")).unwrap();
        other.busy_timeout(Duration::from_millis(200)).unwrap();
        other.execute_batch("BEGIN IMMEDIATE; COMMIT").expect(script);
    }
    assert_eq!(deliver(&inbox, "evt_1").await.unwrap().outcome, Outcome::Processed);
}

#[tokio::test]
async fn the_view_shows_no_payload_where_the_bytes_are_not_json_text() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = open(config(folder.path()), |e| e.mode(Mode::Async).on("*", book)).await;
    let bodies: [(&[u8], Option<&str>); 4] = [
        (br#"{"a":"b"}"#, Some(r#"{"a":"b"}"#)),
        (b"{\"a\":\"\xff\"}", None),
        (b"{\"a\":1}\x00", None),
        (b"{\"a\":\"\xc3\xa9\"}", Some("{\"a\":\"\u{e9}\"}")),
    ];
    for (number, (body, _)) in bodies.iter().enumerate() {
        let id = format!("evt_{number}");
        let event = ichido::verify::vouch(&id, "x", Bytes::from_static(body), None).unwrap();
        inbox.vouch("billing", event).await.unwrap();
    }
    let file = Connection::open(folder.path().join("i.db")).unwrap();
    let mut rows = file.prepare("SELECT payload FROM webhook_inbox ORDER BY event_id").unwrap();
    let seen: Vec<Option<String>> =
        rows.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
    let want: Vec<_> = bodies.iter().map(|(_, want)| want.map(str::to_owned)).collect();
    assert_eq!(seen, want);
}

#[tokio::test]
async fn what_was_delivered_is_stored_as_it_came() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = open(config(folder.path()), |e| e.on("*", book)).await;
    let bodies: [&[u8]; 5] = [
        b"",
        b"\xff\xfe\x00 not text",
        br#"{"id":"evt_0","type":"x","a":"\u0000"}"#,
        br#"{"id":"evt_i","type":"x","a":12345678901234567890123,"a":2}"#,
        b"payload=%7B%22id%22%3A1%7D",
    ];
    for body in bodies {
        let mut request = Request { body: Bytes::from_static(body), ..Request::default() };
        let verifier = inbox.verifier("billing").unwrap();
        verifier.sign(&mut request, "evt", "x", Timestamp::now()).unwrap();
        inbox.receive("billing", request).await.unwrap();
    }
    let file = Connection::open(folder.path().join("i.db")).unwrap();
    let mut rows = file.prepare("SELECT body FROM ichido_delivery ORDER BY received_at").unwrap();
    let seen: Vec<Vec<u8>> =
        rows.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(seen, bodies);
}

#[tokio::test]
async fn a_file_of_the_first_version_is_migrated_with_what_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let first = include_str!("../../sql/sqlite/migrations/0001_inbox.sql");
    let file = Connection::open(folder.path().join("i.db")).unwrap();
    file.execute_batch(first).unwrap();
    file.execute_batch(
        "CREATE TABLE ichido_migration (version INTEGER PRIMARY KEY, name TEXT NOT NULL, \
         sha256 BLOB NOT NULL, applied_at TEXT NOT NULL) STRICT;
         INSERT INTO ichido_endpoint (name, provider) VALUES ('billing', 'stripe');
         INSERT INTO ichido_event VALUES (1, 'evt_1', zeroblob(16), x'02', 0, 2, 'x', x'03', 1, \
                                          NULL, NULL, '2026-01-01T00:00:00.000000Z');
         INSERT INTO ichido_delivery VALUES (x'02', 1, '2026-01-01T00:00:00.000000Z', 'POST', \
                                             '/', x'', CAST('{}' AS BLOB), 0);
         INSERT INTO ichido_done VALUES (zeroblob(16), 0, 1, 'processed', 0, \
                                         '2026-01-01T00:00:00.000000Z', NULL, NULL)",
    )
    .unwrap();
    let hash = Sha256::digest(first).to_vec();
    file.execute("INSERT INTO ichido_migration VALUES (1, 'inbox', ?1, 'now')", [hash]).unwrap();
    let reader = Sqlite::open_reader(folder.path().join("i.db")).unwrap_err().to_string();
    assert!(reader.contains("version 1"), "{reader}");
    let inbox = open(config(folder.path()), |e| e.on("*", book)).await;
    assert_eq!(deliver(&inbox, "evt_1").await.unwrap().outcome, Outcome::Duplicate);
    assert_eq!(inbox.store().audit().await.unwrap(), []);
    assert_eq!(count(folder.path(), "webhook_inbox WHERE payload = '{}'"), 1);
}
