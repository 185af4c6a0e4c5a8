//! Tickets, plans, documents, forms and customers.

use std::time::Duration;

use crate::provider::{Algorithm, Encoding, Facts, Form, Sureness, Unit};
use crate::row::{Ask, GET, HMAC, Row, Time, UNKNOWN};

/// What the three versions of HubSpot's signature have in common.
const HUBSPOT: Row = Row {
    deadline: Duration::from_secs(5),
    facts: Facts {
        schedule: "10 times over 24 h, or over 3 days: sources differ",
        keeps_id: Some(true),
        source: "https://developers.hubspot.com/docs/api/webhooks",
        sureness: Sureness::SecondHand,
        ..UNKNOWN
    },
    header: "x-hubspot-signature",
    accepts: &[("", Algorithm::PrefixSha256)],
    batch: &["[]"],
    id: &["json:eventId"],
    event_type: &["text:subscriptionType"],
    order_key: &["json:objectId"],
    occurred_at: &[("json:occurredAt", Unit::Millis)],
    ..HMAC
};

pub(super) const ROWS: &[Row] = &[
    Row { name: "hubspot-v1", ..HUBSPOT },
    Row { name: "hubspot-v2", message: "{method}{decoded_url}{body}", ..HUBSPOT },
    Row {
        name: "hubspot",
        header: "x-hubspot-signature-v3",
        accepts: &[("", Algorithm::HmacSha256)],
        encoding: Encoding::Base64,
        message: "{method}{decoded_url}{body}{timestamp}",
        time: Some(Time {
            source: "header:x-hubspot-request-timestamp",
            unit: Unit::Millis,
            tolerance: Duration::from_mins(5),
            future_bounded: true,
        }),
        ..HUBSPOT
    },
    Row {
        name: "linear",
        deadline: Duration::from_secs(5),
        retry_horizon: Some(Duration::from_hours(8)),
        facts: Facts {
            schedule: "3 more: 1 min, 1 h, 6 h",
            keeps_id: Some(true),
            source: "https://linear.app/developers/webhooks",
            ..UNKNOWN
        },
        id_signed: false,
        header: "linear-signature",
        time: Some(Time {
            source: "json:webhookTimestamp",
            unit: Unit::Millis,
            tolerance: Duration::from_mins(1),
            future_bounded: true,
        }),
        id: &["header:linear-delivery"],
        event_type: &["text:type"],
        order_key: &["text:data.id"],
        occurred_at: &[("text:createdAt", Unit::Seconds)],
        ..HMAC
    },
    Row {
        name: "jira",
        retry_horizon: Some(Duration::from_hours(2)),
        facts: Facts {
            schedule: "up to 5 times, 5 to 15 min apart",
            keeps_id: Some(true),
            client_error: "408, 409, 425 and 429 are tried again, others not",
            source: "https://developer.atlassian.com/cloud/jira/platform/webhooks/",
            ..UNKNOWN
        },
        id_signed: false,
        header: "x-hub-signature",
        accepts: &[("sha256=", Algorithm::HmacSha256)],
        id: &["header:x-atlassian-webhook-identifier"],
        event_type: &["text:webhookEvent"],
        order_key: &["json:issue.id"],
        occurred_at: &[("json:timestamp", Unit::Millis)],
        ..HMAC
    },
    Row {
        name: "trello",
        retry_horizon: Some(Duration::from_hours(1)),
        facts: Facts {
            schedule: "30, 60, 120 s; off after 30 days or 1,000 failures",
            keeps_id: Some(true),
            client_error: "410 deletes the webhook",
            source: "https://developer.atlassian.com/cloud/trello/guides/rest-api/webhooks/",
            ..UNKNOWN
        },
        header: "x-trello-webhook",
        accepts: &[("", Algorithm::HmacSha1)],
        encoding: Encoding::Base64,
        message: "{body}{url}",
        id: &["text:action.id"],
        event_type: &["text:action.type"],
        order_key: &["text:action.data.card.id"],
        occurred_at: &[("text:action.date", Unit::Seconds)],
        handshakes: &[Ask { method: "HEAD", ..GET }],
        ..HMAC
    },
    Row {
        name: "calendly",
        retry_horizon: Some(Duration::from_hours(24)),
        facts: Facts {
            schedule: "backoff over 24 h, then turned off",
            source: "https://developer.calendly.com/api-docs/4c305798a61d3-webhook-signatures",
            ..UNKNOWN
        },
        header: "calendly-webhook-signature",
        form: Form::Labelled { between: b',', after_label: b'=' },
        accepts: &[("v1", Algorithm::HmacSha256)],
        message: "{timestamp}.{body}",
        time: Some(Time {
            source: "label:t",
            unit: Unit::Seconds,
            tolerance: Duration::from_mins(3),
            future_bounded: true,
        }),
        id: &["{text:event}:{text:payload.uri}:{text:created_at}"],
        event_type: &["text:event"],
        order_key: &["text:payload.uri"],
        occurred_at: &[("text:created_at", Unit::Seconds)],
        ..HMAC
    },
    Row {
        name: "typeform",
        deadline: Duration::from_secs(30),
        retry_horizon: Some(Duration::from_hours(10)),
        facts: Facts {
            schedule: "over up to 10 h",
            keeps_id: Some(true),
            client_error: "404 and 410 turn it off",
            source: "https://www.typeform.com/developers/webhooks/",
            ..UNKNOWN
        },
        header: "typeform-signature",
        accepts: &[("sha256=", Algorithm::HmacSha256)],
        encoding: Encoding::Base64,
        id: &["text:event_id"],
        event_type: &["text:event_type"],
        order_key: &["text:form_response.token"],
        occurred_at: &[("text:form_response.submitted_at", Unit::Seconds)],
        ..HMAC
    },
    Row {
        name: "docusign",
        deadline: Duration::from_secs(100),
        retry_horizon: Some(Duration::from_hours(15 * 24)),
        facts: Facts {
            schedule: "over up to 15 days",
            source: "https://developers.docusign.com/platform/webhooks/connect/hmac/",
            ..UNKNOWN
        },
        header: "x-docusign-signature",
        form: Form::Numbered,
        encoding: Encoding::Base64,
        id: &["{text:event}:{text:data.envelopeId}:{text:generatedDateTime}"],
        event_type: &["text:event"],
        order_key: &["text:data.envelopeId"],
        occurred_at: &[("text:generatedDateTime", Unit::Seconds)],
        ..HMAC
    },
    Row {
        name: "zendesk",
        deadline: Duration::from_secs(12),
        facts: Facts {
            schedule: "some failures are tried again; a circuit breaker",
            source: "https://developer.zendesk.com/documentation/webhooks/verifying/",
            sureness: Sureness::Read,
            ..UNKNOWN
        },
        // The body is the customer's own: the invocation stands in for an id, unsigned.
        id_signed: false,
        header: "x-zendesk-webhook-signature",
        encoding: Encoding::Base64,
        message: "{timestamp}{body}",
        time: Some(Time {
            source: "header:x-zendesk-webhook-signature-timestamp",
            unit: Unit::Rfc3339,
            tolerance: Duration::from_mins(5),
            future_bounded: true,
        }),
        id: &["text:id", "header:x-zendesk-webhook-invocation-id"],
        event_type: &["text:type"],
        order_key: &["json:detail.id"],
        occurred_at: &[("text:time", Unit::Seconds)],
        ..HMAC
    },
    Row {
        name: "pagerduty",
        facts: Facts {
            schedule: "up to 10 times in a short while, then turned off",
            keeps_id: Some(true),
            client_error: "not tried again",
            source: "https://github.com/PagerDuty/go-pagerduty",
            sureness: Sureness::SecondHand,
            ..UNKNOWN
        },
        header: "x-pagerduty-signature",
        form: Form::Labelled { between: b',', after_label: b'=' },
        accepts: &[("v1", Algorithm::HmacSha256)],
        id: &["text:event.id"],
        event_type: &["text:event.event_type"],
        order_key: &["text:event.data.id"],
        occurred_at: &[("text:event.occurred_at", Unit::Seconds)],
        ..HMAC
    },
];
