//! Attempts at a model's call beyond the first. Each is afforded and recorded before it is made.

use super::budget::{Affords, Reserve};
use super::entry::{Through, entry};
use super::record::{OVERTAKEN_MAX, is_overtaken};
use super::{CommitExtras, Driver, DriverError, Driving};
use crate::refusals::changing;
use domain::authority::Rule;
use domain::budget::Spent;
use domain::event::{BoundaryDecided, Event, MODEL_CALL, Verdict};
use domain::id::OperationId;
use domain::model::Attempt;
use domain::operation::Performer;
use domain::run::Open;
use domain::run::settle::{Ended, settlement};
use domain::step::Failure;
use runtime::Decided;
use store::Guard;

/// The request for another attempt.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// The newest attempt that the requester knows of.
    pub(crate) after: u32,
    /// The attempts that have ended and are not on record yet.
    pub(crate) ended: Vec<Attempt>,
    /// Tokens of its prompt beyond that of the first.
    pub(crate) more_tokens: u64,
}

/// An attempt that is on record and may be made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Afforded {
    pub(crate) attempt: u32,
    pub(crate) reserved: Spent,
}

/// A limit that leaves too little for an attempt.
#[derive(Debug)]
pub(crate) struct Short {
    pub(crate) limit: &'static str,
    /// The reason, for people.
    pub(crate) told: String,
}

impl Driver {
    /// Affords and records another attempt at an open operation, or names the limit that it is
    /// short of.
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
        let driving = self.driving.as_ref().ok_or_else(missing)?;
        let open = driving.run.open.get(&operation).ok_or_else(missing)?;
        if open.attempts.number > wanted.after {
            // On record already, but its requester was not told.
            return Ok(Ok(Afforded {
                attempt: open.attempts.number,
                reserved: open.reserved(),
            }));
        }
        let now = self.core.now();
        let mut arrived = driving.settlements();
        arrived.push(open.without_another(wanted.ended.clone(), now));
        let Affords { left, of, .. } = self.affords(driving, &arrived).await?;
        let reserved = self.reserve_again(open, wanted.more_tokens);
        if let Some((limit, told)) = left.short_of(reserved, of) {
            return Ok(Err(Short { limit, told }));
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
        let guard = || Guard::AccountsHave {
            run: id,
            accounts,
            drawn: driving.run.drawn_with(&arrived),
            more: reserved,
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

    /// Returns the reserve of another attempt: that of the first, and more for a longer prompt.
    fn reserve_again(&self, open: &Open, more_tokens: u64) -> Spent {
        let Performer::Model {
            request,
            reserved_tokens,
            reserved_micros,
            ..
        } = &open.operation.performer
        else {
            return Spent::default();
        };
        if more_tokens == 0 {
            return domain::account::reserved(&open.operation.performer);
        }
        let route = self.core.gateway.resolve(request.model.as_deref()).ok();
        let window = route
            .as_ref()
            .map_or(u64::MAX, |route| route.context_window);
        let reply = request
            .max_tokens
            .map_or(self.core.limits.reserved_tokens, u64::from);
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
        Spent {
            tokens: reserve.tokens().max(*reserved_tokens),
            calls: 0,
            cost_micros,
        }
    }

    /// Affords a model's call again, if its newest attempt was cut off. That attempt is charged its
    /// reserve.
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
            })
        };
        let Some(wanted) = self.driving.as_ref().and_then(wanted) else {
            return Ok(true);
        };
        let Err(short) = self.afford_attempt(operation, &wanted).await? else {
            return Ok(true);
        };
        let now = self.core.now();
        let Some(driving) = &mut self.driving else {
            return Ok(false);
        };
        let Some(open) = driving.run.open.get(&operation) else {
            return Ok(false);
        };
        let failure = Failure::lasting("limit-reached", short.told);
        let failed =
            settlement(&open.operation, Ended::Failed(failure), now).costing(open.cut_off());
        let mut decided = Decided::default();
        decided.note(MODEL_CALL, Verdict::Limited, Rule::Limits, short.limit);
        let Decided {
            decisions,
            left_out,
        } = decided;
        let entry = entry(
            &self.core,
            &driving.run,
            Through::Agent(driving.run.component),
        );
        let entry = BoundaryDecided {
            operation: Some(operation),
            decisions,
            left_out,
            time: now,
            ..entry
        };
        let events = vec![Event::BoundaryDecided(Box::new(entry))];
        driving.arrived.push((
            failed,
            CommitExtras {
                events,
                ..CommitExtras::default()
            },
        ));
        Ok(false)
    }
}
