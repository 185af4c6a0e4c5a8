//! The built-in providers, one row each.
//!
//! A row is data. Facts come from the providers' own documentation and SDKs; every row has
//! vectors in `tests/data/signatures.json`.

use std::borrow::Cow::Borrowed;
use std::time::Duration;

use crate::provider::{
    Accepted, Algorithm, Encoding, Events, Form, Handshake, KeyForm, Part, Provider, Reply, Scheme,
    Source, TimestampRule, TimestampSource, Unit,
};

/// Names all built-in providers, in alphabetical order, `generic` excepted.
pub fn catalogue() -> &'static [Provider] {
    ROWS
}

/// Finds a built-in provider by its name.
pub fn provider(name: &str) -> Option<&'static Provider> {
    ROWS.iter().find(|row| row.name == name)
}

macro_rules! names {
    ($($name:literal),* $(,)?) => { Borrowed(&[$(Borrowed($name)),*]) };
}

macro_rules! accepts {
    ($($label:literal $algorithm:ident),*) => {
        Borrowed(&[$(Accepted { label: Borrowed($label), algorithm: Algorithm::$algorithm }),*])
    };
}

static ROWS: &[Provider] = &[GITHUB, SHOPIFY, SLACK, STANDARD_WEBHOOKS, STRIPE, SVIX];

const GITHUB: Provider = Provider {
    name: "github",
    deadline: Duration::from_secs(10),
    retry_horizon: None,
    id_signed: false,
    bad_signature_status: 400,
    volatile: Borrowed(&[]),
    scheme: Scheme {
        // Never X-Hub-Signature: it is SHA-1 and kept for old receivers only.
        header: names!["x-hub-signature-256"],
        form: Form::Whole,
        accepts: accepts!["sha256=" HmacSha256],
        encoding: Encoding::Hex,
        key: KeyForm::Text,
        message: Borrowed(&[Part::Body]),
        timestamp: None,
    },
    events: Events {
        batch: None,
        json_field: Some(Borrowed("payload")),
        id: Borrowed(&[Source::Header(names!["x-github-delivery"])]),
        event_type: Borrowed(&[Source::Header(names!["x-github-event"])]),
        order_key: Borrowed(&[Source::JsonOrInteger(Borrowed("repository.id"))]),
        occurred_at: Borrowed(&[]),
    },
    handshakes: Borrowed(&[]),
};

const SHOPIFY: Provider = Provider {
    name: "shopify",
    deadline: Duration::from_secs(5),
    retry_horizon: Some(Duration::from_hours(4)),
    id_signed: false,
    bad_signature_status: 400,
    volatile: Borrowed(&[]),
    scheme: Scheme {
        header: names!["x-shopify-hmac-sha256", "shopify-hmac-sha256"],
        form: Form::Whole,
        accepts: accepts!["" HmacSha256],
        encoding: Encoding::Base64,
        key: KeyForm::Text,
        message: Borrowed(&[Part::Body]),
        timestamp: None,
    },
    events: Events {
        batch: None,
        json_field: None,
        id: Borrowed(&[Source::Header(names!["x-shopify-webhook-id", "shopify-webhook-id"])]),
        event_type: Borrowed(&[Source::Header(names!["x-shopify-topic", "shopify-topic"])]),
        order_key: Borrowed(&[Source::JsonOrInteger(Borrowed("id"))]),
        occurred_at: Borrowed(&[(
            Source::Header(names!["x-shopify-triggered-at", "shopify-triggered-at"]),
            Unit::Seconds,
        )]),
    },
    handshakes: Borrowed(&[]),
};

const SLACK: Provider = Provider {
    name: "slack",
    deadline: Duration::from_secs(3),
    // At once, after one minute, after five; rounded up.
    retry_horizon: Some(Duration::from_hours(1)),
    id_signed: true,
    bad_signature_status: 400,
    volatile: Borrowed(&[]),
    scheme: Scheme {
        header: names!["x-slack-signature"],
        form: Form::Whole,
        accepts: accepts!["v0=" HmacSha256],
        encoding: Encoding::Hex,
        key: KeyForm::Text,
        message: Borrowed(&[
            Part::Literal(Borrowed("v0:")),
            Part::Timestamp,
            Part::Literal(Borrowed(":")),
            Part::Body,
        ]),
        timestamp: Some(TimestampRule {
            source: TimestampSource::Header(names!["x-slack-request-timestamp"]),
            unit: Unit::Seconds,
            tolerance: Duration::from_mins(5),
            future_bounded: true,
        }),
    },
    events: Events {
        batch: None,
        json_field: Some(Borrowed("payload")),
        // Interactions and slash commands have no event id; their trigger id is made anew for
        // each, and is covered by the signature as well.
        id: Borrowed(&[
            Source::Json(Borrowed("event_id")),
            Source::Json(Borrowed("trigger_id")),
            Source::Field(Borrowed("trigger_id")),
        ]),
        event_type: Borrowed(&[
            Source::Json(Borrowed("event.type")),
            Source::Json(Borrowed("type")),
            Source::Field(Borrowed("command")),
        ]),
        order_key: Borrowed(&[Source::Json(Borrowed("event.channel"))]),
        occurred_at: Borrowed(&[(Source::JsonOrInteger(Borrowed("event_time")), Unit::Seconds)]),
    },
    handshakes: Borrowed(&[
        Handshake {
            when: Borrowed(&[(Source::Json(Borrowed("type")), Borrowed("url_verification"))]),
            unless_fields: Borrowed(&[]),
            signed: true,
            reply: Reply::Echo(Source::Json(Borrowed("challenge"))),
        },
        // A probe of the certificate: not signed, answered with nothing.
        Handshake {
            when: Borrowed(&[(Source::Field(Borrowed("ssl_check")), Borrowed("1"))]),
            unless_fields: names!["payload", "command", "trigger_id"],
            signed: false,
            reply: Reply::Empty,
        },
    ]),
};

