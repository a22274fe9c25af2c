//! Troubles of the host's dependencies: services of connectors, and providers of models. An
//! operator is notified once at the beginning of a trouble, and once at its end.

use serde::{Deserialize, Serialize};

/// Failures in a row after which an operator is notified.
pub const FAILURES_REPORTED: u32 = 3;

/// The beginning or the end of a trouble.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ServiceTrouble {
    /// The service refuses the host's credentials.
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
    /// Returns the reason; none for the end of a trouble.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Unauthorised { reason } | Self::Failing { reason } => Some(reason),
            Self::Recovered => None,
        }
    }
}

/// The kind of an open trouble that an operator knows of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReportedTrouble {
    Unauthorised,
    Failing,
}

/// The record of an operator's notifications about one service.
#[derive(Debug, Default)]
pub struct TroubleRecord {
    reported: Option<ReportedTrouble>,
}

impl TroubleRecord {
    /// Starts with the last notification before this process.
    #[must_use]
    pub fn remembering(trouble: Option<&ServiceTrouble>) -> Self {
        let reported = trouble.and_then(kind);
        Self { reported }
    }

    /// Notes a success. Returns the notification for an operator, if any.
    pub fn succeeded(&mut self) -> Option<ServiceTrouble> {
        self.reported.take().map(|_| ServiceTrouble::Recovered)
    }

    /// Notes the last of this many failures in a row. Returns the notification for an operator, if
    /// any. Refused credentials are reported at once. The worse trouble is reported even if the
    /// other was reported before.
    pub fn failed(&mut self, failures: u32, trouble: ServiceTrouble) -> Option<ServiceTrouble> {
        let reported = kind(&trouble)?;
        let is_due = reported == ReportedTrouble::Unauthorised || failures >= FAILURES_REPORTED;
        let is_new = self.reported.is_none()
            || (reported == ReportedTrouble::Unauthorised && self.reported != Some(reported));
        (is_due && is_new).then(|| {
            self.reported = Some(reported);
            trouble
        })
    }
}

fn kind(trouble: &ServiceTrouble) -> Option<ReportedTrouble> {
    match trouble {
        ServiceTrouble::Unauthorised { .. } => Some(ReportedTrouble::Unauthorised),
        ServiceTrouble::Failing { .. } => Some(ReportedTrouble::Failing),
        ServiceTrouble::Recovered => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{ServiceTrouble, TroubleRecord};

    fn failing() -> ServiceTrouble {
        ServiceTrouble::Failing {
            reason: "no answer".to_owned(),
        }
    }

    fn revoked() -> ServiceTrouble {
        ServiceTrouble::Unauthorised {
            reason: "revoked".to_owned(),
        }
    }

    #[test]
    fn an_outage_is_told_at_the_third_failure_and_once_that_it_is_over() {
        let mut record = TroubleRecord::default();
        let reported: Vec<bool> = (1..=4)
            .map(|failures| record.failed(failures, failing()).is_some())
            .collect();
        assert_eq!(reported, [false, false, true, false]);
        assert_eq!(record.succeeded(), Some(ServiceTrouble::Recovered));
        assert_eq!(record.succeeded(), None);
    }

    #[test]
    fn a_worse_trouble_is_told_although_a_lesser_one_was_and_not_the_reverse() {
        let mut record = TroubleRecord::default();
        assert_eq!(record.failed(3, failing()), Some(failing()));
        assert_eq!(record.failed(4, revoked()), Some(revoked()));
        assert_eq!(record.failed(5, failing()), None);
    }

    #[test]
    fn a_trouble_that_was_told_before_a_start_is_not_told_again() {
        let mut record = TroubleRecord::remembering(Some(&failing()));
        assert_eq!(record.failed(9, failing()), None);
        assert_eq!(record.succeeded(), Some(ServiceTrouble::Recovered));
        let mut over = TroubleRecord::remembering(Some(&ServiceTrouble::Recovered));
        assert_eq!(over.succeeded(), None);
    }
}
