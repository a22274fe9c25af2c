//! The test of an agent: conversations on a host of its own, whose steps are then repeated and
//! compared.
//!
//! The broker is that of `serve`, over an empty store in a temporary folder. The model has a rule
//! file, stand-ins answer in place of tools, and the clock moves only for timers.

use super::call::{Kit, stopped};
use super::finding::{Finding, Run as Ran, Severity, count};
use super::tools::Tested;
use super::trial::{BEGIN, Course, STEPS_MAX, Script, TrialHost, entry};
use crate::failure::Failure;
use anyhow::{Context, anyhow};
use broker::Catalogue;
use broker::replay::{ReplayVerdict, replay, replay_seeded};
use domain::digest::Digest;
use domain::event::{RunStepped, StepFailed, StepFault};
use domain::operation::Performer;
use domain::run::Run;
use domain::run::recover::would_be_sent;
use domain::step::{Decision, OperationOutcome, Work};
use domain::tool::{EffectClass, ToolDefinition};
use domain::turn::TurnEnd;
use runtime::{AgentDescription, Component, Outcome};
use serde_json::{Value, json};
use std::time::Duration;
use tempfile::TempDir;

/// The tool that every agent under test may use.
const TOOL: &str = "sample_tool";

/// Plays all scripts.
///
/// # Errors
/// This machine could not do its part.
pub(crate) async fn test(kit: &Kit, agent: &AgentDescription) -> Result<Tested, Failure> {
    let mut tested = Tested::default();
    for script in Script::ALL {
        let conversation = play(kit, agent, script).await?;
        let findings = findings(&conversation, kit, agent, script).await?;
        conversation.host.broker.shutdown(Duration::ZERO).await;
        let course = &conversation.course;
        let steps = course.stepped.len();
        let plural = if steps == 1 { "" } else { "s" };
        let ended = format!("{} after {steps} step{plural}", course.end());
        let ran = Ran::new(script.label(), ended, Some(&course.usage()));
        tested.runs.push(ran);
        let is_over = count(&findings, Severity::Error) > 0;
        tested.add(findings);
        // The other scripts would tell the same again, and take as long.
        if is_over {
            break;
        }
    }
    Ok(tested)
}

/// A conversation that was played, and its host, which still runs.
struct Played {
    host: TrialHost,
    course: Course,
    _folder: TempDir,
}

/// Plays one script to its end.
async fn play(kit: &Kit, agent: &AgentDescription, script: Script) -> Result<Played, Failure> {
    let folder = tempfile::tempdir().context("cannot make a folder for a store")?;
    let data = folder.path().join("data");
    let tools = tools(agent);
    let mut host = TrialHost::start(kit, &tools, script, &data).await?;
    let session = host.begin(agent).await?;
    let mut course = host
        .drive(session, |run| script == Script::Unknown && is_sent(run))
        .await?;
    if script == Script::Unknown && course.ended.is_none() {
        let backup = folder.path().join("backup");
        let store = host.broker.store();
        store.backup(&backup).await?;
        host.broker.shutdown(Duration::ZERO).await;
        let restored = folder.path().join("restored");
        store::restore(&backup, &restored)?;
        host = TrialHost::start(kit, &tools, Script::Plain, &restored).await?;
        course = host.drive(session, |_| false).await?;
    }
    Ok(Played {
        host,
        course,
        _folder: folder,
    })
}

/// Returns whether a run has work that may have been sent.
fn is_sent(run: &Run) -> bool {
    run.open.values().any(|open| would_be_sent(open, BEGIN))
}

