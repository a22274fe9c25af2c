//! Tasks: work that agents handed to each other, listed, summed up and cancelled.

use super::ending::CANCEL_REASON;
use super::once::lands;
use super::reason::checked_reason;
use super::sessions::visible;
use super::{Error, Target, Tasks};
use crate::boxed::boxed;
use crate::journal::Context;
use crate::shared::blocked::wake_blocked;
use crate::shared::guards::allowed;
use crate::shared::runs::{drawn_by_work, load_caller};
use crate::signal::Aborted;
use domain::error_code::{ErrorCode, ErrorKind};
use domain::event::{Event, InputCancelled, RunSettled};
use domain::id::{OperationId, Stream};
use domain::refusal::Refusal;
use domain::role::Right;
use domain::run::settle::task_cancelled;
use domain::task::{TaskStats, TaskStatus};
use domain::time::Timestamp;
use domain::user::UserId;
use store::{Commit, Expected, Guard, QueueGuard, RunGuard, TaskFilter, TaskRow};

/// Tasks that one inspection for a page reads from the store at a time.
const INSPECT_TASKS: usize = 500;
/// Maximum number of tasks that one page reads. A page with fewer matches than its limit then
/// continues on the next.
const INSPECTED_MAX: usize = 5_000;

/// The tasks that a page shows.
#[derive(Debug, Clone, Default)]
pub struct TaskQuery {
    /// The filter of tasks. Its user is the viewer; none for the operator.
    pub filter: TaskFilter,
    /// Only in this state.
    pub status: Option<TaskStatus>,
    /// The last task of the page before.
    pub after: Option<(Timestamp, OperationId)>,
    /// Maximum number of tasks.
    pub limit: usize,
}

/// A page of tasks.
#[derive(Debug, Clone)]
pub struct TaskList {
    /// The newest first.
    pub tasks: Vec<TaskRow>,
    /// The place after which the next page begins; none on the last.
    pub next: Option<(Timestamp, OperationId)>,
}

