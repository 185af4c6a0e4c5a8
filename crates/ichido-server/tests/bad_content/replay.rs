//! The same delivery again: repeated, late, changed, without its id, a thousand times at once.

use std::thread;

use ichido_verify::Timestamp;

use crate::{
    common::{AWAY, SECRET, Site},
    support::{World, on_both_engines, outcome, post, signed, stripe},
};

const EVENT: &[u8] = br#"{"id":"evt_1","type":"a.b","amount":1}"#;

async fn row_53_an_exact_repeat_is_a_duplicate_that_is_counted_and_stores_nothing(world: World) {
    let headers = stripe(EVENT, SECRET, Timestamp::now());
    let send = || outcome(&post(&world.server, "billing", &headers, EVENT));
    assert_eq!(send(), "processed");
    assert_eq!((send(), send()), ("duplicate".into(), "duplicate".into()));
    let text = world.metrics();
    let line = "ichido_events_total{endpoint=\"billing\",outcome=\"duplicate\"} 2";
    assert!(text.contains(line), "{text}");
    for table in ["{i}event", "{i}delivery", "taken"] {
        assert_eq!(world.count(table).await, 1, "{table}");
    }
    assert_eq!(world.stats()["conflicts"], 0);
    world.audit();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_54_a_repeat_outside_the_tolerance_is_refused() {
    let (short, long) = ("[endpoint.billing]", "[endpoint.billing]\ntolerance = \"1h\"");
    let mut world = World::sqlite("");
    world.restart_with(short, long);
    let ten_minutes_ago = Timestamp::now() - std::time::Duration::from_mins(10);
    let headers = stripe(EVENT, SECRET, ten_minutes_ago);
    let send = |world: &World| post(&world.server, "billing", &headers, EVENT);
    assert_eq!(outcome(&send(&world)), "processed");
    assert_eq!(outcome(&send(&world)), "duplicate");
    world.restart_with(long, short);
    let late = send(&world);
    assert_eq!((late.status, late.body.as_str()), (400, r#"{"error":"rejected"}"#));
    assert!(world.server.wait_for("too_old").contains("billing"));
    assert_eq!(world.count("{i}event").await, 1);
}

async fn row_56_the_same_id_with_another_body_is_a_conflict_and_the_first_wins(world: World) {
    let other = br#"{"id":"evt_1","type":"a.b","amount":2}"#;
    assert_eq!(world.take(EVENT), "processed");
    assert_eq!(world.take(other), "duplicate");
    assert_eq!(world.take(other), "duplicate");
    assert_eq!(world.only().await.body, EVENT);
    assert_eq!(world.count("taken").await, 1);
    assert_eq!(world.count("{i}conflict WHERE digest <> first_digest").await, 1);
    let both = "{i}conflict c JOIN {i}event e ON e.id = c.receipt AND e.digest = c.first_digest";
    assert_eq!(world.count(both).await, 1);
    assert_eq!(world.stats()["conflicts"], 1);
    let text = world.metrics();
    assert!(text.contains("ichido_conflicts_total{endpoint=\"billing\"} 2"), "{text}");
    assert!(world.server.wait_for("conflict").contains("the first one wins"));
    world.audit();
}

async fn row_57_a_delivery_without_its_unsigned_id_waits_for_a_human(world: World) {
    let mut headers = signed("github", SECRET, "1-2-3", EVENT, Timestamp::now());
    headers.retain(|(name, _)| name != "x-github-delivery");
    let send = || outcome(&post(&world.server, "github", &headers, EVENT));
    assert_eq!((send(), send()), ("accepted".into(), "duplicate".into()));
    let event = world.only().await;
    assert!(event.event_id.starts_with("sha256:"), "{event:?}");
    assert_eq!((&*event.event_type, &*event.state), ("unreadable", "review"));
    assert_eq!((event.why.as_deref(), &*event.body), (Some("id_missing"), EVENT));
    assert_eq!(world.count("taken").await, 0);
    world.audit();
}

#[test]
fn row_58_an_identity_is_never_forgotten_while_its_event_may_come_again() {
    // The longest schedule of each, and a day; what never resends, the day alone.
    for (provider, hours, least) in
        [("stripe", 96, "4d"), ("svix", 52, "52h"), ("shopify", 28, "28h"), ("github", 24, "1d")]
    {
        for (keep, code) in [(hours - 1, Some(1)), (hours, Some(0))] {
            let config = format!(
                "[database]\nurl = \"{AWAY}\"\n[endpoint.billing]\nprovider = \"{provider}\"\n\
                 secrets = [\"file:s.txt\"]\nkeep_identity = \"{keep}h\"\n"
            );
            let site = Site::new(&config).file("s.txt", "whsec_Z2VoZWlt");
            let (found, text) = site.run(&["config", "check"]);
            assert_eq!(found, code, "{provider} {keep} h\n{text}");
            let fix = format!("must be at least {least}");
            assert_eq!(text.contains(&fix), code == Some(1), "{text}");
        }
    }
}

async fn row_59_a_thousand_copies_at_once_are_one_event(world: World) {
    let headers = stripe(EVENT, SECRET, Timestamp::now());
    let send = || outcome(&post(&world.server, "later", &headers, EVENT));
    let outcomes = thread::scope(|scope| {
        let all: Vec<_> = (0..1_000).map(|_| scope.spawn(send)).collect();
        all.into_iter().map(|one| one.join().expect("no panic")).collect::<Vec<_>>()
    });
    let accepted = outcomes.iter().filter(|outcome| *outcome == "accepted").count();
    let duplicate = outcomes.iter().filter(|outcome| *outcome == "duplicate").count();
    assert_eq!((accepted, duplicate), (1, 999));
    for table in ["{i}event", "{i}delivery", "{i}work"] {
        assert_eq!(world.count(table).await, 1, "{table}");
    }
    world.audit();
}

async fn row_59_copies_at_once_run_the_handler_once(world: World) {
    let headers = stripe(EVENT, SECRET, Timestamp::now());
    let send = || outcome(&post(&world.server, "billing", &headers, EVENT));
    let outcomes = thread::scope(|scope| {
        let all: Vec<_> = (0..100).map(|_| scope.spawn(send)).collect();
        all.into_iter().map(|one| one.join().expect("no panic")).collect::<Vec<_>>()
    });
    assert_eq!(outcomes.iter().filter(|outcome| *outcome == "processed").count(), 1);
    assert_eq!(outcomes.iter().filter(|outcome| *outcome == "duplicate").count(), 99);
    assert_eq!((world.count("{i}event").await, world.count("taken").await), (1, 1));
    world.audit();
}

async fn row_60_the_same_id_at_two_endpoints_is_two_events(world: World) {
    for endpoint in ["billing", "second"] {
        assert_eq!(outcome(&world.post(endpoint, EVENT)), "processed");
        assert_eq!(outcome(&world.post(endpoint, EVENT)), "duplicate");
    }
    assert_eq!(world.count("{i}event WHERE event_id = 'evt_1'").await, 2);
    assert_eq!(world.count("taken").await, 2);
    assert_eq!(world.stats()["conflicts"], 0);
    world.audit();
}

on_both_engines! {
    row_53_an_exact_repeat_is_a_duplicate_that_is_counted_and_stores_nothing,
    row_56_the_same_id_with_another_body_is_a_conflict_and_the_first_wins,
    row_57_a_delivery_without_its_unsigned_id_waits_for_a_human,
    row_59_a_thousand_copies_at_once_are_one_event,
    row_59_copies_at_once_run_the_handler_once,
    row_60_the_same_id_at_two_endpoints_is_two_events,
}
