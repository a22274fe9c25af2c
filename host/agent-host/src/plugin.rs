//! `plugin test`: the test of a plugin in any language, without a host that is running; and `plugin
//! stamp`, which writes a manifest into a component, in `plugin/stamp.rs`.
//!
//! The component is loaded as a host loads it, and called with nothing granted but a temporary
//! folder and buckets that last as long as the call. Nothing leaves this machine.
//!
//! - findings, the report of what was run, and what a guest that trapped wrote to stderr:
//!   `plugin/finding.rs`
//! - capabilities against imports: and of the manifest: `plugin/declared.rs`
//! - sample calls of a file, and what they expect: `plugin/cases.rs`
//! - calls of tools: `plugin/tools.rs`, `plugin/call.rs`
//! - conversations with agents, on a host of their own: `plugin/conversation.rs`
//! - trigger events for triggers, and connectors whose service is out of reach: `plugin/edge.rs`

mod call;
mod cases;
mod conversation;
mod declared;
mod edge;
mod finding;

mod stamp;
mod tools;
mod trial;

use crate::answer::Answer;
use crate::cli::{Plugin, Test};
use crate::command::{Place, wanted};
use crate::config::{ComponentConfig, LimitsConfig};
use crate::failure::{Exit, Failure};
use crate::guests;
use crate::log::{GuestStderr, keep_guest_stderr};
use crate::serve::{Reach, start_runtime};
use anyhow::{Context, anyhow};
use broker::{Catalogue, Entry};
use call::Kit;
use domain::grant::{Grant, GuestLimits};
use domain::operation::CallUsage;
use finding::{Finding, Severity, count, mebibytes, summary, used};
use runtime::{Component, Described, LoadError, Runtime};
use serde_json::{Value, json};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use tools::Tested;

/// The part of a limit, in percent, from which on a component is told that it comes close.
const CLOSE_PERCENT: u64 = 80;

/// Runs the command.
pub(crate) async fn run(what: Plugin) -> Result<Answer, Failure> {
    match what {
        Plugin::Test(what) => test(&what, keep_guest_stderr()).await,
        Plugin::Stamp(what) => stamp::run(&what),
    }
}

async fn test(test: &Test, stderr: GuestStderr) -> Result<Answer, Failure> {
    let scratch = scratch().context("cannot make a folder for temporary files")?;
    let report = Box::pin(tested(test, scratch.path(), stderr)).await?;
    let answer = Answer::new(report.document(), report.lines());
    Ok(answer.failing(report.verdict(test.strict)))
}

