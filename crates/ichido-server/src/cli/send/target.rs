//! Whom to send to and as whom to sign: what the options say, else what the configuration says.
//!
//! It must never guess an endpoint where there are several, nor show a secret.

use anyhow::{Context, bail};
use hyper::Uri;
use ichido_verify::{Secret, Settings, Verifier};

use super::{Args, options::SecretArg};
use crate::{
    config::{
        Config,
        endpoint::EndpointConfig,
        load::{self, Flags},
        reachable,
        secret::SecretRef,
    },
    engine,
};

const STRIPE: &str = "stripe";
const STRIPE_SECRET: &str = "STRIPE_WEBHOOK_SECRET";
const PREFIX: &str = "/webhooks/";

/// A place to post to and a provider to sign as.
pub(super) struct Target {
    pub(super) url: Uri,
    pub(super) provider: String,
    pub(super) settings: Settings,
    pub(super) verifier: Verifier,
    /// The endpoints that the configuration has, for a hint.
    pub(super) known: Vec<String>,
}

impl Target {
    /// Reads the configuration and the secret. Fails with the fix named.
    pub(super) fn new(args: &Args) -> anyhow::Result<Self> {
        let config = load::load(&args.file, &Flags::default())?.config;
        let endpoint = endpoint(args, &config)?;
        let url = match (&args.url, endpoint) {
            (Some(url), _) => url.clone(),
            (None, Some((name, _))) => url(&config, name)?,
            (None, None) => bail!("where to? Name --url, or --config with an endpoint"),
        };
        let configured = endpoint.map(|(_, endpoint)| endpoint);
        let provider = match (&args.provider, configured) {
            (Some(named), _) => named.clone(),
            (None, Some(endpoint)) => endpoint.provider.clone(),
            (None, None) => STRIPE.to_owned(),
        };
        // Settings and secret of an endpoint say nothing about another provider.
        let ours = configured.filter(|endpoint| endpoint.provider == provider);
        let settings = ours.map(engine::settings).unwrap_or_default();
        if provider == "generic" && settings.generic.is_none() {
            bail!("a generic scheme stands in the configuration: name --config and --endpoint");
        }
        let secret = secret(args, &config, ours, &provider)?;
        let verifier = Verifier::new(&provider, &settings, &[Secret::new(secret)])?;
        let known = config.endpoint.keys().cloned().collect();
        Ok(Self { url, provider, settings, verifier, known })
    }
}

/// The endpoint that is meant, if the configuration has it.
fn endpoint<'c>(
    args: &Args,
    config: &'c Config,
) -> anyhow::Result<Option<(&'c String, &'c EndpointConfig)>> {
    let known = || config.endpoint.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    if let Some(name) = &args.endpoint {
        let found = config.endpoint.get_key_value(name);
        return found.map(Some).with_context(|| match known() {
            none if none.is_empty() => "no endpoint is configured: name --config".to_owned(),
            known => format!("no endpoint `{name}` is configured: use one of {known}"),
        });
    }
    if let Some(url) = &args.url {
        let name = url.path().strip_prefix(PREFIX).unwrap_or_default();
        return Ok(config.endpoint.get_key_value(name));
    }
    if config.endpoint.len() > 1 {
        bail!("which endpoint? Name one with --endpoint: {}", known());
    }
    Ok(config.endpoint.first_key_value())
}

fn url(config: &Config, name: &str) -> anyhow::Result<Uri> {
    if config.listen.port() == 0 {
        bail!("listen has port 0, so nobody knows where it is: name --url");
    }
    if !config.tls.cert.as_os_str().is_empty() {
        bail!("listen speaks TLS: name --url with the name that its certificate is for");
    }
    let address = reachable(config.listen);
    Ok(format!("http://{address}{PREFIX}{name}").parse()?)
}

fn secret(
    args: &Args,
    config: &Config,
    endpoint: Option<&EndpointConfig>,
    provider: &str,
) -> anyhow::Result<String> {
    let first = endpoint.and_then(|endpoint| endpoint.secrets.0.first());
    let read = match (&args.secret, first) {
        (Some(named), _) => named.read(),
        (None, Some(place)) => place.read(&config.base),
        (None, None) if provider == STRIPE => {
            SecretArg::Place(SecretRef::Env(STRIPE_SECRET.into())).read()
        }
        (None, None) => bail!("with which secret? Name --secret, or --config with the endpoint"),
    };
    read.map_err(anyhow::Error::msg)
}
