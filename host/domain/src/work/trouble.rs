//! Troubles of what the host depends on: services of connectors, and providers of models. An
//! operator is told once that one began, and once that it is over.

use serde::{Deserialize, Serialize};

/// Failures in a row at which an operator is told.
pub const FAILURES_TOLD: u32 = 3;

/// A trouble, or the end of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ServiceTrouble {
    /// The host's credentials do not count.
    Unauthorised {
        /// The service's words.
        reason: String,
    },
    /// The service cannot be used.
    Failing {
        /// The last failure.
        reason: String,
    },
    /// It works again.
    Recovered,
}

impl ServiceTrouble {
    /// Returns the reason; none of the end of a trouble.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Unauthorised { reason } | Self::Failing { reason } => Some(reason),
            Self::Recovered => None,
        }
    }
}

/// The kind of a trouble that an operator was told of and that is not over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Unauthorised,
    Failing,
}

/// The record of what an operator was told of one service.
#[derive(Debug, Default)]
pub struct TroubleRecord {
    told: Option<Told>,
}

impl TroubleRecord {
    /// Begins with what was told before this process.
    #[must_use]
    pub fn remembering(trouble: Option<&ServiceTrouble>) -> Self {
        let told = trouble.and_then(kind);
        Self { told }
    }

    /// Notes a success. Returns what an operator is to be told.
    pub fn succeeded(&mut self) -> Option<ServiceTrouble> {
        self.told.take().map(|_| ServiceTrouble::Recovered)
    }

    /// Notes the last of so many failures in a row. Returns what an operator is to be told.
    /// Credentials that do not count are told at once; the worse trouble is told even if the other
    /// was.
    pub fn failed(&mut self, failures: u32, trouble: ServiceTrouble) -> Option<ServiceTrouble> {
        let told = kind(&trouble)?;
        let is_due = told == Told::Unauthorised || failures >= FAILURES_TOLD;
        let is_new = self.told.is_none() || (told == Told::Unauthorised && self.told != Some(told));
        (is_due && is_new).then(|| {
            self.told = Some(told);
            trouble
        })
    }
}

fn kind(trouble: &ServiceTrouble) -> Option<Told> {
    match trouble {
        ServiceTrouble::Unauthorised { .. } => Some(Told::Unauthorised),
        ServiceTrouble::Failing { .. } => Some(Told::Failing),
        ServiceTrouble::Recovered => None,
    }
}

#[cfg(test)]
mod tests;
