//! Rule 14: where the signature does not cover the event id, bytes that come again under another
//! id are marked and told, or refused with nothing of them stored. A retry keeps its id.

use futures_util::future::join_all;
use ichido::{
    Endpoint, Mode, Outcome, ReceiveError, RepeatedBody, SqlHandler, Store, Taken,
    verify::Rejection,
};

use crate::engines::{BOOK, Engine, SECRET, billing, event, receive, signed, signed_as, sound};

const BODY: &[u8] = br#"{"repository":{"id":1}}"#;

/// The three ways of a verified event: a handler now, work for later, no handler at all.
#[derive(Debug, Clone, Copy)]
enum Way {
    Run,
    Later,
    Ignored,
}

const WAYS: [(Way, Outcome); 3] = [
    (Way::Run, Outcome::Processed),
    (Way::Later, Outcome::Accepted),
    (Way::Ignored, Outcome::Ignored),
];

/// An endpoint of a provider that does not sign its ids.
fn github<E: Engine>(name: &str, way: Way, repeated_body: RepeatedBody) -> Endpoint<E::S> {
    let endpoint = Endpoint::new(name, "github").secret(SECRET).repeated_body(repeated_body);
    match way {
        Way::Run => E::on_sql(endpoint, "*", SqlHandler::parse("book", BOOK).unwrap()),
        Way::Later => endpoint.mode(Mode::Async).leave("*", "later"),
        Way::Ignored => endpoint,
    }
}

async fn send<E: Engine>(
    engine: &E,
    endpoint: &str,
    body: &[u8],
    id: &str,
) -> Result<Taken, ReceiveError> {
    receive(engine, endpoint, signed_as(engine.inbox(), endpoint, body, id)).await
}

/// The outcome, or the reason and the status of the refusal.
async fn replay<E: Engine>(engine: &E, id: &str) -> Result<Outcome, (Rejection, u16)> {
    match send(engine, "github", BODY, id).await {
        Ok(taken) => Ok(taken.outcome),
        Err(ReceiveError::Rejected { reason, status, .. }) => Err((reason, status)),
        Err(error) => panic!("{error}"),
    }
}

const REFUSED: Result<Outcome, (Rejection, u16)> = Err((Rejection::RepeatedBody, 400));

/// How many bodies came under more than one id.
async fn repeated<E: Engine>(engine: &E) -> u64 {
    engine.inbox().store().stats().await.unwrap().repeated_bodies
}

pub(crate) async fn a_replayed_body_under_a_fresh_unsigned_id_is_marked_and_told<E: Engine>() {
    for (way, outcome) in WAYS {
        let engine = E::open(vec![github::<E>("github", way, RepeatedBody::Mark)]).await;
        assert_eq!(repeated(&engine).await, 0);
        for (id, again) in [("first", false), ("second", true), ("third", true)] {
            let taken = send(&engine, "github", BODY, id).await.unwrap();
            assert_eq!((taken.outcome, taken.repeated), (outcome, again), "{way:?} {id}");
            let retry = send(&engine, "github", BODY, id).await.unwrap();
            assert_eq!((retry.outcome, retry.repeated), (Outcome::Duplicate, false));
            assert!(!taken.conflict && !retry.conflict);
        }
        assert_eq!(engine.rows("SELECT repeats FROM ichido.signed_digest").await, ["2"]);
        assert_eq!(repeated(&engine).await, 1, "one body, however often it came");
        sound(&engine).await;
    }
}

pub(crate) async fn a_replayed_body_is_refused_where_the_endpoint_says_so_and_a_retry_is_not<
    E: Engine,
>() {
    for (way, outcome) in WAYS {
        let engine = E::open(vec![github::<E>("github", way, RepeatedBody::Refuse)]).await;
        assert_eq!(replay(&engine, "first").await, Ok(outcome));
        assert_eq!(replay(&engine, "fresh").await, REFUSED, "{way:?}");
        assert_eq!(replay(&engine, "first").await, Ok(Outcome::Duplicate));
        assert_eq!(replay(&engine, "fresh").await, REFUSED, "the refused id was not taken");
        assert_eq!(engine.rows("SELECT event_id FROM ichido.event").await, ["first"]);
        assert_eq!(engine.rows("SELECT count(*) FROM ichido.delivery").await, ["1"]);
        assert!(engine.rows("SELECT 1 FROM ledger").await.len() <= 1, "no second effect");
        sound(&engine).await;
    }
}

