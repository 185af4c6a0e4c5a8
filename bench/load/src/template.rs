//! A payload as a template, and each event's request out of it, signed.
//!
//! It must stay cheap: the generator shares its processors with the server that it measures. So
//! placeholders are found once, and an event only overwrites bytes of a copy.

use anyhow::{Context, ensure};
use ichido_verify::{Request, Secret, Settings, Timestamp, Verifier};

/// What stands in a payload where each event differs, and how many characters replace it.
const UNIQUE: (&str, usize) = ("{unique}", 24);
const CUSTOMER: (&str, usize) = ("{customer}", 14);
/// Events share this many customers.
const CUSTOMERS: u64 = 1000;
/// A 64-bit number in base 62.
const DIGITS: usize = 11;
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Whether requests are signed as the endpoint expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signature {
    Good,
    /// Of the right form, by another secret: the server has to compute it in full to refuse it.
    Forged,
}

/// Makes requests.
pub(crate) struct Template {
    verifier: Verifier,
    /// Request line and the headers that never change.
    head: Vec<u8>,
    body: Vec<u8>,
    unique_at: Vec<usize>,
    customer_at: Vec<usize>,
    /// The same for all events of a run, and another in the next one.
    salt: u64,
}

impl Template {
    pub(crate) fn new(
        (provider, secret, signature): (&str, &str, Signature),
        (path, host): (&str, &str),
        payload: &str,
        salt: u64,
    ) -> anyhow::Result<Self> {
        let secret = match signature {
            Signature::Good => secret.to_owned(),
            Signature::Forged => format!("{secret}-forged"),
        };
        let verifier = Verifier::new(provider, &Settings::default(), &[Secret::new(secret)])?;
        ensure!(path.starts_with('/'), "the path begins with a slash");
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\naccept: */*; q=0.5, application/json\r\n\
             cache-control: no-cache\r\nuser-agent: ichido-bench-load\r\n"
        );
        let (mut body, mut unique_at, mut customer_at) = (Vec::new(), Vec::new(), Vec::new());
        let mut rest = payload.trim_end();
        while let Some((at, (name, width), places)) =
            [(UNIQUE, &mut unique_at), (CUSTOMER, &mut customer_at)]
                .into_iter()
                .filter_map(|(kind, places)| Some((rest.find(kind.0)?, kind, places)))
                .min_by_key(|(at, ..)| *at)
        {
            body.extend_from_slice(&rest.as_bytes()[..at]);
            places.push(body.len());
            body.resize(body.len() + width, b'0');
            rest = &rest[at + name.len()..];
        }
        body.extend_from_slice(rest.as_bytes());
        Ok(Self { verifier, head: head.into(), body, unique_at, customer_at, salt })
    }

    /// Bytes of a body.
    pub(crate) fn payload_bytes(&self) -> usize {
        self.body.len()
    }

    /// Writes the request of event `number`, signed now, over what `out` held.
    pub(crate) fn write(
        &self,
        number: u64,
        now: Timestamp,
        out: &mut Vec<u8>,
    ) -> anyhow::Result<()> {
        let body = self.body(number);
        let mut request =
            Request { method: "POST".into(), body: body.into(), ..Request::default() };
        self.verifier.sign(&mut request, "", "", now).context("cannot sign")?;
        out.clear();
        out.extend_from_slice(&self.head);
        for (name, value) in request.headers.iter() {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b": ");
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"content-length: ");
        out.extend_from_slice(request.body.len().to_string().as_bytes());
        out.extend_from_slice(b"\r\n\r\n");
        out.extend_from_slice(&request.body);
        Ok(())
    }

    fn body(&self, number: u64) -> Vec<u8> {
        let mut body = self.body.clone();
        let mut unique = [b'0'; UNIQUE.1];
        unique[0] = b'1';
        digits(self.salt, &mut unique[2..2 + DIGITS]);
        digits(scatter(number), &mut unique[UNIQUE.1 - DIGITS..]);
        for at in &self.unique_at {
            body[*at..*at + UNIQUE.1].copy_from_slice(&unique);
        }
        let mut customer = [b'0'; CUSTOMER.1];
        digits(scatter(number % CUSTOMERS), &mut customer[CUSTOMER.1 - DIGITS..]);
        for at in &self.customer_at {
            body[*at..*at + CUSTOMER.1].copy_from_slice(&customer);
        }
        body
    }
}

/// Mixes a number so that neighbours land far apart in an index, as a provider's ids do; one to
/// one (the finaliser of `SplitMix64`), so that no two events share an id.
fn scatter(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Writes `number` in base 62, from the right.
fn digits(mut number: u64, out: &mut [u8]) {
    for place in out.iter_mut().rev() {
        *place = ALPHABET[usize::try_from(number % 62).unwrap_or_default()];
        number /= 62;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use ichido_verify::Verdict;

    use super::*;

    const PAYLOAD: &str = r#"{"id":"evt_{unique}","type":"invoice.paid","data":{"object":
        {"id":"in_{unique}","customer":"cus_{customer}"}}}"#;

    fn template(signature: Signature) -> Template {
        Template::new(("stripe", "s", signature), ("/webhooks/x", "h"), PAYLOAD, 7).expect("made")
    }

    /// What a server reads out of the bytes.
    fn received(bytes: &[u8]) -> Request {
        let mut headers = [httparse::EMPTY_HEADER; 16];
        let mut parsed = httparse::Request::new(&mut headers);
        let head = parsed.parse(bytes).expect("HTTP").unwrap();
        let headers = parsed.headers.iter().map(|h| (h.name, h.value)).collect();
        let body = bytes[head..].to_vec().into();
        Request { method: "POST".into(), url: "/webhooks/x".into(), headers, body }
    }

    fn sent(template: &Template, number: u64) -> Request {
        let mut out = Vec::new();
        template.write(number, Timestamp::now(), &mut out).expect("written");
        received(&out)
    }

    fn verify(request: Request) -> Result<Verdict, ichido_verify::Rejection> {
        let secret = [Secret::new("s")];
        let verifier = Verifier::new("stripe", &Settings::default(), &secret).expect("made");
        verifier.verify(request, Timestamp::now())
    }

    #[test]
    fn a_request_verifies_and_its_length_is_right() {
        let request = sent(&template(Signature::Good), 3);
        let length = request.headers.get_all("content-length").next().expect("there").to_vec();
        assert_eq!(String::from_utf8(length).expect("text"), request.body.len().to_string());
        let Ok(Verdict::Delivery(delivery)) = verify(request) else { panic!("not a delivery") };
        let event = &delivery.events[0];
        assert!(event.id().starts_with("evt_1") && event.id().len() == 28, "{}", event.id());
        assert_eq!(event.order_key().map(str::len), Some(27));
    }

    #[test]
    fn a_forged_request_does_not_verify() {
        assert!(verify(sent(&template(Signature::Forged), 3)).is_err());
    }

    #[test]
    fn every_event_has_an_id_of_its_own_and_a_repeat_has_the_bytes_of_the_first() {
        let template = template(Signature::Good);
        let bodies: HashSet<_> = (0..10_000).map(|number| template.body(number)).collect();
        assert_eq!(bodies.len(), 10_000);
        assert_eq!(template.body(5), template.body(5));
    }
}
