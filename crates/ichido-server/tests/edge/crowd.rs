//! Row 32 of the catalogue of bad input: more connections than there are places for.

use crate::{
    common::{Server, Site},
    wire::{Wire, ask, delivery, ended, eventually, get, metric, site, stored},
};

/// Connections that say nothing.
fn silent(server: &Server, count: usize) -> Vec<Wire> {
    (0..count).map(|_| Wire::open(server.address)).collect()
}

fn open(server: &Server) -> u64 {
    metric(server.address, "ichido_http_connections")
}

#[test]
fn row_32_silent_connections_are_capped_and_keep_nobody_out() {
    let site = site("limits.connections_max = 20");
    let server = site.serve();
    let silent = silent(&server, 100);
    for number in 0..10 {
        assert_eq!(ask(server.address, &delivery(number, "")).status, 200);
        assert!(open(&server) <= 20);
    }
    assert_eq!(stored(&site), 10);
    assert!(ended(server.address, "crowded") >= 80);
    assert!(server.log().contains("limits.connections_max"), "{}", server.log());
    drop(silent);
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