pub(crate) async fn of_replays_at_once_one_is_stored<E: Engine>() {
    for (way, outcome) in WAYS {
        let engine = E::open(vec![github::<E>("github", way, RepeatedBody::Refuse)]).await;
        let ids = ["a", "b", "c", "d", "e", "f", "g", "h"];
        let all = join_all(ids.map(|id| replay(&engine, id))).await;
        let stored = all.iter().filter(|found| **found == Ok(outcome)).count();
        let refused = all.iter().filter(|found| **found == REFUSED).count();
        assert_eq!((stored, refused), (1, 7), "{way:?}: {all:?}");
        assert_eq!(engine.rows("SELECT count(*) FROM ichido.event").await, ["1"]);
        assert!(engine.rows("SELECT 1 FROM ledger").await.len() <= 1, "one effect");
        sound(&engine).await;
    }
}

pub(crate) async fn honest_neighbours_of_a_refused_replay_are_taken<E: Engine>() {
    for (way, outcome) in WAYS {
        let engine = E::open(vec![github::<E>("github", way, RepeatedBody::Refuse)]).await;
        assert_eq!(replay(&engine, "first").await, Ok(outcome));
        let honest = |n: usize| format!(r#"{{"repository":{{"id":1}},"n":{n}}}"#);
        let all = (0..12).map(|n| {
            let (engine, honest) = (&engine, &honest);
            async move {
                if n % 3 == 0 {
                    return replay(engine, &format!("replay-{n}")).await;
                }
                let taken = send(engine, "github", honest(n).as_bytes(), &format!("h-{n}")).await;
                Ok(taken.unwrap().outcome)
            }
        });
        for (n, found) in join_all(all).await.into_iter().enumerate() {
            assert_eq!(found, if n % 3 == 0 { REFUSED } else { Ok(outcome) }, "{way:?} {n}");
        }
        assert_eq!(engine.rows("SELECT count(*) FROM ichido.event").await, ["9"]);
        sound(&engine).await;
    }
}

/// An id that is cut off on the way is no way round.
pub(crate) async fn a_body_that_came_without_its_id_is_known_under_any_other<E: Engine>() {
    let endpoint = github::<E>("github", Way::Later, RepeatedBody::Refuse);
    let engine = E::open(vec![endpoint]).await;
    let mut request = signed_as(engine.inbox(), "github", BODY, "cut off");
    request.headers.remove("x-github-delivery");
    let taken = receive(&engine, "github", request).await.unwrap();
    assert_eq!(taken.outcome, Outcome::Accepted);
    assert_eq!(engine.rows("SELECT count(*) FROM ichido.review").await, ["1"]);
    assert_eq!(replay(&engine, "fresh").await, REFUSED);
    sound(&engine).await;
}

pub(crate) async fn two_endpoints_do_not_know_each_others_bodies<E: Engine>() {
    let names = ["github", "other"];
    let endpoints = names.map(|name| github::<E>(name, Way::Run, RepeatedBody::Refuse));
    let engine = E::open(endpoints.into()).await;
    for (name, id) in names.iter().zip(["first", "second"]) {
        let taken = send(&engine, name, BODY, id).await.unwrap();
        assert_eq!((taken.outcome, taken.repeated), (Outcome::Processed, false), "{name}");
    }
    assert_eq!(repeated(&engine).await, 0);
    sound(&engine).await;
}

/// They pay nothing for it, and two of their events may well be alike.
pub(crate) async fn a_signed_id_is_no_business_of_repeated_bodies<E: Engine>() {
    let secret = "whsec_Z2VoZWltZ2VoZWlt";
    let standard = Endpoint::new("standard", "standard-webhooks").secret(secret);
    let engine = E::open(vec![standard, billing::<E>(&[("*", BOOK)])]).await;
    for id in ["msg_1", "msg_2"] {
        let taken = send(&engine, "standard", BODY, id).await.unwrap();
        assert_eq!((taken.outcome, taken.repeated), (Outcome::Ignored, false));
    }
    let stripe = signed(engine.inbox(), "billing", &event("evt_1", "invoice.paid", 5, 1));
    assert!(!receive(&engine, "billing", stripe).await.unwrap().repeated);
    assert!(engine.rows("SELECT 1 FROM ichido.signed_digest").await.is_empty());
    assert_eq!(repeated(&engine).await, 0);
}
