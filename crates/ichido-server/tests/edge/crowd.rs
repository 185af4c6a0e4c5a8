//! Row 32 of the catalogue of bad input: more connections than there are places for.

use std::{net::SocketAddr, thread};

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

use crate::{
    common::{Server, Site},
    wire::{Wire, ask, delivery, ended, eventually, get, metric, rss_bytes, site, stored},
};

/// Connections that say nothing.
fn silent(server: &Server, count: usize) -> Vec<Wire> {
    (0..count).map(|_| Wire::open(server.address)).collect()
}

fn open(address: SocketAddr) -> u64 {
    metric(address, "ichido_http_connections")
}

#[test]
fn row_32_silent_connections_are_capped_and_keep_nobody_out() {
    let site = site("health.listen = \"127.0.0.1:0\"\nlimits.connections_max = 20");
    let server = site.serve();
    let health = server.health();
    let silent = silent(&server, 100);
    for number in 0..10 {
        assert_eq!(ask(server.address, &delivery(number, "")).status, 200);
        assert!(open(health) <= 21, "one of them asks for this");
    }
    assert_eq!(get(health, "/livez").status, 200);
    assert_eq!(stored(&site), 10);
    assert!(ended(health, "crowded") >= 80);
    assert!(server.log().contains("limits.connections_max"), "{}", server.log());
    drop(silent);
}

#[test]
fn while_all_connections_wait_for_the_database_health_answers() {
    let site = site(
        "health.listen = \"127.0.0.1:0\"\n[limits]\nconnections_max = 3\nreceive_wait = \"7s\"",
    );
    let server = site.serve();
    let file = rusqlite::Connection::open(site.path().join("ichido.db")).expect("opens");
    file.execute_batch("BEGIN IMMEDIATE").expect("locked");
    let mut waiting: Vec<_> =
        (0..5).map(|number| Wire::sent(server.address, &delivery(number, ""))).collect();
    eventually("three wait for the database", || {
        (metric(server.health(), "ichido_http_in_flight") == 4).then_some(())
    });
    assert_eq!(get(server.health(), "/livez").status, 200);
    file.execute_batch("COMMIT").expect("unlocked");
    for wire in &mut waiting {
        assert_eq!(wire.answer().expect("an answer").status, 200, "also those that waited outside");
    }
}

#[test]
fn a_connection_that_waits_for_its_answer_does_not_give_way() {
    let site = site("[limits]\nconnections_max = 4\nreceive_wait = \"7s\"");
    let server = site.serve();
    let file = rusqlite::Connection::open(site.path().join("ichido.db")).expect("opens");
    file.execute_batch("BEGIN IMMEDIATE").expect("locked");
    let mut waiting: Vec<_> =
        (0..3).map(|number| Wire::sent(server.address, &delivery(number, ""))).collect();
    eventually("all three wait for the database", || {
        (metric(server.address, "ichido_http_in_flight") >= 4).then_some(())
    });
    let crowd = silent(&server, 4);
    assert_eq!(get(server.address, "/livez").status, 200);
    file.execute_batch("COMMIT").expect("unlocked");
    for wire in &mut waiting {
        assert_eq!(wire.answer().expect("an answer").status, 200);
    }
    drop(crowd);
}

/// The one peer that these tests can be is 127.0.0.1, which by default is not counted.
fn counted(per_peer: usize, except: &str) -> Site {
    site(&format!(
        "[limits]\nconnections_per_peer_max = {per_peer}\n\
         connections_per_peer_except = \"{except}\""
    ))
}