impl Tasks<'_> {
    /// Returns a page of tasks.
    #[boxed]
    pub async fn list(&self, query: TaskQuery) -> Result<TaskList, Error> {
        let TaskQuery {
            filter,
            status,
            mut after,
            limit,
        } = query;
        let mut tasks = Vec::new();
        let mut inspected = 0;
        loop {
            let rows = self
                .store()
                .tasks(filter.clone(), after, INSPECT_TASKS)
                .await?;
            let is_last = rows.len() < INSPECT_TASKS;
            inspected += rows.len();
            for row in rows {
                if tasks.len() == limit {
                    return Ok(TaskList { tasks, next: after });
                }
                after = Some((row.created_at, row.id));
                let is_meant = status.is_none_or(|status| row.status == status);
                if is_meant && self.shows(filter.user.as_ref(), &row) {
                    tasks.push(row);
                }
            }
            if is_last {
                return Ok(TaskList { tasks, next: None });
            }
            if inspected >= INSPECTED_MAX {
                return Ok(TaskList { tasks, next: after });
            }
        }
    }

    /// Returns one task.
    ///
    /// # Errors
    /// There is no such task, or the user does not see it. Without a user every task is seen.
    #[boxed]
    pub async fn get(&self, id: OperationId, user: Option<&UserId>) -> Result<TaskRow, Error> {
        let row = self.store().task(id, user).await?;
        row.filter(|row| self.shows(user, row))
            .ok_or_else(|| task_not_found(id))
    }

    /// Sums tasks up by target and operation.
    #[boxed]
    pub async fn stats(&self, filter: TaskFilter) -> Result<TaskStats, Error> {
        let hidden = match &filter.user {
            Some(user) if self.access().is_ruled(user) => {
                let callers = self.store().task_callers(user).await?;
                let hidden = callers
                    .into_iter()
                    .filter(|(_, path)| !self.access().may_see(user, path));
                hidden.map(|(agent, _)| agent).collect()
            }
            _ => Vec::new(),
        };
        Ok(self.store().task_stats(filter, hidden).await?)
    }

    /// Cancels a task: its caller is notified at once, and its work is stopped. Returns the task.
    ///
    /// # Errors
    /// There is no such task, or the user does not see it, or may not cancel its caller's turn. Or
    /// the task has ended.
    #[boxed]
    pub async fn cancel(
        &self,
        user: &UserId,
        id: OperationId,
        reason: Option<String>,
    ) -> Result<TaskRow, Error> {
        let reason = checked_reason(reason, CANCEL_REASON)?;
        let row = self.get(id, Some(user)).await?;
        self.may_cancel(user, &row).await?;
        if row.status.is_end() {
            return Err(task_settled(row.status));
        }
        if row.detached {
            self.stop_detached(user, &row, reason).await?;
        } else {
            self.settle_cancelled(user, &row).await?;
        }
        self.get(id, Some(user)).await
    }

    /// Checks that a user may cancel the turn that handed a task over.
    async fn may_cancel(&self, user: &UserId, row: &TaskRow) -> Result<(), Error> {
        let target = Target::Agent(row.agent);
        let found = self.agents().find(user, &target).await;
        let (agent, role) = found.map_err(|error| hidden(error, row.id))?;
        let session = self.store().session(row.session).await?;
        visible(session, row.agent, user, role, row.session)
            .map_err(|refusal| hidden(refusal.into(), row.id))?;
        role.permits(Right::Interact)?;
        Ok(self.access().may_command(user, agent.agent.path.as_str())?)
    }

    /// Settles the operation that waits for a task. The session that does the work finds that no
    /// caller waits for it any more.
    async fn settle_cancelled(&self, user: &UserId, row: &TaskRow) -> Result<(), Error> {
        let gone = || task_settled(TaskStatus::Cancelled);
        let run = load_caller(self.store(), row.run).await?.ok_or_else(gone)?;
        let open = run.open.get(&row.id).ok_or_else(gone)?;
        let now = self.core.now();
        let mut settled = task_cancelled(&open.operation, now);
        settled.spent = drawn_by_work(self.store(), &run.started, &open.operation).await?;
        let context = Context::by(user, now).about_run(&run.started);
        let event = Event::RunSettled(RunSettled {
            run: row.run,
            settled: vec![settled],
        });
        let guard = Guard::Run(RunGuard::OperationOpen {
            run: row.run,
            operation: row.id,
        });
        let commit = Commit::new()
            .guard(guard)
            .guard(allowed(row.agent, user))
            .append(
                Stream::Run(row.run),
                Expected::Any,
                vec![context.event(event)],
            );
        if !lands(self.core.commit_work(row.session, commit).await)? {
            return Err(gone());
        }
        self.core.wake(row.to_session);
        Ok(())
    }

    /// Stops work without a waiting caller: its turn, or the input that carries it.
    async fn stop_detached(
        &self,
        user: &UserId,
        row: &TaskRow,
        reason: String,
    ) -> Result<(), Error> {
        if row.child.is_some() {
            return match self
                .runs()
                .abort(row.to_session, reason, Commit::new())
                .await?
            {
                Aborted::Ended => Ok(()),
                Aborted::NoneOpen | Aborted::Outdated => Err(task_settled(TaskStatus::Completed)),
            };
        }
        let now = self.core.now();
        let cancelled = InputCancelled {
            input: row.input,
            session: row.to_session,
            cancelled_by: user.clone(),
            reason: Some(reason),
            time: now,
        };
        let context = Context::by(user, now).about(row.to_agent, Some(row.to_session), None);
        let commit = Commit::new()
            .guard(QueueGuard::InputWaiting(row.input))
            .guard(allowed(row.agent, user))
            .append(
                Stream::Session(row.to_session),
                Expected::Any,
                vec![context.event(Event::InputCancelled(cancelled))],
            );
        if !lands(self.core.commit_work(row.to_session, commit).await)? {
            return Err(task_settled(TaskStatus::Running));
        }
        wake_blocked(self.core, row.input).await;
        Ok(())
    }

    /// Returns whether the operator's rules on paths let a user see a task's caller. The operator
    /// sees every task.
    fn shows(&self, user: Option<&UserId>, row: &TaskRow) -> bool {
        user.is_none_or(|user| {
            row.agent_path
                .as_deref()
                .is_none_or(|path| self.access().may_see(user, path))
        })
    }
}

fn task_not_found(id: OperationId) -> Error {
    Refusal::new(ErrorCode::TaskNotFound, format!("there is no task `{id}`")).into()
}

/// Returns the error if the caller looks absent: its task does too.
fn hidden(error: Error, id: OperationId) -> Error {
    match error {
        Error::Refused(refusal) if refusal.kind() == ErrorKind::NotFound => task_not_found(id),
        other => other,
    }
}

fn task_settled(status: TaskStatus) -> Error {
    let message =
        format!("the task is {status} and cannot be cancelled any more; look at it again");
    Refusal::new(ErrorCode::TaskSettled, message).into()
}
