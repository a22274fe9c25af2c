//! The treatment of work that was under way in the backup from which the store was restored.
//!
//! The original host continued after the backup. Without this store's knowledge, calls that are
//! open here may have been made, and inputs that wait here may have been processed. So no such work
//! is resumed automatically. The operator decides whether it continues, or that its outcome is
//! unknown. Until then the host does not start, and changes nothing.

use crate::core::Core;
use crate::driver::waiting_for;
use crate::journal::Context;
use crate::refusals::restored_from_backup;
use crate::shared::DriverError;
use crate::shared::Error;
use crate::shared::runs::load_run;
use domain::event::{Event, HostRestored, InputAccepted, InputDead, RestoreChoice, RunSettled};
use domain::id::{OperationId, RunId, Stream};
use domain::limits::WAITING_INPUTS_MAX;
use domain::operation::{Operation, Settlement};
use domain::run::Run;
use domain::run::recover::{goes_on, would_be_sent};
use domain::run::settle::{Ended, settlement};
use domain::step::Failure;
use domain::time::Timestamp;
use store::{BackupMark, Commit, CommitError, Expected, Guard, QueueGuard, ReadError, RunGuard};

/// The operator's choice about work that was under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AfterRestore {
    /// No choice yet: a store with such work is refused, so that the operator is asked first.
    #[default]
    Ask,
    /// The work continues.
    Resume,
    /// Its calls settle as unknown, and its inputs become dead letters.
    SettleUnknown,
}

/// Handles the work that was under way, before any other work begins. Does nothing for a store that
/// was not made from a backup.
pub(crate) async fn see_to(core: &Core, after: AfterRestore) -> Result<(), Error> {
    let Some(mark) = core.store.backup_mark().await? else {
        return Ok(());
    };
    let now = core.now();
    let under_way = UnderWay::find(core, now).await?;
    let choice = match after {
        _ if under_way.is_nothing() => RestoreChoice::NothingOpen,
        AfterRestore::Ask => {
            return Err(Error::Refused(restored_from_backup(
                &under_way.describe(mark),
            )));
        }
        AfterRestore::Resume => RestoreChoice::Resumed,
        AfterRestore::SettleUnknown => {
            under_way.settle(core, mark, now).await?;
            RestoreChoice::SettledUnknown
        }
    };
    let [turns, operations, inputs] = under_way.counts();
    tracing::info!(
        ?choice,
        turns,
        operations,
        inputs,
        "the store was restored from a backup"
    );
    let event = Event::HostRestored(HostRestored {
        made_at: mark.made_at,
        choice,
        turns,
        operations,
        inputs,
        time: now,
    });
    let commit = Commit::new().append(
        Stream::Host,
        Expected::Any,
        vec![Context::new("host", now).event(event)],
    );
    core.store
        .commit(commit)
        .await
        .map(drop)
        .map_err(Error::unavailable)
}

/// Work that would continue without a request.
#[derive(Debug, Default)]
struct UnderWay {
    /// Turns that would continue.
    runs: Vec<Run>,
    /// Calls of open turns that would be made.
    calls: Vec<(RunId, OperationId)>,
    /// Inputs that wait for a turn, and could have one now.
    inputs: Vec<InputAccepted>,
}

impl UnderWay {
    async fn find(core: &Core, now: Timestamp) -> Result<Self, Error> {
        let mut found = Self::default();
        for session in core.store.sessions_with_work(now).await? {
            let row = core.store.session(session).await?;
            if let Some(run) = row.and_then(|row| row.open_run)
                && let Some(run) = readable(core, run).await?
            {
                let id = run.started.run;
                found.calls.extend(
                    run.open
                        .values()
                        .filter(|open| would_be_sent(open, now))
                        .map(|open| (id, open.operation.id)),
                );
                if goes_on(&run, now) {
                    found.runs.push(run);
                }
            }
            found.inputs.extend(
                core.store
                    .waiting_inputs(session, now, WAITING_INPUTS_MAX)
                    .await?,
            );
        }
        Ok(found)
    }

    fn is_nothing(&self) -> bool {
        self.runs.is_empty() && self.inputs.is_empty()
    }

    fn counts(&self) -> [u64; 3] {
        [
            self.runs.len() as u64,
            self.calls.len() as u64,
            self.inputs.len() as u64,
        ]
    }

