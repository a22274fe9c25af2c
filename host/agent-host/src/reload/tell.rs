//! Telling what was read again: in the log, or on the terminal of an author of plugins.

use super::{Host, Reloading, report};
use crate::command::Place;
use crate::config::{Config, Finding};
use crate::failure::Failure;
use crate::guests;
use crate::serve::warnings;
use broker::Catalogue;
use std::collections::BTreeSet;

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

    /// Logs that another configuration is served, and what an operator should look at in it.
    fn log(&mut self, after: &Catalogue) {
        tracing::info!(
            configuration = %self.host.broker.configuration().digest().reference(),
            "another configuration is in force"
        );
        let findings = warnings(&self.host.loaded, after);
        for finding in &findings {
            if self.warned.insert(finding.to_string()) {
                tracing::warn!(key = finding.key, "{}", finding.message);
            }
        }
        let now: BTreeSet<String> = findings.iter().map(ToString::to_string).collect();
        self.warned.retain(|warning| now.contains(warning));
    }

    /// Tells what is served by now and was not before.
    pub(super) fn report(&mut self, before: &Catalogue, replaced: &Config) {
        let after = self.host.broker.catalogue();
        if !self.is_for_author {
            self.log(&after);
            return;
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
        let findings = warnings(loaded, &after);
        for finding in &findings {
            if self.warned.insert(finding.to_string()) {
                terminal.notice(&finding.to_string());
            }
        }
        // What was mended is told again when it comes back.
        let now: BTreeSet<String> = findings.iter().map(ToString::to_string).collect();
        self.warned.retain(|warning| now.contains(warning));
    }
}

/// Logs what is left behind, and returns it in sentences.
pub(super) fn content(left_behind: &[Finding]) -> Vec<String> {
    let reported = left_behind.iter().map(|finding| {
        tracing::warn!(key = finding.key, "{}", finding.message);
        format!("{}: {}", finding.key, finding.message)
    });
    reported.collect()
}
