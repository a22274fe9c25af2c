//! The reasons that users give for ending something.

use super::Error;
use crate::shared::error::invalid;
use domain::agent::end_session::EXPIRED;

/// The longest reason, in bytes.
const REASON_BYTES_MAX: usize = 1_000;

/// Checks a reason that a user gave. The host's own reason for a session whose time was up is
/// reserved.
pub(super) fn checked_reason(reason: Option<String>, otherwise: &str) -> Result<String, Error> {
    let reason = reason.unwrap_or_else(|| otherwise.to_owned());
    if reason == EXPIRED {
        return Err(invalid(
            "`expired` is what the host says of a session whose time was up; say something else",
            "/reason",
        ));
    }
    check_reason(Some(&reason))?;
    Ok(reason)
}

/// Checks the length of a reason.
pub(super) fn check_reason(reason: Option<&str>) -> Result<(), Error> {
    if reason.is_some_and(|reason| reason.len() > REASON_BYTES_MAX) {
        return Err(invalid(
            format!("a reason has at most {REASON_BYTES_MAX} bytes"),
            "/reason",
        ));
    }
    Ok(())
}
