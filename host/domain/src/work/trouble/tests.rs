//! Tests of troubles: each is told once, and its end once.

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
