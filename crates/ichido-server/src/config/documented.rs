//! Holds `config.default.toml` to being the documentation: what can be set is in it, and what it
//! shows of a scheme works.

use super::{DEFAULTS, endpoint::EndpointConfig};

/// The members that `T` knows, by its own word about one that it does not know.
fn members<T: serde::de::DeserializeOwned>() -> Vec<String> {
    let refused = toml::from_str::<T>("nonsense = 1").err().expect("refused").to_string();
    let (_, list) = refused.split_once("expected one of ").expect("a list");
    let names = list.lines().next().unwrap_or_default().split(", ");
    names.map(|name| name.trim_matches('`').to_owned()).collect()
}

fn documented(name: &str) -> bool {
    let (value, table) = (format!("# {name} = "), format!(".{name}]"));
    DEFAULTS.lines().any(|line| line.starts_with(&value) || line.ends_with(&table))
}

/// The commented table `name`, ready to be read.
fn table(name: &str) -> String {
    let lines = DEFAULTS.lines().skip_while(|line| *line != format!("# [{name}]"));
    let lines = lines.take_while(|line| *line != "#").map(|line| &line["# ".len()..]);
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn every_setting_of_an_endpoint_and_of_a_generic_scheme_is_documented() {
    let mut all = members::<EndpointConfig>();
    all.extend(members::<ichido_verify::GenericHmac>());
    assert!(all.len() > 20, "{all:?}");
    for name in all {
        assert!(documented(&name), "{name}");
    }
}

#[test]
fn the_generic_scheme_that_is_shown_works_and_shows_the_defaults() {
    let shown = table("endpoint.billing.generic").replace("\"{body}\"", "\"{timestamp}.{body}\"");
    let text = format!("provider = \"generic\"\nsecrets = [\"env:A\"]\n{shown}");
    let text = text.replace("endpoint.billing.", "");
    let config: EndpointConfig = toml::from_str(&text).expect("the documentation");
    let generic = config.generic.expect("it is there");
    let settings = ichido_verify::Settings { generic: Some(generic.clone()), ..Default::default() };
    let row = ichido_verify::Provider::of("generic", &settings).expect("a scheme");

    let least = ichido_verify::GenericHmac {
        message: "{body}".into(),
        timestamp_header: None,
        event_type: None,
        occurred_at: None,
        order_key: None,
        deadline: None,
        retry_horizon: None,
        ..generic.clone()
    };
    let minimal: ichido_verify::GenericHmac =
        toml::from_str("header = \"x-signature\"\nid = \"json:event.id\"").expect("enough");
    assert_eq!(least, minimal, "what is shown as a default is none");
    let settings = ichido_verify::Settings { generic: Some(minimal), ..Default::default() };
    let default = ichido_verify::Provider::of("generic", &settings).expect("a scheme");
    assert_eq!((row.deadline, row.retry_horizon), (default.deadline, default.retry_horizon));
}

#[test]
fn every_parameter_of_an_sql_handler_is_documented() {
    for (name, _) in ichido::Param::ALL {
        assert!(DEFAULTS.contains(&format!("#   :{name} ")), "{name}");
    }
}
