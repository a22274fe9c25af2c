//! The attempts at one model's call: all but the first are afforded by the session's driver, and
//! recorded, before they are made.

use crate::driver::{Afforded, Signal, Wanted};
use domain::authority::Rule;
use domain::event::{MODEL_CALL, Verdict};
use domain::id::OperationId;
use domain::model::Attempt;
use domain::run::Open;
use runtime::CallAudit;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// The first pause after the driver could not say, in milliseconds; it doubles up to
/// [`PAUSE_MS_MAX`].
const PAUSE_MS: u64 = 50;
/// The longest such pause, in milliseconds.
const PAUSE_MS_MAX: u64 = 5_000;

/// The attempts at one call, as far as they are not on record yet.
#[derive(Debug)]
pub(crate) struct Attempts<'a> {
    operation: OperationId,
    driver: mpsc::Sender<Signal>,
    audit: &'a CallAudit,
    course: Mutex<Course>,
}

#[derive(Debug)]
struct Course {
    /// What was afforded last.
    newest: Afforded,
    /// Those that ended since that.
    ended: Vec<Attempt>,
    /// How many of the completion that is under way are among them, or on record.
    noted: usize,
    /// Tokens that the prompt has beyond what was estimated at first: what was said of replies that
    /// did not fit.
    more_tokens: u64,
}

impl<'a> Attempts<'a> {
    pub(crate) fn new(open: &Open, driver: mpsc::Sender<Signal>, audit: &'a CallAudit) -> Self {
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
            driver,
            audit,
            course,
        }
    }

    /// Notes what came of a completion.
    pub(crate) fn completed(&self, attempts: &[Attempt]) {
        let mut course = self.course();
        course.note(attempts);
        course.noted = 0;
    }

    /// Whether the model may be asked again with so many tokens more; why not, for people.
    pub(crate) async fn again(&self, more_tokens: u64) -> Result<(), String> {
        let mut pause_ms = PAUSE_MS;
        let wanted = {
            let mut course = self.course();
            course.more_tokens = course.more_tokens.saturating_add(more_tokens);
            Wanted {
                after: course.newest.attempt,
                ended: course.ended.clone(),
                more_tokens: course.more_tokens,
            }
        };
        loop {
            let (done, answer) = oneshot::channel();
            let asked = self
                .driver
                .send(Signal::Afford {
                    operation: self.operation,
                    wanted: wanted.clone(),
                    done,
                })
                .await;
            match answer.await {
                Ok(Ok(afforded)) => {
                    let mut course = self.course();
                    course.ended.clear();
                    course.newest = afforded;
                    return Ok(());
                }
                Ok(Err(short)) => {
                    self.audit
                        .decided(MODEL_CALL, Verdict::Limited, Rule::Limits, short.limit);
                    return Err(short.told);
                }
                // It could not be recorded just now. Where nobody drives the session any more, this
                // work is about to be dropped.
                Err(_) => drop(asked),
            }
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
            pause_ms = (pause_ms * 2).min(PAUSE_MS_MAX);
        }
    }

    /// The number of another attempt, if it may be made after those of this completion that ended;
    /// why not, for people.
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

    /// The number of the attempt that is made next, or under way.
    pub(crate) fn number(&self) -> u32 {
        self.course().newest.attempt
    }

    /// What is not on record.
    pub(crate) fn into_ended(self) -> Vec<Attempt> {
        self.course
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
            .ended
    }

    fn course(&self) -> MutexGuard<'_, Course> {
        // Nothing panics between two changes of it that belong together.
        self.course.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Course {
    fn note(&mut self, attempts: &[Attempt]) {
        let reserved = self.newest.reserved;
        let new = attempts.iter().skip(self.noted).cloned();
        self.ended.extend(new.map(|attempt| Attempt {
            reserved: attempt.usage.is_none().then_some(reserved),
            ..attempt
        }));
        self.noted = attempts.len();
    }

    /// Whether what was reserved for the newest attempt is there still.
    fn is_unused(&self) -> bool {
        self.ended.iter().all(|attempt| {
            attempt.usage.is_some_and(|usage| usage.total() == 0)
                && attempt.cost_micros.unwrap_or(0) == 0
        })
    }
}
