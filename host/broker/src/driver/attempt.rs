//! Further attempts at a model's call. Each is charged to the budget and recorded before it is
//! made.

use super::budget::Affords;
use super::context::SessionContext;
use super::driving::Driving;
use super::record::{OVERTAKEN_MAX, is_overtaken};
use super::reserve::Reserve;
use super::state::Driver;
use crate::ledger::{Through, entry, ledger_event};
use crate::performance::attempts::{Afforded, AttemptPayer, Short, Wanted};
use crate::performance::result::CommitExtras;
use crate::refusals::changing;
use crate::shared::DriverError;
use crate::signal::Signal;
use domain::budget::Amount;
use domain::event::{BoundaryDecided, BoundaryVerdict, Event, RunStarted};
use domain::id::OperationId;
use domain::operation::Performer;
use domain::prompt_cut::PromptCut;
use domain::ruling::{MODEL_CALL, Rule};
use domain::run::Open;
use domain::run::settle::{Ended, settlement};
use domain::step::Failure;
use futures::future::BoxFuture;
use runtime::Decided;
use store::{AccountGuard, Guard};
use tokio::sync::{mpsc, oneshot};

/// A mailbox of a driver pays through the driver, which affords and records the attempt.
impl AttemptPayer for mpsc::Sender<Signal> {
    fn ask(
        &self,
        operation: OperationId,
        wanted: Wanted,
    ) -> BoxFuture<'_, Option<Result<Afforded, Short>>> {
        Box::pin(async move {
            let (done, answer) = oneshot::channel();
            let asked = self
                .send(Signal::Afford {
                    operation,
                    wanted,
                    done,
                })
                .await;
            // A signal that could not be sent is kept, which keeps the channel open: no answer will
            // arrive, and the work is about to be dropped.
            let answered = answer.await.ok();
            drop(asked);
            answered
        })
    }

    fn record_cut(&self, operation: OperationId, cut: PromptCut) -> BoxFuture<'_, Option<()>> {
        Box::pin(async move {
            let (done, answer) = oneshot::channel();
            let asked = self
                .send(Signal::Cut {
                    operation,
                    cut: Box::new(cut),
                    done,
                })
                .await;
            let answered = answer.await.ok();
            drop(asked);
            answered
        })
    }
}

impl Driver {
    /// Reserves the cost of another attempt at an open operation and records the attempt, or
    /// returns the limit that is exceeded.
    pub(super) async fn afford_attempt(
        &mut self,
        operation: OperationId,
        wanted: &Wanted,
    ) -> Result<Result<Afforded, Short>, DriverError> {
        for _ in 0..OVERTAKEN_MAX {
            if self.stale {
                self.refresh().await?;
            }
            match self.afford_attempt_now(operation, wanted).await {
                Err(failure) if is_overtaken(&failure) => self.stale = true,
                afforded => return afforded,
            }
        }
        Err(DriverError::Refused(changing("the session")))
    }

    async fn afford_attempt_now(
        &mut self,
        operation: OperationId,
        wanted: &Wanted,
    ) -> Result<Result<Afforded, Short>, DriverError> {
        let missing = || DriverError::Missing(format!("the open operation {operation}"));
        let driving = self.phase.driving().ok_or_else(missing)?;
        let open = driving.run.open.get(&operation).ok_or_else(missing)?;
        if open.attempts.number > wanted.after {
            // Already recorded, but its requester has no answer yet.
            return Ok(Ok(Afforded {
                attempt: open.attempts.number,
                reserved: open.reserved(),
            }));
        }
        let now = self.context.core.now();
        let mut arrived = driving.settlements();
        arrived.push(open.without_another(wanted.ended.clone(), now));
        let Affords { left, of, .. } = self.context.affords(driving, &arrived).await?;
        let reserved = self
            .context
            .reserve_again(&driving.run.started, open, wanted.more_tokens)
            .plus(wanted.beside);
        if let Some((limit, reported)) = left.short_of(reserved, of) {
            return Ok(Err(Short { limit, reported }));
        }
        let attempted = driving
            .run
            .attempted(open, wanted.ended.clone(), reserved, now);
        let afforded = Afforded {
            attempt: attempted.attempt,
            reserved,
        };
        let id = driving.run.started.run;
        let accounts = driving.run.started.accounts();
        let guard = || {
            Guard::Account(AccountGuard::Covers {
                run: id,
                accounts,
                drawn: driving.run.spent_or_reserved_with(&arrived),
                more: reserved,
            })
        };
        let guards = (driving.run.shares && !reserved.is_nothing())
            .then(guard)
            .into_iter()
            .collect();
        // Another attempt is no progress: work that panics over and over must not be paid for over
        // and over.
        let failures = self.failures;
        store::point("broker.attempt.before");
        self.commit_run_event_under(Event::OperationAttempted(Box::new(attempted)), guards)
            .await?;
        store::point("broker.attempt.after");
        self.failures = failures;
        Ok(Ok(afforded))
    }

