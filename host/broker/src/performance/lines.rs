//! Command lines in the sandbox: each segment of a line has a fresh instance of the component that
//! is part of the program, without any grant.
//!
//! Users take turns at the places, and no user has all of them.

use crate::computing::Computes;
use crate::core::Core;
use crate::engine::Component;
use crate::performance::tool::{BUSY_MS, BUSY_TRIES_MAX};
use domain::event::RunStarted;
use domain::grant::{Bound, GuestLimits};
use domain::message::text_of;
use domain::operation::Progress;
use domain::skill::{ROOT, SkillSet};
use domain::step::Failure;
use domain::tool::ToolError;
use llm::fair_semaphore::{FairSemaphore, Party};
use runtime::{CallAudit, EmptyBuckets, Level, Outcome, Ran, ToolCall, Unheard};
use shell::{Answered, Command, CommandLine, Cut, LineOutcome, Output, TOOL, Tool};
use std::borrow::Cow;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// Lines that are carried out at a time in this process. The others wait.
const LINES_MAX: usize = 4;
/// Lines of one user that are carried out at a time, so that a place is left for others.
const LINES_OF_USER_MAX: usize = LINES_MAX - 1;
/// Milliseconds that a line may compute up to its end or its next call.
const CPU_MS_MAX: u64 = 5_000;
/// Milliseconds that it may take for that on a busy machine.
const WALL_MS_MAX: u32 = 60_000;
/// Bytes of the notes of which command has begun: those of more commands than a line has.
const LOG_BYTES_MAX: u64 = 8 << 20;
/// Bytes of memory of a line.
const MEMORY_BYTES_MAX: u64 = 128 << 20;

static LINES: LazyLock<Arc<FairSemaphore>> = LazyLock::new(|| FairSemaphore::new(LINES_MAX));

/// A command line, with its environment.
pub(super) struct Line {
    pub(super) command: String,
    pub(super) skills: SkillSet,
    /// The results of its calls so far.
    pub(super) answered: Vec<Answered>,
}

impl Line {
    /// Executes the line, as far as the results of its calls go. It ends where nobody waits for it
    /// any more. While it waits for a place, nothing is computed.
    pub(super) async fn carried_out(
        self,
        core: &Core,
        started: &RunStarted,
        computes: &Computes,
    ) -> Result<LineOutcome, Failure> {
        let calls = self.answered.len();
        let ended = in_place(&LINES, party(started), computes, self.run(core, started)).await;
        naming_calls(ended, calls)
    }

    /// Runs the line up to its end or its next call. Where a command meets a limit of the sandbox,
    /// the line is carried out again up to that command, so that what was printed before is kept.
    async fn run(self, core: &Core, started: &RunStarted) -> Result<LineOutcome, Failure> {
        let component = core.served().catalogue.line_component.of_one_line().await;
        let component = component.map_err(|why| host_failure(&why))?;
        let calls = self.answered.len();
        let line = Arc::new(self);
        let ran = line.clone().called(core, &component, started, None).await?;
        let begun = ran.logs.iter().filter(|line| line.level == Level::Trace);
        let begun = begun.count();
        match outcome(ran.outcome)? {
            SegmentEnd::Ended(outcome) => Ok(outcome),
            SegmentEnd::Limit(why) => {
                if let Some(after) = begun.checked_sub(1) {
                    let cut = Some(Cut {
                        after,
                        why: why.clone(),
                    });
                    let ran = line.called(core, &component, started, cut).await?;
                    if let Ok(SegmentEnd::Ended(outcome)) = outcome(ran.outcome) {
                        return Ok(outcome);
                    }
                }
                Ok(cut_off(&why, calls))
            }
        }
    }

    /// Calls the component once it has room for it, or gives up.
    async fn called(
        self: Arc<Self>,
        core: &Core,
        component: &Component,
        started: &RunStarted,
        cut: Option<Cut>,
    ) -> Result<Ran, Failure> {
        // Skills may be some megabytes.
        let written = tokio::task::spawn_blocking(move || serde_json::to_string(&self.given(cut)));
        let arguments = written
            .await
            .map_err(|error| host_failure(&error.to_string()))?
            .map_err(|error| host_failure(&error.to_string()))?;
        let bound = bound();
        let mut tries = 0;
        loop {
            let audit = CallAudit::default();
            // A call has a large future.
            let ran = Box::pin(core.runtime.call_noting(
                component,
                &bound,
                call(started, arguments.clone()),
                Arc::new(Unheard),
                Arc::new(EmptyBuckets),
                &audit,
            ));
            let ran = ran.await;
            tries += 1;
            if !matches!(ran.outcome, Outcome::Busy) || tries == BUSY_TRIES_MAX {
                return Ok(ran);
            }
            tokio::time::sleep(Duration::from_millis(BUSY_MS)).await;
        }
    }