    /// Describes the work to the operator.
    fn describe(&self, mark: BackupMark) -> String {
        let [turns, operations, inputs] = self.counts();
        format!(
            "this store was restored from a backup made at {}, and the host of which it was made \
             may have gone on since with what was under way: \
             {turns} turns that would go on by themselves, {operations} calls of models and tools \
             that would be made again, {inputs} inputs that wait",
            mark.made_at
        )
    }

    /// Settles the calls as unknown and puts the inputs aside. After a crash in between, another
    /// attempt continues with the rest.
    async fn settle(&self, core: &Core, mark: BackupMark, now: Timestamp) -> Result<(), Error> {
        for run in &self.runs {
            let calls = run
                .open
                .values()
                .filter(|open| self.calls.contains(&(run.started.run, open.operation.id)));
            let settled: Vec<Settlement> =
                calls.map(|open| unknown(&open.operation, now)).collect();
            if !settled.is_empty() {
                commit(core, settling(run, settled, now)).await?;
            }
        }
        for input in &self.inputs {
            let context = Context::new("host", now).about_session(core, input).await?;
            let reason = format!(
                "it waited in the backup of {} that the host was restored from; whether it was \
                 dealt with since is not known",
                mark.made_at
            );
            let dead = Event::InputDead(InputDead {
                input: input.input,
                session: input.session,
                reason,
                time: now,
            });
            let mut buried = Commit::new()
                .guard(QueueGuard::InputWaiting(input.input))
                .append(
                    Stream::Session(input.session),
                    Expected::Any,
                    vec![context.event(dead)],
                );
            if let Some((run, operation)) = waiting_for(&core.store, input)
                .await
                .map_err(Error::unavailable)?
            {
                let settled = settling(&run, vec![unknown(&operation, now)], now);
                buried.appends.extend(settled.appends);
                buried.guards.extend(settled.guards);
            }
            commit(core, buried).await?;
        }
        Ok(())
    }
}

/// Returns a run; none if it cannot be read. Such a run does not continue, and must not keep the
/// host from starting.
async fn readable(core: &Core, run: RunId) -> Result<Option<Run>, Error> {
    match load_run(&core.store, run).await {
        Ok((run, _)) => Ok(Some(run)),
        Err(
            DriverError::Corrupt(_)
            | DriverError::Missing(_)
            | DriverError::Read(ReadError::Unreadable { .. }),
        ) => Ok(None),
        Err(failure) => Err(Error::unavailable(failure)),
    }
}

fn unknown(operation: &Operation, now: Timestamp) -> Settlement {
    let cause = Failure::lasting(
        "restored",
        "the backup that this host was restored from was made while this was running",
    );
    settlement(operation, Ended::Unknown(cause), now)
}

/// Returns the commit that settles operations of a run, if these are open still.
fn settling(run: &Run, settled: Vec<Settlement>, now: Timestamp) -> Commit {
    let started = &run.started;
    let context = Context::new("host", now)
        .about_run(started)
        .following(started.claimed.first().copied());
    let guards = settled
        .iter()
        .map(|settlement| {
            Guard::Run(RunGuard::OperationOpen {
                run: started.run,
                operation: settlement.operation,
            })
        })
        .collect();
    let event = Event::RunSettled(RunSettled {
        run: started.run,
        settled,
    });
    Commit {
        guards,
        ..Commit::new().append(
            Stream::Run(started.run),
            Expected::Any,
            vec![context.event(event)],
        )
    }
}

/// Commits a settlement. An existing one counts as success, too: only this host can have made it,
/// in an attempt that crashed.
async fn commit(core: &Core, commit: Commit) -> Result<(), Error> {
    match core.store.commit(commit).await {
        Ok(_) | Err(CommitError::Conflict(_)) => Ok(()),
        Err(error) => Err(Error::unavailable(error)),
    }
}

impl Context {
    /// Sets the subject to the session of an input.
    async fn about_session(self, core: &Core, input: &InputAccepted) -> Result<Self, Error> {
        let about = match core.store.session(input.session).await? {
            Some(row) => self.about(row.agent, Some(input.session), None),
            None => self,
        };
        Ok(about.following(Some(input.input)))
    }
}
