//! Row 102 of the catalogue of bad input: the server is told to end while it receives.

use std::{
    collections::HashSet,
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use crate::{
    gate::Gate,
    wire::{DEADLINE, Wire, ask, body, delivery, eventually, get, site},
};

#[test]
fn row_102_sigterm_during_a_receive_lets_it_finish() {
    let gate = Gate::closed("");
    let mut server = gate.site.serve();
    let mut wire = Wire::sent(server.address, &delivery(1, ""));
    gate.wait_for(1);
    server.signal("TERM");
    server.wait_for("stopping");
    gate.open();
    let answer = wire.answer().expect("an answer");
    assert_eq!((answer.status, answer.body.as_str()), (200, r#"{"outcome":"ignored"}"#));
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(gate.stored(), 1);
    assert_eq!(server.exit_code(), Some(0));
}

#[test]
fn row_102_a_receive_whose_client_is_gone_is_finished_before_the_end() {
    let gate = Gate::closed("");
    let mut server = gate.site.serve();
    let wire = Wire::sent(server.address, &Gate::handled(1));
    gate.wait_for(1);
    drop(wire);
    server.signal("TERM");
    server.wait_for("stopping");
    assert!(!server.log().contains("stopped"));
    gate.open();
    assert_eq!(server.exit_code(), Some(0));
    assert_eq!(gate.stored(), 1);
}

#[test]
fn row_102_at_the_shutdown_deadline_what_is_not_done_is_503() {
    let gate = Gate::closed("shutdown_deadline = \"200ms\"");
    let mut server = gate.site.serve();
    let whole = delivery(1, "");
    let mut within = Wire::sent(server.address, &whole[..whole.len() - 1]);
    let mut wire = Wire::sent(server.address, &delivery(2, ""));
    gate.wait_for(1);
    server.signal("TERM");
    for wire in [&mut wire, &mut within] {
        let answer = wire.answer().expect("an answer");
        assert_eq!(answer.status, 503, "nothing was committed");
        assert_eq!(answer.header("retry-after"), Some("5"));
    }
    assert_eq!(server.exit_code(), Some(0));
    gate.open();
    let server = gate.site.serve();
    assert_eq!(ask(server.address, &delivery(2, "")).status, 200);
    assert_eq!(gate.stored(), 1, "the half delivery left nothing");
}

#[test]
fn a_second_signal_ends_at_once_and_says_so() {
    for (first, second) in [("TERM", "TERM"), ("INT", "TERM"), ("INT", "INT")] {
        let gate = Gate::closed("shutdown_deadline = \"60s\"");
        let mut server = gate.site.serve();
        let mut wire = Wire::sent(server.address, &delivery(1, ""));
        gate.wait_for(1);
        server.signal(first);
        server.wait_for("stopping");
        let began = Instant::now();
        server.signal(second);
        assert_eq!(server.exit_code(), Some(1));
        assert!(began.elapsed() < Duration::from_secs(10), "the deadline was 60 s");
        server.wait_for("a second signal");
        assert!(wire.answer().is_none(), "no answer is no acknowledgement");
    }
}

#[test]
fn while_it_stops_the_health_listener_says_so() {
    let gate = Gate::closed("health.listen = \"127.0.0.1:0\"");
    let mut server = gate.site.serve();
    let health = server.health();
    assert_eq!(get(health, "/readyz").status, 200);
    let mut wire = Wire::sent(server.address, &delivery(1, ""));
    gate.wait_for(1);
    server.signal("TERM");
    server.wait_for("stopping");
    let ready = get(health, "/readyz");
    assert_eq!((ready.status, ready.body.as_str()), (503, "stopping\n"));
    assert_eq!(get(health, "/livez").status, 200);
    gate.open();
    assert_eq!(wire.answer().expect("an answer").status, 200);
    assert_eq!(server.exit_code(), Some(0));
}

/// Senders that go on until the server is gone, some with their connection kept.
#[test]
fn row_102_sigterm_in_a_burst_leaves_no_acknowledgement_without_a_row() {
    let site = site("");
    let mut server = site.serve();
    let acknowledged = Mutex::new(HashSet::new());
    thread::scope(|scope| {
        for sender in 0..8 {
            let (address, acknowledged) = (server.address, &acknowledged);
            scope.spawn(move || {
                let mut wire = Wire::open(address);
                for number in (sender..).step_by(8) {
                    wire.send(&delivery(number, ""));
                    match wire.answer() {
                        Some(answer) if answer.status == 200 => {
                            acknowledged.lock().expect("not poisoned").insert(number);
                        }
                        _ => return,
                    }
                }
            });
        }
        eventually("the burst is on its way", || {
            (acknowledged.lock().expect("not poisoned").len() > 100).then_some(())
        });
        assert_eq!(server.terminate(), Some(0));
    });
    let file = rusqlite::Connection::open(site.path().join("ichido.db")).expect("opens");
    let mut query = file.prepare("SELECT event_id FROM ichido_event").expect("prepared");
    let rows = query.query_map([], |row| row.get::<_, String>(0)).expect("rows");
    let stored: HashSet<_> = rows.map(|id| id.expect("text")).collect();
    for number in acknowledged.into_inner().expect("not poisoned") {
        assert!(stored.contains(&format!("evt_{number}")), "{}", body(number));
    }
}

#[test]
fn an_idle_connection_does_not_delay_the_end() {
    let site = site("");
    let mut server = site.serve();
    let mut kept = Wire::sent(server.address, b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n");
    assert_eq!(kept.answer().expect("an answer").status, 200);
    let silent = Wire::open(server.address);
    let began = Instant::now();
    assert_eq!(server.terminate(), Some(0));
    assert!(began.elapsed() < DEADLINE.min(Duration::from_secs(15)), "{:?}", began.elapsed());
    assert!(kept.is_closed());
    drop(silent);
}