    /// Reserves the cost of a model's call again, if its latest attempt was cut off. That attempt
    /// is charged its reserve.
    ///
    /// Returns false when no further attempt is afforded: the call has then failed.
    pub(super) async fn attempt_again(
        &mut self,
        operation: OperationId,
    ) -> Result<bool, DriverError> {
        let wanted = |driving: &Driving| {
            let open = driving.run.open.get(&operation)?;
            Some(Wanted {
                after: open.attempts.number,
                ended: vec![open.lost_attempt()?],
                more_tokens: 0,
                beside: Amount::default(),
            })
        };
        let Some(wanted) = self.phase.driving().and_then(wanted) else {
            return Ok(true);
        };
        let Err(short) = self.afford_attempt(operation, &wanted).await? else {
            return Ok(true);
        };
        let now = self.context.core.now();
        let Some(driving) = self.phase.driving_mut() else {
            return Ok(false);
        };
        let Some(open) = driving.run.open.get(&operation) else {
            return Ok(false);
        };
        let failure = Failure::lasting("limit-reached", short.reported);
        let failed =
            settlement(&open.operation, Ended::Failed(failure), now).costing(open.cut_off());
        let mut decided = Decided::default();
        decided.note(
            MODEL_CALL,
            BoundaryVerdict::Limited,
            Rule::Limits,
            short.limit,
        );
        let entry = BoundaryDecided {
            operation: Some(operation),
            ..entry(
                &self.context.core,
                &driving.run,
                Through::Agent(driving.run.component),
            )
        };
        let extras = CommitExtras {
            events: vec![ledger_event(entry, decided, now)],
            ..CommitExtras::default()
        };
        driving.arrived.push((failed, extras));
        Ok(false)
    }
}

impl SessionContext {
    /// Returns the reserve of another attempt: that of the first, and more for a longer prompt.
    fn reserve_again(&self, started: &RunStarted, open: &Open, more_tokens: u64) -> Amount {
        let Performer::Model {
            request,
            reserved_tokens,
            reserved_micros,
            ..
        } = &open.operation.performer
        else {
            return Amount::default();
        };
        if more_tokens == 0 {
            return domain::account::reserved(&open.operation.performer);
        }
        let serving = &self.core.serving;
        let model = request.model.as_deref();
        let route = serving.gateway_of_run(started, model).resolve(model).ok();
        let window = route
            .as_ref()
            .map_or(u64::MAX, |route| route.context_window);
        // A stored call without a limit of its reply had this reserved for the reply.
        let reply = request
            .max_tokens
            .map_or_else(|| serving.limits_of_run(started).reserved_tokens, u64::from);
        let reserve = Reserve::of(
            reserved_tokens
                .saturating_sub(reply)
                .saturating_add(more_tokens),
            reply,
            window,
        );
        let micros = route
            .and_then(|route| route.price)
            .map(|price| price.at_most(reserve.prompt, reserve.reply));
        // Never less than was reserved before: a price may have changed meanwhile.
        let cost_micros = micros.max(*reserved_micros).unwrap_or(0);
        Amount {
            tokens: reserve.tokens().max(*reserved_tokens),
            calls: 0,
            cost_micros,
        }
    }
}
