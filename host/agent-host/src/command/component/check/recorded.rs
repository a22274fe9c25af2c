//! Refusals of components' calls that a running host has on record, and failed calls that may miss
//! a folder.

use crate::client::{Client, Log};
use crate::config::Loaded;
use crate::fields::{number, text};
use domain::event::NOTHING_OPENED;
use domain::grant::capability;
use serde_json::Value;
use std::collections::BTreeMap;

/// Events of the ledger that are looked at: the last ones.
const EVENTS_MAX: u64 = 100_000;
/// Different refusals of one component that are told.
const REFUSALS_MAX: usize = 10;

/// Refusals that are alike.
#[derive(Debug, Default, PartialEq, Eq)]
struct Refusal {
    times: u64,
    /// The tool and the detail of the last of them.
    last_tool: String,
    last_detail: String,
}

/// The refusals since each component was last admitted: by capability and rule. A call that may
/// miss a folder has no rule.
#[derive(Debug, Default)]
pub(super) struct Refusals(BTreeMap<String, BTreeMap<(String, Option<String>), Refusal>>);

impl Refusals {
    /// Reads the ledger of the running host; nothing while there is none, or when it may not be
    /// read.
    pub(super) async fn read(loaded: &Loaded) -> Self {
        let mut refusals = Self::default();
        let Ok(client) = Client::new(loaded) else {
            return refusals;
        };
        let Ok(newest) = client.get("/api/audit?limit=1").await else {
            return refusals;
        };
        let log = Log {
            path: "/api/audit",
            filter: "",
            pointer: "/lines",
            after: number(&newest, "/last_position").saturating_sub(EVENTS_MAX),
            follow: false,
        };
        match client.read_log(log, |line| refusals.take(line)).await {
            Ok(()) => refusals,
            Err(_) => Self::default(),
        }
    }

    fn take(&mut self, line: &Value) {
        let component = text(line, "/component");
        match text(line, "/kind") {
            // Another code or another grant: what was refused before says nothing any more.
            "admission" => {
                self.0.remove(component);
            }
            "decision" if is_reported(line) => {
                let rule = (!may_miss_a_folder(line)).then(|| text(line, "/rule").to_owned());
                let key = (text(line, "/capability").to_owned(), rule);
                let of_component = self.0.entry(component.to_owned()).or_default();
                let refusal = of_component.entry(key).or_default();
                refusal.times += number(line, "/times").max(1);
                refusal.last_tool = text(line, "/tool").to_owned();
                refusal.last_detail = text(line, "/detail").to_owned();
            }
            _ => {}
        }
    }

    /// Returns a line for each kind of refusal of a component.
    pub(super) fn of(&self, component: &str) -> Vec<String> {
        let refusals = self.0.get(component).into_iter().flatten();
        let reported = refusals.map(|((capability, rule), refusal)| {
            let Refusal {
                times,
                last_tool,
                last_detail,
            } = refusal;
            let times = if *times == 1 {
                "once".to_owned()
            } else {
                format!("{times} times")
            };
            let Some(rule) = rule else {
                return format!(
                    "a call that failed may miss a folder, {times}, last of {last_tool}: \
                     {last_detail}"
                );
            };
            let undeclared = if rule == "notAsked" {
                format!(" (the tool does not declare {capability})")
            } else {
                String::new()
            };
            format!(
                "{capability} was refused {times} by {rule}{undeclared}, last for {last_tool}: \
                 {last_detail}"
            )
        });
        reported.take(REFUSALS_MAX).collect()
    }
}

/// Returns whether a decision is of a call that failed and opened nothing in its folders.
fn may_miss_a_folder(line: &Value) -> bool {
    text(line, "/capability") == capability::FILES_READ
        && text(line, "/detail").starts_with(NOTHING_OPENED)
}

/// Returns whether a decision is a refusal that tells something, or of a call that may miss a
/// folder. Many programs look at their environment before they do anything.
fn is_reported(line: &Value) -> bool {
    let is_idle =
        text(line, "/capability") == capability::ENV_READ && text(line, "/rule") == "notAsked";
    (text(line, "/verdict") == "refused" && !is_idle) || may_miss_a_folder(line)
}

#[cfg(test)]
mod tests {
    use super::Refusals;
    use serde_json::json;

    #[test]
    fn refusals_are_counted_since_the_component_was_admitted() {
        let line = |kind: &str, rule: &str, detail: &str| {
            let verdict = if rule == "grant" {
                "granted"
            } else {
                "refused"
            };
            json!({
                "kind": kind, "component": "c", "verdict": verdict, "capability": "files.read",
                "rule": rule, "times": 2, "tool": "read_file", "detail": detail,
            })
        };
        let mut refusals = Refusals::default();
        for line in [
            line("decision", "ceiling", "before"),
            line("admission", "", ""),
            line("decision", "notGranted", "no folder is granted"),
            line("decision", "grant", "nothing was opened in /w"),
            line("decision", "grant", "/w/y"),
            line("decision", "notAsked", "/w/x"),
            line("request", "", ""),
        ] {
            refusals.take(&line);
        }
        assert_eq!(
            refusals.of("c"),
            [
                "a call that failed may miss a folder, 2 times, last of read_file: nothing was \
                 opened in /w",
                "files.read was refused 2 times by notAsked (the tool does not declare \
                 files.read), last for read_file: /w/x",
                "files.read was refused 2 times by notGranted, last for read_file: no folder is \
                 granted",
            ]
        );
        assert!(refusals.of("d").is_empty());
    }
}