/// Makes a folder for temporary files, its owner's alone. It holds the key of the compile cache, so
/// it is never one that somebody else has put there.
fn scratch() -> std::io::Result<TempDir> {
    tempfile::Builder::new()
        .prefix("agent-host-plugin-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir()
}

/// Everything that a test comes to.
#[derive(Debug)]
struct Report {
    file: String,
    /// None when it was not loaded.
    loaded: Option<Loaded>,
    tested: Tested,
}

/// The facts about a component that was loaded.
#[derive(Debug)]
struct Loaded {
    component: Arc<Component>,
    describe: CallUsage,
}

async fn tested(test: &Test, scratch: &Path, stderr: GuestStderr) -> Result<Report, Failure> {
    let limits = LimitsConfig::default();
    // Nothing is sent. With a way out, what is refused is recorded with its host.
    let reach = Reach::without_secrets().unwrap_or_default();
    let runtime = start_runtime(&limits, scratch, reach).await?;
    let mut report = Report {
        file: test.file.display().to_string(),
        loaded: None,
        tested: Tested::default(),
    };
    let component = match guests::load_file(&runtime, &test.file, None).await {
        Ok(component) => component,
        Err(failure) => match failure.error.downcast_ref::<LoadError>() {
            Some(LoadError::Busy | LoadError::Faulted { .. }) | None => {
                let error = failure
                    .error
                    .context(format!("cannot load `{}`", report.file));
                return Err(Failure { error, ..failure });
            }
            Some(refused) => {
                report.tested.findings.push(finding::refusal(refused));
                return Ok(report);
            }
        },
    };
    let (describe, findings) = described(&runtime, &component).await?;
    report.tested.findings.extend(findings);
    report.loaded = Some(Loaded {
        component: component.clone(),
        describe,
    });
    let findings = &mut report.tested.findings;
    findings.extend(size(component.size_bytes(), runtime.component_bytes_max()));
    findings.extend(declared::manifest_findings(
        component.manifest(),
        component.describes(),
    ));
    findings.extend(declared::findings(
        component.describes(),
        component.imports(),
    ));
    let entry = Entry {
        name: "plugin".to_owned(),
        component: component.clone(),
        grant: Grant::default(),
        is_pinned: false,
    };
    let catalogue = match Catalogue::new(Vec::new(), vec![entry]) {
        Ok(catalogue) => catalogue,
        Err(misfit) => {
            let fix = "change it in `describe`: no host starts with it";
            findings.push(Finding::error(finding::DESCRIBE, misfit.to_string(), fix));
            return Ok(report);
        }
    };
    let kit = Kit {
        runtime,
        catalogue,
        component,
        limits: GuestLimits::default(),
        stderr,
    };
    let played = played(&kit, test.cases.as_deref()).await?;
    report.tested.runs = played.runs;
    report.tested.findings.extend(played.findings);
    Ok(report)
}

/// Runs what a component does, beside describing itself.
async fn played(kit: &Kit, file: Option<&Path>) -> Result<Tested, Failure> {
    match (kit.component.describes(), file) {
        (Described::Tools(tools), file) => {
            let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
            let cases = file.map(|file| cases::read(file, &names)).transpose()?;
            tools::test(kit, tools, &cases.unwrap_or_default()).await
        }
        (Described::Agent(agent), None) => conversation::test(kit, agent).await,
        (Described::Trigger(trigger), None) => edge::test_trigger(kit, trigger).await,
        (Described::Connector(connector), None) => edge::test(kit, connector).await,
        (described, Some(_)) => {
            let kind = described.kind();
            let error = anyhow!("the component is {kind}, and --cases has calls of tools");
            let advice = "leave --cases out: agents, triggers and connectors are tried with \
                          conversations, trigger events and messages of the host's own";
            Err(Failure::new(Exit::Usage, error).advise(advice))
        }
    }
}

/// Asks a component again what it is. The answer has to be the same.
async fn described(
    runtime: &Runtime,
    component: &Component,
) -> Result<(CallUsage, Vec<Finding>), Failure> {
    let fix = "describe from the code alone, in an order that is always the same";
    let (again, usage) = match runtime.describe_again(component).await {
        Ok(answer) => answer,
        Err(LoadError::Busy) => return Err(anyhow!("the machine is too busy").into()),
        Err(other) => {
            let what = format!("asked a second time, {other}");
            let findings = vec![Finding::error(finding::DESCRIBE, what, fix)];
            return Ok((CallUsage::default(), findings));
        }
    };
    let mut findings = Vec::new();
    if again != *component.describes() {
        let what = "asked twice, it gives two different answers";
        findings.push(Finding::error(finding::DESCRIBE, what, fix));
    }
    findings.extend(memory(&usage, &runtime::Config::default().describe));
    Ok((usage, findings))
}

/// Returns the finding of a component that is almost too large.
fn size(bytes: u64, bytes_max: usize) -> Option<Finding> {
    let most = bytes_max as u64;
    is_close(bytes, most).then(|| {
        Finding::warning(
            finding::COMPONENT,
            format!("it has {bytes} bytes, and a host loads {most} at most"),
            "build it with opt-level `s` and strip it",
        )
    })
}

/// Returns the finding of a `describe` that needs almost all memory that it may have.
fn memory(usage: &CallUsage, limits: &GuestLimits) -> Option<Finding> {
    is_close(usage.memory_bytes_peak, limits.memory_bytes_max).then(|| {
        Finding::warning(
            finding::DESCRIBE,
            format!(
                "it uses {} of the {} that it may have",
                mebibytes(usage.memory_bytes_peak),
                mebibytes(limits.memory_bytes_max)
            ),
            "load data in calls and not at the start, or use a smaller interpreter",
        )
    })
}

fn is_close(used: u64, most: u64) -> bool {
    used.saturating_mul(100) >= most.saturating_mul(CLOSE_PERCENT)
}

impl Report {
    fn lines(&self) -> Vec<String> {
        let mut lines = match &self.loaded {
            None => vec![format!("{} was not loaded", self.file)],
            Some(loaded) => loaded.lines(&self.file),
        };
        lines.extend(self.tested.runs.iter().map(finding::Run::line));
        let mut findings: Vec<&Finding> = self.tested.findings.iter().collect();
        findings.sort_by_key(|finding| finding.severity);
        lines.extend(findings.into_iter().flat_map(Finding::lines));
        lines.push(summary(&self.tested.findings));
        lines
    }

    fn document(&self) -> Value {
        let runs = self.tested.runs.iter().map(finding::Run::document);
        let mut document = json!({
            "file": self.file,
            "wit": self.wit_version(),
            "errors": count(&self.tested.findings, Severity::Error),
            "warnings": count(&self.tested.findings, Severity::Warning),
            "findings": self.tested.findings,
            "runs": runs.collect::<Vec<Value>>(),
        });
        if let (Some(loaded), Some(fields)) = (&self.loaded, document.as_object_mut()) {
            fields.extend(loaded.fields());
        }
        document
    }

    /// Returns the version of the interface that the component is built for; that of this host
    /// when it was not loaded.
    fn wit_version(&self) -> &'static str {
        let loaded = self.loaded.as_ref();
        loaded.map_or_else(finding::wit_version, |loaded| {
            loaded.component.wit_version()
        })
    }

    /// Returns the failure when something has to be mended.
    fn verdict(&self, is_strict: bool) -> Option<Failure> {
        let errors = count(&self.tested.findings, Severity::Error);
        let warnings = count(&self.tested.findings, Severity::Warning);
        (errors > 0 || is_strict && warnings > 0).then(|| {
            let found = summary(&self.tested.findings);
            let error = anyhow!("`{}` has to be mended: {found}", self.file);
            Failure::new(Exit::Failed, error)
        })
    }
}

