//! The test of an agent: scripted conversations, each step taken more than once and compared.
//!
//! What a conversation comes to, the rules of the host say: the same functions take in messages,
//! check a decision and apply it (`domain::run`).

use super::call::{Kit, stopped};
use super::finding::{Finding, Severity, count};
use super::report::Run as Ran;
use super::script::{Requests, Script};
use super::tools::Tested;
use super::view::Situation;
use crate::failure::Failure;
use anyhow::anyhow;
use domain::basis::{Basis, Documents};
use domain::definition::DefinitionId;
use domain::digest::{Digest, Salt};
use domain::event::{Event, InputAccepted, RunStarted, Source};
use domain::id::NotAnId;
use domain::message::{Draft, Role};
use domain::operation::{CallUsage, Settlement};
use domain::run::Run;
use domain::run::check::check;
use domain::run::decide::{Taken, decide};
use domain::run::intake::{Intake, intake};
use domain::run::settle::settlement;
use domain::session::CHAT;
use domain::step::{Decision, StepResult};
use domain::time::Timestamp;
use runtime::{AgentDescription, Outcome, Stepped};
use std::str::FromStr;
use std::sync::Arc;

/// Steps of one scripted conversation.
const STEPS_MAX: u32 = 12;
/// The time of every step.
const NOW: Timestamp = Timestamp(1_767_225_600_000);
/// An id of anything in a scripted conversation.
const ID: &str = "00000000-0000-4000-8000-000000000001";
/// The salt of a scripted conversation.
const SALT: Salt = Salt([0; 16]);

/// Plays all scripts.
///
/// # Errors
/// This machine could not do its part.
pub(crate) async fn test(kit: &Kit, agent: &AgentDescription) -> Result<Tested, Failure> {
    let mut tested = Tested::default();
    for script in Script::ALL {
        let mut conversation = ScriptedChat::new(kit, agent, script)?;
        let end = conversation.play().await?;
        let steps = conversation.run.step;
        let plural = if steps == 1 { "" } else { "s" };
        let ended = format!("{end} after {steps} step{plural}");
        let ran = Ran::new(script.label(), ended, Some(&conversation.usage));
        tested.runs.push(ran);
        let is_over = count(&conversation.findings, Severity::Error) > 0;
        tested.add(conversation.findings);
        // The other scripts would tell the same again, and take as long.
        if is_over {
            break;
        }
    }
    Ok(tested)
}

/// A conversation in the making.
struct ScriptedChat<'a> {
    kit: &'a Kit,
    agent: &'a AgentDescription,
    script: Script,
    situation: Situation,
    run: Run,
    /// Operations that have ended.
    ended: usize,
    usage: CallUsage,
    findings: Vec<Finding>,
}

/// A step that is to be taken.
struct Prepared {
    intake: Intake,
    basis: Basis,
}

impl<'a> ScriptedChat<'a> {
    fn new(kit: &'a Kit, agent: &'a AgentDescription, script: Script) -> Result<Self, Failure> {
        let situation = Situation::new(agent);
        let started = started(kit.component.digest(), &situation.session_type)?;
        Ok(Self {
            kit,
            agent,
            script,
            situation,
            run: Run::begin(started),
            ended: 0,
            usage: CallUsage::default(),
            findings: Vec::new(),
        })
    }

