//! Mail, chat, calls and social networks.

use std::time::Duration;

use crate::provider::{
    Algorithm, Challenge, Encoding, Facts, KeyForm, Special, Sureness, TokenSource, Unit,
};
use crate::row::{Ask, GET, HMAC, Row, Say, Time, UNKNOWN};

const fn seconds(source: &'static str, tolerance: Duration) -> Time {
    Time { source, unit: Unit::Seconds, tolerance, future_bounded: true }
}

/// Discord's key is a public one. It probes with wrong signatures and wants 401.
const DISCORD: Row = Row {
    deadline: Duration::from_secs(3),
    retry_horizon: Some(Duration::from_hours(1)),
    facts: Facts {
        schedule: "webhook events: backoff over up to 10 min; interactions: never",
        source: "https://discord.com/developers/docs/events/webhook-events",
        sureness: Sureness::Read,
        ..UNKNOWN
    },
    bad_signature_status: 401,
    header: "x-signature-ed25519",
    accepts: &[("", Algorithm::Ed25519)],
    key: KeyForm::Hex,
    message: "{timestamp}{body}",
    // Discord states no tolerance; five minutes are usual.
    time: Some(seconds("header:x-signature-timestamp", Duration::from_mins(5))),
    ..HMAC
};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "slack",
        deadline: Duration::from_secs(3),
        // At once, after one minute, after five; rounded up.
        retry_horizon: Some(Duration::from_hours(1)),
        facts: Facts {
            schedule: "3 more: at once, 1 min, 5 min",
            keeps_id: Some(true),
            client_error: "tried again",
            source: "https://docs.slack.dev/apis/events-api/",
            sureness: Sureness::SecondHand,
            ..UNKNOWN
        },
        header: "x-slack-signature",
        accepts: &[("v0=", Algorithm::HmacSha256)],
        message: "v0:{timestamp}:{body}",
        time: Some(seconds("header:x-slack-request-timestamp", Duration::from_mins(5))),
        json_field: Some("payload"),
        // Interactions and slash commands have no event id; their trigger id is made anew for
        // each, and is covered by the signature as well.
        id: &["text:event_id", "text:trigger_id", "field:trigger_id"],
        event_type: &["text:event.type", "text:type", "field:command"],
        order_key: &["text:event.channel"],
        occurred_at: &[("json:event_time", Unit::Seconds)],
        handshakes: &[
            Ask {
                method: "POST",
                when: &[("text:type", "url_verification")],
                signed: true,
                reply: Say::Echo("text:challenge"),
                ..GET
            },
            // A probe of the certificate: not signed, answered with nothing.
            Ask {
                method: "POST",
                when: &[("field:ssl_check", "1")],
                unless_fields: &["payload", "command", "trigger_id"],
                ..GET
            },
        ],
        ..HMAC
    },
    Row {
        name: "zoom",
        deadline: Duration::from_secs(3),
        retry_horizon: Some(Duration::from_hours(4)),
        facts: Facts {
            schedule: "3 more: 5, 30, 90 min",
            source: "https://developers.zoom.us/docs/api/webhooks/",
            ..UNKNOWN
        },
        header: "x-zm-signature",
        accepts: &[("v0=", Algorithm::HmacSha256)],
        message: "v0:{timestamp}:{body}",
        time: Some(seconds("header:x-zm-request-timestamp", Duration::from_mins(5))),
        id: &[
            "{json:event}:{json:payload.object.uuid}:{json:event_ts}",
            "{json:event}:{json:payload.object.id}:{json:event_ts}",
            "{json:event}:{json:payload.account_id}:{json:event_ts}",
        ],
        event_type: &["text:event"],
        order_key: &["text:payload.object.uuid", "json:payload.object.id"],
        occurred_at: &[("json:event_ts", Unit::Millis)],
        // Signed only: whoever could ask without could have any text signed.
        handshakes: &[Ask {
            method: "POST",
            when: &[("text:event", "endpoint.url_validation")],
            signed: true,
            reply: Say::Mac(Challenge::Zoom, "text:payload.plainToken"),
            ..GET
        }],
        ..HMAC
    },
    Row {
        name: "sendgrid",
        retry_horizon: Some(Duration::from_hours(24)),
        facts: Facts {
            schedule: "over 24 h",
            keeps_id: Some(true),
            source: "https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/event",
            sureness: Sureness::SecondHand,
            ..UNKNOWN
        },
        header: "x-twilio-email-event-webhook-signature",
        message: "{timestamp}{body}",
        // No tolerance is stated; the sender signs once and tries for a day.
        time: Some(seconds(
            "header:x-twilio-email-event-webhook-timestamp",
            Duration::from_hours(24),
        )),
        special: Special::EcdsaP256,
        batch: &["[]"],
        id: &["text:sg_event_id"],
        event_type: &["text:event"],
        order_key: &["text:sg_message_id"],
        occurred_at: &[("json:timestamp", Unit::Seconds)],
        ..HMAC
    },
    Row {
        name: "postmark",
        retry_horizon: Some(Duration::from_hours(12)),
        facts: Facts {
            schedule: "up to 10 times over 10.5 h, fewer for some types",
            client_error: "403 ends it, others are tried again",
            source: "https://postmarkapp.com/developer/webhooks/webhooks-overview",
            ..UNKNOWN
        },
        id_signed: false,
        bad_signature_status: 401,
        special: Special::Token { source: TokenSource::Basic("authorization"), prefix: "Basic " },
        id: &[
            "{text:RecordType}:{text:MessageID}:{text:DeliveredAt}",
            "{text:RecordType}:{text:MessageID}:{text:BouncedAt}",
            "{text:RecordType}:{text:MessageID}:{text:ReceivedAt}",
            "{text:RecordType}:{text:MessageID}:{text:ChangedAt}",
        ],
        event_type: &["text:RecordType"],
        order_key: &["text:MessageID"],
        occurred_at: &[("text:DeliveredAt", Unit::Seconds), ("text:BouncedAt", Unit::Seconds)],
        ..HMAC
    },
    Row {
        name: "intercom",
        deadline: Duration::from_secs(5),
        retry_horizon: Some(Duration::from_hours(1)),
        facts: Facts {
            schedule: "one more after a minute; paused after 1,000 failures in a row",
            keeps_id: Some(true),
            source: "https://developers.intercom.com/docs/webhooks/webhook-notifications",
            sureness: Sureness::SecondHand,
            ..UNKNOWN
        },
        header: "x-hub-signature",
        accepts: &[("sha1=", Algorithm::HmacSha1)],
        id: &["text:id"],
        event_type: &["text:topic"],
        order_key: &["json:data.item.id"],
        occurred_at: &[("json:created_at", Unit::Seconds)],
        handshakes: &[Ask { method: "HEAD", ..GET }],
        ..HMAC
    },
    Row {
        name: "meta",
        retry_horizon: Some(Duration::from_hours(7 * 24)),
        facts: Facts {
            schedule: "less and less often over 36 h (Graph) or 7 days (WhatsApp)",
            keeps_id: Some(true),
            client_error: "tried again",
            source: "https://developers.facebook.com/docs/graph-api/webhooks/getting-started",
            ..UNKNOWN
        },
        // Never X-Hub-Signature: it is SHA-1 and kept for old receivers only.
        header: "x-hub-signature-256",
        accepts: &[("sha256=", Algorithm::HmacSha256)],
        batch: &[
            "entry[].changes[].value.messages[]",
            "entry[].changes[].value.statuses[]",
            "entry[].changes[]",
            "entry[].messaging[]",
            "entry[].standby[]",
        ],
        // A change that is neither a message nor a status has no id.
        id: &["{text:id}.{text:status}", "text:id", "text:message.mid"],
        event_type: &["text:field", "text:status", "text:type"],
        order_key: &["text:from", "text:recipient_id", "text:sender.id"],
        occurred_at: &[("json:timestamp", Unit::Seconds)],
        handshakes: &[Ask {
            when: &[("query:hub.mode", "subscribe"), ("query:hub.verify_token", "{verify_token}")],
            with: &["query:hub.challenge"],
            reply: Say::Echo("query:hub.challenge"),
            ..GET
        }],
        ..HMAC
    },
    Row {
        name: "x",
        retry_horizon: Some(Duration::from_hours(1)),
        facts: Facts {
            schedule: "enterprise: 3 within 5 min",
            source: "https://docs.x.com/x-api/webhooks/introduction",
            sureness: Sureness::Read,
            ..UNKNOWN
        },
        header: "x-twitter-webhooks-signature",
        accepts: &[("sha256=", Algorithm::HmacSha256)],
        encoding: Encoding::Base64,
        batch: &["tweet_create_events[]", "favorite_events[]", "direct_message_events[]"],
        id: &["text:id_str", "text:id"],
        handshakes: &[Ask {
            with: &["query:crc_token"],
            reply: Say::Mac(Challenge::X, "query:crc_token"),
            ..GET
        }],
        ..HMAC
    },
    Row {
        name: "discord",
        id: &["{text:event.type}:{text:event.timestamp}"],
        event_type: &["text:event.type"],
        occurred_at: &[("text:event.timestamp", Unit::Seconds)],
        handshakes: &[Ask {
            method: "POST",
            when: &[("json:type", "0")],
            signed: true,
            reply: Say::Status(204),
            ..GET
        }],
        ..DISCORD
    },
    Row {
        name: "discord-interactions",
        retry_horizon: None,
        id: &["text:id"],
        event_type: &["json:type"],
        order_key: &["text:channel_id"],
        handshakes: &[Ask {
            method: "POST",
            when: &[("json:type", "1")],
            signed: true,
            reply: Say::Json(r#"{"type":1}"#),
            ..GET
        }],
        ..DISCORD
    },
    Row {
        name: "telegram",
        retry_horizon: Some(Duration::from_hours(24)),
        facts: Facts {
            schedule: "for a while; kept for 24 h at most",
            keeps_id: Some(true),
            source: "https://core.telegram.org/bots/api#setwebhook",
            ..UNKNOWN
        },
        id_signed: false,
        special: Special::Token {
            source: TokenSource::Header("x-telegram-bot-api-secret-token"),
            prefix: "",
        },
        id: &["json:update_id"],
        event_type: &[
            "has:message|edited_message|channel_post|callback_query|inline_query|chat_member|poll",
        ],
        order_key: &["json:message.chat.id", "json:edited_message.chat.id"],
        occurred_at: &[("json:message.date", Unit::Seconds)],
        ..HMAC
    },
    Row {
        name: "line",
        retry_horizon: Some(Duration::from_hours(24)),
        facts: Facts {
            schedule: "not disclosed; only where redelivery is switched on",
            keeps_id: Some(true),
            source: "https://developers.line.biz/en/docs/messaging-api/receiving-messages/",
            sureness: Sureness::Read,
            ..UNKNOWN
        },
        header: "x-line-signature",
        encoding: Encoding::Base64,
        batch: &["events[]"],
        id: &["text:webhookEventId"],
        event_type: &["text:type"],
        order_key: &["text:source.groupId", "text:source.roomId", "text:source.userId"],
        occurred_at: &[("json:timestamp", Unit::Millis)],
        ..HMAC
    },
];
