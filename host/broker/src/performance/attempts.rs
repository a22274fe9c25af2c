//! The attempts at one model's call: all but the first are afforded and recorded before they are
//! made.

use domain::backoff::Backoff;
use domain::budget::Amount;
use domain::event::BoundaryVerdict;
use domain::id::OperationId;
use domain::operation::Attempt;
use domain::prompt_cut::PromptCut;
use domain::ruling::MODEL_CALL;
use domain::ruling::Rule;
use domain::run::Open;
use futures::future::BoxFuture;
use runtime::CallAudit;
use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Pauses while the driver cannot say.
const PAUSES: Backoff = Backoff {
    first_ms: 50,
    most_ms: 5_000,
};

/// The payer of further attempts at a call, who records each before it is made.
pub(crate) trait AttemptPayer: Debug + Send + Sync {
    /// Requests another attempt. None when it could not be recorded just now.
    ///
    /// If the session has no driver any more, there is no answer: the work is about to be dropped.
    fn ask(
        &self,
        operation: OperationId,
        wanted: Wanted,
    ) -> BoxFuture<'_, Option<Result<Afforded, Short>>>;

    /// Records the cut of the call's prompt, before it is sent. None when it could not be recorded
    /// just now.
    fn record_cut(&self, operation: OperationId, cut: PromptCut) -> BoxFuture<'_, Option<()>>;
}

/// The request for another attempt.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// The newest attempt that the requester knows of.
    pub(crate) after: u32,
    /// The attempts that have ended and are not on record yet.
    pub(crate) ended: Vec<Attempt>,
    /// Tokens of its prompt beyond that of the first.
    pub(crate) more_tokens: u64,
    /// The reservation for a summary that is made for its prompt first.
    pub(crate) beside: Amount,
}

/// An attempt that is on record and may be made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Afforded {
    pub(crate) attempt: u32,
    pub(crate) reserved: Amount,
}

/// A limit that leaves too little for an attempt.
#[derive(Debug)]
pub(crate) struct Short {
    pub(crate) limit: &'static str,
    /// The reason, for people.
    pub(crate) reported: String,
}

/// The attempts at one call, as far as they are not on record yet.
#[derive(Debug)]
pub(crate) struct Attempts<'a> {
    operation: OperationId,
    payer: &'a dyn AttemptPayer,
    audit: &'a CallAudit,
    course: Mutex<Course>,
}

#[derive(Debug)]
struct Course {
    /// The attempt that was afforded last.
    newest: Afforded,
    /// The attempts that ended since that.
    ended: Vec<Attempt>,
    /// Number of those of the completion under way that are among them, or on record.
    noted: usize,
    /// Tokens of the prompt beyond the first estimate: the complaints about replies that did not
    /// fit.
    more_tokens: u64,
}

impl<'a> Attempts<'a> {
    pub(crate) fn new(open: &Open, payer: &'a dyn AttemptPayer, audit: &'a CallAudit) -> Self {
        let newest = Afforded {
            attempt: open.attempts.number,
            reserved: open.reserved(),
        };
        let course = Mutex::new(Course {
            newest,
            ended: Vec::new(),
            noted: 0,
            more_tokens: 0,
        });
        Self {
            operation: open.operation.id,
            payer,
            audit,
            course,
        }
    }

    /// Notes the attempts of a completion that is over.
    pub(crate) fn completed(&self, attempts: &[Attempt]) {
        let mut course = self.course();
        course.note(attempts);
        course.noted = 0;
    }

    /// Requests another attempt, with so many tokens more. The error is the reason for a refusal,
    /// for people.
    pub(crate) async fn again(&self, more_tokens: u64) -> Result<(), String> {
        self.ask_again(more_tokens, Amount::default()).await
    }

    /// Requests another attempt, whose prompt needs a summary that may cost so much more. The error
    /// is the reason for a refusal, for people.
    pub(crate) async fn again_beside(&self, beside: Amount) -> Result<(), String> {
        self.ask_again(0, beside).await
    }

    /// Adds the attempts at a summary, each of which may have spent its reserve.
    pub(crate) fn summarised(&self, attempts: &[Attempt], beside: Amount) {
        let spent = attempts
            .iter()
            .cloned()
            .map(|attempt| charged(attempt, beside));
        self.course().ended.extend(spent);
    }

