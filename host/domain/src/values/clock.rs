//! The time of a host: the wall clock, as far as it agrees with a monotonic clock.
//!
//! A wall clock can be set by people, by NTP, or by a machine that wakes up. Whatever expires by it
//! expires wrongly when it is wrong. So the host's time advances with the monotonic clock and never
//! goes back. It follows a wall clock that is ahead only by little within an hour, whether in one
//! step or in many, or after the clock has kept its lead for long. After an operator has said that
//! the host's time is ahead, credentials have a separate expiry time.

use crate::values::time::Timestamp;

/// The most milliseconds by which the host's time follows a wall clock ahead at once within any
/// [`DOUBT_MS`], all steps together.
pub const LEAD_MS_MAX: u64 = 60 * 1_000;
/// Milliseconds that have to pass until a larger lead is followed, unless an operator confirms it.
pub const DOUBT_MS: u64 = 60 * 60 * 1_000;
/// While the wall clock is behind, the host's time loses one millisecond in this many until they
/// agree. Small steps back would add up otherwise.
const ONE_LOST_IN: u64 = 100;

/// Readings of a machine's two clocks at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// The wall clock.
    pub wall: Timestamp,
    /// Milliseconds since some point in the past, by a clock that nobody sets and that includes the
    /// machine's sleep.
    pub passed_ms: u64,
}

/// A lead that is not accepted yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lead {
    /// Its milliseconds.
    pub ms: u64,
    /// Milliseconds until it is believed.
    pub left_ms: u64,
}

/// Information about the time before a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Past {
    /// The latest stored time.
    pub last: Option<Timestamp>,
    /// The present time according to the host's last process. Known only if the machine was not
    /// booted since.
    pub transferred: Option<Timestamp>,
    /// The expiry time of credentials, if an operator has confirmed a wall clock that was behind
    /// the host's time: its present value, or after a boot its last stored one.
    pub credentials: Option<Timestamp>,
}

/// An expiry time of credentials that differs from the host's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Confirmed {
    /// This time at the last reading.
    pub now: Timestamp,
    /// This time at the start of the monotonic clock, which carries it on to the next process.
    pub base_ms: u64,
}

/// The time of one host, from its start on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostTime {
    pace: Pace,
    read: Reading,
    /// The expiry time of credentials, while it is behind the host's: an operator has confirmed a
    /// wall clock that was behind. The two then converge, by a hundredth of the elapsed time.
    credentials: Option<Pace>,
    /// The host began this much later than the latest stored time: it may have been down for so
    /// long, or the wall clock jumped meanwhile.
    gap: Option<Doubt>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Doubt {
    ms: u64,
    /// Value of the passing clock when the doubt began, in milliseconds.
    since_ms: u64,
}

impl Doubt {
    fn lead(self, passed_ms: u64) -> Lead {
        Lead {
            ms: self.ms,
            left_ms: DOUBT_MS.saturating_sub(passed_ms.saturating_sub(self.since_ms)),
        }
    }

    fn is_over(self, passed_ms: u64) -> bool {
        self.lead(passed_ms).left_ms == 0
    }
}

/// The leads of the wall clock that were followed at once, minus the time lost since.
///
/// They are counted for the present span of [`DOUBT_MS`] and for the one before: any time of that
/// length is within the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Followed {
    before_ms: u64,
    ms: u64,
    /// Value of the passing clock when the present span began, in milliseconds.
    since_ms: u64,
}

impl Followed {
    fn go_on(&mut self, passed_ms: u64, lost_ms: u64) {
        let spans = passed_ms.saturating_sub(self.since_ms) / DOUBT_MS;
        if spans > 0 {
            self.before_ms = if spans == 1 { self.ms } else { 0 };
            self.ms = 0;
            self.since_ms += spans * DOUBT_MS;
        }
        let lost_before_ms = lost_ms.saturating_sub(self.ms);
        self.ms = self.ms.saturating_sub(lost_ms);
        self.before_ms = self.before_ms.saturating_sub(lost_before_ms);
    }

    /// Milliseconds by which the wall clock may be ahead now and still be followed at once.
    fn left_ms(self) -> u64 {
        LEAD_MS_MAX.saturating_sub(self.before_ms + self.ms)
    }
}

/// A time that advances with the monotonic clock and follows the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pace {
    now: Timestamp,
    /// Milliseconds passed while the wall clock was behind and not yet used for a loss.
    unlost_ms: u64,
    followed: Followed,
    /// The wall clock is ahead of this time, which does not follow.
    jump: Option<Doubt>,
}

impl Pace {
    fn at(now: Timestamp) -> Self {
        Self {
            now,
            unlost_ms: 0,
            followed: Followed::default(),
            jump: None,
        }
    }

    fn go_on(&mut self, read: Reading, passed_ms: u64) {
        let lost_ms = self.lost_ms(read.wall, passed_ms);
        self.now = self.now.plus_ms(passed_ms - lost_ms);
        self.followed.go_on(read.passed_ms, lost_ms);
        let lead_ms = read.wall.since_ms(self.now);
        if lead_ms <= self.followed.left_ms() {
            self.followed.ms += lead_ms;
            self.now = self.now.plus_ms(lead_ms);
            self.jump = None;
            return;
        }
        let doubt = self.doubt(lead_ms, read.passed_ms);
        if doubt.is_over(read.passed_ms) {
            self.follow(read.wall);
            // This part of the lead has not lasted as long.
            self.followed.ms = lead_ms.saturating_sub(doubt.ms);
        } else {
            self.jump = Some(doubt);
        }
    }

