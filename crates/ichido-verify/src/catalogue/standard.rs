//! Standard Webhooks and everybody who sends them, by name.
//!
//! They differ in little more than in how long they try; nothing here weakens the scheme.

use std::time::Duration;

use crate::Provider;
use crate::provider::{Algorithm, Encoding, Facts, Form, KeyForm, Sureness, Unit};
use crate::row::{HMAC, Row, Time, UNKNOWN};

const SPECIFICATION: Facts = Facts {
    schedule: "left to the sender; backoff over some days is usual",
    keeps_id: Some(true),
    client_error: "410 may turn the endpoint off; others are tried again",
    source: "https://github.com/standard-webhooks/standard-webhooks",
    sureness: Sureness::Read,
    ..UNKNOWN
};

const SVIX_FACTS: Facts = Facts {
    schedule: "at once, 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 10 h; off after 5 days of failures",
    keeps_id: Some(true),
    client_error: "tried again",
    source: "https://docs.svix.com/retries",
    sureness: Sureness::Read,
    ..UNKNOWN
};

const STANDARD: Row = Row {
    name: "standard-webhooks",
    deadline: Duration::from_secs(15),
    // The specification leaves the schedule to the sender; the longest common one.
    retry_horizon: Some(Duration::from_hours(3 * 24)),
    facts: SPECIFICATION,
    header: "webhook-signature",
    form: Form::Labelled { between: b' ', after_label: b',' },
    accepts: &[("v1", Algorithm::HmacSha256), ("v1a", Algorithm::Ed25519)],
    encoding: Encoding::Base64,
    key: KeyForm::StandardWebhooks,
    message: "{header:webhook-id}.{timestamp}.{body}",
    time: Some(Time {
        source: "header:webhook-timestamp",
        unit: Unit::Seconds,
        tolerance: Duration::from_mins(5),
        future_bounded: true,
    }),
    id: &["header:webhook-id"],
    event_type: &["text:type"],
    order_key: &["json:data.id"],
    occurred_at: &[("json:timestamp", Unit::Seconds)],
    ..HMAC
};

const SVIX: Row = Row {
    name: "svix",
    // Eight attempts over 27 h 35 min 5 s, rounded up.
    retry_horizon: Some(Duration::from_hours(28)),
    facts: SVIX_FACTS,
    // The libraries look at svix-* first, for each header on its own.
    header: "svix-signature|webhook-signature",
    message: "{header:svix-id|webhook-id}.{timestamp}.{body}",
    time: Some(Time {
        source: "header:svix-timestamp|webhook-timestamp",
        unit: Unit::Seconds,
        tolerance: Duration::from_mins(5),
        future_bounded: true,
    }),
    id: &["header:svix-id|webhook-id"],
    // Digits are Clerk's milliseconds; Resend sends created_at.
    occurred_at: &[("json:timestamp", Unit::Millis), ("text:created_at", Unit::Seconds)],
    ..STANDARD
};

/// GitLab's signing token; the plain token of older hooks is `gitlab-token`.
const GITLAB: Row = Row {
    name: "gitlab",
    deadline: Duration::from_secs(10),
    event_type: &["header:x-gitlab-event"],
    order_key: &["json:project.id"],
    occurred_at: &[],
    facts: Facts {
        schedule: "an endpoint that fails is turned off for a while, longer each time",
        keeps_id: Some(true),
        source: "https://docs.gitlab.com/user/project/integrations/webhooks/",
        sureness: Sureness::SecondHand,
        ..UNKNOWN
    },
    ..STANDARD
};

/// Polar's secret is the UTF-8 text of the whole `whsec_...`: no base64 is decoded.
const POLAR: Row = Row {
    name: "polar",
    accepts: &[("v1", Algorithm::HmacSha256)],
    key: KeyForm::Text,
    facts: Facts {
        source: "https://github.com/polarsource/polar/issues/13522",
        sureness: Sureness::SecondHand,
        ..SPECIFICATION
    },
    ..STANDARD
};

/// Those that send by Svix, with its headers and its schedule.
const BY_SVIX: &[&str] = &["brex", "clerk", "incident-io", "lithic", "resend", "stytch"];

/// Those that send the headers of the specification, on a schedule of their own.
const BY_SPECIFICATION: &[&str] = &["openai", "render", "replicate"];

/// That they send it is known from a list in Svix's source, their schedules are not.
const NAMED: Facts = Facts {
    source: "https://github.com/svix/svix-webhooks (ingest_source_in.rs)",
    sureness: Sureness::SecondHand,
    ..SPECIFICATION
};

pub(super) fn rows() -> Vec<Provider> {
    let svix = BY_SVIX.iter().map(|name| Row {
        name,
        facts: Facts { sureness: Sureness::SecondHand, ..SVIX_FACTS },
        ..SVIX
    });
    let standard = BY_SPECIFICATION.iter().map(|name| Row { name, facts: NAMED, ..STANDARD });
    let own = [STANDARD, SVIX, GITLAB, POLAR];
    own.into_iter().chain(svix).chain(standard).map(|row| row.compile()).collect()
}