#[test]
fn one_peer_may_have_so_many_connections_and_no_more() {
    let site = counted(5, "private");
    let server = site.serve();
    let held: Vec<_> = (0..5)
        .map(|_| {
            let mut wire = Wire::sent(server.address, b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n");
            assert_eq!(wire.answer().expect("an answer").status, 200);
            wire
        })
        .collect();
    assert!(Wire::open(server.address).is_closed(), "the sixth");
    drop(held);
    eventually("places are given back", || {
        let mut wire = Wire::sent(server.address, b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n");
        wire.answer().filter(|answer| answer.status == 200)
    });
    eventually("it is counted", || (ended(server.address, "peer_full") >= 1).then_some(()));
}

#[test]
fn a_peer_that_is_excepted_may_have_as_many_as_there_are() {
    for site in [counted(5, "loopback"), counted(5, "127.0.0.0/8"), counted(0, ""), site("")] {
        let server = site.serve();
        let held = silent(&server, 100);
        assert_eq!(get(server.address, "/livez").status, 200);
        assert_eq!(ended(server.address, "peer_full"), 0);
        assert_eq!(ended(server.address, "crowded"), 0);
        drop(held);
    }
}

/// Half of them stop within their head, half within their body.
#[test]
fn two_thousand_clients_that_stop_half_way_keep_nobody_out_and_take_little_memory() {
    const CLIENTS: usize = 2_000;
    const PLACES: u64 = 1_024;
    const SENT: u64 = 8_000;
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: Some(CLIENTS as u64 + 200), ..limit };
    setrlimit(Resource::Nofile, raised).expect("this test needs 2,200 open files");
    let site = site("");
    let server = site.serve();
    assert_eq!(get(server.address, "/livez").status, 200);
    let before = rss_bytes(server.id());
    let head = "POST /webhooks/billing HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n";
    let within_head = format!("{head}x: {}", "y".repeat(8_000)).into_bytes();
    let within_body = format!("{head}\r\n{}", "y".repeat(8_000)).into_bytes();
    thread::scope(|scope| {
        let (server, stops) = (&server, [within_head, within_body]);
        let crowd = scope.spawn(move || {
            (0..CLIENTS).map(|n| Wire::sent(server.address, &stops[n % 2])).collect::<Vec<_>>()
        });
        let mut number = 0;
        let mut deliver = || {
            number += 1;
            assert_eq!(ask(server.address, &delivery(number, "")).status, 200, "{number}");
        };
        while !crowd.is_finished() {
            deliver();
        }
        let crowd = crowd.join().expect("connected");
        (0..20).for_each(|_| deliver());
        assert!(open(server.address) <= PLACES);
        // Of each: what it sent, twice while it is read, its buffers, and its task.
        let bound = PLACES * (2 * SENT + 3 * 8_192 + 8_192) + (8 << 20);
        let after = rss_bytes(server.id());
        assert!(after < before + bound, "{before} -> {after}, more than {bound}");
        drop(crowd);
        assert_eq!(stored(&site), i64::try_from(number).expect("small"));
    });
}

#[test]
fn without_a_file_left_nothing_is_accepted_and_afterwards_all_is_well() {
    let site = site("");
    let server = site.serve();
    assert_eq!(ask(server.address, &delivery(1, "")).status, 200);
    let pid = Pid::from_raw(i32::try_from(server.id()).expect("small")).expect("a process");
    let files = std::fs::read_dir(format!("/proc/{}/fd", server.id())).expect("there").count();
    let few = Rlimit { current: Some(files as u64 + 10), ..getrlimit(Resource::Nofile) };
    let before = prlimit(Some(pid), Resource::Nofile, few).expect("lowered");
    let crowd = silent(&server, 50);
    eventually("it is said", || server.log().contains("cannot accept").then_some(()));
    drop(crowd);
    assert_eq!(ask(server.address, &delivery(2, "")).status, 200);
    assert!(metric(server.address, "ichido_http_accept_failed_total") > 0);
    prlimit(Some(pid), Resource::Nofile, before).expect("raised");
}

#[test]
fn too_few_open_files_are_named_at_the_start() {
    let site = site("limits.connections_max = 10_000_000");
    let server = site.serve();
    server.wait_for("LimitNOFILE");
    assert_eq!(get(server.address, "/livez").status, 200);
}
