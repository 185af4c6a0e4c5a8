//! Clouds and identity: many authenticate the caller only, and the body not at all.

use std::time::Duration;

use crate::provider::{Facts, Special, Sureness, TokenSource, Unit};
use crate::row::{Ask, GET, HMAC, Row, Say, UNKNOWN};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "azure-event-grid",
        deadline: Duration::from_secs(30),
        retry_horizon: Some(Duration::from_hours(24)),
        facts: Facts {
            schedule: "30 times over 24 h, then dead-lettered",
            keeps_id: Some(true),
            client_error: "400, 401, 403, 404 and 413 are not all tried again",
            source: "https://learn.microsoft.com/azure/event-grid/delivery-and-retry",
            ..UNKNOWN
        },
        special: Special::Token { source: TokenSource::Query("code"), prefix: "" },
        id_signed: false,
        batch: &["[]"],
        id: &["text:id"],
        event_type: &["text:eventType", "text:type"],
        order_key: &["text:subject"],
        occurred_at: &[("text:eventTime", Unit::Seconds), ("text:time", Unit::Seconds)],
        handshakes: &[
            Ask {
                method: "POST",
                when: &[("text:eventType", "Microsoft.EventGrid.SubscriptionValidationEvent")],
                signed: true,
                reply: Say::EchoJson("validationResponse", "text:data.validationCode"),
                ..GET
            },
            // CloudEvents: may I send to you?
            Ask {
                method: "OPTIONS",
                with: &["header:webhook-request-origin"],
                signed: true,
                reply: Say::Headers(&[
                    ("webhook-allowed-origin", "webhook-request-origin"),
                    ("webhook-allowed-rate", "webhook-request-rate"),
                ]),
                ..GET
            },
        ],
        ..HMAC
    },
    Row {
        name: "okta",
        deadline: Duration::from_secs(3),
        retry_horizon: Some(Duration::from_hours(1)),
        facts: Facts {
            schedule: "one more try at most",
            keeps_id: Some(true),
            client_error: "not tried again",
            source: "https://developer.okta.com/docs/concepts/event-hooks/",
            sureness: Sureness::Read,
            ..UNKNOWN
        },
        id_signed: false,
        special: Special::Token { source: TokenSource::Header("authorization"), prefix: "" },
        batch: &["data.events[]"],
        id: &["text:uuid"],
        event_type: &["text:eventType"],
        occurred_at: &[("text:published", Unit::Seconds)],
        handshakes: &[Ask {
            with: &["header:x-okta-verification-challenge"],
            signed: true,
            reply: Say::EchoJson("verification", "header:x-okta-verification-challenge"),
            ..GET
        }],
        ..HMAC
    },
    Row {
        name: "auth0",
        retry_horizon: Some(Duration::from_hours(1)),
        facts: Facts {
            schedule: "3 more: 1, 2, 4 s",
            keeps_id: Some(true),
            client_error: "not tried again",
            source: "https://auth0.com/docs/customize/events",
            sureness: Sureness::Read,
            ..UNKNOWN
        },
        id_signed: false,
        special: Special::Token { source: TokenSource::Header("authorization"), prefix: "Bearer " },
        id: &["text:id"],
        event_type: &["text:type"],
        order_key: &["text:data.object.user_id"],
        occurred_at: &[("text:time", Unit::Seconds)],
        ..HMAC
    },
];
