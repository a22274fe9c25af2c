//! The answer of a session's driver to a command.

use super::Error;
use crate::core::Core;
use crate::refusals::busy;
use crate::shared::DriverError;
use std::time::Duration;
use tokio::sync::oneshot;

/// The longest wait of a command for its session's driver, which may be in the middle of a step.
const DRIVER_PATIENCE: Duration = Duration::from_secs(30);

/// Waits for a driver's answer to a command.
pub(super) async fn answered<T>(
    core: &Core,
    answer: oneshot::Receiver<Result<T, DriverError>>,
) -> Result<T, Error> {
    match tokio::time::timeout(DRIVER_PATIENCE, answer).await {
        Ok(Ok(answer)) => Ok(answer?),
        Ok(Err(_)) if core.stopping.is_cancelled() => Err(Error::ShuttingDown),
        // The driver panicked, and it is unknown whether that was before or after the commit.
        Ok(Err(_)) => Err(busy(
            "the host failed meanwhile; look again whether it was done before you repeat it",
        )
        .into()),
        Err(_) => Err(busy(
            "the session is busy; look again whether it was done before you repeat it",
        )
        .into()),
    }
}
