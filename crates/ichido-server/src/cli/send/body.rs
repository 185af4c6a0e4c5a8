//! The bodies of test events: one sensible default a provider, or the user's own file.
//!
//! A body of the user's own must never be changed where it need not be: without an id or a type
//! to set it is sent byte for byte. Two bodies of one event must never differ, as the second
//! would be a conflict and not the retry that it stands for.

use std::{fs, path::Path};

use anyhow::{Context, anyhow, bail};
use bytes::Bytes;
use ichido_verify::GenericHmac;
use serde_json::{Value, json};

/// The way to a member of a JSON body.
type Members = Vec<String>;

/// Where a provider's body says its id and type; `None`: headers say it, and signing sets them.
pub(super) struct Places {
    id: Option<Members>,
    event_type: Option<Members>,
    default_type: &'static str,
    /// The body is a form: none of ours fits.
    form: bool,
}

impl Places {
    /// The places of a provider. Those that are not listed say both in headers.
    pub(super) fn of(provider: &str, generic: Option<&GenericHmac>) -> Self {
        let (id, event_type, default_type) = match provider {
            "stripe" => (Some("id"), Some("type"), "invoice.paid"),
            "slack" => (Some("event_id"), Some("event.type"), "app_mention"),
            "standard-webhooks" | "svix" => (None, Some("type"), "contact.created"),
            "github" => (None, None, "push"),
            "shopify" => (None, None, "orders/create"),
            _ => {
                let sources =
                    generic.map(|generic| (Some(&generic.id), generic.event_type.as_ref()));
                let (id, event_type) = sources.unwrap_or_default();
                let member = |source: Option<&String>| {
                    source.and_then(|source| source.strip_prefix("json:")).map(path)
                };
                let form = id.is_some_and(|id| id.starts_with("field:"));
                let (id, event_type) = (member(id), member(event_type));
                return Self { id, event_type, default_type: "test", form };
            }
        };
        Self { id: id.map(path), event_type: event_type.map(path), default_type, form: false }
    }
}

fn path(dotted: &str) -> Members {
    dotted.split('.').map(str::to_owned).collect()
}

/// Makes bodies, each with its event's id in it.
pub(super) struct Bodies {
    provider: String,
    places: Places,
    event_type: String,
    /// The type, if the user named one.
    named_type: Option<String>,
    own: Option<Bytes>,
    /// When its events were created, in Unix seconds.
    created: i64,
}

impl Bodies {
    /// Bodies for `provider`, from the file `data` if there is one; default ones say that they
    /// were created at `created`, in Unix seconds.
    pub(super) fn new(
        provider: &str,
        places: Places,
        named_type: Option<String>,
        data: Option<&Path>,
        created: i64,
    ) -> anyhow::Result<Self> {
        let own = match data {
            None if places.form => {
                bail!("the endpoint's id is a field of a form: name a body of yours with --data")
            }
            None => None,
            Some(path) => {
                let read = fs::read(path);
                Some(read.with_context(|| format!("cannot read {}", path.display()))?.into())
            }
        };
        let event_type = named_type.clone().unwrap_or_else(|| places.default_type.to_owned());
        Ok(Self { provider: provider.to_owned(), places, event_type, named_type, own, created })
    }

    /// The event type for providers that say it in a header.
    pub(super) fn event_type(&self) -> &str {
        &self.event_type
    }

    /// The body of event `id`. With `keep_id`, a body of the user's own keeps the id it has.
    pub(super) fn body(&self, id: &str, keep_id: bool) -> anyhow::Result<Bytes> {
        let Some(own) = &self.own else { return Ok(self.default_body(id).to_string().into()) };
        let id_at = self.places.id.as_ref().filter(|_| !keep_id).map(|path| (path, id));
        let named = self.named_type.as_deref();
        let type_at = self.places.event_type.as_ref().zip(named);
        if id_at.is_none() && type_at.is_none() {
            return Ok(own.clone());
        }
        let mut value: Value = serde_json::from_slice(own).map_err(|error| {
            anyhow!("the body is not JSON, so no id or type can be set in it: {error}")
        })?;
        for (path, text) in id_at.into_iter().chain(type_at) {
            set(&mut value, path, text)?;
        }
        Ok(value.to_string().into())
    }

