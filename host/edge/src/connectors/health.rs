//! The health of a connector: failures in a row, the pauses after them, and the notices to an
//! operator.

use domain::backoff::Backoff;
use domain::connector::{ConnectorFailure, kept_reason};
use domain::time::Timestamp;
use domain::trouble::{ServiceTrouble, TroubleRecord};

/// Pauses after polls that failed.
const FAILED: Backoff = Backoff {
    first_ms: 1_000,
    most_ms: 300_000,
};
/// Pauses after tries with credentials that do not count.
const UNAUTHORISED: Backoff = Backoff {
    first_ms: 60_000,
    most_ms: 900_000,
};
/// Maximum pause between polls that a service is granted on its request, in milliseconds.
const ASKED_MS_MAX: u64 = 3_600_000;
/// Maximum milliseconds for which nothing is sent after a service reported that it is busy.
const DEFERRED_MS_MAX: u64 = 60_000;

/// The health of a connector.
#[derive(Debug, Default)]
pub(super) struct Health {
    /// Failures in a row.
    failures: u32,
    /// True if the last of them was that the credentials do not count.
    is_unauthorised: bool,
    /// The record of the notices to an operator.
    record: TroubleRecord,
    /// Time before which nothing is sent.
    deferred: Option<Timestamp>,
}

impl Health {
    /// Begins with the notices of earlier processes.
    pub(super) fn remember(&mut self, trouble: Option<&ServiceTrouble>) {
        self.record = TroubleRecord::remembering(trouble);
    }

    /// Records a success. Returns the notice for an operator, if any.
    pub(super) fn note_success(&mut self) -> Option<ServiceTrouble> {
        self.failures = 0;
        self.is_unauthorised = false;
        self.deferred = None;
        self.record.succeeded()
    }

    /// Returns whether the credentials do not count.
    pub(super) fn is_unauthorised(&self) -> bool {
        self.is_unauthorised
    }

    /// Records that the credentials may have changed: messages that waited because of them wait no
    /// longer.
    pub(super) fn note_replaced(&mut self) {
        if self.is_unauthorised {
            self.failures = 0;
            self.deferred = None;
        }
    }

    /// Records that a message could not be sent: if the service requests it, no message is sent for
    /// a while. Returns the notice for an operator, if any.
    pub(super) fn note_failure(
        &mut self,
        failure: &ConnectorFailure,
        now: Timestamp,
    ) -> Option<ServiceTrouble> {
        match failure {
            ConnectorFailure::Unauthorised(_) => {
                self.deferred = Some(now.plus_ms(UNAUTHORISED.first_ms));
            }
            ConnectorFailure::RetryLater { after_ms, .. } => {
                self.deferred = Some(now.plus_ms((*after_ms).min(DEFERRED_MS_MAX)));
            }
            ConnectorFailure::Rejected(_)
            | ConnectorFailure::Unknown(_)
            | ConnectorFailure::Moved { .. } => {}
        }
        self.note_intake_failure(failure)
    }

    /// Records that no messages could be received. Outbound messages do not wait because of it.
    /// Returns the notice for an operator, if any.
    pub(super) fn note_intake_failure(
        &mut self,
        failure: &ConnectorFailure,
    ) -> Option<ServiceTrouble> {
        self.failures = self.failures.saturating_add(1);
        self.is_unauthorised = matches!(failure, ConnectorFailure::Unauthorised(_));
        let reason = kept_reason(&failure.to_string());
        let trouble = match failure {
            ConnectorFailure::Unauthorised(_) => ServiceTrouble::Unauthorised { reason },
            ConnectorFailure::RetryLater { .. }
            | ConnectorFailure::Rejected(_)
            | ConnectorFailure::Unknown(_)
            | ConnectorFailure::Moved { .. } => ServiceTrouble::Failing { reason },
        };
        self.record.failed(self.failures, trouble)
    }

    /// Returns the milliseconds from a failed poll to the next one.
    pub(super) fn pause_ms(&self, failure: &ConnectorFailure) -> u64 {
        match failure {
            ConnectorFailure::Unauthorised(_) => UNAUTHORISED.pause_ms(self.failures),
            ConnectorFailure::RetryLater { after_ms, .. } => {
                (*after_ms).clamp(FAILED.first_ms, ASKED_MS_MAX)
            }
            ConnectorFailure::Rejected(_)
            | ConnectorFailure::Unknown(_)
            | ConnectorFailure::Moved { .. } => FAILED.pause_ms(self.failures),
        }
    }

