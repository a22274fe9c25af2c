//! Rules of retries: when a call that failed is made again, how, and after how long. They are pure.

use crate::config::RetryLimits;
use crate::delta::DeltaSink;
use crate::failure::{Failure, Reason, Refusal};
use crate::incoming::is_of_content;
use domain::backoff::Backoff;
use domain::model::Usage;
use jiff::fmt::rfc2822::DateTimeParser;
use std::num::NonZeroU64;

/// The way in which a model is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// As a stream.
    Stream,
    /// As one reply, in one piece.
    Whole,
}

impl Mode {
    /// Returns the way of the first attempt, for whoever watches it.
    pub(crate) fn first(deltas: &dyn DeltaSink) -> Self {
        if deltas.streams() {
            Self::Stream
        } else {
            Self::Whole
        }
    }
}

/// The stage at which an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Nothing was asked.
    Unsent,
    /// The provider answered that it would not: it never began to work.
    Answered,
    /// It was asked, and no reply began. It may have worked all the same.
    Asked,
    /// A reply had begun.
    Begun,
}

impl Stage {
    /// Returns the stage of an attempt that was answered with an HTTP status other than success.
    ///
    /// Only a refusal proves that nothing was generated: of the request (4xx), or of more work
    /// (503, and 529 of some providers). Behind a 500, 502 or 504 a model may have worked to the
    /// end, for money.
    pub(crate) fn of_status(status: u16) -> Self {
        match status {
            400..=499 | 503 | 529 => Self::Answered,
            _ => Self::Asked,
        }
    }
}

/// The next step after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// This model is not asked again.
    GiveUp,
    /// It is.
    Again {
        /// The way in which it is asked.
        mode: Mode,
        /// The delay in milliseconds.
        delay_ms: u64,
    },
}

/// An attempt that failed.
#[derive(Debug)]
pub(crate) struct AttemptError {
    /// The reason.
    pub(crate) failure: Failure,
    /// The way in which the model was asked.
    pub(crate) mode: Mode,
    /// The stage at which it failed.
    pub(crate) stage: Stage,
    /// Milliseconds for which the provider wants to be left alone, where it gave them.
    pub(crate) retry_after_ms: Option<NonZeroU64>,
    /// Tokens that it is known to have used at least, where the provider told of them. Boxed,
    /// because few failures have them.
    pub(crate) reported_usage: Option<Box<Usage>>,
}

impl AttemptError {
    /// An attempt that failed so, in this mode and at this stage, with nothing told of its usage.
    pub(crate) fn new(mode: Mode, stage: Stage, failure: Failure) -> Self {
        let asked_ms = match &failure {
            Failure::RateLimited { retry_after_ms, .. } => *retry_after_ms,
            _ => None,
        };
        Self {
            failure,
            mode,
            stage,
            retry_after_ms: asked_ms.and_then(NonZeroU64::new),
            reported_usage: None,
        }
    }

    /// Returns whether the provider or the way to it is at fault, rather than the call.
    pub(crate) fn counts_against_the_provider(&self) -> bool {
        matches!(
            self.failure,
            Failure::Unavailable { .. } | Failure::CutOff { .. } | Failure::Garbage { .. }
        )
    }

    /// Returns whether the provider refused the form of the request, and not what it says.
    pub(crate) fn is_about_form(&self) -> bool {
        match &self.failure {
            Failure::Refused {
                status: 400 | 422,
                about: Refusal::Request,
                cause,
                ..
            } => !cause.as_ref().is_some_and(|cause| is_of_content(&cause.0)),
            _ => false,
        }
    }

    /// Returns its usage. It is zero if the provider never began to work, and otherwise what that
    /// told of at least, or unknown.
    pub(crate) fn usage(&self) -> Option<Usage> {
        match self.stage {
            Stage::Unsent | Stage::Answered => Some(Usage::default()),
            Stage::Asked | Stage::Begun => self.reported_usage.as_deref().copied(),
        }
    }
}

