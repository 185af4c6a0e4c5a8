//! What a process does, as people write it: `receive, work`.
//!
//! It must never mean nothing: a process without a role would only wait.

use serde::Deserialize;

/// The roles of a process, separated by commas.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Roles {
    /// It takes webhooks.
    pub(crate) receive: bool,
    /// It runs handlers for what was stored first.
    pub(crate) work: bool,
}

impl TryFrom<String> for Roles {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl std::str::FromStr for Roles {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut roles = Self::default();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word {
                "receive" => roles.receive = true,
                "work" => roles.work = true,
                _ => return Err(format!("`{word}` is no role: use receive, work or both")),
            }
        }
        if roles == Self::default() {
            return Err("no role at all: use receive, work or both".to_owned());
        }
        Ok(roles)
    }
}

impl std::fmt::Display for Roles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all = [("receive", self.receive), ("work", self.work)];
        let mine: Vec<_> = all.into_iter().filter(|(_, has)| *has).map(|(name, _)| name).collect();
        f.write_str(&mine.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_words_with_commas_between_them() {
        let both = Roles { receive: true, work: true };
        assert_eq!("receive,work".parse(), Ok(both));
        assert_eq!(" work , receive ".parse(), Ok(both));
        assert_eq!("work".parse(), Ok(Roles { receive: false, work: true }));
        assert_eq!(both.to_string(), "receive, work");
    }

    #[test]
    fn no_role_or_an_unknown_one_is_refused_with_the_fix() {
        for (text, named) in [("", "no role"), ("recieve", "`recieve`")] {
            let refused = text.parse::<Roles>().expect_err("refused");
            assert!(refused.contains(named) && refused.contains("use receive, work"), "{refused}");
        }
    }
}
