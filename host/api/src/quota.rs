//! Limits on what one user and one API key may use of the server: concurrent streams and waits for
//! replies, and rates of requests and sessions.
//!
//! They are kept for this process and measured by a monotonic clock: a restart begins anew, and
//! nothing that is stored depends on them. The limits on what is stored of a user and with a key,
//! and on all sessions that a user opens, are enforced at the commit ([`broker::UserLimits`]). The
//! host's own token has no limits here: its holder runs the host.

mod rates;
#[cfg(test)]
mod tests;

pub(crate) use rates::{PerMinute, Rates};

use crate::caller::{Caller, Credential};
use crate::problem::Problem;
use crate::server::Limits;
use domain::error_code::ErrorCode;
use domain::key::KeyId;
use domain::user::UserId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Seconds' worth of requests that may come at once.
const BURST_S: u32 = 2;
/// Holders that are remembered before those that have nothing are forgotten.
const HOLDERS_KEPT: usize = 4_096;
/// Milliseconds between two polls for holders that have nothing.
const SWEEP_MS: u64 = 1_000;
/// Seconds after which a client is asked to come back for a stream.
const STREAM_RETRY_AFTER_S: u64 = 5;

/// The owner of a share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Holder {
    User(UserId),
    Key(KeyId),
}

/// The resources that one holder has taken.
#[derive(Debug, Default)]
struct Share {
    streams: usize,
    waits: usize,
    requests: Rate,
    sessions: Rate,
}

impl Share {
    fn lasting(&mut self, kind: Lasting) -> &mut usize {
        match kind {
            Lasting::Stream => &mut self.streams,
            Lasting::Wait => &mut self.waits,
        }
    }
}

/// The kinds of requests that keep their connection for as long as the client likes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lasting {
    /// An event stream.
    Stream,
    /// A message whose sender waits for the reply.
    Wait,
}

impl Lasting {
    /// Returns how many of them a holder may have at the same time.
    fn max(self, holder: &Holder, limits: &Limits) -> usize {
        match (self, holder) {
            (Self::Stream, Holder::User(_)) => limits.streams_per_user_max,
            (Self::Stream, Holder::Key(_)) => limits.streams_per_key_max,
            (Self::Wait, Holder::User(_)) => limits.waits_per_user_max,
            (Self::Wait, Holder::Key(_)) => limits.waits_per_key_max,
        }
    }
}

/// A rate limit, stored as the time at which all past uses will be made up for.
#[derive(Debug, Default)]
struct Rate(Option<Instant>);

impl Rate {
    /// Lets one more happen, of one in each `interval` with so much at once; how long to wait
    /// instead.
    fn take(&mut self, now: Instant, interval: Duration, burst: Duration) -> Result<(), Duration> {
        let due = self.0.map_or(now, |due| due.max(now));
        let ahead = due.saturating_duration_since(now);
        if ahead + interval > burst.max(interval) {
            return Err(ahead + interval - burst.max(interval));
        }
        self.0 = Some(due + interval);
        Ok(())
    }

    /// Undoes one that was let happen and did not.
    fn give_back(&mut self, interval: Duration) {
        self.0 = self.0.and_then(|due| due.checked_sub(interval));
    }

    fn is_idle(&self, now: Instant) -> bool {
        self.0.is_none_or(|due| due <= now)
    }
}

/// The shares of all users and keys. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Quotas(Arc<Mutex<Shares>>);

/// The share of each holder.
#[derive(Debug, Default)]
struct Shares {
    of: HashMap<Holder, Share>,
    /// The time at which those that had nothing were forgotten last.
    swept: Option<Instant>,
}

impl Shares {
    /// Forgets those who have nothing, before they become too many.
    fn forget_idle(&mut self, now: Instant) {
        let pause = Duration::from_millis(SWEEP_MS);
        let is_due = self.swept.is_none_or(|swept| now - swept >= pause);
        if self.of.len() <= HOLDERS_KEPT || !is_due {
            return;
        }
        self.swept = Some(now);
        self.of.retain(|_, share| {
            share.streams > 0
                || share.waits > 0
                || !share.requests.is_idle(now)
                || !share.sessions.is_idle(now)
        });
    }
}

/// One session of a key's, given back when it is dropped: unless it is kept, none was opened.
#[derive(Debug)]
#[must_use]
pub(crate) struct SessionShare {
    quotas: Quotas,
    taken: Option<(Holder, Duration)>,
}

impl SessionShare {
    /// Counts it for good.
    pub(crate) fn keep(mut self) {
        self.taken = None;
    }
}

impl Drop for SessionShare {
    fn drop(&mut self) {
        let Some((key, interval)) = self.taken.take() else {
            return;
        };
        if let Some(share) = self.quotas.lock().of.get_mut(&key) {
            share.sessions.give_back(interval);
        }
    }
}

/// One event stream, or one wait, of a user's and a key's; given back when it is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct LastingShare {
    quotas: Quotas,
    kind: Lasting,
    holders: Vec<Holder>,
}

impl Drop for LastingShare {
    fn drop(&mut self) {
        let mut shares = self.quotas.lock();
        for holder in &self.holders {
            if let Some(share) = shares.of.get_mut(holder) {
                let count = share.lasting(self.kind);
                *count = count.saturating_sub(1);
            }
        }
    }
}

