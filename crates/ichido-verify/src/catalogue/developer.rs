//! Where software is made and run: forges, builds, clouds, content.

use std::time::Duration;

use crate::provider::{Algorithm, Encoding, Facts, Form, Special, Sureness, TokenSource, Unit};
use crate::row::{Ask, GET, HMAC, Row, Say, Time, UNKNOWN};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "github",
        retry_horizon: None,
        facts: Facts {
            schedule: "never by itself; by hand or API for some days",
            keeps_id: Some(true),
            client_error: "recorded as failed",
            source: "https://docs.github.com/webhooks/using-webhooks",
            sureness: Sureness::Read,
            ..UNKNOWN
        },
        id_signed: false,
        // Never X-Hub-Signature: it is SHA-1 and kept for old receivers only.
        header: "x-hub-signature-256",
        accepts: &[("sha256=", Algorithm::HmacSha256)],
        json_field: Some("payload"),
        id: &["header:x-github-delivery"],
        event_type: &["header:x-github-event"],
        order_key: &["json:repository.id"],
        ..HMAC
    },
    Row {
        name: "gitlab-token",
        id_signed: false,
        facts: Facts {
            schedule: "an endpoint that fails is turned off for a while, longer each time",
            keeps_id: Some(true),
            source: "https://docs.gitlab.com/user/project/integrations/webhooks/",
            sureness: Sureness::SecondHand,
            ..UNKNOWN
        },
        special: Special::Token { source: TokenSource::Header("x-gitlab-token"), prefix: "" },
        id: &["header:idempotency-key|x-gitlab-event-uuid"],
        event_type: &["header:x-gitlab-event"],
        order_key: &["json:project.id"],
        ..HMAC
    },
    Row {
        name: "bitbucket",
        retry_horizon: Some(Duration::from_hours(1)),
        facts: Facts {
            schedule: "two more tries",
            keeps_id: Some(true),
            source: "https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/",
            ..UNKNOWN
        },
        id_signed: false,
        // The name that GitHub uses for SHA-1.
        header: "x-hub-signature",
        accepts: &[("sha256=", Algorithm::HmacSha256)],
        id: &["header:x-request-uuid"],
        event_type: &["header:x-event-key"],
        order_key: &["text:repository.uuid"],
        ..HMAC
    },
    Row {
        name: "circleci",
        facts: Facts {
            source: "https://circleci.com/docs/webhooks/",
            sureness: Sureness::Read,
            ..UNKNOWN
        },
        header: "circleci-signature",
        form: Form::Labelled { between: b',', after_label: b'=' },
        accepts: &[("v1", Algorithm::HmacSha256)],
        id: &["text:id"],
        event_type: &["header:circleci-event-type", "text:type"],
        order_key: &["text:workflow.id"],
        occurred_at: &[("text:happened_at", Unit::Seconds)],
        ..HMAC
    },
    Row {
        name: "vercel",
        deadline: Duration::from_secs(30),
        retry_horizon: Some(Duration::from_hours(24)),
        facts: Facts {
            schedule: "backoff over up to 24 h",
            keeps_id: Some(true),
            source: "https://vercel.com/docs/webhooks/webhooks-api",
            sureness: Sureness::SecondHand,
            ..UNKNOWN
        },
        header: "x-vercel-signature",
        accepts: &[("", Algorithm::HmacSha1)],
        id: &["text:id"],
        event_type: &["text:type"],
        order_key: &["text:payload.deployment.id"],
        occurred_at: &[("json:createdAt", Unit::Millis)],
        ..HMAC
    },
    Row {
        name: "sentry",
        deadline: Duration::from_secs(1),
        retry_horizon: None,
        facts: Facts {
            schedule: "none; 1,000 timeouts in 24 h end the subscription",
            source: "https://docs.sentry.io/integrations/integration-platform/webhooks/",
            sureness: Sureness::Read,
            ..UNKNOWN
        },
        id_signed: false,
        header: "sentry-hook-signature",
        id: &["header:request-id"],
        event_type: &["{header:sentry-hook-resource}.{json:action}"],
        order_key: &["json:data.issue.id"],
        occurred_at: &[("header:sentry-hook-timestamp", Unit::Seconds)],
        ..HMAC
    },
    Row {
        name: "sanity",
        retry_horizon: Some(Duration::from_hours(1)),
        facts: Facts {
            schedule: "for 30 minutes",
            keeps_id: Some(true),
            source: "https://github.com/sanity-io/webhook-toolkit",
            ..UNKNOWN
        },
        id_signed: false,
        header: "sanity-webhook-signature",
        form: Form::Labelled { between: b',', after_label: b'=' },
        accepts: &[("v1", Algorithm::HmacSha256)],
        encoding: Encoding::Base64Url,
        message: "{timestamp}.{body}",
        // The toolkit has no tolerance; its sender tries for half an hour.
        time: Some(Time {
            source: "label:t",
            unit: Unit::Millis,
            tolerance: Duration::from_hours(1),
            future_bounded: true,
        }),
        id: &["header:idempotency-key"],
        event_type: &["header:sanity-operation"],
        order_key: &["text:_id"],
        ..HMAC
    },
    Row {
        name: "dropbox",
        facts: Facts {
            schedule: "tried again; turned off when too many fail",
            source: "https://www.dropbox.com/developers/reference/webhooks",
            ..UNKNOWN
        },
        // A hint to list changes: it has neither an id nor a type.
        header: "x-dropbox-signature",
        handshakes: &[Ask {
            with: &["query:challenge"],
            reply: Say::Echo("query:challenge"),
            ..GET
        }],
        ..HMAC
    },
];