    /// This time at the start of the monotonic clock.
    fn base_ms(self, read: Reading) -> u64 {
        self.now.0.saturating_sub(read.passed_ms)
    }

    /// Follows the wall clock ahead, by any lead: it is right, and was right before.
    fn follow(&mut self, wall: Timestamp) {
        self.now = self.now.max(wall);
        self.followed = Followed {
            since_ms: self.followed.since_ms,
            ..Followed::default()
        };
        self.jump = None;
    }

    /// Returns the milliseconds not counted because the wall clock is behind, and keeps the
    /// remainder.
    fn lost_ms(&mut self, wall: Timestamp, passed_ms: u64) -> u64 {
        let ahead_ms = self.now.plus_ms(passed_ms).since_ms(wall);
        if ahead_ms == 0 {
            self.unlost_ms = 0;
            return 0;
        }
        self.unlost_ms += passed_ms;
        let lost_ms = (self.unlost_ms / ONE_LOST_IN).min(ahead_ms).min(passed_ms);
        self.unlost_ms %= ONE_LOST_IN;
        lost_ms
    }

    /// The doubt about the wall clock's lead; a new one if the lead has changed.
    fn doubt(&self, ms: u64, passed_ms: u64) -> Doubt {
        self.jump
            .filter(|jump| jump.ms.abs_diff(ms) <= LEAD_MS_MAX)
            .unwrap_or(Doubt {
                ms,
                since_ms: passed_ms,
            })
    }
}

impl HostTime {
    /// Begins at the last process's time, or otherwise at the wall clock, and never before the
    /// latest stored time. So no timer has more than its whole length left.
    #[must_use]
    pub fn begin(read: Reading, past: Past) -> Self {
        let last = past.last.unwrap_or_default();
        let now = past.transferred.unwrap_or(read.wall).max(last);
        let gap_ms = match past.transferred {
            Some(_) => 0,
            None => past.last.map_or(0, |last| now.since_ms(last)),
        };
        let gap = (gap_ms > LEAD_MS_MAX).then_some(Doubt {
            ms: gap_ms,
            since_ms: read.passed_ms,
        });
        let mut time = Self {
            pace: Pace::at(now),
            read,
            credentials: past.credentials.map(Pace::at),
            gap,
        };
        time.go_on(read);
        time
    }

    /// Advances to the moment of a reading.
    pub fn go_on(&mut self, read: Reading) {
        let passed_ms = read.passed_ms.saturating_sub(self.read.passed_ms);
        self.pace.go_on(read, passed_ms);
        if let Some(credentials) = &mut self.credentials {
            credentials.go_on(read, passed_ms);
        }
        self.credentials = self
            .credentials
            .filter(|credentials| credentials.now < self.pace.now);
        // Readings of several threads may be processed in another order than they were taken.
        self.read = Reading {
            wall: read.wall,
            passed_ms: self.read.passed_ms.max(read.passed_ms),
        };
        self.gap = self.gap.filter(|gap| !gap.is_over(read.passed_ms));
    }

    /// An operator has said that the wall clock is right: it is followed ahead. The host's time
    /// does not go back to a clock that is behind, but the expiry time of credentials does.
    pub fn confirm(&mut self, read: Reading) {
        self.go_on(read);
        self.pace.follow(read.wall);
        let behind_ms = self.pace.now.since_ms(read.wall);
        self.credentials = (behind_ms > 0).then(|| Pace::at(read.wall));
        // A host that is ahead of the right time has not waited as long as it seemed before its
        // start.
        self.gap = self.gap.filter(|_| behind_ms > LEAD_MS_MAX);
    }

    /// The host's time at the last reading.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.pace.now
    }

    /// The wall clock at the last reading.
    #[must_use]
    pub fn wall(&self) -> Timestamp {
        self.read.wall
    }

    /// The host's time at the start of the monotonic clock, which carries it on to the next
    /// process.
    #[must_use]
    pub fn base_ms(&self) -> u64 {
        self.pace.base_ms(self.read)
    }

    /// The expiry time of credentials: a doubt about a clock never makes a credential last longer.
    #[must_use]
    pub fn for_credentials(&self) -> Timestamp {
        self.credentials
            .unwrap_or(self.pace)
            .now
            .max(self.read.wall)
    }

    /// The expiry time of credentials, if an operator has confirmed a wall clock behind the host's
    /// time, and the host's time is still ahead.
    #[must_use]
    pub fn confirmed(&self) -> Option<Confirmed> {
        self.credentials.map(|pace| Confirmed {
            now: pace.now,
            base_ms: pace.base_ms(self.read),
        })
    }

    /// The lead of the wall clock that is not followed.
    #[must_use]
    pub fn jump(&self) -> Option<Lead> {
        self.pace.jump.map(|jump| jump.lead(self.read.passed_ms))
    }

    /// The span before this process started that may or may not have passed. Data that must not be
    /// deleted too early is kept that much longer.
    #[must_use]
    pub fn gap(&self) -> Option<Lead> {
        self.gap.map(|gap| gap.lead(self.read.passed_ms))
    }
}

#[cfg(test)]
mod tests;