impl Quotas {
    fn lock(&self) -> MutexGuard<'_, Shares> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request. One that is refused counts for nobody: a key over its limit leaves its
    /// user's other keys what they have.
    ///
    /// # Errors
    /// 429: there were too many of the user's, or with the key.
    pub(crate) fn request(&self, caller: &Caller, limits: &Limits) -> Result<(), Problem> {
        let now = Instant::now();
        let mut shares = self.lock();
        shares.forget_idle(now);
        let mut taken: Vec<(Holder, Duration)> = Vec::new();
        for holder in holders(caller) {
            let (max, code) = match &holder {
                Holder::User(_) => (
                    limits.user_requests_per_second_max,
                    ErrorCode::UserRequestLimit,
                ),
                Holder::Key(_) => (
                    limits.key_requests_per_second_max,
                    ErrorCode::KeyRequestLimit,
                ),
            };
            let interval = Duration::from_secs(1) / max.max(1);
            let burst = Duration::from_secs(u64::from(BURST_S));
            let share = shares.of.entry(holder.clone()).or_default();
            if let Err(wait) = share.requests.take(now, interval, burst) {
                for (holder, interval) in taken {
                    if let Some(share) = shares.of.get_mut(&holder) {
                        share.requests.give_back(interval);
                    }
                }
                return Err(limited(code, "requests in a second", max.into(), wait));
            }
            taken.push((holder, interval));
        }
        Ok(())
    }

    /// The share of a request that opens no session: it was made before, and is answered as it was
    /// then.
    pub(crate) fn no_session(&self) -> SessionShare {
        SessionShare {
            quotas: self.clone(),
            taken: None,
        }
    }

    /// Counts a session that is to be opened with a key, until it turns out that none was.
    ///
    /// # Errors
    /// 429: there were too many.
    pub(crate) fn session(
        &self,
        caller: &Caller,
        limits: &Limits,
    ) -> Result<SessionShare, Problem> {
        let now = Instant::now();
        let max = limits.key_sessions_per_minute_max;
        let minute = Duration::from_secs(60);
        let interval = minute / max.max(1);
        let key = holders(caller)
            .into_iter()
            .find(|holder| matches!(holder, Holder::Key(_)));
        let taken = key.as_ref().map_or(Ok(()), |key| {
            self.lock()
                .of
                .entry(key.clone())
                .or_default()
                .sessions
                .take(now, interval, minute)
        });
        let what = "sessions opened in a minute";
        taken.map_err(|wait| limited(ErrorCode::KeySessionLimit, what, max.into(), wait))?;
        Ok(SessionShare {
            quotas: self.clone(),
            taken: key.map(|key| (key, interval)),
        })
    }

    /// Takes a stream, which is given back when the result is dropped.
    ///
    /// # Errors
    /// 429: the user, or the key, has too many.
    pub(crate) fn stream(&self, caller: &Caller, limits: &Limits) -> Result<LastingShare, Problem> {
        self.lasting(caller, Lasting::Stream, limits)
            .map_err(|holder| {
                let code = match &holder {
                    Holder::User(_) => ErrorCode::UserStreamLimit,
                    Holder::Key(_) => ErrorCode::KeyStreamLimit,
                };
                let max = Lasting::Stream.max(&holder, limits) as u64;
                let wait = Duration::from_secs(STREAM_RETRY_AFTER_S);
                limited(code, "event streams at the same time", max, wait)
            })
    }

    /// Takes a wait for the reply to a message, which is given back when the result is dropped;
    /// none when the user, or the key, has too many.
    pub(crate) fn wait(&self, caller: &Caller, limits: &Limits) -> Option<LastingShare> {
        self.lasting(caller, Lasting::Wait, limits).ok()
    }

    /// Takes something that lasts, or returns the holder who has too many.
    fn lasting(
        &self,
        caller: &Caller,
        kind: Lasting,
        limits: &Limits,
    ) -> Result<LastingShare, Holder> {
        let mut taken = LastingShare {
            quotas: self.clone(),
            kind,
            holders: Vec::new(),
        };
        let mut refused = None;
        let mut shares = self.lock();
        for holder in holders(caller) {
            let count = shares.of.entry(holder.clone()).or_default().lasting(kind);
            if *count >= kind.max(&holder, limits) {
                refused = Some(holder);
                break;
            }
            *count += 1;
            taken.holders.push(holder);
        }
        // Given back what was taken, if anything, only without the lock.
        drop(shares);
        refused.map_or(Ok(taken), Err)
    }
}

/// Returns the holders from whose shares a caller takes; none for the host's own token.
fn holders(caller: &Caller) -> Vec<Holder> {
    match &caller.credential {
        Credential::HostToken => Vec::new(),
        Credential::Key { id, .. } => {
            vec![Holder::User(caller.user.clone()), Holder::Key(id.clone())]
        }
        Credential::Token { .. } => vec![Holder::User(caller.user.clone())],
    }
}

/// Returns the key of the configuration with the limit that a refusal names.
fn key_of_limit(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::UserRequestLimit => "server.limits.userRequestsPerSecondMax",
        ErrorCode::KeyRequestLimit => "server.limits.keyRequestsPerSecondMax",
        ErrorCode::UserStreamLimit => "server.limits.streamsPerUserMax",
        ErrorCode::KeyStreamLimit => "server.limits.streamsPerKeyMax",
        ErrorCode::KeySessionLimit => "server.limits.keySessionsPerMinuteMax",
        _ => "server.limits",
    }
}

fn limited(code: ErrorCode, what: &str, max: u64, wait: Duration) -> Problem {
    let whose = if code.as_str().starts_with("KEY_") {
        "with one API key"
    } else {
        "of one user"
    };
    let key = key_of_limit(code);
    let detail = format!("the limit is {max} {what} {whose} ({key}); try again later");
    Problem::new(code, detail).retry_after(wait.as_secs() + 1)
}
