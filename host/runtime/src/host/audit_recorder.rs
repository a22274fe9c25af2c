//! The audit record of one call: what the boundary decided while it ran, to become its entry in the
//! ledger.

use crate::outcome::Decided;
use domain::event::{BoundaryDecision, BoundaryVerdict, DECISIONS_RECORDED_MAX, DETAIL_BYTES_MAX};
use domain::grant::capability;
use domain::redact::Redactor;
use domain::ruling::{Rule, Ruling};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Decisions, counted by capability, verdict and rule; uses of secrets and limits of the call each
/// apart. Shared by everything that decides for the call.
#[derive(Debug, Clone, Default)]
pub(crate) struct AuditRecorder(Arc<Mutex<AuditEntries>>);

#[derive(Debug, Default)]
struct AuditEntries {
    /// The rulings made before the call began.
    rulings: Vec<Ruling>,
    decisions: Vec<BoundaryDecision>,
    left_out: u64,
    redactor: Redactor,
}

impl AuditRecorder {
    /// Keeps these secrets out of every detail from here on: a path, a host or a header's name is
    /// the guest's choice.
    pub(crate) fn redact(&self, redactor: &Redactor) {
        self.entries().redactor = redactor.clone();
    }

    /// Binds the call by these rulings.
    pub(crate) fn bind(&self, rulings: Vec<Ruling>) {
        self.entries().rulings = rulings;
    }

    /// Records a decision that others made.
    pub(crate) fn decided(
        &self,
        capability: &str,
        verdict: BoundaryVerdict,
        rule: Rule,
        detail: &str,
    ) {
        let mut entries = self.entries();
        if capability == capability::SECRETS_USE {
            entries.count_each(capability, verdict, rule, detail);
        } else {
            entries.count(capability, verdict, rule, || detail.to_owned());
        }
    }

    /// Records something that was done under a grant.
    pub(crate) fn granted(&self, capability: &str, detail: impl FnOnce() -> String) {
        self.entries()
            .count(capability, BoundaryVerdict::Granted, Rule::Granted, detail);
    }

    /// Records a refusal: by the rule that took the capability from the call, or, when the call has
    /// it, by its grant, which does not go so far.
    pub(crate) fn refused(&self, capability: &str, detail: impl FnOnce() -> String) {
        let mut entries = self.entries();
        let ruling = entries
            .rulings
            .iter()
            .find(|ruling| ruling.capability == capability);
        let rule = ruling
            .filter(|ruling| !ruling.allowed)
            .map_or(Rule::NotGranted, |ruling| ruling.rule);
        entries.count(capability, BoundaryVerdict::Refused, rule, detail);
    }

    /// Records that a limit was met.
    pub(crate) fn limited(&self, capability: &str, detail: impl FnOnce() -> String) {
        self.entries()
            .count(capability, BoundaryVerdict::Limited, Rule::Limits, detail);
    }

    /// Counts a use of a secret under a grant. Uses are kept apart by their details, of which there
    /// are as many as grants.
    pub(crate) fn used(&self, detail: &str) {
        self.entries().count_each(
            capability::SECRETS_USE,
            BoundaryVerdict::Granted,
            Rule::Granted,
            detail,
        );
    }

    /// Counts a limit of the call itself that was met. Limits are kept apart by their names.
    pub(crate) fn met(&self, capability: &str, limit: &str) {
        self.entries()
            .count_each(capability, BoundaryVerdict::Limited, Rule::Limits, limit);
    }

    /// Records the refusal of something that the component is granted and the call is not, by the
    /// rule that took it from the call. Does nothing when there is no such rule.
    pub(crate) fn withheld(&self, capability: &str, detail: impl FnOnce() -> String) {
        let mut entries = self.entries();
        let ruling = entries
            .rulings
            .iter()
            .find(|ruling| ruling.capability == capability && !ruling.allowed);
        if let Some(rule) = ruling
            .map(|ruling| ruling.rule)
            .filter(|rule| *rule != Rule::NotGranted)
        {
            entries.count(capability, BoundaryVerdict::Refused, rule, detail);
        }
    }