/// Decides what to do after `attempts` attempts, the last of which failed. `dice` is a random
/// number from 0 to 1.
///
/// A stream that broke is followed by one call without a stream whatever the limit says, because
/// that often helps where the same again does not. A provider that asks for more patience than
/// there is ends the attempts: to come back early would only be refused.
pub(crate) fn next(limits: &RetryLimits, failure: &AttemptError, attempts: u32, dice: f64) -> Next {
    let broken_stream = failure.mode == Mode::Stream && failure.stage == Stage::Begun;
    let asked_ms = failure.retry_after_ms.map_or(0, NonZeroU64::get);
    let used_up = attempts >= limits.attempts_max && !broken_stream;
    if !failure.failure.retryable() || used_up || asked_ms > limits.retry_after_ms_max {
        return Next::GiveUp;
    }
    let wants_rest = matches!(
        failure.failure,
        Failure::RateLimited { .. }
            | Failure::Unavailable {
                reason: Reason::Overloaded(_),
                ..
            }
    );
    let at_once = broken_stream && !wants_rest;
    let backoff = Backoff {
        first_ms: limits.base_ms,
        most_ms: limits.delay_ms_max,
    };
    Next::Again {
        mode: if broken_stream {
            Mode::Whole
        } else {
            failure.mode
        },
        delay_ms: if at_once {
            0
        } else {
            backoff.spread_ms(attempts, dice).max(asked_ms)
        },
    }
}

/// Returns the delay that a `Retry-After` header asks for, in milliseconds. The header has seconds,
/// or an HTTP date.
///
/// A date is a point in the provider's time, so it is compared with the answer's own `Date`: the
/// clocks of two machines differ, and this one's may jump. Without that, a date asks for no delay.
#[must_use]
pub fn retry_after_ms(header: &str, answered: Option<&str>) -> Option<u64> {
    let text = header.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return whole_ms(seconds * 1000.0);
    }
    let date = |text: &str| DateTimeParser::new().parse_timestamp(text).ok();
    let until = date(text)?;
    let since = date(answered?.trim())?;
    Some(
        u64::try_from(
            until
                .as_millisecond()
                .saturating_sub(since.as_millisecond()),
        )
        .unwrap_or(0),
    )
}

/// Returns the milliseconds that a header gives as such.
pub(crate) fn given_ms(header: &str) -> Option<u64> {
    whole_ms(header.trim().parse().ok()?)
}

/// Returns the milliseconds of a time as servers write it: `58.9s`, `1m30s`, `26 seconds`.
pub(crate) fn pause_ms(text: &str) -> Option<u64> {
    let mut rest = text.trim_start();
    let mut sum_ms = None;
    loop {
        let is_digit = |kind: char| kind.is_ascii_digit() || kind == '.';
        let (number, after) = split_behind(rest, is_digit);
        let Ok(number) = number.parse::<f64>() else {
            return sum_ms.and_then(whole_ms);
        };
        let (unit, after) =
            split_behind(after.trim_start(), |kind: char| kind.is_ascii_alphabetic());
        let unit_ms = match unit {
            "ms" | "millisecond" | "milliseconds" => 1.0,
            "s" | "sec" | "secs" | "second" | "seconds" => 1_000.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60_000.0,
            "h" | "hour" | "hours" => 3_600_000.0,
            _ => return sum_ms.and_then(whole_ms),
        };
        sum_ms = Some(sum_ms.unwrap_or(0.0) + number * unit_ms);
        rest = after.trim_start();
    }
}

/// Splits a text behind its first characters of a kind.
fn split_behind(text: &str, is_kind: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|kind: char| !is_kind(kind));
    text.split_at(end.unwrap_or(text.len()))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast from a float saturates"
)]
fn whole_ms(ms: f64) -> Option<u64> {
    ms.is_finite().then_some(ms.max(0.0) as u64)
}

#[cfg(test)]
mod tests;
