//! PostgreSQL and PgBouncer refuse to run as root: their commands run as an ordinary user then.

use std::{os::unix::fs::chown, path::Path, process::Command};

use anyhow::{Context, Result};
use nix::unistd::{Uid, User};

/// Users that every Debian has, the better one first.
const ORDINARY: [&str; 2] = ["postgres", "nobody"];

/// `program` as an ordinary user.
pub(crate) fn command(program: &Path) -> Result<Command> {
    let Some(user) = ordinary()? else { return Ok(Command::new(program)) };
    let mut command = Command::new("setpriv");
    command
        .arg(format!("--reuid={}", user.uid))
        .arg(format!("--regid={}", user.gid))
        .arg("--clear-groups")
        .arg(program);
    Ok(command)
}

/// Gives a folder to the user of [`command`].
pub(crate) fn give(folder: &Path) -> Result<()> {
    let Some(user) = ordinary()? else { return Ok(()) };
    chown(folder, Some(user.uid.as_raw()), Some(user.gid.as_raw()))
        .context("cannot give the folder away")
}

/// Who to become; `None` when we are an ordinary user already.
fn ordinary() -> Result<Option<User>> {
    if !Uid::effective().is_root() {
        return Ok(None);
    }
    for name in ORDINARY {
        if let Some(user) = User::from_name(name)? {
            return Ok(Some(user));
        }
    }
    anyhow::bail!("we are root and there is neither a user postgres nor nobody")
}
