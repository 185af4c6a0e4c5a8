//! Rows 41-44: methods, paths and query strings. Where a request goes is decided by the exact
//! path, and that it is real by the headers and the body alone.

use crate::{
    BILLING, EVENT, OTHER_SECRET, World, common::SECRET, head, mac, statuses, stripe, stripe_line,
};

#[test]
fn row_41_any_method_but_post_is_405_and_stores_nothing() {
    let world = World::new();
    let signature = stripe(EVENT.as_bytes());
    let headers = [("stripe-signature", signature.as_str())];
    for method in ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "post", "QUERY"] {
        let answer = world.server.send(method, BILLING, &headers, EVENT);
        assert_eq!(answer.status, 405, "{method}");
        assert!(answer.has("allow: POST"), "{method}: {answer:?}");
        // Nothing of the request, whatever the method asks for.
        let body = if method == "HEAD" { "" } else { r#"{"error":"method_not_allowed"}"# };
        assert_eq!(answer.body, body, "{method}");
    }
    assert_eq!(world.events(), 0);
}

#[test]
fn row_42_only_the_exact_path_of_an_endpoint_is_one() {
    let world = World::new();
    let signature = stripe(EVENT.as_bytes());
    let headers = [("stripe-signature", signature.as_str())];
    let unknown = world.post("/webhooks/stranger", &headers, EVENT);
    assert_eq!((unknown.status, unknown.body.as_str()), (404, r#"{"error":"not_found"}"#));
    for path in [
        "/webhooks/..",
        "/webhooks/../webhooks/billing",
        "/webhooks/%2e%2e/webhooks/billing",
        "/webhooks/./billing",
        "//webhooks/billing",
        "/webhooks//billing",
        "/webhooks/billing/",
        "/webhooks/billing/..",
        "/webhooks/billing;",
        "/webhooks/billing;a=b",
        "/webhooks/billing%00",
        "/webhooks/billing%20",
        "/webhooks/%62illing",
        "/webhooks%2fbilling",
        "/webhooks\\billing",
        "/webhooks/Billing",
        "/WEBHOOKS/billing",
        "/webhooks/",
        "/webhooks",
        "/webhooks/*",
        "/webhooks/b",
        "/",
        "*",
    ] {
        // The same answer for all of them, so no redirect to where it would have been.
        assert_eq!(world.post(path, &headers, EVENT), unknown, "{path}");
    }
    assert_eq!(world.events(), 0);
}

#[test]
fn row_42_a_path_that_no_url_can_have_is_400() {
    let world = World::new();
    let length = format!("content-length: {}", EVENT.len());
    let lines = [&*stripe_line(EVENT.as_bytes()), &length];
    for path in ["webhooks/billing", "/webhooks/bil\0ling", "/webhooks/bil\tling", "/webhooks/\x7f"]
    {
        let request = head(path, &lines) + EVENT;
        assert_eq!(statuses(&world.talk(request.as_bytes())), [400], "{path:?}");
    }
    assert_eq!(world.events(), 0);
}

#[test]
fn row_43_a_signature_that_is_good_for_another_endpoint_is_refused() {
    let world = World::new();
    let time = ichido_verify::Timestamp::now().as_second();
    let signed = mac(format!("{time}.{EVENT}").into(), OTHER_SECRET);
    let others = format!("t={time},v1={signed}");
    let ours = stripe(EVENT.as_bytes());
    let post = |path: &str, signature: &str| {
        world.post(path, &[("stripe-signature", signature)], EVENT).status
    };
    assert_eq!(post(BILLING, &others), 400);
    assert_eq!(post("/webhooks/other", &ours), 400);
    assert_eq!(world.events(), 0);
    assert_eq!(post("/webhooks/other", &others), 200);
    assert_eq!(post(BILLING, &ours), 200);
}

#[test]
fn row_44_what_a_query_string_says_is_ignored_and_never_logged() {
    let world = World::limited("[log]\nlevel = \"trace\"");
    let signature = stripe(EVENT.as_bytes());
    let path = format!("{BILLING}?secret={SECRET}&stripe-signature={signature}&x=querygeheim");
    assert_eq!(world.post(&path, &[], EVENT).status, 400);
    let bad = stripe(b"another body");
    assert_eq!(world.post(&path, &[("stripe-signature", &bad)], EVENT).status, 400);
    assert_eq!(world.events(), 0);
    let bad = format!("{BILLING}?stripe-signature={bad}&x=querygeheim");
    assert_eq!(world.post(&bad, &[("stripe-signature", &signature)], EVENT).status, 200);
    assert_eq!(world.post("/webhooks/nobody?x=querygeheim", &[], EVENT).status, 404);
    let log = world.server.wait_for("received");
    for hidden in ["querygeheim", SECRET, "v1="] {
        assert!(!log.contains(hidden), "{hidden} in:\n{log}");
    }
}
