//! Sessions in numbers.

use super::{Error, Sessions, Target};
use crate::boxed::boxed;
use crate::shared::DriverError;
use crate::shared::runs::load_run;
use domain::agent::Agent;
use domain::compaction::Mark;
use domain::id::{RunId, SessionId};
use domain::run::Run;
use domain::usage::{Day, UsageSum};
use domain::user::UserId;
use store::{SessionRow, SessionStats, UsageFilter};

/// A session in numbers.
#[derive(Debug, Clone)]
pub struct SessionNumbers {
    /// The session.
    pub row: SessionRow,
    /// Counts of its messages and turns.
    pub counts: SessionStats,
    /// The usage of its turns. Work that they handed over is in the sessions that did it.
    pub usage: UsageSum,
    /// The extent to which its model's window is filled; none before a model was asked in it, and
    /// where the model is not configured any more.
    pub fill: Option<WindowFill>,
}

/// The extent to which a model's window is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowFill {
    /// Tokens of the prompt and the reply of the newest call; after a compaction, those of the
    /// thread as it is then, estimated.
    pub tokens: u64,
    /// Tokens that the model holds, or as many as the definition allows.
    pub window: u64,
}

impl Sessions<'_> {
    /// Returns a session in numbers, for a user who may see it.
    ///
    /// # Errors
    /// There is no such session, or the user may not see it.
    #[boxed]
    pub async fn numbers(
        &self,
        user: &UserId,
        target: &Target,
        session: SessionId,
    ) -> Result<SessionNumbers, Error> {
        let (row, agent) = self.visible(user, target, session).await?;
        let counts = self.store().session_stats(session).await?;
        let usage = UsageFilter {
            from: Day::from_time(row.created_at),
            to: Day(u32::MAX),
            user: None,
            agent: None,
            session: Some(session),
        };
        let usage = self.store().usage_total(usage).await?;
        let fill = self.window_fill(&row, &agent).await?;
        Ok(SessionNumbers {
            row,
            counts,
            usage,
            fill,
        })
    }

    /// Returns the fill level of the window of a session's model: from the turn in progress if it
    /// has called a model, or else from the last one.
    async fn window_fill(
        &self,
        row: &SessionRow,
        agent: &Agent,
    ) -> Result<Option<WindowFill>, Error> {
        // To read it could end the process.
        if self.core.quarantine.get(row.id).is_some() {
            return Ok(None);
        }
        if let Some(run) = row.open_run
            && let Some(fill) = self.fill_after(run, row, agent).await?
        {
            return Ok(Some(fill));
        }
        let Some(head) = row.head else {
            return Ok(None);
        };
        match self.store().turn(head).await? {
            Some(turn) => self.fill_after(turn.run, row, agent).await,
            None => Ok(None),
        }
    }

    async fn fill_after(
        &self,
        run: RunId,
        row: &SessionRow,
        agent: &Agent,
    ) -> Result<Option<WindowFill>, Error> {
        let run = match load_run(self.store(), run).await {
            Ok((run, _)) => run,
            // An imported turn has no run here.
            Err(DriverError::Missing(_)) => return Ok(None),
            Err(failure) => return Err(failure.into()),
        };
        let served = self.core.served();
        let Some(definition) = served.catalogue.definition(&run.started.definition) else {
            return Ok(None);
        };
        let kind = agent.kind;
        let of_session = || {
            let model = row.model.as_deref();
            model.or_else(|| served.settings.paths.model_of(kind, definition))
        };
        let (tokens, model) = match (compacted_to(&run), &run.newest_call) {
            (Some(tokens), _) => (tokens, of_session()),
            (None, Some(call)) => (call.usage.total(), call.model.as_deref()),
            (None, None) => return Ok(None),
        };
        let route = served.settings.gateway.resolve(model).ok();
        Ok(route.map(|route| WindowFill {
            tokens,
            window: definition.window(route.context_window),
        }))
    }
}

/// Returns the tokens that a thread has after its compaction; none of a run that is none.
fn compacted_to(run: &Run) -> Option<u64> {
    run.started.compacts.as_ref()?;
    let mark = run.messages.iter().find_map(|message| Mark::of(message))?;
    Some(mark.tokens_after)
}
