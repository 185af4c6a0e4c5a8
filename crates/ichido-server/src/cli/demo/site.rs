//! The folder that the demo plays in: the billing example, as it stands in `examples/billing`.
//!
//! It must never overwrite a file, and never use the database that the environment names.

use std::{
    fs,
    io::Write,
    net::SocketAddr,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use tempfile::TempDir;

use crate::{
    cli::ConfigFile,
    config::{
        Config,
        load::{self, Flags},
        secret::DatabaseUrl,
    },
};

/// The endpoint that is played on.
pub(super) const ENDPOINT: &str = "billing";
const DATABASE: &str = "billing.db";
const SECRET_FILE: &str = "webhook_secret";

macro_rules! example {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../../../../examples/billing/", $name)))),*]
    };
}

const FILES: [(&str, &str); 9] = example![
    "ichido.toml",
    "sqlite/schema.sql",
    "sqlite/invoice_created.sql",
    "sqlite/invoice_paid.sql",
    "sqlite/invoice_voided.sql",
    "postgres/schema.sql",
    "postgres/invoice_created.sql",
    "postgres/invoice_paid.sql",
    "postgres/invoice_voided.sql",
];

/// The folder with the example in it.
pub(super) struct Site {
    folder: PathBuf,
    /// Removes the folder at the end, unless it is to stay.
    _temporary: Option<TempDir>,
    /// The signing secret of this run.
    pub(super) secret: String,
}

impl Site {
    /// Writes the example into `folder`, or into a temporary one, which stays with `keep`.
    pub(super) fn new(folder: Option<&Path>, keep: bool) -> anyhow::Result<Self> {
        let (folder, temporary) = if let Some(folder) = folder {
            (folder.to_owned(), None)
        } else {
            let made = tempfile::Builder::new().prefix("ichido-demo-").tempdir();
            let made = made.context("cannot make a temporary folder: give one with --dir")?;
            if keep { (made.keep(), None) } else { (made.path().to_owned(), Some(made)) }
        };
        let shown = folder.display();
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {shown}"))?;
        if fs::read_dir(&folder).with_context(|| format!("cannot read {shown}"))?.next().is_some() {
            bail!("{shown} is not empty: name a new folder");
        }
        let random = std::iter::repeat_with(fastrand::alphanumeric).take(32);
        let secret = format!("whsec_{}", random.collect::<String>());
        let site = Self { folder, _temporary: temporary, secret };
        site.write().with_context(|| format!("cannot write into {}", site.folder.display()))?;
        Ok(site)
    }

    fn write(&self) -> std::io::Result<()> {
        for (name, text) in FILES {
            let path = self.folder.join(name);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            // The one change: a secret of its own, so that the folder runs without a variable.
            let place = format!("file:{SECRET_FILE}");
            fs::write(path, text.replace("env:STRIPE_WEBHOOK_SECRET", &place))?;
        }
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        options.open(self.folder.join(SECRET_FILE))?.write_all(self.secret.as_bytes())
    }

    /// The folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The database's file.
    pub(super) fn database(&self) -> PathBuf {
        self.folder.join(DATABASE)
    }

    /// The example's configuration, on a free port of 127.0.0.1 and on its own file, whatever
    /// the environment says.
    pub(super) fn config(&self) -> anyhow::Result<Config> {
        let file = ConfigFile { config: Some(self.folder.join("ichido.toml")) };
        let flags = Flags { listen: Some(([127, 0, 0, 1], 0).into()), ..Flags::default() };
        let mut config = load::load(&file, &flags)?.config;
        let url = format!("sqlite:{DATABASE}");
        config.database.url = DatabaseUrl::try_from(url).map_err(anyhow::Error::msg)?;
        Ok(config)
    }

    /// What to try while the server runs.
    pub(super) fn what_next(&self, address: &SocketAddr) -> String {
        let folder = self.folder.display();
        // As it was called: it need not be found under its bare name.
        let ichido = std::env::args().next().unwrap_or_else(|| "ichido".into());
        // It would override the folder's own configuration.
        let own =
            if std::env::var_os("DATABASE_URL").is_some() { "env -u DATABASE_URL " } else { "" };
        format!(
            "\nthe server keeps running; Ctrl-C ends it, its files stay. Try:\n  \
             {ichido} send --url http://{address}/webhooks/{ENDPOINT} \
             --secret file:{folder}/{SECRET_FILE} --count 1000 --duplicate-percent 30\n  \
             {own}{ichido} stats --config {folder}/ichido.toml\n  \
             {own}{ichido} audit --config {folder}/ichido.toml\n  \
             curl http://{address}/metrics\n  \
             sqlite3 -readonly {folder}/{DATABASE} 'SELECT sum(amount) FROM ledger_entries'"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_something_in_it_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("mine"), "x").expect("written");
        let refused = Site::new(Some(folder.path()), false).err().expect("refused");
        assert!(refused.to_string().contains("not empty"), "{refused}");
        assert_eq!(fs::read_dir(folder.path()).expect("there").count(), 1);
    }

    #[test]
    fn the_example_is_a_good_configuration() {
        let site = Site::new(None, false).expect("written");
        let config = site.config().expect("loads");
        assert_eq!(crate::engine::problems(&config), []);
        assert_eq!(config.endpoint.len(), 2);
    }
}
