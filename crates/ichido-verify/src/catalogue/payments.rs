//! Money and shops.

use std::time::Duration;

use crate::provider::{
    Algorithm, Encoding, Facts, Form, KeyForm, Special, Sureness, TokenSource, Unit,
};
use crate::row::{HMAC, Row, Time, UNKNOWN};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "stripe",
        facts: Facts {
            schedule: "live: backoff over up to 3 days; sandbox: 3 times over some hours",
            keeps_id: Some(true),
            client_error: "tried again",
            source: "https://docs.stripe.com/webhooks",
            sureness: Sureness::Read,
            ..UNKNOWN
        },
        // Stripe names no deadline ("quickly"): the default.
        volatile: &["pending_webhooks"],
        header: "stripe-signature",
        form: Form::Labelled { between: b',', after_label: b'=' },
        accepts: &[("v1", Algorithm::HmacSha256)],
        // The whole text is the key, `whsec_` included: unlike Standard Webhooks.
        message: "{timestamp}.{body}",
        time: Some(Time {
            source: "label:t",
            unit: Unit::Seconds,
            tolerance: Duration::from_mins(5),
            // Stripe's SDKs look at the age only, so a receiver with a slow clock still works.
            future_bounded: false,
        }),
        id: &["text:id"],
        event_type: &["text:type"],
        // Snapshot events carry the object, thin ones point at it.
        order_key: &["text:data.object.id", "text:related_object.id"],
        occurred_at: &[("json:created", Unit::Seconds)],
        ..HMAC
    },
    Row {
        name: "shopify",
        deadline: Duration::from_secs(5),
        retry_horizon: Some(Duration::from_hours(4)),
        facts: Facts {
            schedule: "8 times over 4 h; then a subscription made by API is deleted",
            keeps_id: Some(true),
            client_error: "tried again",
            source: "https://shopify.dev/docs/apps/build/webhooks",
            sureness: Sureness::Read,
            ..UNKNOWN
        },
        id_signed: false,
        header: "x-shopify-hmac-sha256|shopify-hmac-sha256",
        encoding: Encoding::Base64,
        id: &["header:x-shopify-webhook-id|shopify-webhook-id"],
        event_type: &["header:x-shopify-topic|shopify-topic"],
        order_key: &["json:id"],
        occurred_at: &[("header:x-shopify-triggered-at|shopify-triggered-at", Unit::Seconds)],
        ..HMAC
    },
    Row {
        name: "paddle",
        deadline: Duration::from_secs(5),
        facts: Facts {
            schedule: "live: 60 times over 3 days; sandbox: 3 times in 15 min",
            keeps_id: Some(true),
            client_error: "tried again: only 200 counts",
            source: "https://developer.paddle.com/webhooks/respond-to-webhooks",
            sureness: Sureness::Read,
            ..UNKNOWN
        },
        header: "paddle-signature",
        form: Form::Labelled { between: b';', after_label: b'=' },
        accepts: &[("h1", Algorithm::HmacSha256)],
        message: "{timestamp}:{body}",
        time: Some(Time {
            source: "label:ts",
            unit: Unit::Seconds,
            tolerance: Duration::from_secs(5),
            future_bounded: true,
        }),
        id: &["text:event_id"],
        event_type: &["text:event_type"],
        order_key: &["text:data.id"],
        occurred_at: &[("text:occurred_at", Unit::Seconds)],
        ..HMAC
    },
    Row {
        name: "square",
        retry_horizon: Some(Duration::from_hours(24)),
        facts: Facts {
            schedule: "over up to 24 h; off after 3 weeks of failures",
            keeps_id: Some(true),
            source: "https://developer.squareup.com/docs/webhooks/overview",
            sureness: Sureness::Read,
            ..UNKNOWN
        },
        // Never x-square-signature: it is SHA-1 and kept for old receivers only.
        header: "x-square-hmacsha256-signature",
        encoding: Encoding::Base64,
        message: "{url}{body}",
        id: &["text:event_id"],
        event_type: &["text:type"],
        order_key: &["text:data.id"],
        occurred_at: &[("text:created_at", Unit::Seconds)],
        ..HMAC
    },
    Row {
        name: "adyen-platform",
        retry_horizon: Some(Duration::from_hours(30 * 24)),
        facts: Facts {
            schedule: "as adyen",
            source: "https://docs.adyen.com/development-resources/webhooks/",
            sureness: Sureness::SecondHand,
            ..UNKNOWN
        },
        header: "hmacsignature",
        key: KeyForm::Hex,
        encoding: Encoding::Base64,
        id: &["{json:type}:{json:data.id}:{json:data.status}:{json:timestamp}"],
        event_type: &["text:type"],
        order_key: &["text:data.id"],
        occurred_at: &[("text:timestamp", Unit::Seconds)],
        ..HMAC
    },
    Row {
        name: "lemonsqueezy",
        retry_horizon: Some(Duration::from_hours(1)),
        facts: Facts {
            schedule: "3 more: 5, 25, 125 s",
            source: "https://docs.lemonsqueezy.com/help/webhooks",
            ..UNKNOWN
        },
        header: "x-signature",
        // `meta.webhook_id` is the webhook's, not the event's.
        id: &["{json:meta.event_name}:{json:data.id}:{json:data.attributes.updated_at}"],
        event_type: &["text:meta.event_name"],
        order_key: &["json:data.id"],
        occurred_at: &[("text:data.attributes.updated_at", Unit::Seconds)],
        ..HMAC
    },
    Row {
        name: "razorpay",
        deadline: Duration::from_secs(5),
        retry_horizon: Some(Duration::from_hours(24)),
        facts: Facts {
            schedule: "backoff over 24 h, then turned off",
            keeps_id: Some(true),
            client_error: "tried again",
            source: "https://razorpay.com/docs/webhooks/best-practices/",
            sureness: Sureness::Read,
            ..UNKNOWN
        },
        id_signed: false,
        header: "x-razorpay-signature",
        id: &["header:x-razorpay-event-id"],
        event_type: &["text:event"],
        order_key: &["text:payload.payment.entity.id", "text:payload.subscription.entity.id"],
        occurred_at: &[("json:created_at", Unit::Seconds)],
        ..HMAC
    },
    Row {
        // Next-generation events. Classic webhooks are not signed by design: refused here.
        name: "mollie",
        deadline: Duration::from_secs(15),
        facts: Facts {
            schedule: "10 times over 26 h",
            source: "https://docs.mollie.com/reference/webhooks-new",
            ..UNKNOWN
        },
        header: "x-mollie-signature",
        accepts: &[("sha256=", Algorithm::HmacSha256)],
        id: &["text:id"],
        event_type: &["text:type"],
        order_key: &["text:entityId"],
        occurred_at: &[("text:createdAt", Unit::Seconds)],
        ..HMAC
    },
    Row {
        name: "gocardless",
        facts: Facts {
            schedule: "8 more, 3 h apart",
            keeps_id: Some(true),
            source: "https://developer.gocardless.com/api-reference/#webhooks-overview",
            ..UNKNOWN
        },
        bad_signature_status: 498,
        header: "webhook-signature",
        batch: &["events[]"],
        id: &["text:id"],
        event_type: &["{text:resource_type}.{text:action}"],
        order_key: &["text:links.payment", "text:links.mandate", "text:links.payout"],
        occurred_at: &[("text:created_at", Unit::Seconds)],
        ..HMAC
    },
    Row {
        name: "coinbase-commerce",
        facts: Facts {
            schedule: "backoff over up to 3 days, an hour apart at most",
            keeps_id: Some(true),
            client_error: "tried again",
            source: "https://docs.cdp.coinbase.com/commerce/docs/webhooks",
            sureness: Sureness::Read,
            ..UNKNOWN
        },
        header: "x-cc-webhook-signature",
        // The outer `id` is the delivery's.
        id: &["text:event.id"],
        event_type: &["text:event.type"],
        order_key: &["text:event.data.code"],
        occurred_at: &[("text:event.created_at", Unit::Seconds)],
        ..HMAC
    },
    Row {
        name: "xero",
        deadline: Duration::from_secs(5),
        retry_horizon: Some(Duration::from_hours(24)),
        facts: Facts {
            schedule: "over up to 24 h",
            source: "https://developer.xero.com/documentation/guides/webhooks/overview/",
            ..UNKNOWN
        },
        // It asks with wrong signatures, too, and wants them refused with 401.
        bad_signature_status: 401,
        header: "x-xero-signature",
        encoding: Encoding::Base64,
        batch: &["events[]"],
        id: &["{text:resourceId}:{text:eventType}:{text:eventDateUtc}"],
        event_type: &["{text:eventCategory}.{text:eventType}"],
        order_key: &["text:resourceId"],
        occurred_at: &[("text:eventDateUtc", Unit::Seconds)],
        ..HMAC
    },
    Row {
        name: "quickbooks",
        deadline: Duration::from_secs(3),
        retry_horizon: Some(Duration::from_hours(24)),
        facts: Facts {
            schedule: "20, 30, 50 min and on",
            source: "https://developer.intuit.com/app/developer/qbo/docs/develop/webhooks",
            ..UNKNOWN
        },
        header: "intuit-signature",
        encoding: Encoding::Base64,
        // The older form, and CloudEvents.
        batch: &["eventNotifications[].dataChangeEvent.entities[]", "[]"],
        id: &["{json:name}:{json:id}:{json:operation}:{json:lastUpdated}", "text:id"],
        event_type: &["{text:name}.{text:operation}", "text:type"],
        order_key: &["json:intuitentityid", "json:id"],
        occurred_at: &[("text:lastUpdated", Unit::Seconds), ("text:time", Unit::Seconds)],
        ..HMAC
    },
    Row {
        name: "payjp",
        retry_horizon: Some(Duration::from_hours(1)),
        facts: Facts {
            schedule: "3 more, 3 min apart",
            keeps_id: Some(true),
            source: "https://pay.jp/docs/webhook",
            ..UNKNOWN
        },
        special: Special::Token {
            source: TokenSource::Header("x-payjp-webhook-token"),
            prefix: "",
        },
        id_signed: false,
        id: &["text:id"],
        event_type: &["text:type"],
        order_key: &["text:data.id"],
        occurred_at: &[("json:created", Unit::Seconds)],
        ..HMAC
    },
    Row {
        name: "komoju",
        facts: Facts {
            schedule: "many times over some days",
            keeps_id: Some(true),
            source: "https://ja.doc.komoju.com/docs/webhooks-overview",
            ..UNKNOWN
        },
        header: "x-komoju-signature",
        id: &["text:id"],
        event_type: &["text:type"],
        order_key: &["text:data.id"],
        occurred_at: &[("text:created_at", Unit::Seconds)],
        ..HMAC
    },
];
