//! The HTTP edge of the real server: heads, answers, slow clients, floods, TLS, and its end.
#![forbid(unsafe_code)]

mod answers;
mod clock;
#[path = "../server/common.rs"]
#[expect(dead_code, reason = "shared with the tests of `server`, which use the rest")]
mod common;
mod crowd;
mod gate;
mod heads;
mod receive;
mod slow;
mod stop;
mod tls;
mod wire;
