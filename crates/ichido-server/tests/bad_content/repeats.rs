//! Row 55: a body that comes again under another event id, where nobody signed the id. It is
//! taken, marked and told everywhere, or refused with nothing of it stored.

use std::{thread, time::Duration};

use ichido_testkit::eventually;
use ichido_verify::Timestamp;

use crate::{
    common::{Answer, SECRET},
    support::{World, on_both_engines, outcome, post, signed},
};

const BODY: &[u8] = br#"{"repository":{"id":1}}"#;

/// Endpoints that refuse, of each kind of provider whose ids are unsigned; `marking` does not.
const ENDPOINTS: &str = r#"
[endpoint.hub]
provider = "github"
secrets = ["env:SECRET"]
repeated_body = "refuse"
handlers = { "*" = "take.sql" }
[endpoint.shop]
provider = "shopify"
secrets = ["env:SECRET"]
repeated_body = "refuse"
mode = "async"
handlers = { "*" = { queue = "later" } }
[endpoint.own]
provider = "generic"
secrets = ["env:SECRET"]
repeated_body = "refuse"
[endpoint.own.generic]
header = "x-hub-signature-256"
prefix = "sha256="
id = "header:x-github-delivery"
"#;

/// Sends the body as its provider would, under an event id of the test's choice.
fn send(world: &World, (endpoint, provider): (&str, &str), id: &str) -> Answer {
    let headers = signed(provider, SECRET, id, BODY, Timestamp::now());
    post(&world.server, endpoint, &headers, BODY)
}

/// Waits until the log, which comes a moment after an answer, says this so many times.
async fn logged(world: &World, text: &str, times: usize) {
    let count = || world.server.log().matches(text).count();
    let said = async || (count() == times).then_some(());
    let said = eventually(text, Duration::from_secs(20), said).await;
    said.unwrap_or_else(|error| panic!("{error}, {times} times:\n{}", world.server.log()));
}

async fn row_55_a_known_body_under_a_fresh_unsigned_id_is_marked_and_told(world: World) {
    for id in ["first", "fresh", "fresher"] {
        assert_eq!(outcome(&send(&world, ("github", "github"), id)), "processed", "{id}");
        assert_eq!(outcome(&send(&world, ("github", "github"), id)), "duplicate", "a retry");
    }
    assert_eq!(world.count("{i}signed_digest WHERE repeats = 2").await, 1);
    let stats = world.stats();
    assert_eq!((&stats["repeated_bodies"], &stats["conflicts"]), (&1.into(), &0.into()));
    let (_, table) = world.site.run(&["stats"]);
    assert!(table.contains("\nrepeated bodies  1\n"), "{table}");
    let (code, audit) = world.site.run(&["audit"]);
    assert_eq!(code, Some(0), "two honest events can be alike: {audit}");
    assert!(audit.contains("1 bodies came under more than one event id"), "{audit}");
    let metrics = world.metrics();
    let line = "ichido_repeated_bodies_total{endpoint=\"github\"} 2";
    assert!(metrics.contains(line), "{metrics}");
    logged(&world, "repeated body: it came before", 2).await;
}

/// The world again, with the endpoints that refuse.
fn refusing(mut world: World) -> World {
    world.restart_with("[endpoint.billing]", &format!("{ENDPOINTS}[endpoint.billing]"));
    world
}

const REFUSING: [(&str, &str, &str); 3] =
    [("hub", "github", "processed"), ("shop", "shopify", "accepted"), ("own", "github", "ignored")];

async fn row_55_a_known_body_under_a_fresh_unsigned_id_is_refused_on_request(world: World) {
    let world = refusing(world);
    for (endpoint, provider, must) in REFUSING {
        let to = (endpoint, provider);
        assert_eq!(outcome(&send(&world, to, "first")), must, "{endpoint}");
        for _ in 0..2 {
            let answer = send(&world, to, "fresh");
            assert_eq!((answer.status, &*answer.body), (400, r#"{"error":"rejected"}"#));
        }
        assert_eq!(outcome(&send(&world, to, "first")), "duplicate", "a retry at {endpoint}");
        let metrics = world.metrics();
        let reason = format!("{{endpoint=\"{endpoint}\",reason=\"repeated_body\"}}");
        assert!(metrics.contains(&format!("ichido_rejected_total{reason} 2\n")), "{metrics}");
        assert!(!metrics.contains(&format!("ichido_receive_failed_total{reason}")), "{metrics}");
    }
    assert_eq!(world.count("{i}event").await, 3);
    assert_eq!(world.count("{i}delivery").await, 3);
    assert_eq!(world.count("{i}event WHERE event_id = 'fresh'").await, 0);
    logged(&world, "reason=\"repeated_body\"", 6).await;
    world.audit();
}

async fn row_55_of_known_bodies_at_once_one_is_stored(world: World) {
    let world = refusing(world);
    for (endpoint, provider, must) in REFUSING {
        let send = |n: usize| send(&world, (endpoint, provider), &format!("id-{n}"));
        let answers = thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|n| scope.spawn(move || send(n))).collect();
            all.into_iter().map(|one| one.join().expect("no panic")).collect::<Vec<_>>()
        });
        let taken: Vec<_> = answers.iter().filter(|answer| answer.status == 200).collect();
        assert_eq!(taken.len(), 1, "{endpoint}: {answers:?}");
        assert_eq!(outcome(taken[0]), must);
        let refused = answers.iter().filter(|answer| answer.status == 400).count();
        assert_eq!(refused, 7, "{endpoint}: {answers:?}");
    }
    assert_eq!(world.count("{i}event").await, 3);
    assert_eq!(world.count("taken").await, 1, "one handler, one effect");
    world.audit();
}

on_both_engines! {
    row_55_a_known_body_under_a_fresh_unsigned_id_is_marked_and_told,
    row_55_a_known_body_under_a_fresh_unsigned_id_is_refused_on_request,
    row_55_of_known_bodies_at_once_one_is_stored,
}