const STRIPE: Provider = Provider {
    name: "stripe",
    // Stripe names no number ("quickly").
    deadline: Duration::from_secs(10),
    retry_horizon: Some(Duration::from_hours(3 * 24)),
    id_signed: true,
    bad_signature_status: 400,
    volatile: names!["pending_webhooks"],
    scheme: Scheme {
        header: names!["stripe-signature"],
        form: Form::Labelled { between: b',', after_label: b'=' },
        accepts: accepts!["v1" HmacSha256],
        encoding: Encoding::Hex,
        // The whole text, `whsec_` included: unlike Standard Webhooks.
        key: KeyForm::Text,
        message: Borrowed(&[Part::Timestamp, Part::Literal(Borrowed(".")), Part::Body]),
        timestamp: Some(TimestampRule {
            source: TimestampSource::Label(Borrowed("t")),
            unit: Unit::Seconds,
            tolerance: Duration::from_mins(5),
            // Stripe's SDKs look at the age only, so a receiver with a slow clock still works.
            future_bounded: false,
        }),
    },
    events: Events {
        batch: None,
        json_field: None,
        id: Borrowed(&[Source::Json(Borrowed("id"))]),
        event_type: Borrowed(&[Source::Json(Borrowed("type"))]),
        // Snapshot events carry the object, thin ones point at it.
        order_key: Borrowed(&[
            Source::Json(Borrowed("data.object.id")),
            Source::Json(Borrowed("related_object.id")),
        ]),
        occurred_at: Borrowed(&[(Source::JsonOrInteger(Borrowed("created")), Unit::Seconds)]),
    },
    handshakes: Borrowed(&[]),
};

const STANDARD_MESSAGE_TOLERANCE: Duration = Duration::from_mins(5);

const STANDARD_WEBHOOKS: Provider = Provider {
    name: "standard-webhooks",
    deadline: Duration::from_secs(15),
    // The specification leaves the schedule to the sender; the longest common one.
    retry_horizon: Some(Duration::from_hours(3 * 24)),
    id_signed: true,
    bad_signature_status: 400,
    volatile: Borrowed(&[]),
    scheme: Scheme {
        header: names!["webhook-signature"],
        form: Form::Labelled { between: b' ', after_label: b',' },
        accepts: accepts!["v1" HmacSha256, "v1a" Ed25519],
        encoding: Encoding::Base64,
        key: KeyForm::StandardWebhooks,
        message: Borrowed(&[
            Part::Header(names!["webhook-id"]),
            Part::Literal(Borrowed(".")),
            Part::Timestamp,
            Part::Literal(Borrowed(".")),
            Part::Body,
        ]),
        timestamp: Some(TimestampRule {
            source: TimestampSource::Header(names!["webhook-timestamp"]),
            unit: Unit::Seconds,
            tolerance: STANDARD_MESSAGE_TOLERANCE,
            future_bounded: true,
        }),
    },
    events: Events {
        batch: None,
        json_field: None,
        id: Borrowed(&[Source::Header(names!["webhook-id"])]),
        event_type: Borrowed(&[Source::Json(Borrowed("type"))]),
        order_key: Borrowed(&[Source::JsonOrInteger(Borrowed("data.id"))]),
        occurred_at: Borrowed(&[(Source::JsonOrInteger(Borrowed("timestamp")), Unit::Seconds)]),
    },
    handshakes: Borrowed(&[]),
};

const SVIX: Provider = Provider {
    name: "svix",
    deadline: Duration::from_secs(15),
    // Eight attempts over 27 h 35 min 5 s, rounded up.
    retry_horizon: Some(Duration::from_hours(28)),
    id_signed: true,
    bad_signature_status: 400,
    volatile: Borrowed(&[]),
    scheme: Scheme {
        // The libraries look at svix-* first, for each header on its own.
        header: names!["svix-signature", "webhook-signature"],
        form: Form::Labelled { between: b' ', after_label: b',' },
        accepts: accepts!["v1" HmacSha256, "v1a" Ed25519],
        encoding: Encoding::Base64,
        key: KeyForm::StandardWebhooks,
        message: Borrowed(&[
            Part::Header(names!["svix-id", "webhook-id"]),
            Part::Literal(Borrowed(".")),
            Part::Timestamp,
            Part::Literal(Borrowed(".")),
            Part::Body,
        ]),
        timestamp: Some(TimestampRule {
            source: TimestampSource::Header(names!["svix-timestamp", "webhook-timestamp"]),
            unit: Unit::Seconds,
            tolerance: STANDARD_MESSAGE_TOLERANCE,
            future_bounded: true,
        }),
    },
    events: Events {
        batch: None,
        json_field: None,
        id: Borrowed(&[Source::Header(names!["svix-id", "webhook-id"])]),
        event_type: Borrowed(&[Source::Json(Borrowed("type"))]),
        order_key: Borrowed(&[Source::JsonOrInteger(Borrowed("data.id"))]),
        // Digits are Clerk's milliseconds; Resend sends created_at.
        occurred_at: Borrowed(&[
            (Source::JsonOrInteger(Borrowed("timestamp")), Unit::Millis),
            (Source::Json(Borrowed("created_at")), Unit::Seconds),
        ]),
    },
    handshakes: Borrowed(&[]),
};