    /// Returns the time before which nothing is sent, if it lies ahead.
    pub(super) fn deferred(&self, now: Timestamp) -> Option<Timestamp> {
        self.deferred.filter(|deferred| *deferred > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(after_ms: u64) -> ConnectorFailure {
        ConnectorFailure::RetryLater {
            after_ms,
            reason: "busy".to_owned(),
        }
    }

    fn failing() -> ConnectorFailure {
        ConnectorFailure::Unknown("no answer".to_owned())
    }

    #[test]
    fn an_operator_is_told_once_of_failures_and_once_that_they_are_over() {
        let mut health = Health::default();
        let now = Timestamp(0);
        let mut reported = || health.note_failure(&failing(), now).is_some();
        assert_eq!(
            [reported(), reported(), reported(), reported()],
            [false, false, true, false]
        );
        assert_eq!(health.note_success(), Some(ServiceTrouble::Recovered));
        assert_eq!(health.note_success(), None);
    }

    #[test]
    fn credentials_that_do_not_count_are_told_at_once() {
        let mut health = Health::default();
        let revoked = ConnectorFailure::Unauthorised("revoked".to_owned());
        assert!(matches!(
            health.note_failure(&revoked, Timestamp(0)),
            Some(ServiceTrouble::Unauthorised { .. })
        ));
        assert_eq!(health.note_failure(&revoked, Timestamp(1)), None);
        assert_eq!(health.pause_ms(&revoked), 2 * UNAUTHORISED.first_ms);
        assert!(health.deferred(Timestamp(1)).is_some());
    }

    #[test]
    fn credentials_that_may_be_others_now_are_tried_at_once() {
        let revoked = ConnectorFailure::Unauthorised("revoked".to_owned());
        let mut health = Health::default();
        for _ in 0..5 {
            health.note_failure(&revoked, Timestamp(0));
        }
        health.note_replaced();
        assert_eq!(health.deferred(Timestamp(0)), None);
        assert!(health.is_unauthorised(), "until they count");
        health.note_failure(&revoked, Timestamp(0));
        assert_eq!(health.pause_ms(&revoked), UNAUTHORISED.first_ms);
        health.note_success();
        assert!(!health.is_unauthorised());
        // Time that the service asks for has nothing to do with credentials.
        health.note_failure(&busy(7_000), Timestamp(0));
        health.note_replaced();
        assert_eq!(health.deferred(Timestamp(0)), Some(Timestamp(7_000)));
    }

    #[test]
    fn what_cannot_be_taken_in_is_told_and_holds_back_no_message() {
        let mut health = Health::default();
        let mut reported = || health.note_intake_failure(&busy(7_000)).is_some();
        assert_eq!([reported(), reported(), reported()], [false, false, true]);
        assert_eq!(health.deferred(Timestamp(0)), None);
        let revoked = ConnectorFailure::Unauthorised("revoked".to_owned());
        assert!(health.note_intake_failure(&revoked).is_some());
        assert_eq!(health.deferred(Timestamp(0)), None);
    }

    #[test]
    fn a_trouble_from_before_a_start_is_not_told_again() {
        let mut health = Health::default();
        let reason = "no answer".to_owned();
        health.remember(Some(&ServiceTrouble::Failing { reason }));
        for _ in 0..5 {
            assert_eq!(health.note_failure(&failing(), Timestamp(0)), None);
        }
        assert_eq!(health.note_success(), Some(ServiceTrouble::Recovered));
    }

    #[test]
    fn pauses_grow_and_a_service_is_given_the_time_that_it_asks_for() {
        let mut health = Health::default();
        let mut pauses = Vec::new();
        for _ in 0..12 {
            health.note_failure(&failing(), Timestamp(0));
            pauses.push(health.pause_ms(&failing()));
        }
        assert_eq!(pauses.first(), Some(&FAILED.first_ms));
        assert_eq!(pauses.last(), Some(&FAILED.most_ms));
        assert_eq!(health.pause_ms(&busy(7_000)), 7_000);
        health.note_failure(&busy(7_000), Timestamp(0));
        assert_eq!(health.deferred(Timestamp(0)), Some(Timestamp(7_000)));
        assert_eq!(health.deferred(Timestamp(7_000)), None);
    }
}
