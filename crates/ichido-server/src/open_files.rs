//! The limit of open files: each connection is one, and many systems start a process with 1,024.
//!
//! It must never lower a limit.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::warn;

use crate::config::Limits;

/// Listeners at most.
const LISTENERS: usize = 2;
/// Files and database connections.
const OTHERS: usize = 256;

/// Raises the limit to what `limits` may need, as far as the system allows, and says so when that
/// is not enough.
pub(crate) fn allow(limits: &Limits) {
    let need = limits.connections_max.saturating_mul(LISTENERS).saturating_add(OTHERS) as u64;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // `None` is "without limit".
    let Some(current) = current.filter(|current| *current < need) else { return };
    let reachable = maximum.map_or(need, |maximum| maximum.min(need));
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(reachable), maximum });
    let have = if raised.is_ok() { reachable } else { current };
    if have < need {
        warn!(
            have,
            need,
            "too few open files for limits.connections_max: raise the limit (`ulimit -n`, or \
             LimitNOFILE of systemd), or lower the setting"
        );
    }
}
