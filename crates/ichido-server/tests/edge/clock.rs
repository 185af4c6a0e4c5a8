//! Row 100 of the catalogue of bad input: our clock is wrong. To us it looks as if every sender's
//! were.

use ichido_verify::{Request, Secret, Settings, Timestamp, Verifier};

use crate::{
    common::{SECRET, Server, Site},
    wire::{Answer, ask, get, metric},
};

/// Slack refuses times that are too new as well; Stripe's only those that are too old.
fn site() -> Site {
    Site::new(
        "[database]\nurl = \"sqlite:ichido.db\"\n[endpoint.chat]\nprovider = \"slack\"\n\
         secrets = [\"env:SECRET\"]\n",
    )
}

/// A delivery that was signed so many seconds before now, or after where negative.
fn signed_ago(seconds: i64) -> Vec<u8> {
    let at = Timestamp::from_second(Timestamp::now().as_second() - seconds).expect("a time");
    let body = format!(r#"{{"type":"event_callback","event_id":"Ev{seconds}"}}"#);
    let verifier = Verifier::new("slack", &Settings::default(), &[Secret::new(SECRET)]);
    let mut request =
        Request { method: "POST".into(), body: body.clone().into(), ..Request::default() };
    verifier.expect("good").sign(&mut request, "", "", at).expect("signed");
    let mut text =
        format!("POST /webhooks/chat HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in request.headers.iter() {
        text.extend([name, ": ", std::str::from_utf8(value).expect("text"), "\r\n"]);
    }
    [text.as_bytes(), b"\r\n", body.as_bytes()].concat()
}

fn send(server: &Server, seconds: i64) -> Answer {
    ask(server.address, &signed_ago(seconds))
}

fn ready(server: &Server) -> String {
    let answer = get(server.address, "/readyz");
    assert_eq!(answer.status, 200, "a replayer must not be able to take us out: {answer:?}");
    answer.body
}

fn off(server: &Server) -> i64 {
    let text = get(server.address, "/metrics").body;
    let line = "ichido_clock_off_seconds{endpoint=\"chat\"} ";
    let value = text.lines().find_map(|have| have.strip_prefix(line)).expect("the gauge");
    value.parse().expect("a number")
}

#[test]
fn row_100_times_that_are_all_as_far_away_are_our_clock_and_it_is_said() {
    let site = site();
    let server = site.serve();
    for (far, word) in [(600, "ahead"), (-600, "behind")] {
        assert_eq!(ready(&server), "ok\n");
        for seconds in [far, far + 7, far - 5] {
            let answer = send(&server, seconds);
            assert_eq!((answer.status, answer.body.as_str()), (400, r#"{"error":"rejected"}"#));
        }
        let said = ready(&server);
        assert!(said.contains("clock: endpoint chat") && said.contains(word), "{said}");
        assert!(said.contains("time synchronisation"), "{said}");
        let off = off(&server);
        assert!((off - far).abs() < 10, "{off}");
        assert!(server.wait_for(word).contains("ERROR clock: this machine"), "{}", server.log());
        assert_eq!(send(&server, 0).status, 200);
        assert_eq!(ready(&server), "ok\n");
        assert_eq!(metric(server.address, "ichido_clock_off_seconds{endpoint=\"chat\"}"), 0);
    }
}

#[test]
fn replays_and_times_that_differ_are_not_our_clock() {
    let site = site();
    let server = site.serve();
    for seconds in [3_600, 7_200, 10_800, 400, 40_000] {
        assert_eq!(send(&server, seconds).status, 400);
    }
    assert_eq!(ready(&server), "ok\n");
    let replay = signed_ago(600);
    for _ in 0..10 {
        assert_eq!(ask(server.address, &replay).status, 400);
    }
    assert_eq!(ready(&server), "ok\n");
    assert!(!server.log().contains("clock"), "{}", server.log());
}
