//! Findings of a test of a plugin: what is wrong, where, and how to fix it, also of a component
//! that no host would load; the report of what was run; and the last lines that a guest wrote to
//! stderr, in most languages the reason of its trap.

use super::cases::shown;
use crate::answer::serialized;
use domain::operation::CallUsage;
use domain::shown::visible;
use runtime::{IMPORTS, LoadError, LogLine};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::error::Error;

/// The weight of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// A host refuses it, or a conversation fails by it.
    Error,
    /// It works, and hardly as it was meant.
    Warning,
    /// Something to know.
    Note,
}

impl Severity {
    fn counted(self, count: usize) -> String {
        let plural = if count == 1 { "" } else { "s" };
        format!("{count} {}{plural}", serialized(&self))
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    /// The part of the plugin.
    #[serde(rename = "where")]
    pub(crate) place: String,
    pub(crate) what: String,
    pub(crate) fix: String,
    /// The last lines that the guest wrote to stderr, when it trapped.
    pub(crate) stderr: Vec<String>,
}

impl Finding {
    pub(crate) fn error(
        place: impl Into<String>,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self::new(Severity::Error, place, what, fix)
    }

    pub(crate) fn warning(
        place: impl Into<String>,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self::new(Severity::Warning, place, what, fix)
    }

    pub(crate) fn note(
        place: impl Into<String>,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self::new(Severity::Note, place, what, fix)
    }

    pub(crate) fn new(
        severity: Severity,
        place: impl Into<String>,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            severity,
            place: place.into(),
            what: what.into(),
            fix: fix.into(),
            stderr: Vec::new(),
        }
    }

    /// Adds what the guest wrote to stderr.
    pub(crate) fn with_stderr(mut self, lines: &[String]) -> Self {
        self.stderr = lines.to_vec();
        self
    }

    /// Returns the line for people.
    pub(crate) fn line(&self) -> String {
        let Self {
            severity,
            place,
            what,
            fix,
            ..
        } = self;
        format!("{:<8} {place}: {what}; {fix}", serialized(severity))
    }

    /// Returns that line, and those of stderr below it.
    pub(crate) fn lines(&self) -> Vec<String> {
        let stderr = self.stderr.iter().map(|line| format!("  stderr   {line}"));
        std::iter::once(self.line()).chain(stderr).collect()
    }
}

/// Returns how many findings there are of each weight, in words.
pub(crate) fn summary(findings: &[Finding]) -> String {
    [Severity::Error, Severity::Warning, Severity::Note]
        .map(|severity| severity.counted(count(findings, severity)))
        .join(", ")
}

/// Returns the number of findings of a weight.
pub(crate) fn count(findings: &[Finding], severity: Severity) -> usize {
    findings
        .iter()
        .filter(|finding| finding.severity == severity)
        .count()
}

/// Lines of one call that are shown.
const LINES_MAX: usize = 8;
/// Characters of all these lines together.
const CHARS_MAX: usize = 1_024;

/// Returns the last lines of a call's stderr, but for those that `reported` has in it already.
pub(crate) fn tail(logs: &[LogLine], reported: &str) -> Vec<String> {
    let mut left = CHARS_MAX;
    let mut lines = Vec::new();
    for line in logs.iter().rev() {
        if lines.len() == LINES_MAX || left == 0 {
            break;
        }
        if line.context == "stderr" && !reported.contains(&line.message) {
            lines.push(visible(&line.message, left));
            left = left.saturating_sub(line.message.chars().count());
        }
    }
    lines.reverse();
    lines
}

/// One call or one scripted conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    label: String,
    ended: String,
    /// The text of its error; empty without one.
    why: String,
    usage: Option<CallUsage>,
}

impl Run {
    pub(crate) fn new(
        label: impl Into<String>,
        ended: impl Into<String>,
        usage: Option<&CallUsage>,
    ) -> Self {
        Self {
            label: label.into(),
            ended: ended.into(),
            why: String::new(),
            usage: usage.copied(),
        }
    }

    /// The same, with the text of its error.
    pub(crate) fn because(mut self, why: impl Into<String>) -> Self {
        self.why = why.into();
        self
    }

    /// Returns the line for people.
    pub(crate) fn line(&self) -> String {
        let usage = self.usage.as_ref().map(used);
        let usage = usage.map_or_else(String::new, |usage| format!(", {usage}"));
        let why = if self.why.is_empty() {
            String::new()
        } else {
            format!(" ({})", shown(&self.why))
        };
        format!("  ran      {}: {}{why}{usage}", self.label, self.ended)
    }

