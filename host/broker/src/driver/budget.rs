//! The budget of a step: the remaining part of the run's own limits and of its shared accounts.

use super::context::SessionContext;
use super::driving::Driving;
use crate::shared::DriverError;
use crate::shared::runs::drawn_by_work;
use domain::account::{Accounts, spent_or_reserved};
use domain::budget::{Amount, Available, Budget};
use domain::event::InputAccepted;
use domain::operation::{Operation, Settlement};
use store::{AccountGuard, Drawn, Guard};

/// The budget of a step.
pub(super) struct Affords {
    /// The least that limits and accounts leave.
    pub(super) left: Available,
    /// Number of runs that resulted from the same message so far.
    pub(super) runs: u64,
    /// The source of the tightest limit, for people.
    pub(super) of: &'static str,
}

impl SessionContext {
    /// Returns the budget of a run's step that hears of these outcomes.
    pub(super) async fn affords(
        &self,
        driving: &Driving,
        arrived: &[Settlement],
    ) -> Result<Affords, DriverError> {
        let run = &driving.run;
        let own = run.available_after(arrived);
        // Only this turn draws on its account until it hands work over.
        if !run.shares {
            return Ok(Affords {
                left: own,
                runs: 1,
                of: "this turn's limit",
            });
        }
        let accounts = run.started.accounts();
        let Drawn { runs, others } = self.store().drawn(&accounts, Some(run.started.run)).await?;
        let left = own.least(accounts.available(&others, run.spent_or_reserved_with(arrived)));
        let of = if left == own {
            "this turn's limit"
        } else {
            "the limit of all that came of the same message"
        };
        Ok(Affords {
            left,
            runs: runs + 1,
            of,
        })
    }

    /// Returns the guard that the run's accounts can still cover the step, because others may draw
    /// on them meanwhile. None for a run that shares no account, or a step that draws nothing.
    pub(super) fn afforded(
        &self,
        driving: &Driving,
        arrived: &[Settlement],
        started: &[Operation],
    ) -> Option<Guard> {
        let run = &driving.run;
        let more = started
            .iter()
            .map(spent_or_reserved)
            .fold(Amount::default(), Amount::plus);
        let id = run.started.run;
        let accounts = run.started.accounts();
        let guard = || {
            Guard::Account(AccountGuard::Covers {
                run: id,
                accounts,
                drawn: run.spent_or_reserved_with(arrived),
                more,
            })
        };
        (run.shares && !more.is_nothing()).then(guard)
    }

    /// Returns the accounts of a run that begins with these inputs, and the budget that they leave
    /// it.
    ///
    /// The agent's own limits apply as well. The inner error is the reason why the run may not
    /// begin: too many runs resulted from the same message.
    pub(super) async fn begins_with(
        &self,
        inputs: &[InputAccepted],
    ) -> Result<Result<Begins, String>, DriverError> {
        let accounts = of_earlier_work(inputs)
            .map(|input| input.source.accounts().cloned().unwrap_or_default())
            .unwrap_or_default();
        if accounts.is_empty() {
            return Ok(Ok(Begins::default()));
        }
        let limits = self.served.settings.limits.dispatch;
        let Drawn { runs, others } = self.store().drawn(&accounts, None).await?;
        if let Some(reason) = limits.too_many_runs(runs) {
            return Ok(Err(reason));
        }
        let Available {
            tokens,
            calls,
            cost_micros,
        } = accounts.available(&others, Amount::default());
        let max = u64::from(limits.runs_per_message_max).saturating_sub(1);
        let guard = Some(Guard::Account(AccountGuard::RunsAtMost {
            accounts: accounts.clone(),
            max,
        }));
        Ok(Ok(Begins {
            accounts,
            left: Budget {
                tokens: Some(tokens),
                calls: Some(calls),
                cost_micros,
            },
            guard,
        }))
    }

    /// Charges handed-over work to outcomes that have no charge yet: stopped work was not free.
    pub(super) async fn charge_what_is_known(
        &self,
        driving: &Driving,
        settled: &mut [Settlement],
    ) -> Result<(), DriverError> {
        for settlement in settled
            .iter_mut()
            .filter(|settlement| settlement.spent.is_none())
        {
            if let Some(open) = driving.run.open.get(&settlement.operation) {
                let started = &driving.run.started;
                settlement.spent = drawn_by_work(self.store(), started, &open.operation).await?;
            }
        }
        Ok(())
    }
}

/// The accounts of a run that begins.
#[derive(Default)]
pub(super) struct Begins {
    pub(super) accounts: Accounts,
    pub(super) left: Budget,
    /// The guard that not too many runs have begun meanwhile.
    pub(super) guard: Option<Guard>,
}

/// Returns the first of a run's inputs, if all of them resulted from earlier work. None if any is a
/// user's message, which starts with new accounts.
pub(super) fn of_earlier_work(inputs: &[InputAccepted]) -> Option<&InputAccepted> {
    inputs
        .first()
        .filter(|_| inputs.iter().all(|input| input.source.accounts().is_some()))
}

/// Keeps those inputs of a turn that have the accounts and the deadline of the first.
///
/// The others keep waiting. So a message that has used up its accounts does not end the work of
/// another.
pub(super) fn keep_of_one_message(inputs: &mut Vec<InputAccepted>) {
    let of = |input: &InputAccepted| (input.source.accounts().cloned(), input.source.deadline());
    if let Some(first) = of_earlier_work(inputs).map(of) {
        inputs.retain(|input| of(input) == first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::authority::{Denies, Permissions};
    use domain::event::Source;
    use domain::id::{InputId, RunId, SessionId};
    use domain::limits::TurnLimits;
    use domain::time::Timestamp;
    use uuid::Uuid;

    fn input(number: u128, source: Source) -> InputAccepted {
        InputAccepted::of(
            SessionId(Uuid::from_u128(1)),
            InputId(Uuid::from_u128(number)),
            source,
            Timestamp(0),
        )
    }

    /// Returns a late reply that resulted from the message which began this run.
    fn late(number: u128, of: u128, deadline: Option<u64>) -> InputAccepted {
        let accounts = Accounts::of_message(RunId(Uuid::from_u128(of)), &TurnLimits::default());
        let from = "other".to_owned();
        let denies = Denies::default();
        let permissions = Permissions::default();
        input(
            number,
            Source::LateReply {
                from,
                depth: 0,
                hops: 1,
                spawn_depth: 0,
                denies,
                permissions,
                accounts,
                deadline: deadline.map(Timestamp),
            },
        )
    }

    #[test]
    fn what_came_of_one_message_begins_a_turn_without_what_came_of_another() {
        let kept = |mut inputs: Vec<InputAccepted>| {
            keep_of_one_message(&mut inputs);
            inputs
                .into_iter()
                .map(|input| input.input.0.as_u128())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            kept(vec![
                late(1, 7, None),
                late(2, 8, None),
                late(3, 7, None),
                late(4, 7, Some(9))
            ]),
            [1, 3]
        );
        // A user's message starts with new accounts, and so do all inputs with it.
        assert_eq!(
            kept(vec![
                late(1, 7, None),
                input(2, Source::Api),
                late(3, 8, None)
            ]),
            [1, 2, 3]
        );
    }
}