    /// Takes all decisions out.
    pub(crate) fn take(&self) -> Decided {
        let mut entries = self.entries();
        Decided {
            decisions: std::mem::take(&mut entries.decisions),
            left_out: std::mem::take(&mut entries.left_out),
        }
    }

    fn entries(&self) -> MutexGuard<'_, AuditEntries> {
        // Nobody who holds the lock panics between two changes that belong together.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Decided {
    /// Notes one more decision, counted like those of a call.
    pub fn note(&mut self, capability: &str, verdict: BoundaryVerdict, rule: Rule, detail: &str) {
        let Self {
            decisions,
            left_out,
        } = std::mem::take(self);
        let mut entries = AuditEntries {
            decisions,
            left_out,
            ..AuditEntries::default()
        };
        entries.count(capability, verdict, rule, || detail.to_owned());
        *self = Self {
            decisions: entries.decisions,
            left_out: entries.left_out,
        };
    }
}

impl AuditEntries {
    fn count(
        &mut self,
        capability: &str,
        verdict: BoundaryVerdict,
        rule: Rule,
        detail: impl FnOnce() -> String,
    ) {
        if !self.is_counted(|known| {
            known.verdict == verdict && known.rule == rule && known.capability == capability
        }) {
            self.add(capability, verdict, rule, &detail());
        }
    }

    /// Counts it apart from what has another detail.
    fn count_each(&mut self, capability: &str, verdict: BoundaryVerdict, rule: Rule, detail: &str) {
        let shown = self.redacted(detail);
        let is_same = |known: &BoundaryDecision| {
            known.verdict == verdict
                && known.rule == rule
                && known.capability == capability
                && known.detail == shown
        };
        if !self.is_counted(is_same) {
            self.add(capability, verdict, rule, detail);
        }
    }

    fn is_counted(&mut self, is_same: impl Fn(&BoundaryDecision) -> bool) -> bool {
        let known = self.decisions.iter_mut().find(|known| is_same(known));
        known
            .map(|known| known.times = known.times.saturating_add(1))
            .is_some()
    }

    fn add(&mut self, capability: &str, verdict: BoundaryVerdict, rule: Rule, detail: &str) {
        // The name of a bucket is the guest's choice too.
        let capability = self.redactor.text(capability).into_owned();
        let detail = self.redacted(detail);
        if self.decisions.len() < DECISIONS_RECORDED_MAX {
            self.decisions.push(BoundaryDecision {
                capability,
                verdict,
                rule,
                times: 1,
                detail,
            });
        } else {
            self.left_out = self.left_out.saturating_add(1);
        }
    }