/// Returns stand-ins for the tools that an agent wants, and one more. The host's own tools are
/// there without.
fn tools(agent: &AgentDescription) -> Vec<ToolDefinition> {
    let mut names: Vec<&str> = vec![TOOL];
    for want in &agent.wants {
        if !names.contains(&want.as_str()) {
            names.push(want);
        }
    }
    let tools = names.into_iter().map(|name| ToolDefinition {
        name: name.to_owned(),
        description: "A stand-in for a tool.".to_owned(),
        arguments: json!({ "type": "object" }),
        results: None,
        capabilities: Vec::new(),
        effect: EffectClass::Idempotent,
        destructive: false,
        time_limit_ms: None,
    });
    tools
        .filter(|tool| {
            let tools = entry("tools", Component::stand_in(vec![tool.clone()], None));
            Catalogue::new(Vec::new(), vec![tools]).is_ok()
        })
        .collect()
}

/// Returns the findings on a conversation: on each step, on the turn's end, and on steps that are
/// others the second time.
async fn findings(
    played: &Played,
    kit: &Kit,
    agent: &AgentDescription,
    script: Script,
) -> Result<Vec<Finding>, Failure> {
    let course = &played.course;
    let place = |step: u32| format!("step {} of {}", step + 1, script.label());
    let mut findings = repeated(played, kit, &place).await?;
    for stepped in &course.stepped {
        let format = stepped.memo.as_ref().map(|memo| memo.format);
        if let Some(format) = format.filter(|format| !agent.memo_formats.contains(format)) {
            findings.push(Finding::warning(
                place(stepped.step),
                format!("it writes memos of format {format}, which `memo-formats` does not list"),
                "list the format: a newer version takes over a turn only if it lists the memo's",
            ));
        }
        for (key, fault) in not_started(stepped) {
            let what = format!("a host does not start `{key}`: {fault}");
            let finding = Finding::error(place(stepped.step), what, "mend that operation");
            findings.push(finding);
        }
    }
    let last = course.stepped.last();
    let step = last.map_or(0, |stepped| stepped.step);
    if let Some(failed) = course.not_taken() {
        let stopped = stopped(&outcome(failed), &kit.limits, &kit.stderr.take())?;
        let finding = Finding::error(place(failed.step), stopped.what, stopped.fix);
        findings.push(finding.with_stderr(&stopped.stderr));
    } else if let Some(Decision::Fail { reason }) = last.map(|stepped| &stepped.decision) {
        if script == Script::Plain {
            findings.push(Finding::note(
                place(step),
                format!("it ends the turn as failed: {reason}"),
                "nothing is to be done if it needs another beginning than `Hello.`",
            ));
        }
    } else if let Some(ended) = course.ended.as_ref().filter(|it| it.end == TurnEnd::Failed) {
        let reason = ended.reason.as_deref().or(ended.code.as_deref());
        findings.push(Finding::warning(
            place(step),
            format!(
                "a host ends its turn: {}",
                reason.unwrap_or("no reason is stored")
            ),
            "end the turn before, with a reply",
        ));
    }
    if course.is_long() && course.ended.is_none() {
        findings.push(Finding::note(
            place(step),
            format!("it goes on after {STEPS_MAX} steps"),
            "nothing is to be done if it leads long sessions",
        ));
    }
    Ok(findings)
}

/// Runs every step again, with the same randomness and with another.
async fn repeated(
    played: &Played,
    kit: &Kit,
    place: &impl Fn(u32) -> String,
) -> Result<Vec<Finding>, Failure> {
    let Some(run) = played.course.run else {
        return Ok(Vec::new());
    };
    let TrialHost {
        broker, catalogue, ..
    } = &played.host;
    let store = broker.store();
    let again = replay(store, &kit.runtime, catalogue, run).await?;
    let mut findings = Vec::new();
    for (step, verdict) in again {
        if let Some(part) = difference(&verdict)? {
            findings.push(Finding::error(
                place(step),
                format!("the same input leads to another {part} the second time"),
                "let the decision follow from the view and the news alone: a host runs a step \
                 again after a crash",
            ));
        }
    }
    let seed = Digest::of(b"other randomness");
    let otherwise = replay_seeded(store, &kit.runtime, catalogue, run, Some(seed)).await?;
    for (step, verdict) in otherwise {
        let Some(part) = difference(&verdict)? else {
            continue;
        };
        // A step that is another each time is so for other reasons, too.
        if findings.iter().all(|finding| finding.place != place(step)) {
            findings.push(Finding::warning(
                place(step),
                format!("its {part} depends on randomness, such as the order of a hash map"),
                "sort, or use a `BTreeMap`: otherwise equal turns differ for no reason",
            ));
        }
    }
    Ok(findings)
}