    /// Has the cut of the prompt recorded. It returns when that is stored.
    pub(crate) async fn record_cut(&self, cut: &PromptCut) {
        for failures in 1.. {
            let recorded = self.payer.record_cut(self.operation, cut.clone()).await;
            if recorded.is_some() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(PAUSES.pause_ms(failures))).await;
        }
    }

    async fn ask_again(&self, more_tokens: u64, beside: Amount) -> Result<(), String> {
        let mut failures = 0_u32;
        let wanted = {
            let mut course = self.course();
            course.more_tokens = course.more_tokens.saturating_add(more_tokens);
            Wanted {
                after: course.newest.attempt,
                ended: course.ended.clone(),
                more_tokens: course.more_tokens,
                beside,
            }
        };
        loop {
            match self.payer.ask(self.operation, wanted.clone()).await {
                Some(Ok(afforded)) => {
                    let mut course = self.course();
                    course.ended.clear();
                    course.newest = afforded;
                    return Ok(());
                }
                Some(Err(short)) => {
                    self.audit.decided(
                        MODEL_CALL,
                        BoundaryVerdict::Limited,
                        Rule::Limits,
                        short.limit,
                    );
                    return Err(short.reported);
                }
                None => {}
            }
            failures = failures.saturating_add(1);
            tokio::time::sleep(Duration::from_millis(PAUSES.pause_ms(failures))).await;
        }
    }

    /// Returns the number of another attempt, after those of this completion that ended. The error
    /// is the reason for a refusal, for people.
    pub(crate) async fn afford(&self, ended: &[Attempt]) -> Result<u32, String> {
        let is_unused = {
            let mut course = self.course();
            course.note(ended);
            course.is_unused()
        };
        // Nothing was shown of an attempt that the provider did not begin to work at: the next one
        // has its number and its reservation.
        if !is_unused {
            self.again(0).await?;
        }
        Ok(self.number())
    }

    /// Returns the number of the attempt that is made next, or under way.
    pub(crate) fn number(&self) -> u32 {
        self.course().newest.attempt
    }

    /// Returns the attempts that are not on record.
    pub(crate) fn into_ended(self) -> Vec<Attempt> {
        self.course
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
            .ended
    }

    fn course(&self) -> MutexGuard<'_, Course> {
        // Nothing panics between two related changes of it.
        self.course.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Course {
    fn note(&mut self, attempts: &[Attempt]) {
        let reserved = self.newest.reserved;
        let new = attempts.iter().skip(self.noted).cloned();
        self.ended
            .extend(new.map(|attempt| charged(attempt, reserved)));
        self.noted = attempts.len();
    }

    /// Returns whether the reserve of the newest attempt is there still.
    fn is_unused(&self) -> bool {
        self.ended.iter().all(|attempt| {
            attempt.usage.is_some_and(|usage| usage.total() == 0)
                && attempt.cost_micros.unwrap_or(0) == 0
        })
    }
}

/// Returns an attempt with its charge: its usage or, if that is not known, its reserve. A failed
/// one may have used more than was reported, so it is charged its reserve unless it used more.
fn charged(attempt: Attempt, reserved: Amount) -> Attempt {
    let has_failed = attempt.error.is_some();
    let usage = attempt.usage.filter(|usage| {
        let is_final = !has_failed || usage.total() == 0;
        is_final || usage.total() >= reserved.tokens
    });
    Attempt {
        usage,
        cost_micros: usage.and(attempt.cost_micros),
        reserved: usage.is_none().then_some(reserved),
        ..attempt
    }
}

#[cfg(test)]
mod tests {
    use super::charged;
    use domain::budget::Amount;
    use domain::model::Usage;
    use domain::operation::Attempt;

    #[test]
    fn a_failed_attempt_is_charged_with_the_larger_of_usage_and_reservation() {
        let reserved = Amount {
            tokens: 100,
            ..Amount::default()
        };
        for (has_failed, used, is_by_usage) in [
            (true, Some(101), true),
            (true, Some(100), true),
            (true, Some(99), false),
            // The provider never began.
            (true, Some(0), true),
            (true, None, false),
            (false, Some(1), true),
            (false, None, false),
        ] {
            let usage = used.map(|output_tokens| Usage {
                output_tokens,
                ..Usage::default()
            });
            let attempt = Attempt {
                provider: "p".to_owned(),
                model: "m".to_owned(),
                usage,
                cost_micros: used,
                wall_ms: 1,
                error: has_failed.then(|| "it failed".to_owned()),
                reserved: None,
            };
            let charged = charged(attempt, reserved);
            let expected = if is_by_usage {
                (usage, used, None)
            } else {
                (None, None, Some(reserved))
            };
            let found = (charged.usage, charged.cost_micros, charged.reserved);
            assert_eq!(found, expected, "{has_failed} {used:?}");
        }
    }
}
