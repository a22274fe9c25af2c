//! The errors and warnings of `component check`, what they and refusals make of its exit code, the
//! pinning of a component, and refusals of calls that a running host has on record.

use super::{BUCKETS, Import, is_missing};
use crate::answer::{list, number, text};
use crate::client::{Client, Log};
use crate::command::component::pin_line;
use crate::config::{Finding, Loaded, Severity};
use crate::failure::{Exit, Failure};
use anyhow::anyhow;
use broker::Entry;
use domain::authority::{CapabilityStatus, Reviewed};
use domain::event::{ComponentAdmitted, NOTHING_OPENED};
use domain::grant::{Grant, capability};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use store::{OpenError, admissions_at_rest};

/// Returns a warning for each capability that the component's imports need and that no tool
/// declares: no grant opens them.
pub(super) fn undeclared(imports: &[Import], statuses: &[Reviewed]) -> Vec<String> {
    let missed = imports.iter().filter(|import| import.is_undeclared);
    let capabilities: BTreeSet<&str> = missed.filter_map(|import| import.opened_by).collect();
    let reported = capabilities.into_iter().map(|name| {
        let (interface, declared, use_of) = match name {
            BUCKETS => ("wasi:keyvalue", "<bucket>.read", "bucket"),
            _ => ("wasi:http", capability::NET_HTTP, "request"),
        };
        let is_granted = statuses
            .iter()
            .any(|it| it.capability == name && it.status == CapabilityStatus::Unused);
        let granted = if is_granted {
            ", also what is granted now"
        } else {
            ", whatever is granted"
        };
        format!(
            "it imports {interface}, and none of its tools declares {declared}: every {use_of} is \
             refused{granted}; its author has to name {declared} in the `capabilities` of the tool"
        )
    });
    reported.collect()
}

/// Returns the errors of a configuration that are about a component or a secret that it is granted:
/// the host does not start with them.
pub(super) fn faults(findings: &[Finding], component: &str, grant: &Grant) -> Vec<String> {
    let own = format!("components.{component}.");
    let secrets = grant.secrets.iter();
    let secrets: BTreeSet<String> = secrets
        .map(|grant| format!("secrets.{}", grant.secret))
        .collect();
    let is_about = |key: &str| key.starts_with(&own) || secrets.contains(key);
    let errors = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error && is_about(&finding.key));
    errors.map(Finding::without_severity).collect()
}

/// Returns the warnings about the buckets and folders of a component, each as a whole: what would
/// stay behind, what users share, and what was moved.
pub(super) fn about_content(findings: &[Finding], component: &str) -> Vec<String> {
    let keys = ["keyValue", "directories"].map(|key| format!("components.{component}.{key}"));
    let is_about = |key: &str| {
        let rest = keys.iter().find_map(|it| key.strip_prefix(it.as_str()));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('[') && rest.ends_with(']'))
    };
    let reported = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Warning && is_about(&finding.key));
    reported.map(|finding| finding.message.clone()).collect()
}

/// The numbers of what is wrong with the components that were checked.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    faults: usize,
    refused: usize,
    warnings: usize,
}

impl Tally {
    /// Counts what is wrong with one component.
    pub(super) fn count(&mut self, statuses: &[Reviewed], warnings: &[String], faults: &[String]) {
        self.faults += faults.len();
        self.add(statuses, warnings.len());
    }

    fn add(&mut self, statuses: &[Reviewed], warnings: usize) {
        let statuses = statuses.iter();
        self.refused += statuses.clone().filter(|it| is_missing(it)).count();
        let unused = statuses.filter(|it| it.status == CapabilityStatus::Unused);
        self.warnings += unused.count() + warnings;
    }

    /// Returns the failure of the command; none where nothing is wrong.
    pub(super) fn failure(&self) -> Option<Failure> {
        let Self {
            faults,
            refused,
            warnings,
        } = *self;
        let exit = match (faults, refused, warnings) {
            (0, 0, 0) => return None,
            (0, 0, _) => Exit::Failed,
            (0, _, _) => Exit::Refused,
            (_, _, _) => Exit::Usage,
        };
        let counted = [
            (faults, "error", "errors"),
            (refused, "refused capability", "refused capabilities"),
            (warnings, "warning", "warnings"),
        ];
        let reported = counted.into_iter().filter(|(count, ..)| *count > 0);
        let reported = reported.map(|(count, one, many)| match count {
            1 => format!("1 {one}"),
            count => format!("{count} {many}"),
        });
        let what = reported.collect::<Vec<_>>().join(" and ");
        Some(Failure::new(exit, anyhow!("the check found {what}")))
    }
}

