//! Test data as requests. Never decides what is right: that is in the data.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking")]

use data_encoding::BASE64;
use ichido_verify::{Headers, Request, Secret, Settings, Timestamp, Verifier};
use serde_json::Value;

/// One entry of a data file.
pub(crate) struct Vector(pub(crate) Value);

impl Vector {
    /// Loads a file of entries.
    pub(crate) fn load(text: &str) -> Vec<Self> {
        let entries: Vec<Value> = serde_json::from_str(text).unwrap();
        entries.into_iter().map(Self).collect()
    }

    pub(crate) fn text(&self, member: &str) -> Option<&str> {
        self.0[member].as_str()
    }

    pub(crate) fn provider(&self) -> &str {
        self.text("provider").unwrap()
    }

    pub(crate) fn name(&self) -> String {
        format!("{}/{}", self.provider(), self.text("case").or(self.text("sdk")).unwrap())
    }

    pub(crate) fn request(&self) -> Request {
        let headers = self.0["headers"].as_object().unwrap();
        let headers: Headers =
            headers.iter().map(|(name, value)| (name, value.as_str().unwrap())).collect();
        Request {
            method: self.text("method").unwrap_or("POST").to_owned(),
            url: self.text("url").unwrap_or_default().to_owned(),
            headers,
            body: BASE64.decode(self.text("body_base64").unwrap().as_bytes()).unwrap().into(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_second(self.0["now_unix"].as_i64().unwrap()).unwrap()
    }

    pub(crate) fn verifier(&self) -> Result<Verifier, ichido_verify::ConfigError> {
        let secrets: Vec<Secret> = match &self.0["secret"] {
            Value::Array(several) => {
                several.iter().map(|text| Secret::new(text.as_str().unwrap())).collect()
            }
            one => vec![Secret::new(one.as_str().unwrap())],
        };
        Verifier::new(self.provider(), &Settings::default(), &secrets)
    }
}