    /// Returns the document for programs.
    pub(crate) fn document(&self) -> Value {
        json!({
            "run": self.label, "ended": self.ended, "why": self.why,
            "wall_us": self.usage.map(|usage| usage.wall_us),
            "memory_bytes_peak": self.usage.map(|usage| usage.memory_bytes_peak),
        })
    }
}

/// Returns the time and the memory that a call used.
pub(crate) fn used(usage: &CallUsage) -> String {
    let ms = usage.wall_us.div_ceil(100);
    format!(
        "{}.{} ms, {}",
        ms / 10,
        ms % 10,
        mebibytes(usage.memory_bytes_peak)
    )
}

/// Returns bytes as people read them.
pub(crate) fn mebibytes(bytes: u64) -> String {
    let tenths = bytes.saturating_mul(10).div_ceil(1 << 20);
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}

/// The package of the interface with plugins.
const PACKAGE: &str = "agent-host:plugin/";
/// The place of everything that is about the file as a whole.
pub(crate) const COMPONENT: &str = "component";
/// The place of everything that is about `describe`.
pub(crate) const DESCRIBE: &str = "describe";
/// The fix of a component that was built against other interfaces.
const BUILD_AGAINST: &str =
    "build it against the WIT files of this host, which `agent-host new` writes into `wit/`";

/// Returns the present version of the interface with plugins, for which new ones are built.
pub(crate) fn wit_version() -> &'static str {
    wit_versions().next().unwrap_or_default()
}

/// The versions of the interface with plugins that this host has, the present one first. Some come
/// more than once.
fn wit_versions() -> impl Iterator<Item = &'static str> {
    let ours = IMPORTS.iter().filter(|(name, _)| name.starts_with(PACKAGE));
    ours.map(|(_, version)| *version)
}

/// Returns a version of the interface with plugins that is among these names and that this host
/// does not have.
fn other_version(names: &[String]) -> Option<&str> {
    let mut versions = names.iter().filter_map(|name| {
        let (_, version) = name.strip_prefix(PACKAGE)?.split_once('@')?;
        Some(version)
    });
    versions.find(|version| !wit_versions().any(|own| own == *version))
}

/// Returns the finding of a component that was not loaded.
pub(crate) fn refusal(refused: &LoadError) -> Finding {
    match refused {
        LoadError::UnknownImports { names } => match other_version(names) {
            Some(version) => of_other_version(version),
            None => Finding::error(
                "imports",
                format!("this host does not have {}", names.join(", ")),
                BUILD_AGAINST,
            ),
        },
        LoadError::NoWorld { exports } => match other_version(exports) {
            Some(version) => of_other_version(version),
            None => without_world(exports),
        },
        LoadError::TooLarge { size, max } => Finding::error(
            COMPONENT,
            format!("it has {size} bytes, and a host loads {max} at most"),
            "build it with opt-level `s` and strip it",
        ),
        LoadError::DescribeTrapped { message } => Finding::error(
            DESCRIBE,
            format!("it traps: {message}"),
            "describe from the code alone: nothing is granted then, no file, no variable, no time",
        ),
        LoadError::DescribeStopped { limit } => Finding::error(
            DESCRIBE,
            format!("it {limit}"),
            "describe from constants, and begin other work in the first call or step",
        ),
        LoadError::DescribeRefused { detail } => {
            Finding::error(DESCRIBE, detail.clone(), "change what it returns there")
        }
        _ => said(refused),
    }
}

fn of_other_version(version: &str) -> Finding {
    let own: BTreeSet<&str> = wit_versions().collect();
    let own = own.into_iter().collect::<Vec<_>>().join(" and ");
    Finding::error(
        COMPONENT,
        format!("it is built for WIT {version} of `agent-host:plugin`, and this host has {own}"),
        BUILD_AGAINST,
    )
}

fn without_world(exports: &[String]) -> Finding {
    let exported = if exports.is_empty() {
        "nothing".to_owned()
    } else {
        exports.join(", ")
    };
    Finding::error(
        COMPONENT,
        format!("it exports {exported}, and no plugin that a host runs"),
        format!(
            "build it for the world `agent-plugin`, `tool-plugin`, `trigger-plugin` or \
             `connector-plugin` of WIT {}",
            wit_version()
        ),
    )
}