/// The components as they were admitted last, by a host that runs or one that is stopped.
#[derive(Debug, Default)]
pub(super) struct Admissions {
    is_running: bool,
    last: Vec<Admission>,
}

/// The last admission of one component.
#[derive(Debug)]
struct Admission {
    component: String,
    code: String,
    /// Other code that was admitted before, if no digest in the configuration said that the later
    /// code was meant.
    replaces: Option<String>,
}

impl Admissions {
    /// Asks the running host, or reads the data folder where none runs. Nothing is known of a host
    /// that does not let this be read; then a note says why.
    pub(super) async fn read(
        loaded: &Loaded,
        components: Vec<String>,
    ) -> Result<(Self, Option<String>), Failure> {
        if let Some(served) = served(loaded).await {
            return Ok((Self::of_running(&served), None));
        }
        let dir = loaded.data_dir();
        let read = move || admissions_at_rest(&dir, &components);
        match tokio::task::spawn_blocking(read).await? {
            Ok(last) => Ok((Self::of_stopped(&last), None)),
            Err(OpenError::Locked { .. }) => Ok((Self::default(), None)),
            Err(error) => {
                let note = format!("note: it is not known which code was admitted before: {error}");
                Ok((Self::default(), Some(note)))
            }
        }
    }

    /// Takes what a running host says of the components that it serves.
    pub(super) fn of_running(served: &Value) -> Self {
        let last = list(served, "/components").iter().map(|it| Admission {
            component: text(it, "/name").to_owned(),
            code: text(it, "/digest").to_owned(),
            replaces: it
                .get("replaces")
                .and_then(Value::as_str)
                .map(str::to_owned),
        });
        Self {
            is_running: true,
            last: last.collect(),
        }
    }

    /// Takes what is on record of a host that is stopped.
    pub(super) fn of_stopped(admitted: &[ComponentAdmitted]) -> Self {
        let last = admitted.iter().map(|it| Admission {
            component: it.component.clone(),
            code: it.code.reference(),
            replaces: it.replaces.map(|code| code.reference()),
        });
        Self {
            is_running: false,
            last: last.collect(),
        }
    }
}

/// The components that a running host serves; none while there is no such host.
async fn served(loaded: &Loaded) -> Option<Value> {
    Client::new(loaded).ok()?.get("/api/components").await.ok()
}

/// The pinning of a component: whether its code is pinned, and which other code has or had its
/// grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pin {
    pub(super) is_pinned: bool,
    other: Option<OtherCode>,
}

/// Other code than is there now, under the name of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
enum OtherCode {
    /// A running host serves it.
    Served(String),
    /// A host that is stopped served it last.
    ServedLast(String),
    /// The code that is there now was admitted in its place, and nobody has pinned that since.
    Before(String),
}

impl Pin {
    pub(super) fn of(entry: &Entry, admissions: &Admissions) -> Self {
        let own = entry.component.digest().reference();
        Self::among(&entry.name, &own, entry.is_pinned, admissions)
    }

    pub(super) fn among(name: &str, own: &str, is_pinned: bool, admissions: &Admissions) -> Self {
        let mut last = admissions.last.iter();
        let other = last.find(|it| it.component == name).and_then(|last| {
            if last.code != own {
                let code = last.code.clone();
                return Some(if admissions.is_running {
                    OtherCode::Served(code)
                } else {
                    OtherCode::ServedLast(code)
                });
            }
            // A host of another version may describe the same code otherwise.
            let before = last.replaces.clone().filter(|before| before != own);
            before.filter(|_| !is_pinned).map(OtherCode::Before)
        });
        Self { is_pinned, other }
    }

    /// Returns the other code.
    pub(super) fn replaces(&self) -> Option<&str> {
        self.other.as_ref().map(|other| match other {
            OtherCode::Served(code) | OtherCode::ServedLast(code) | OtherCode::Before(code) => {
                code.as_str()
            }
        })
    }

