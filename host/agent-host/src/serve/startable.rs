//! The check of a configuration that each start, each reading again and `config check` make alike.

use super::{http_egress, identity, refuse_errors};
use crate::config::{Finding, Loaded};
use crate::failure::Failure;
use crate::models::gateway;
use api::Clock;
use llm::Gateway;

/// Checks everything that a start rests on, except its port, its data and its components' code:
/// what was found in the configuration, the way out, the issuers of tokens, and the models with
/// their keys and rule files. Returns the gateway to the models. Blocks.
///
/// # Errors
/// The findings that are errors, or the first thing that cannot be set up.
pub(crate) fn startable(loaded: &Loaded, findings: &[Finding]) -> Result<Gateway, Failure> {
    refuse_errors(findings)?;
    http_egress(loaded)?;
    identity(loaded, Clock::system())?;
    gateway(loaded)
}