    /// Returns the line as the component takes it.
    fn given(&self, cut: Option<Cut>) -> CommandLine<'_> {
        let files = self.skills.files().iter();
        let skills = self.skills.skills().iter();
        CommandLine {
            command: Cow::Borrowed(&self.command),
            files: files
                .map(|(path, text)| (Cow::Borrowed(path.as_str()), Cow::Borrowed(&**text)))
                .collect(),
            commands: skills
                .filter(|skill| !skill.tools.is_empty())
                .map(|skill| Command {
                    path: format!("{ROOT}/{}/{}", skill.id, skill.command()),
                    name: skill.command(),
                    skill: Cow::Borrowed(&skill.id),
                    description: Cow::Borrowed(&skill.description),
                    tools: skill.tools.iter().map(tool).collect(),
                })
                .collect(),
            answered: Cow::Borrowed(&self.answered),
            cut,
        }
    }
}

fn tool(tool: &domain::tool::ToolDefinition) -> Tool<'_> {
    Tool {
        name: Cow::Borrowed(&tool.name),
        description: Cow::Borrowed(&tool.description),
        arguments: Cow::Borrowed(&tool.arguments),
    }
}

/// Returns the end of a line that made so many calls. Where it failed after calls, it ends with a
/// word on these: a failure alone would have its reader write the line, and make the calls, again.
fn naming_calls(ended: Result<LineOutcome, Failure>, calls: usize) -> Result<LineOutcome, Failure> {
    match ended {
        Err(failure) if calls > 0 => Ok(cut_off(&failure.message, calls)),
        ended => ended,
    }
}

/// Returns the outcome of a line that ends early after so many calls.
fn cut_off(why: &str, calls: usize) -> LineOutcome {
    let mut output = Output::default();
    output.cut_off(why, calls);
    LineOutcome::Done(output.shown())
}

/// Returns the limits of a line, which is granted nothing.
fn bound() -> Bound {
    Bound {
        limits: GuestLimits {
            memory_bytes_max: MEMORY_BYTES_MAX,
            cpu_ms_max: CPU_MS_MAX,
            wall_ms_max: WALL_MS_MAX.into(),
            log_bytes_max: LOG_BYTES_MAX,
            ..GuestLimits::default()
        },
        ..Bound::default()
    }
}

fn call(started: &RunStarted, arguments: String) -> ToolCall {
    ToolCall {
        agent_id: started.agent.to_string(),
        session_id: started.session.to_string(),
        user_id: started.user_id.to_string(),
        call_id: String::new(),
        idempotency_key: String::new(),
        segment: 0,
        resumed: None,
        answer: None,
        tool: TOOL.to_owned(),
        arguments,
        deadline_ms: WALL_MS_MAX,
    }
}

/// The end of one call of the component.
enum SegmentEnd {
    /// The line has this outcome.
    Ended(LineOutcome),
    /// It met a limit of the sandbox: the reason, for people.
    Limit(String),
}

fn outcome(outcome: Outcome<Result<Progress, ToolError>>) -> Result<SegmentEnd, Failure> {
    Ok(SegmentEnd::Limit(match outcome {
        Outcome::Returned(Ok(Progress::Done { parts })) => {
            let read = serde_json::from_str(&text_of(&parts));
            return read
                .map(SegmentEnd::Ended)
                .map_err(|error| host_failure(&error.to_string()));
        }
        Outcome::OutOfCpu | Outcome::TimedOut => "the line takes too long; narrow it".to_owned(),
        Outcome::OutOfMemory => {
            format!("the line needs more than {MEMORY_BYTES_MAX} bytes of memory; narrow it")
        }
        Outcome::Trapped { message, .. } => {
            format!("the line cannot be carried out: {message}; divide it")
        }
        Outcome::Busy | Outcome::TooOften { .. } => {
            let why = "the host has no free place for this line";
            return Err(Failure::passing("busy", why));
        }
        other => return Err(host_failure(&format!("{other:?}"))),
    }))
}

fn host_failure(why: &str) -> Failure {
    tracing::error!(why, "a command line could not be carried out");
    let reported = "the host failed while it carried the line out";
    Failure::lasting("host-failed", reported)
}

/// Does some work of a line once it has a place, which is taken until the work has ended.
async fn in_place<T>(
    lines: &Arc<FairSemaphore>,
    party: Party,
    computes: &Computes,
    work: impl Future<Output = T>,
) -> T {
    let _place = computes.while_waiting(lines.enter(party)).await;
    work.await
}

/// Returns the party of the place: the user, in a section of their own.
fn party(started: &RunStarted) -> Party {
    Party::from(started).in_section(started.user_id.as_str(), LINES_OF_USER_MAX)
}

#[cfg(test)]
mod tests;