    /// Returns the lines for people. `taken_by` says what gives the grant to the code that is there
    /// now, while a host runs.
    pub(super) fn lines(&self, digest: &str, is_toml: bool, taken_by: &str) -> Vec<String> {
        let line = pin_line(digest, is_toml);
        let changed = self.other.as_ref().map(|other| match other {
            OtherCode::Served(code) => format!(
                "  changed  the running host gives this grant to {code}; {taken_by} gives it to \
                     the code that is there now"
            ),
            OtherCode::ServedLast(code) => format!(
                "  changed  the last start gave this grant to {code}; the next one gives it to \
                     the code that is there now"
            ),
            OtherCode::Before(code) => format!(
                "  changed  this grant was given to {code} before; the code that is there now \
                     was admitted in its place"
            ),
        });
        let unpinned = (!self.is_pinned).then(|| {
            format!("  unpinned whatever is in its file gets the grant; pin it with {line}")
        });
        changed.into_iter().chain(unpinned).collect()
    }
}

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
    use super::{BUCKETS, Import, Refusals, Tally, faults, undeclared};
    use crate::config::{Finding, Severity};
    use crate::failure::Exit;
    use domain::authority::{CapabilityStatus, Reviewed};
    use domain::grant::Grant;
    use serde_json::json;

    fn reviewed(capability: &str, status: CapabilityStatus) -> Reviewed {
        Reviewed {
            capability: capability.to_owned(),
            status,
            tools: Vec::new(),
        }
    }

    #[test]
    fn imports_that_no_tool_declares_are_told_whatever_is_granted() {
        let import = |interface: &str, opened_by: &'static str| Import {
            interface: interface.to_owned(),
            opened_by: Some(opened_by),
            is_undeclared: true,
        };
        let imports = [
            import("wasi:http/outgoing-handler@0.2.6", "net.http"),
            import("wasi:keyvalue/store", BUCKETS),
            import("wasi:keyvalue/batch", BUCKETS),
        ];
        let reported = undeclared(&imports, &[reviewed("net.http", CapabilityStatus::Unused)]);
        assert!(
            reported.len() == 2
                && reported[0]
                    .contains("wasi:keyvalue, and none of its tools declares <bucket>.read")
                && reported[1].contains("wasi:http, and none of its tools declares net.http")
                && reported[1].contains("also what is granted now"),
            "{reported:?}"
        );
    }

    #[test]
    fn refusals_and_warnings_fail_the_check_with_codes_of_their_own() {
        let refused = [reviewed("net.http", CapabilityStatus::Refused)];
        let unused = [reviewed("env.read", CapabilityStatus::Unused)];
        let agents = [reviewed("agents", CapabilityStatus::Refused)];
        for (statuses, warnings, exit, message) in [
            (&refused[..], 0, Exit::Refused, "1 refused capability"),
            (
                &refused,
                2,
                Exit::Refused,
                "1 refused capability and 2 warnings",
            ),
            (&unused, 0, Exit::Failed, "1 warning"),
        ] {
            let mut tally = Tally::default();
            tally.add(statuses, warnings);
            let failure = tally.failure().unwrap();
            assert_eq!(failure.exit, exit);
            assert!(failure.error.to_string().ends_with(message), "{failure:?}");
        }
        let mut tally = Tally::default();
        tally.add(&agents, 0);
        assert!(tally.failure().is_none());
    }

    #[test]
    fn errors_of_the_configuration_about_a_component_fail_its_check_as_the_host_would() {
        let finding = |severity, key: &str| Finding {
            severity,
            key: key.to_owned(),
            message: "wrong".to_owned(),
        };
        let findings = [
            finding(Severity::Error, "components.c.network[0].privateAddresses"),
            finding(Severity::Warning, "components.c.directories[0]"),
            finding(Severity::Error, "components.c2.path"),
            finding(Severity::Error, "agents[0].component"),
            finding(Severity::Error, "secrets.key"),
            finding(Severity::Error, "secrets.key2"),
        ];
        let reported = faults(&findings, "c", &Grant::default());
        assert_eq!(
            reported,
            ["components.c.network[0].privateAddresses: wrong"]
        );
        let granted = json!({ "secrets": [
            { "secret": "key", "host": "api.example.com", "slot": { "header": "authorization" } },
        ] });
        let granted: Grant = serde_json::from_value(granted).unwrap();
        assert_eq!(faults(&findings, "c", &granted).len(), 2);
        let tally = Tally {
            faults: reported.len(),
            refused: 1,
            warnings: 0,
        };
        let failure = tally.failure().unwrap();
        assert_eq!(failure.exit, Exit::Usage);
        let reported = failure.error.to_string();
        assert!(
            reported.ends_with("1 error and 1 refused capability"),
            "{reported}"
        );
    }

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