    fn default_body(&self, id: &str) -> Value {
        let (kind, now) = (&self.event_type, self.created);
        let unique = id.strip_prefix("evt_").unwrap_or(id);
        match self.provider.as_str() {
            "stripe" => json!({
                "id": id, "object": "event", "api_version": "2025-09-30.clover",
                "created": now, "type": kind, "livemode": false, "pending_webhooks": 1,
                "request": { "id": null, "idempotency_key": null },
                "data": { "object": {
                    "id": format!("in_{unique}"), "object": "invoice", "customer": "cus_test",
                    "currency": "usd", "status": invoice_status(kind),
                    "amount_due": 1200, "amount_paid": 1200,
                } },
            }),
            "slack" => json!({
                "event_id": id, "type": "event_callback", "event_time": now,
                "team_id": "T0TEST", "event": { "type": kind, "channel": "C0TEST", "text": "hi" },
            }),
            "github" => json!({
                "action": "created", "sender": { "login": "octocat" },
                "repository": { "id": 1_296_269, "full_name": "octocat/Hello-World" },
            }),
            "shopify" => json!({ "id": number(unique), "total_price": "12.00" }),
            "generic" => {
                let mut body = json!({ "timestamp": now, "data": { "id": unique } });
                for (path, text) in [(&self.places.id, id), (&self.places.event_type, kind)] {
                    if let Some(path) = path {
                        put(&mut body, path, text);
                    }
                }
                body
            }
            _ => json!({ "type": kind, "timestamp": now, "data": { "id": unique } }),
        }
    }
}

/// What an invoice's status is when Stripe sends this type.
fn invoice_status(event_type: &str) -> &'static str {
    match event_type {
        "invoice.paid" => "paid",
        "invoice.voided" => "void",
        "invoice.created" => "draft",
        _ => "open",
    }
}

/// A number that is the same for the same text; no two need differ.
fn number(text: &str) -> u32 {
    text.bytes().fold(1, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()))
}

/// Sets the member at `path` of a body of ours, and makes its parents.
fn put(value: &mut Value, path: &[String], text: &str) {
    let mut at = value;
    for name in path {
        if !at.is_object() {
            *at = json!({});
        }
        at = at.as_object_mut().expect("made one just above").entry(name).or_insert(Value::Null);
    }
    *at = text.into();
}

/// Sets the member at `path`, whose parents have to be there.
fn set(value: &mut Value, path: &[String], text: &str) -> anyhow::Result<()> {
    let (last, parents) = path.split_last().context("a path has members")?;
    let mut at = value;
    for name in parents {
        at = at.get_mut(name).with_context(|| format!("the body has no member `{name}`"))?;
    }
    let Value::Object(members) = at else { bail!("the body is not a JSON object") };
    members.insert(last.clone(), text.into());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bodies(provider: &str, data: Option<&Path>, created: i64) -> anyhow::Result<Bodies> {
        Bodies::new(provider, Places::of(provider, None), None, data, created)
    }

    #[test]
    fn a_body_of_ones_own_is_sent_byte_for_byte_unless_something_has_to_be_set() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), "{ \"id\" : \"evt_mine\", \"n\": 1.50 }").expect("written");
        let bodies = bodies("stripe", Some(file.path()), 0).expect("read");
        let kept = bodies.body("evt_1", true).expect("kept");
        assert_eq!(kept, fs::read(file.path()).expect("there"));
        let set: Value =
            serde_json::from_slice(&bodies.body("evt_1", false).expect("set")).expect("JSON");
        assert_eq!(set["id"], "evt_1");
    }

    #[test]
    fn every_default_invoice_has_an_id_of_its_own() {
        let bodies = bodies("stripe", None, 0).expect("made");
        let invoice = |id| -> Value {
            let body = bodies.body(id, false).expect("made");
            serde_json::from_slice::<Value>(&body).expect("JSON")["data"]["object"]["id"].clone()
        };
        assert_ne!(invoice("evt_1"), invoice("evt_2"));
    }

    #[test]
    fn a_repeat_has_the_bytes_of_the_first() {
        for provider in ["stripe", "slack", "github", "shopify", "svix", "standard-webhooks"] {
            let body = || {
                let bodies = bodies(provider, None, 1_767_225_600).expect("made");
                bodies.body("evt_1", false).expect("made")
            };
            assert_eq!(body(), body(), "{provider}");
        }
        let bodies = bodies("stripe", None, 7).expect("made");
        assert_eq!(bodies.default_body("evt_1")["created"], 7);
    }
}
