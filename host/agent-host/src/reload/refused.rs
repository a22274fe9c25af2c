//! Refusals of a configuration, and what is told of one that was read again.

use super::{Host, Reloading, report};
use crate::command::Place;
use crate::config::{Config, Finding};
use crate::failure::{Exit, Failure};
use crate::guests;
use crate::serve::warnings;
use anyhow::anyhow;
use broker::Catalogue;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// The time for which a changed file stays what it is before it takes served agents, triggers or
/// connectors away, or is the beginning of what was served, or changed while it was read. It may
/// have been cut while it was written: turns that end because of that do not come back, and an
/// agent without its last lists may do more.
const AGENTS_STAY_FOR: Duration = Duration::from_secs(2);

/// A refusal of a configuration as a whole.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) failure: Failure,
    again: Again,
}

/// The time at which a configuration is tried again though no file has changed that is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    /// Never: it would be refused again.
    Never,
    /// After a while, for what it lacks may be there.
    Later,
    /// Once its file has stayed what it is for [`AGENTS_STAY_FOR`], or has changed again.
    AfterItStayed,
}

impl Refused {
    /// The same, with the changes that are read at a start only: what is missing may be among them.
    pub(super) fn beside(self, needing_restart: &[String]) -> Self {
        if needing_restart.is_empty() || self.failure.advice.is_some() {
            return self;
        }
        let advice = format!(
            "changed as well, and read at a start only: {}; restart the host if it needs them",
            needing_restart.join(", ")
        );
        Self {
            failure: self.failure.advise(advice),
            ..self
        }
    }

    /// Returns the reason in words, with the way out of it.
    pub(crate) fn reason(&self) -> String {
        let causes = self.failure.error.chain().map(ToString::to_string);
        let reason: Vec<String> = causes.chain(self.failure.advice.clone()).collect();
        reason.join("; ")
    }

    /// Returns the time after which it is to be tried again though no file has changed; none if
    /// that changes nothing. `later` is that of one whose lack may pass.
    pub(crate) fn again_after(&self, later: Duration) -> Option<Duration> {
        match self.again {
            Again::Never => None,
            Again::Later => Some(later),
            Again::AfterItStayed => Some(AGENTS_STAY_FOR),
        }
    }

    /// Returns whether nothing was found wrong with it: it is only put off.
    pub(super) fn is_put_off(&self) -> bool {
        self.again == Again::AfterItStayed
    }

    pub(super) fn for_good(failure: Failure) -> Self {
        Self {
            failure,
            again: Again::Never,
        }
    }

    pub(super) fn for_now(failure: Failure) -> Self {
        Self {
            failure,
            again: Again::Later,
        }
    }

    /// Puts a changed file off that takes away what this names.
    pub(super) fn until_it_stayed(gone: &str) -> Self {
        Self::put_off(anyhow!("{gone} would go"))
    }

    /// Puts a changed file off that is the beginning of what was served.
    pub(super) fn until_it_is_whole() -> Self {
        Self::put_off(anyhow!("the file is the beginning of what it was"))
    }

    /// Puts a file off that changed while it was read.
    pub(super) fn until_it_is_written(file: &Path) -> Self {
        Self::put_off(anyhow!("`{}` changed while it was read", file.display()))
    }

    fn put_off(error: anyhow::Error) -> Self {
        Self {
            failure: Failure::new(Exit::Usage, error),
            again: Again::AfterItStayed,
        }
    }
}

impl Reloading {
    /// Tells that sources cannot be looked at.
    pub(crate) fn tell_of_sources(&mut self, failure: &Failure) {
        self.tell("sources", failure, "nothing is built");
    }

    /// Returns whether an error is the last one that was told about its subject.
    pub(super) fn has_reported(&self, subject: &str, failure: &Failure) -> bool {
        self.reported.get(subject) == Some(&failure.lines().join("\n"))
    }

    /// Tells of an error, unless it was the last one about its subject.
    pub(super) fn tell(&mut self, subject: &str, failure: &Failure, follows: &str) {
        let message = failure.lines().join("\n");
        if self.reported.get(subject) == Some(&message) {
            return;
        }
        let terminal = self.host.terminal;
        if !self.is_for_author {
            tracing::warn!(subject, reason = message, "{follows}");
        } else if terminal.is_json() {
            let mut document = failure.document();
            if let Some(fields) = document.as_object_mut() {
                fields.insert("event".to_owned(), "refused".into());
                fields.insert("subject".to_owned(), subject.into());
            }
            terminal.line(&document.to_string());
        } else {
            terminal.problem(&format!("{message}\n  so: {follows}"));
        }
        self.reported.insert(subject.to_owned(), message);
    }

    /// Tells what is served by now and was not before.
    pub(super) fn report(&mut self, before: &Catalogue, replaced: &Config) {
        let after = self.host.broker.catalogue();
        if !self.is_for_author {
            tracing::info!(
                configuration = %self.host.broker.configuration().digest().reference(),
                "another configuration is in force"
            );
            return self.warn(&after);
        }
        let Host {
            loaded, terminal, ..
        } = &self.host;
        let wanted = guests::wanted(loaded);
        let mut reports: Vec<report::Report> = after
            .entries()
            .filter_map(|entry| {
                let config = wanted.get(&entry.name)?;
                let before = before.entry(&entry.name);
                report::component(
                    before.map(|before| &**before),
                    entry,
                    config,
                    &Place::in_config(loaded, &entry.name),
                )
            })
            .collect();
        let gone = before
            .entries()
            .filter(|entry| after.entry(&entry.name).is_none());
        reports.extend(gone.map(|entry| report::removed(&entry.name)));
        reports.extend(report::agents(before, &after));
        reports.extend(report::edge(replaced, &loaded.config));
        for report in reports {
            terminal.result(&report.document, || report.lines);
        }
        self.warn(&after);
    }

    /// Tells each warning once. What was mended is told again when it comes back.
    fn warn(&mut self, after: &Catalogue) {
        let findings = warnings(&self.host.loaded, after);
        for finding in &findings {
            if !self.warned.insert(finding.to_string()) {
                continue;
            }
            if self.is_for_author {
                self.host.terminal.notice(&finding.to_string());
            } else {
                tracing::warn!(key = finding.key, "{}", finding.message);
            }
        }
        let now: BTreeSet<String> = findings.iter().map(ToString::to_string).collect();
        self.warned.retain(|warning| now.contains(warning));
    }
}

/// Logs what is left behind, and returns it in sentences.
pub(super) fn content(left_behind: &[Finding]) -> Vec<String> {
    let reported = left_behind.iter().map(|finding| {
        tracing::warn!(key = finding.key, "{}", finding.message);
        finding.without_severity()
    });
    reported.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changed_while_it_was_read_is_put_off_and_read_again() {
        let refused = Refused::until_it_is_written(Path::new("agent-host.toml"));
        assert!(refused.is_put_off());
        let reason = refused.reason();
        assert_eq!(reason, "`agent-host.toml` changed while it was read");
        let again = refused.again_after(Duration::ZERO);
        assert_eq!(again, Some(AGENTS_STAY_FOR));
    }
}