/// The message of an error that has its fix behind the last colon.
fn said(refused: &LoadError) -> Finding {
    let message = refused.to_string();
    let causes = std::iter::successors(refused.source(), |cause| (*cause).source());
    let causes: Vec<String> = causes.map(ToString::to_string).collect();
    match (causes.is_empty(), message.split_once(": ")) {
        (true, Some((what, fix))) => Finding::error(COMPONENT, what, fix),
        (false, Some((what, fix))) => {
            Finding::error(COMPONENT, format!("{what} ({})", causes.join(": ")), fix)
        }
        (_, None) => Finding::error(
            COMPONENT,
            [vec![message], causes].concat().join(": "),
            "build it with a current toolchain for `wasm32-wasip2`",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{CHARS_MAX, Finding, LINES_MAX, Run, mebibytes, refusal, summary, tail};
    use domain::operation::CallUsage;
    use runtime::{Level, LoadError, LogLine};

    #[test]
    fn a_finding_is_a_line_with_what_where_and_the_fix() {
        let finding = Finding::error("tool `t`", "it traps", "return `failed` instead");
        let line = "error    tool `t`: it traps; return `failed` instead";
        assert_eq!(finding.lines(), [line]);
        let finding = finding.with_stderr(&["TypeError: text".to_owned()]);
        assert_eq!(finding.lines(), [line, "  stderr   TypeError: text"]);
        let document = serde_json::json!(finding);
        assert_eq!(document["stderr"][0], "TypeError: text");
        assert_eq!(document["where"], "tool `t`");
        assert_eq!(
            summary(&[finding, Finding::note("a", "b", "c")]),
            "1 error, 0 warnings, 1 note"
        );
    }

    fn line(context: &str, message: &str) -> LogLine {
        LogLine {
            level: Level::Warn,
            context: context.to_owned(),
            message: message.to_owned(),
        }
    }

    #[test]
    fn the_last_lines_of_stderr_are_told_in_their_order_and_none_twice() {
        let logs = [
            line("stderr", "Traceback:"),
            line("stdout", "not this"),
            line("stderr", "TypeError: \u{200b}no"),
            line("stderr", "abort"),
        ];
        let reported = tail(&logs, "it traps: abort (unreachable)");
        assert_eq!(reported, ["Traceback:", "TypeError: \\u{200b}no"]);
    }

    #[test]
    fn a_flood_on_stderr_is_told_by_its_end() {
        let numbered: Vec<LogLine> = (0..100)
            .map(|number| line("stderr", &format!("line {number}")))
            .collect();
        let reported = tail(&numbered, "");
        assert_eq!(reported.len(), LINES_MAX);
        assert_eq!(reported.last().map(String::as_str), Some("line 99"));
        let long = vec![line("stderr", &"x".repeat(CHARS_MAX - 1)); 3];
        let chars: Vec<usize> = tail(&long, "")
            .iter()
            .map(|line| line.chars().count())
            .collect();
        // One character of the line before, and the mark that there is more.
        assert_eq!(chars, [2, CHARS_MAX - 1]);
    }

    #[test]
    fn a_run_is_a_line_with_its_time_and_its_memory() {
        let usage = CallUsage {
            wall_us: 1_234,
            memory_bytes_peak: 1_200_000,
            ..CallUsage::default()
        };
        assert_eq!(
            Run::new("t", "done", Some(&usage)).line(),
            "  ran      t: done, 1.3 ms, 1.2 MiB"
        );
        assert_eq!(Run::new("t", "done", None).line(), "  ran      t: done");
        assert_eq!(
            Run::new("t", "failed", None).because("no host").line(),
            "  ran      t: failed (\"no host\")"
        );
        assert_eq!(mebibytes(0), "0.0 MiB");
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    /// A component of a later version is told which version there is, whichever side shows it.
    #[test]
    fn a_component_of_another_version_is_told_which_this_host_has() {
        let imports = LoadError::UnknownImports {
            names: names(&["wasi:io/poll@0.2.0", "agent-host:plugin/turn@0.3.0"]),
        };
        let exports = LoadError::NoWorld {
            exports: names(&["agent-host:plugin/agent@0.3.0"]),
        };
        for refused in [imports, exports] {
            let line = refusal(&refused).line();
            assert!(
                line.contains("built for WIT 0.3.0")
                    && line.contains("this host has 0.1.0 and 0.2.0"),
                "{line}"
            );
        }
    }

    #[test]
    fn what_is_missing_is_named_and_the_fix_stands_apart() {
        let imports = LoadError::UnknownImports {
            names: names(&["acme:teleport/beam@1.0.0"]),
        };
        let line = refusal(&imports).line();
        assert!(
            line.starts_with("error    imports: this host does not have acme:teleport/beam@1.0.0;"),
            "{line}"
        );
        let exports = LoadError::NoWorld {
            exports: Vec::new(),
        };
        assert!(refusal(&exports).line().contains("it exports nothing"));
        let module = refusal(&LoadError::NotAComponent {
            found: "a core module",
        });
        assert_eq!(
            (module.what.as_str(), module.fix.as_str()),
            (
                "this is not a WebAssembly component but a core module",
                "build it with `cargo build --target wasm32-wasip2`"
            )
        );
    }
}