/// Returns the first part in which a step differs from its repetition.
///
/// # Errors
/// This machine could not repeat it.
fn difference(verdict: &ReplayVerdict) -> Result<Option<&'static str>, Failure> {
    match verdict {
        ReplayVerdict::Same => Ok(None),
        ReplayVerdict::Diverged { what } => Ok(Some(match what.split(", ").next() {
            Some("effects") => "list of effects",
            Some("memo") => "memo",
            Some("what it read") => "list of questions to its view",
            Some("decision") => "decision",
            _ => "outcome",
        })),
        ReplayVerdict::Unavailable { what } => {
            Err(anyhow!("a step could not be repeated: {what}").into())
        }
    }
}

/// Returns the keys of questions and of models' calls that were refused, each with the reason.
fn not_started(stepped: &RunStepped) -> Vec<(&str, &str)> {
    let Decision::Wait(wait) = &stepped.decision else {
        return Vec::new();
    };
    let refused = stepped.started.iter().filter_map(|operation| {
        let mut requests = wait.start.iter();
        let request = requests.find(|request| request.key == operation.key)?;
        match (&request.work, &operation.performer) {
            (
                Work::Model(_) | Work::Client(_),
                Performer::Refused {
                    outcome: OperationOutcome::Failed { failure },
                    ..
                },
            ) => Some((operation.key.as_str(), failure.message.as_str())),
            _ => None,
        }
    });
    refused.collect()
}

/// Returns the outcome of a step that failed, as the runtime had it.
fn outcome(failed: &StepFailed) -> Outcome<Value> {
    let detail = failed.detail.clone();
    match failed.outcome {
        StepFault::Faulted => Outcome::Faulted {
            detail,
            began: true,
        },
        StepFault::Refused => Outcome::Refused { detail },
        StepFault::Trapped => Outcome::Trapped {
            message: detail,
            backtrace: String::new(),
        },
        StepFault::OutOfMemory => Outcome::OutOfMemory,
        StepFault::OutOfCpu => Outcome::OutOfCpu,
        StepFault::TimedOut => Outcome::TimedOut,
    }
}

#[cfg(test)]
mod tests {
    use super::{AgentDescription, ReplayVerdict, TOOL, difference, tools};

    #[test]
    fn whatever_differs_between_two_runs_of_a_step_is_named() {
        for (what, named) in [
            ("effects, memo", "list of effects"),
            ("memo", "memo"),
            ("what it read", "list of questions to its view"),
            ("decision", "decision"),
            ("anything else", "outcome"),
        ] {
            let what = what.to_owned();
            let found = difference(&ReplayVerdict::Diverged { what }).ok().flatten();
            assert_eq!(found, Some(named));
        }
        assert_eq!(difference(&ReplayVerdict::Same).ok(), Some(None));
        let what = "its component is gone".to_owned();
        assert!(difference(&ReplayVerdict::Unavailable { what }).is_err());
    }

    #[test]
    fn wanted_tools_have_stand_ins_except_for_those_of_the_host() {
        let agent = AgentDescription {
            id: "a".to_owned(),
            display_name: "A".to_owned(),
            summary: String::new(),
            session_types: Vec::new(),
            wants: ["read_file", "delegate", TOOL, "read_file"]
                .map(str::to_owned)
                .to_vec(),
            memo_formats: Vec::new(),
        };
        let names: Vec<String> = tools(&agent).into_iter().map(|tool| tool.name).collect();
        assert_eq!(names, [TOOL, "read_file"]);
    }
}