    /// Plays it to its end, and returns that in words.
    async fn play(&mut self) -> Result<&'static str, Failure> {
        let mut arrived = Vec::new();
        let mut inputs = vec![input(&self.situation.session_type)?];
        while self.run.step < STEPS_MAX {
            let prepared = self.prepare(arrived, &inputs);
            inputs = Vec::new();
            let Some(result) = self.step(&prepared).await? else {
                return Ok("a step that is not taken");
            };
            let end = ending(&result.decision);
            if let (Decision::Fail { reason }, Script::Plain) = (&result.decision, self.script) {
                let what = format!("it ends the turn as failed: {reason}");
                self.note(
                    what,
                    "nothing is to be done if it needs another beginning than `Hello.`",
                );
            }
            self.take(prepared, result).await?;
            if let Some(end) = end {
                return Ok(end);
            }
            arrived = self.settle();
            if arrived.is_empty() {
                return Ok("waiting for the user");
            }
        }
        self.note(
            format!("it goes on after {STEPS_MAX} steps"),
            "nothing is to be done if it leads long sessions",
        );
        Ok("still going on")
    }

    fn prepare(&self, arrived: Vec<Settlement>, inputs: &[InputAccepted]) -> Prepared {
        let intake = intake(&self.run, arrived, inputs, SALT);
        let seed = Basis::seed(self.run.started.run, self.run.step);
        let basis = basis(&self.run, &intake, seed);
        Prepared { intake, basis }
    }

    /// Takes a step twice with the same input, and once with other randomness. None when a host
    /// would not accept it; then a finding says why.
    async fn step(&mut self, prepared: &Prepared) -> Result<Option<StepResult>, Failure> {
        let first = self.once(prepared, &prepared.basis).await?;
        self.usage.wall_us += first.usage.wall_us;
        let peak = self
            .usage
            .memory_bytes_peak
            .max(first.usage.memory_bytes_peak);
        self.usage.memory_bytes_peak = peak;
        if !matches!(first.outcome, Outcome::Returned(_)) {
            return self.accepted(prepared, first);
        }
        let second = self.once(prepared, &prepared.basis).await?;
        if let Some(part) = difference(&first, &second) {
            self.findings.push(Finding::error(
                self.place(),
                format!("the same input leads to another {part} the second time"),
                "let the decision follow from the view and the news alone: a host runs a step \
                 again after a crash",
            ));
            return Ok(None);
        }
        let otherwise = Basis {
            seed: Digest::of(b"other randomness"),
            ..prepared.basis.clone()
        };
        let third = self.once(prepared, &otherwise).await?;
        if let Some(part) = difference(&first, &third) {
            self.findings.push(Finding::warning(
                self.place(),
                format!("its {part} depends on randomness, such as the order of a hash map"),
                "sort, or use a `BTreeMap`: otherwise equal turns differ for no reason",
            ));
        }
        self.accepted(prepared, first)
    }

    async fn once(&self, prepared: &Prepared, basis: &Basis) -> Result<Stepped, Failure> {
        let component = &self.kit.component;
        let admission = self.kit.runtime.admit(component, &self.kit.limits).await;
        let admission = admission.map_err(|_| anyhow!("a step was not let in"))?;
        let view = self.situation.view(&self.run, &prepared.intake.heard);
        let news = &prepared.intake.news;
        let runtime = &self.kit.runtime;
        Ok(runtime
            .step(admission, component, Arc::new(view), news, basis)
            .await)
    }

    /// Returns the result of a step that a host accepts.
    fn accepted(
        &mut self,
        prepared: &Prepared,
        stepped: Stepped,
    ) -> Result<Option<StepResult>, Failure> {
        let result = match stepped.outcome {
            Outcome::Returned(result) => result,
            other => {
                let stopped = stopped(&other, &self.kit.limits, &stepped.logs)?;
                let finding = Finding::error(self.place(), stopped.what, stopped.fix)
                    .with_stderr(&stopped.stderr);
                self.findings.push(finding);
                return Ok(None);
            }
        };
        if let Err(unacceptable) = check(&self.run, &prepared.intake, &result) {
            let what = format!("a host does not accept its decision: {unacceptable}");
            let finding = Finding::error(self.place(), what, "mend that part of the decision");
            self.findings.push(finding);
            return Ok(None);
        }
        let format = result.memo.as_ref().map(|memo| memo.format);
        if let Some(format) = format.filter(|format| !self.agent.memo_formats.contains(format)) {
            self.findings.push(Finding::warning(
                self.place(),
                format!("it writes memos of format {format}, which `memo-formats` does not list"),
                "list the format: a newer version takes over a turn only if it lists the memo's",
            ));
        }
        Ok(Some(result))
    }

    /// Applies a step's decision.
    async fn take(&mut self, prepared: Prepared, result: StepResult) -> Result<(), Failure> {
        let Prepared { intake, basis } = prepared;
        self.situation.learn(&result);
        let resolved = self.resolve(&intake, &result).await;
        let taken = Taken {
            basis,
            intake,
            result,
            resolved,
            answers: Digest::of(b""),
            usage: CallUsage::default(),
            time: NOW,
            salt: SALT,
        };
        let stepped = decide(&self.run, taken);
        self.run.advance(&Event::RunStepped(Box::new(stepped)))?;
        Ok(())
    }

    /// Returns the performers of all requests of a step. What a host refuses becomes a finding, and
    /// fails.
    async fn resolve(
        &mut self,
        intake: &Intake,
        result: &StepResult,
    ) -> Vec<domain::run::decide::Resolved> {
        let Decision::Wait(wait) = &result.decision else {
            return Vec::new();
        };
        let mut resolved = Vec::new();
        for request in &wait.start {
            let requests = Requests {
                catalogue: &self.kit.catalogue,
                run: &self.run,
                intake,
                tools: &self.situation.tools,
                now: NOW,
            };
            let one = requests.resolve(&request.work).await;
            resolved.push(one.unwrap_or_else(|fault| {
                let what = format!("a host does not start `{}`: {fault}", request.key);
                let finding = Finding::error(self.place(), what, "mend that operation");
                self.findings.push(finding);
                super::script::failing(&fault)
            }));
        }
        resolved
    }

    /// Ends all open operations as the script says, in the order in which they were started.
    fn settle(&mut self) -> Vec<Settlement> {
        let mut open: Vec<_> = self.run.open.values().map(|open| &open.operation).collect();
        open.sort_by_key(|operation| (operation.step, operation.place));
        let first = self.ended;
        let settled: Vec<Settlement> = open
            .into_iter()
            .enumerate()
            .map(|(index, operation)| {
                let end = self.script.end(operation, first + index);
                settlement(operation, end, NOW)
            })
            .collect();
        self.ended += settled.len();
        settled
    }

    fn place(&self) -> String {
        format!("step {} of {}", self.run.step + 1, self.script.label())
    }

    fn note(&mut self, what: String, fix: &str) {
        self.findings.push(Finding::note(self.place(), what, fix));
    }
}

