//! Compacting a thread on a user's request.

use super::driver_answer::answered;
use super::quarantine::driven;
use super::{By, Error, Request, Runs, Target};
use crate::boxed::boxed;
use crate::signal::Signal;
use domain::id::{RunId, SessionId};
use serde_json::json;
use tokio::sync::oneshot;

impl Runs<'_> {
    /// Begins to compact a chat's thread, whatever room its model has left. Returns the run that
    /// does it.
    ///
    /// At most half of the thread is kept word for word.
    ///
    /// # Errors
    /// The session does not exist or is no open chat; a turn is in progress; there is nothing to
    /// summarise; the user has no right to it.
    #[boxed]
    pub async fn compact<'a>(
        &'a self,
        by: By<'a>,
        target: &Target,
        session: SessionId,
    ) -> Result<RunId, Error> {
        let request = Request::of(by, &json!({ "compact": session, "target": target.named() }))?;
        let act = self.try_compacting(by, target, session, request.clone());
        Ok(self.requests().once(request.as_ref(), act).await?.either())
    }

    async fn try_compacting(
        &self,
        by: By<'_>,
        target: &Target,
        session: SessionId,
        request: Option<Request>,
    ) -> Result<RunId, Error> {
        let row = self
            .sessions()
            .for_command(by.user, target, session)
            .await?;
        driven(self.core, row.id)?;
        let (done, begun) = oneshot::channel();
        let signal = Signal::Compact {
            by: by.user.clone(),
            with_key: store::api_key_here(),
            request,
            done,
        };
        self.core.signal(row.id, signal).await;
        answered(self.core, begun).await
    }
}
