//! Where the file is, and the limits of its writer.

use std::{path::PathBuf, time::Duration};

/// How long a receive waits for the writer before it is refused as busy.
pub const RECEIVE_WAIT: Duration = Duration::from_secs(2);
/// Deliveries that may wait for the writer: a fraction of a second of its work.
pub const WAITING_MAX: usize = 4_096;

/// Settings of the SQLite engine.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// The database file; made when it does not exist.
    pub path: PathBuf,
    /// How long a receive waits for the writer.
    pub receive_wait: Duration,
    /// Deliveries that may wait; above it a receive is refused as busy.
    pub waiting_max: usize,
    /// Largest size of the file in pages of 4 KiB; `None`: as large as the disk allows.
    pub pages_max: Option<u32>,
}

impl Config {
    /// The defaults for a file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            receive_wait: RECEIVE_WAIT,
            waiting_max: WAITING_MAX,
            pages_max: None,
        }
    }
}
