//! Settings of an endpoint that would lose or double an event, each refused with its fix.
//!
//! It must never stop at the first: whoever mends a configuration wants to see them all.

use std::time::Duration;

use super::{EndpointSpec, Mode, OnFailure, RepeatedBody, span_text as text};

/// Slack between the provider's last retry and the end of the memory of its event.
const IDENTITY_MARGIN: Duration = Duration::from_hours(24);

/// What contradicts what in `spec`.
pub(super) fn of(
    spec: &EndpointSpec,
    retry_horizon: Option<Duration>,
    handler_timeout_max: Duration,
) -> Vec<String> {
    let mut problems: Vec<String> = timeout(spec, handler_timeout_max).into_iter().collect();
    if spec.lease <= spec.handler_timeout {
        problems.push(format!(
            "lease ({}) must be longer than handler_timeout ({}): a handler that still runs would \
             be started again",
            text(spec.lease),
            text(spec.handler_timeout)
        ));
    }
    if spec.max_attempts == 0 {
        problems.push("max_attempts is 0: no handler would ever start; use 1 or more".into());
    }
    problems.extend(refuse(spec, retry_horizon));
    if spec.repeated_body == RepeatedBody::Refuse && spec.id_signed {
        problems.push(format!(
            "repeated_body = \"refuse\" has nothing to do: {} signs the event id, so that a \
             replay is a duplicate; leave it out",
            spec.provider
        ));
    }
    problems.extend(order(spec));
    let floor = retry_horizon.unwrap_or_default() + IDENTITY_MARGIN;
    if spec.keep_identity < floor {
        problems.push(format!(
            "keep_identity ({}) must be at least {}: {} may still send the event again, and it \
             would take effect twice",
            text(spec.keep_identity),
            text(floor),
            spec.provider
        ));
    }
    problems
}

fn timeout(spec: &EndpointSpec, max: Duration) -> Option<String> {
    let (timeout, ours) = (spec.handler_timeout, spec.receive_within());
    if timeout.is_zero() {
        return Some("handler_timeout is 0: give handlers some time".into());
    }
    if timeout > max {
        let (timeout, max) = (text(timeout), text(max));
        return Some(format!("handler_timeout is {timeout}; this engine allows {max}: lower it"));
    }
    (spec.mode == Mode::Sync && timeout >= ours).then(|| {
        format!(
            "handler_timeout ({}) must be below the {} within which {} is answered: lower it, or \
             use mode = \"async\"",
            text(timeout),
            text(ours),
            spec.provider
        )
    })
}

/// Order is kept by workers, and by something to tell events apart by.
fn order(spec: &EndpointSpec) -> Option<String> {
    spec.order_by_key?;
    if spec.mode == Mode::Sync {
        return Some(
            "order_by_key cannot hold with mode = \"sync\": a handler runs as its delivery comes, \
             and overtakes one that was kept; use mode = \"async\", or remove it"
                .into(),
        );
    }
    (!spec.has_order_key).then(|| {
        format!(
            "order_by_key has nothing to go by: the events of {} name no order key; remove it",
            spec.provider
        )
    })
}

/// Refusing is an answer, and there must be somebody who sends again what was refused.
fn refuse(spec: &EndpointSpec, retry_horizon: Option<Duration>) -> Option<String> {
    if spec.on_failure != OnFailure::Refuse {
        return None;
    }
    if spec.mode == Mode::Async {
        return Some(
            "on_failure = \"refuse\" cannot hold with mode = \"async\": the event is answered \
             before its handler runs; remove it, or use mode = \"sync\""
                .into(),
        );
    }
    retry_horizon.is_none().then(|| {
        format!(
            "on_failure = \"refuse\" loses events: {} never sends again what was refused; use \
             \"keep\"",
            spec.provider
        )
    })
}