    /// Returns a detail as it is kept. What is cut is cut last, so that no half of a secret stays.
    fn redacted(&self, detail: &str) -> String {
        let detail = self.redactor.text(detail);
        let (detail, _) = detail.split_at(detail.floor_char_boundary(DETAIL_BYTES_MAX));
        crate::log::escaped(detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::secret::Secret;

    #[test]
    fn what_is_decided_again_is_counted_and_the_first_detail_stays() {
        let ruling = Ruling {
            capability: "files.write".to_owned(),
            allowed: false,
            rule: Rule::CapabilityDenylist,
        };
        let recorder = AuditRecorder::default();
        recorder.bind(vec![ruling]);
        for path in ["/a", "/b", "/c\n"] {
            recorder.granted("files.read", || path.to_owned());
            recorder.refused("files.write", || path.to_owned());
        }
        recorder.refused("wasi:sockets", || "tcp\n".to_owned());
        let Decided {
            decisions,
            left_out,
        } = recorder.take();
        let told: Vec<_> = decisions
            .iter()
            .map(|d| {
                (
                    d.capability.as_str(),
                    d.verdict,
                    d.rule,
                    d.times,
                    d.detail.as_str(),
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                (
                    "files.read",
                    BoundaryVerdict::Granted,
                    Rule::Granted,
                    3,
                    "/a"
                ),
                (
                    "files.write",
                    BoundaryVerdict::Refused,
                    Rule::CapabilityDenylist,
                    3,
                    "/a"
                ),
                (
                    "wasi:sockets",
                    BoundaryVerdict::Refused,
                    Rule::NotGranted,
                    1,
                    "tcp\\n"
                ),
            ]
        );
        assert_eq!(left_out, 0);
    }

    #[test]
    fn a_flood_of_different_decisions_is_bounded_and_counted() {
        let recorder = AuditRecorder::default();
        for n in 0..DECISIONS_RECORDED_MAX + 5 {
            recorder.limited(&format!("c{n}"), String::new);
        }
        let Decided {
            decisions,
            left_out,
        } = recorder.take();
        assert_eq!((decisions.len(), left_out), (DECISIONS_RECORDED_MAX, 5));
    }

    #[test]
    fn every_secret_that_a_call_used_is_on_record() {
        let recorder = AuditRecorder::default();
        for secret in ["github", "gitlab", "github"] {
            recorder.used(&format!("{secret} -> api.example.com header authorization"));
        }
        let told: Vec<_> = recorder
            .take()
            .decisions
            .into_iter()
            .map(|d| (d.detail.split(' ').next().unwrap().to_owned(), d.times))
            .collect();
        assert_eq!(told, [("github".to_owned(), 2), ("gitlab".to_owned(), 1)]);
    }

    #[test]
    fn what_others_tell_of_secrets_is_told_apart_too_and_no_half_of_one_stays() {
        let recorder = AuditRecorder::default();
        for key in ["env A -> a.example", "env B -> b.example"] {
            recorder.decided(
                capability::SECRETS_USE,
                BoundaryVerdict::Granted,
                Rule::Granted,
                key,
            );
        }
        assert_eq!(recorder.take().decisions.len(), 2);
        let secret = Secret::parse("CANARY-0123456789").unwrap();
        recorder.redact(&Redactor::of(&secret));
        recorder.granted("files.read", || {
            format!("{}CANARY-0123456789", "x".repeat(DETAIL_BYTES_MAX - 16))
        });
        recorder.refused("CANARY-0123456789.read", String::new);
        let told = format!("{:?}", recorder.take().decisions);
        assert!(!told.contains("CANARY"), "{told}");
    }

    #[test]
    fn what_is_granted_and_withheld_is_refused_by_the_rule_that_withheld_it() {
        for (rule, expected) in [
            (Rule::NotAsked, Some(Rule::NotAsked)),
            (Rule::Ceiling, Some(Rule::Ceiling)),
            (Rule::NotGranted, None),
        ] {
            let recorder = AuditRecorder::default();
            recorder.bind(vec![Ruling {
                capability: "env.read".to_owned(),
                allowed: false,
                rule,
            }]);
            recorder.withheld("env.read", String::new);
            assert_eq!(
                recorder
                    .take()
                    .decisions
                    .first()
                    .map(|decision| decision.rule),
                expected
            );
        }
        let recorder = AuditRecorder::default();
        recorder.withheld("env.read", String::new);
        assert!(recorder.take().decisions.is_empty());
    }

    #[test]
    fn limits_of_a_call_are_told_apart() {
        let recorder = AuditRecorder::default();
        for limit in ["logBytesMax", "cpuMsMax", "logBytesMax"] {
            recorder.met("tools.call", limit);
        }
        let told: Vec<_> = recorder
            .take()
            .decisions
            .into_iter()
            .map(|d| (d.detail, d.times, d.verdict))
            .collect();
        assert_eq!(
            told,
            [
                ("logBytesMax".to_owned(), 2, BoundaryVerdict::Limited),
                ("cpuMsMax".to_owned(), 1, BoundaryVerdict::Limited)
            ]
        );
    }
}