/// Returns the part in which two runs of a step differ.
fn difference(one: &Stepped, other: &Stepped) -> Option<&'static str> {
    let (Outcome::Returned(first), Outcome::Returned(second)) = (&one.outcome, &other.outcome)
    else {
        return (one.outcome != other.outcome).then_some("outcome");
    };
    if first.decision != second.decision {
        Some("decision")
    } else if first.effects != second.effects {
        Some("list of effects")
    } else if first.memo != second.memo {
        Some("memo")
    } else {
        (one.answers != other.answers).then_some("list of questions to its view")
    }
}

/// Returns the end of a turn in words; none when it goes on.
fn ending(decision: &Decision) -> Option<&'static str> {
    match decision {
        Decision::Wait(_) => None,
        Decision::Reply { .. } => Some("a reply"),
        Decision::Complete { .. } => Some("the end of its session"),
        Decision::Fail { .. } => Some("a failed turn"),
    }
}

fn id<T: FromStr<Err = NotAnId>>() -> Result<T, NotAnId> {
    ID.parse()
}

/// The message, or the opening, with which a conversation begins.
fn input(session_type: &str) -> Result<InputAccepted, NotAnId> {
    let says = session_type == CHAT;
    let source = if says { Source::Api } else { Source::Opening };
    Ok(InputAccepted {
        message: says.then(|| Draft::text(Role::User, "api", "Hello.")),
        ..InputAccepted::of(id()?, id()?, source, NOW)
    })
}

fn started(component: Digest, session_type: &str) -> Result<RunStarted, NotAnId> {
    Ok(RunStarted {
        session_type: session_type.to_owned(),
        claimed: vec![id()?],
        ..RunStarted::of(
            id()?,
            id()?,
            id()?,
            DefinitionId("sample".to_owned()),
            component,
            NOW,
        )
    })
}

fn basis(run: &Run, intake: &Intake, seed: Digest) -> Basis {
    let none = Digest::of(b"");
    Basis {
        files: 0,
        documents: Documents::all_of(run.component, none),
        base: None,
        head: intake.heard.last().map_or(run.head(), |message| message.id),
        session_state: run.session_state,
        now: NOW,
        left: run.limits_left(),
        seed,
    }
}

#[cfg(test)]
mod tests {
    use super::difference;
    use domain::digest::Digest;
    use domain::operation::CallUsage;
    use domain::step::{Decision, Effect, Memo, StepResult};
    use runtime::{Decided, Outcome, Stepped};

    fn stepped(outcome: Outcome<StepResult>, answers: &[u8]) -> Stepped {
        Stepped {
            outcome,
            usage: CallUsage::default(),
            answers: Digest::of(answers),
            logs: Vec::new(),
            decided: Decided::default(),
        }
    }

    fn result() -> StepResult {
        StepResult {
            decision: Decision::Reply { parts: Vec::new() },
            effects: Vec::new(),
            memo: None,
        }
    }

    #[test]
    fn whatever_differs_between_two_runs_of_a_step_is_named() {
        let first = stepped(Outcome::Returned(result()), b"");
        assert_eq!(difference(&first, &first.clone()), None);
        let reason = "r".to_owned();
        let failing = StepResult {
            decision: Decision::Fail { reason },
            ..result()
        };
        let note = "n".to_owned();
        let remembering = StepResult {
            effects: vec![Effect::Remember { note }],
            ..result()
        };
        let noting = StepResult {
            memo: Some(Memo {
                format: 1,
                bytes: vec![1],
            }),
            ..result()
        };
        for (other, part) in [
            (Outcome::Returned(failing), "decision"),
            (Outcome::Returned(remembering), "list of effects"),
            (Outcome::Returned(noting), "memo"),
            (Outcome::OutOfCpu, "outcome"),
        ] {
            assert_eq!(difference(&first, &stepped(other, b"")), Some(part));
        }
        let asking = stepped(Outcome::Returned(result()), b"other");
        assert_eq!(
            difference(&first, &asking),
            Some("list of questions to its view")
        );
    }
}
