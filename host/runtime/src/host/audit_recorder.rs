//! The audit record of one call: what the boundary decided while it ran, to become its entry in the
//! ledger.

use crate::outcome::Decided;
use domain::event::{
    BoundaryDecision, BoundaryVerdict, DECISIONS_RECORDED_MAX, DETAIL_BYTES_MAX, NOTHING_OPENED,
};
use domain::grant::{OwnedFolder, capability};
use domain::redact::Redactor;
use domain::ruling::{PROGRAM_RUN, Rule, Ruling};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Decisions, counted by capability, verdict and rule; uses of secrets, limits of the call, and
/// starts and ends of programs each apart. Shared by everything that decides for the call.
#[derive(Debug, Clone, Default)]
pub(crate) struct AuditRecorder(Arc<Mutex<AuditEntries>>);

#[derive(Debug, Default)]
struct AuditEntries {
    /// The rulings made before the call of a tool began; none for a step, which has none.
    rulings: Option<Vec<Ruling>>,
    decided: Decided,
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
        self.entries().rulings = Some(rulings);
    }

    /// Records a decision that others made. The start and the end of a program are apart from each
    /// other, like uses of secrets.
    pub(crate) fn decided(
        &self,
        capability: &str,
        verdict: BoundaryVerdict,
        rule: Rule,
        detail: &str,
    ) {
        let mut entries = self.entries();
        if matches!(capability, capability::SECRETS_USE | PROGRAM_RUN) {
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

    /// Names what was granted on a file by the name that the file was given in the end: programs
    /// write beside a file and then put what they wrote in its place.
    pub(crate) fn renamed(&self, capability: &str, old: &str, new: &str) {
        let mut entries = self.entries();
        let [old, new] = [old, new].map(|name| entries.redacted(name));
        for known in &mut entries.decided.decisions {
            if known.capability == capability
                && known.verdict == BoundaryVerdict::Granted
                && known.detail == old
            {
                known.detail.clone_from(&new);
            }
        }
    }

    /// Records a refusal: by the rule that took the capability from the call, or, when the call has
    /// it, by its grant, which does not go so far. A tool that did not declare the capability is
    /// told apart, because no grant would help it.
    pub(crate) fn refused(&self, capability: &str, detail: impl FnOnce() -> String) {
        let mut entries = self.entries();
        let rule = entries.refusal(capability);
        entries.count(capability, BoundaryVerdict::Refused, rule, detail);
    }

    /// Records the refusal of a request, and why its grants do not allow it. What the tool did not
    /// declare has no grants, whatever its component is granted, and they are not the reason.
    pub(crate) fn refused_request(&self, asked: &str, why: &str) {
        let mut entries = self.entries();
        let rule = entries.refusal(capability::NET_HTTP);
        entries.count(capability::NET_HTTP, BoundaryVerdict::Refused, rule, || {
            if rule == Rule::NotAsked {
                asked.to_owned()
            } else {
                format!("{asked}: {why}")
            }
        });
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
        let rule = entries.withholds(capability);
        if let Some(rule) = rule.filter(|rule| *rule != Rule::NotGranted) {
            entries.count(capability, BoundaryVerdict::Refused, rule, detail);
        }
    }

    /// Records that a call that needs files and failed opened nothing in the folders at these
    /// places. Does nothing if it was decided on any file, or if the tool did not ask for files.
    ///
    /// Without a folder that is a refusal. With one it is none: the call had its folder, and may
    /// have failed for another reason than a file elsewhere. Where something else was refused, that
    /// is the reason, and nothing is recorded.
    pub(crate) fn unreached_folders(&self, places: &[&str]) {
        let mut entries = self.entries();
        let is_about_files =
            |name: &str| name == capability::FILES_READ || name == capability::FILES_WRITE;
        let mut decisions = entries.decided.decisions.iter();
        if decisions.any(|decision| is_about_files(&decision.capability)) {
            return;
        }
        if !places.is_empty() && entries.is_failure_explained() {
            return;
        }
        let (verdict, rule) = match entries.ruling(capability::FILES_READ) {
            Some(ruling) if ruling.allowed && places.is_empty() => {
                (BoundaryVerdict::Refused, Rule::NotGranted)
            }
            Some(ruling) if ruling.allowed => (BoundaryVerdict::Granted, Rule::Granted),
            Some(ruling) if ruling.rule != Rule::NotAsked => {
                (BoundaryVerdict::Refused, ruling.rule)
            }
            Some(_) | None => return,
        };
        let detail = match places {
            [] => "no folder is granted".to_owned(),
            places => format!(
                "{NOTHING_OPENED}{}; a path elsewhere is in no granted folder",
                places.join(", ")
            ),
        };
        entries.count(capability::FILES_READ, verdict, rule, || detail);
    }

    /// Notes the folders of its own that the call has. They are on record with what was decided.
    pub(crate) fn owned(&self, folders: &[OwnedFolder]) {
        self.entries().decided.folders = folders.to_vec();
    }

    /// Takes all decisions out.
    pub(crate) fn take(&self) -> Decided {
        std::mem::take(&mut self.entries().decided)
    }

    fn entries(&self) -> MutexGuard<'_, AuditEntries> {
        // Nobody who holds the lock panics between two changes that belong together.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Decided {
    /// Notes one more decision, counted like those of a call.
    pub fn note(&mut self, capability: &str, verdict: BoundaryVerdict, rule: Rule, detail: &str) {
        let mut entries = AuditEntries {
            decided: std::mem::take(self),
            ..AuditEntries::default()
        };
        entries.count(capability, verdict, rule, || detail.to_owned());
        *self = entries.decided;
    }
}

impl AuditEntries {
    /// The rule that took a capability from the call.
    fn withholds(&self, capability: &str) -> Option<Rule> {
        let ruling = self.ruling(capability)?;
        (!ruling.allowed).then_some(ruling.rule)
    }

    /// The rule by which a use of a capability is refused.
    fn refusal(&self, capability: &str) -> Rule {
        let undeclared = || self.is_undeclared(capability).then_some(Rule::NotAsked);
        self.withholds(capability)
            .or_else(undeclared)
            .unwrap_or(Rule::NotGranted)
    }

    /// Returns true if a tool is called that did not declare the capability. There is a ruling on
    /// everything that it declared or that its component is granted.
    fn is_undeclared(&self, capability: &str) -> bool {
        self.rulings.is_some()
            && self.ruling(capability).is_none()
            && capability::is_capability(capability)
    }

    /// Returns whether something was refused that may have made the call fail. Many programs look
    /// at their environment before they do anything.
    fn is_failure_explained(&self) -> bool {
        self.decided.decisions.iter().any(|decision| {
            decision.verdict == BoundaryVerdict::Refused
                && decision.capability != capability::ENV_READ
                && capability::is_capability(&decision.capability)
        })
    }

    fn ruling(&self, capability: &str) -> Option<&Ruling> {
        let mut rulings = self.rulings.iter().flatten();
        rulings.find(|ruling| ruling.capability == capability)
    }

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
        let mut decisions = self.decided.decisions.iter_mut();
        let known = decisions.find(|known| is_same(known));
        known
            .map(|known| known.times = known.times.saturating_add(1))
            .is_some()
    }

    fn add(&mut self, capability: &str, verdict: BoundaryVerdict, rule: Rule, detail: &str) {
        // The name of a bucket is the guest's choice too.
        let capability = self.redactor.text(capability).into_owned();
        let detail = self.redacted(detail);
        if self.decided.decisions.len() < DECISIONS_RECORDED_MAX {
            self.decided.decisions.push(BoundaryDecision {
                capability,
                verdict,
                rule,
                times: 1,
                detail,
            });
        } else {
            self.decided.left_out = self.decided.left_out.saturating_add(1);
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
mod tests;
