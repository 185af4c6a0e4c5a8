//! `ichido audit`: the invariants as queries.

use std::process::ExitCode;

use super::Global;
use crate::{config::load, engine, output};

/// Options of `audit`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command; exit code 1 when an invariant is broken.
pub(crate) async fn run(_args: Args, global: &Global) -> anyhow::Result<ExitCode> {
    let reader = engine::reader(&load::load(global)?.config).await?;
    let findings = reader.audit().await?;
    reader.close().await;
    if global.json {
        output::json(&findings)?;
    } else if findings.is_empty() {
        output::line("every invariant holds")?;
    } else {
        for finding in &findings {
            output::line(&format!(
                "broken: {} ({} row(s), such as {})\n  promised: {}",
                finding.invariant, finding.count, finding.example, finding.promise
            ))?;
        }
    }
    Ok(ExitCode::from(u8::from(!findings.is_empty())))
}