impl Loaded {
    fn lines(&self, file: &str) -> Vec<String> {
        let component = &self.component;
        let what = match component.describes() {
            Described::Agent(agent) => format!("the agent `{}`", agent.id),
            Described::Tools(tools) => {
                let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
                format!("tools: {}", names.join(", "))
            }
            Described::Trigger(trigger) => format!("the trigger `{}`", trigger.id),
            Described::Connector(connector) => format!("the connector `{}`", connector.id),
        };
        let describe = used(&self.describe);
        let mut lines = vec![
            format!("{file} ({what})"),
            format!("  digest   {}", component.digest().reference()),
            format!(
                "  size     {} bytes, for WIT {}",
                component.size_bytes(),
                component.wit_version()
            ),
            format!("  describe {describe}"),
        ];
        lines.extend(wanted::describe(component));
        let open = declared::open_imports(component.imports()).into_iter();
        lines.extend(open.map(|import| format!("  import   {import}")));
        let wanted = wanted::lines(component, &ComponentConfig::default());
        let wanted = Place::of_file(Path::new(file))
            .describe(&wanted)
            .into_iter();
        lines.extend(wanted.map(|line| format!("  {line}")));
        lines
    }

    fn fields(&self) -> Vec<(String, Value)> {
        let component = &self.component;
        let fields = [
            ("digest", json!(component.digest().reference())),
            ("size_bytes", json!(component.size_bytes())),
            ("describes", json!(component.describes())),
            ("imports", json!(component.imports())),
            ("manifest", json!(component.manifest().and_then(Result::ok))),
            (
                "describe",
                json!({
                    "wall_us": self.describe.wall_us,
                    "memory_bytes_peak": self.describe.memory_bytes_peak,
                }),
            ),
        ];
        fields.map(|(key, value)| (key.to_owned(), value)).to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::{memory, scratch, size};
    use domain::grant::GuestLimits;
    use domain::operation::CallUsage;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn temporary_files_go_into_a_new_folder_that_is_the_users_alone() {
        let [one, other] = [scratch().unwrap(), scratch().unwrap()];
        assert_ne!(one.path(), other.path());
        let mode = one.path().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn what_comes_close_to_a_limit_is_told_before_it_meets_it() {
        assert!(size(79, 100).is_none());
        assert!(size(80, 100).is_some_and(|finding| finding.what.contains("80 bytes")));
        let limits = GuestLimits::default();
        let using = |memory_bytes_peak| CallUsage {
            memory_bytes_peak,
            ..CallUsage::default()
        };
        assert!(memory(&using(1 << 20), &limits).is_none());
        let reported = memory(&using(60 << 20), &limits).unwrap();
        assert!(
            reported.what.contains("60.0 MiB of the 64.0 MiB"),
            "{}",
            reported.what
        );
    }
}
