//! The frames that events become for a client that shows a session, instead of those of the log.
//! One event may become several frames, or none.

use super::message::{draft, message};
use super::operation::{operation, settlements};
use super::queue::{InputSource, waits_for};
use super::session::{SessionPhase, pending_action};
use super::session_frame::{Repeatable, SessionFrame, Shown, Stored, TurnOf};
use super::spawned::Spawned;
use super::values::{ContentDigest, Time};
use broker::{Frame, Show};
use domain::agent::end_session::EXPIRED;
use domain::error_code;
use domain::event::{Event, InputAccepted, Recorded, RunEnded, RunStepped};
use domain::id::{InputId, OperationId};
use domain::message::{Message, Role};
use domain::operation::{Attempt, CommandCall, Continuation, Performer, Settlement};
use domain::session::PendingAction;
use domain::step::OperationOutcome;
use domain::thinking;
use domain::turn::TurnEnd;

/// Returns the frames of a stored event, in order. `spawned` is the place of its session below the
/// followed one.
pub(crate) fn session_frames<'a>(
    recorded: &'a Recorded,
    spawned: Option<&'a Spawned>,
) -> Vec<SessionFrame<'a>> {
    let of = Stored {
        session_id: recorded.subject.session,
        run_id: recorded.subject.run,
        time: Time(recorded.time),
        spawned,
    };
    recorded
        .event
        .as_ref()
        .map_or_else(Vec::new, |event| of.frames(event))
}

/// Returns the frame of a message that a session has accepted; none of an input without words.
pub(crate) fn message_accepted<'a>(
    it: &'a InputAccepted,
    of: Repeatable<'a>,
) -> Option<SessionFrame<'a>> {
    Some(SessionFrame::MessageAccepted {
        input_id: it.input,
        message: draft(it.message.as_ref()?),
        source: InputSource::of(&it.source),
        user_id: &it.user_id,
        waits_for: waits_for(&it.waits_for()),
        of,
    })
}

/// Returns the frame of something ephemeral; none if a session's stream does not show it.
pub(crate) fn ephemeral_frame<'a>(
    frame: &'a Frame,
    spawned: Option<&'a Spawned>,
) -> Option<SessionFrame<'a>> {
    let of = Shown {
        session_id: frame.session,
        run_id: frame.run,
        operation_id: frame.operation,
        attempt: frame.attempt,
        seq: frame.seq,
        spawned,
    };
    Some(match &frame.show {
        Show::Text(content) => SessionFrame::ContentChunk { content, of },
        Show::SoFar(text) => SessionFrame::ContentSoFar {
            content: text.concat(),
            of,
        },
        Show::Discarded => SessionFrame::ContentDiscarded {
            session_id: Some(frame.session),
            run_id: Some(frame.run),
            operation_id: frame.operation,
            attempt: frame.attempt.into(),
            seq: Some(frame.seq),
            time: None,
            spawned,
        },
        Show::Note(message) => SessionFrame::ToolProgress { message, of },
        Show::OwnCall { name } => SessionFrame::ProgramToolCall { tool: name, of },
        Show::Thinking(content) => SessionFrame::ThinkingChunk { content, of },
        Show::CallStarted { .. } | Show::Performing { .. } => return None,
    })
}

impl<'a> Stored<'a> {
    fn frames(self, event: &'a Event) -> Vec<SessionFrame<'a>> {
        let of = self;
        match event {
            Event::InputAccepted(it) => message_accepted(it, of.into()).into_iter().collect(),
            Event::InputCancelled(it) => vec![self.withdrawn(&[it.input], "cancelled")],
            Event::InputsDropped(it) if !it.inputs.is_empty() => {
                vec![self.withdrawn(&it.inputs, "dropped")]
            }
            Event::InputDead(it) => vec![self.withdrawn(&[it.input], "dead")],
            Event::FileUploaded(it) => vec![SessionFrame::FileUploaded {
                digest: ContentDigest(it.digest),
                name: &it.name,
                media_type: &it.media_type,
                bytes: it.bytes,
                user_id: &it.user_id,
                of,
            }],
            Event::RunStarted(started) => {
                let started_frame = SessionFrame::RunStarted {
                    session_type: &started.session_type,
                    turn: turn_of(&started.claimed, started.compacts.is_some()),
                    of,
                };
                let first_step = started.first_step.iter();
                let stepped = first_step.flat_map(|step| self.step(step));
                std::iter::once(started_frame).chain(stepped).collect()
            }
            Event::RunStepped(stepped) => self.step(stepped),
            Event::RunSettled(settled) => self
                .voided(&settled.settled)
                .chain(self.results(&settled.settled, &[]))
                .collect(),
            Event::OperationContinued(continuation) => self.continued(continuation),
            // What was shown of the attempt before it came to nothing, also when the host was
            // killed in the middle of it.
            Event::OperationAttempted(it) => {
                vec![self.discarded(it.operation, it.attempt.saturating_sub(1).into())]
            }
            Event::RunEnded(ended) => self.end(ended),
            Event::TurnCommitted(committed) => {
                let turn = turn_of(&committed.inputs, committed.compacts);
                vec![
                    SessionFrame::MessageComplete {
                        turn_id: committed.turn.id,
                        last_message: committed.turn.last_message,
                        turn: turn.clone(),
                        of,
                    },
                    SessionFrame::StreamComplete {
                        end: committed.turn.end,
                        turn,
                        of,
                    },
                ]
            }
            _ => self.slot(event),
        }
    }

    fn withdrawn(self, inputs: &[InputId], reason: &'static str) -> SessionFrame<'a> {
        SessionFrame::MessageWithdrawn {
            input_ids: inputs.to_vec(),
            reason,
            of: self,
        }
    }

    /// Returns the frames of an event of the agent's structured sessions; none of other kinds.
    fn slot(self, event: &'a Event) -> Vec<SessionFrame<'a>> {
        let of = self;
        match event {
            Event::SlotTaken(it) => vec![SessionFrame::StateChange {
                status: SessionPhase::Active,
                session_type: Some(&it.session_type),
                of,
            }],
            // What is asked comes with the step that asks it, in the same commit.
            Event::ExecutionSuspended(it) => {
                let tool_call_id = it.pending_action.tool_call_id;
                vec![
                    self.state(SessionPhase::AwaitingClientAction),
                    SessionFrame::RunSuspended { tool_call_id, of },
                ]
            }
            Event::ExecutionResumed(it) => {
                let tool_call_id = it.tool_call_id;
                vec![
                    self.state(SessionPhase::Active),
                    SessionFrame::RunResumed { tool_call_id, of },
                ]
            }
            Event::ActionWithdrawn(it) => {
                let withdrawn = SessionFrame::ClientActionWithdrawn {
                    tool_call_id: it.tool_call_id,
                    reason: it.reason,
                    of,
                };
                let goes_on = (!it.still_waiting).then(|| self.state(SessionPhase::Active));
                std::iter::once(withdrawn).chain(goes_on).collect()
            }
            Event::SlotCompleted(it) => {
                let summary = &it.summary;
                vec![
                    self.state(SessionPhase::Completed),
                    SessionFrame::SessionCompleted { summary, of },
                ]
            }
            Event::SlotTerminated(it) if it.reason == EXPIRED => {
                vec![
                    self.state(SessionPhase::Expired),
                    SessionFrame::SessionExpired { of },
                ]
            }
            Event::SlotTerminated(it) => {
                let reason = &it.reason;
                vec![
                    self.state(SessionPhase::Terminated),
                    SessionFrame::Terminated { reason, of },
                ]
            }
            _ => Vec::new(),
        }
    }

    fn state(self, status: SessionPhase) -> SessionFrame<'a> {
        SessionFrame::StateChange {
            status,
            session_type: None,
            of: self,
        }
    }

    /// A question that waits from now on.
    fn asked(self, asked: &PendingAction) -> SessionFrame<'a> {
        SessionFrame::ClientAction {
            question: pending_action(asked),
            of: self.into(),
        }
    }

    fn discarded(self, operation: OperationId, attempt: u64) -> SessionFrame<'a> {
        SessionFrame::ContentDiscarded {
            session_id: self.session_id,
            run_id: self.run_id,
            operation_id: operation,
            attempt,
            seq: None,
            time: Some(self.time),
            spawned: self.spawned,
        }
    }

    /// Returns the frames by which a part of a model's reply is void where no other attempt
    /// follows: the call came to an end with an attempt of which nothing more is known, because
    /// the host was killed or the call was stopped.
    fn voided(self, settled: &[Settlement]) -> impl Iterator<Item = SessionFrame<'a>> {
        let is_void = |settlement: &&Settlement| {
            let is_reply = matches!(
                settlement.outcome,
                OperationOutcome::Message { .. }
                    | OperationOutcome::Parts { .. }
                    | OperationOutcome::Value { .. }
            );
            !is_reply && settlement.attempts.last().is_some_and(Attempt::is_lost)
        };
        // One that used nothing has its number in common with the next, so the newest has one of
        // these. Those before it are void as well.
        let of_each = move |settlement: &Settlement| {
            let operation = settlement.operation;
            (0..)
                .zip(&settlement.attempts)
                .map(|numbered| self.discarded(operation, numbered.0))
                .collect::<Vec<_>>()
        };
        settled.iter().filter(is_void).flat_map(of_each)
    }

    fn step(self, stepped: &'a RunStepped) -> Vec<SessionFrame<'a>> {
        let of = self;
        let mut events: Vec<SessionFrame<'a>> = self
            .voided(&stepped.settled)
            .chain(self.voided(&stepped.stopped))
            .collect();
        events.extend(self.results(&stepped.settled, &stepped.heard));
        events.extend(self.spoken(&stepped.heard));
        events.extend(self.results(&stepped.stopped, &stepped.said));
        events.extend(self.spoken(&stepped.said));
        for started in &stepped.started {
            if let Some(asked) = started.question_at_start() {
                events.push(self.asked(&asked));
                continue;
            }
            match &started.performer {
                Performer::Tool { .. } | Performer::Agent { .. } | Performer::Recall { .. } => {
                    events.push(SessionFrame::ToolExecuting {
                        operation: operation(started),
                        of,
                    });
                }
                Performer::Model { .. }
                | Performer::Client { .. }
                | Performer::Detached { .. }
                | Performer::Command { .. }
                | Performer::External { .. }
                | Performer::Memory { .. }
                | Performer::Lasting { .. }
                | Performer::Timer { .. }
                | Performer::Refused { .. }
                | Performer::Reply { .. } => {}
            }
        }
        events
    }

    /// Returns the frames of a call that goes on: its question, and the call of a command line.
    fn continued(self, continuation: &Continuation) -> Vec<SessionFrame<'a>> {
        if let Some(asked) = continuation.asked() {
            return vec![self.asked(&asked)];
        }
        let calling = |call: &CommandCall| SessionFrame::ToolExecuting {
            operation: operation(&call.started),
            of: self,
        };
        continuation
            .call
            .as_deref()
            .map(calling)
            .into_iter()
            .collect()
    }

    /// Returns the frames of the agent's messages, of its model's thinking, and of the calls that
    /// the model made.
    fn spoken(self, messages: &[Message]) -> Vec<SessionFrame<'a>> {
        let of = self;
        let mut events = Vec::new();
        for said in messages.iter().filter(|said| said.role == Role::Assistant) {
            let thoughts: Vec<&str> = said.parts.iter().filter_map(thinking::of_part).collect();
            let view = message(said);
            if !thoughts.is_empty() {
                events.push(SessionFrame::ThinkingComplete {
                    message: said.id,
                    content: thoughts.join("\n\n"),
                    of,
                });
            }
            if !view.calls.is_empty() {
                events.push(SessionFrame::ToolCallsDetected {
                    message: said.id,
                    tool_calls: view.calls,
                    of,
                });
            }
            if !view.text.is_empty() || view.stop.is_some() {
                events.push(SessionFrame::ContentComplete {
                    message: said.id,
                    content: view.text,
                    origin: view.origin,
                    stop: view.stop,
                    of,
                });
            }
        }
        events
    }

    /// Returns the frames of tool results.
    fn results(self, settled: &[Settlement], messages: &[Message]) -> Vec<SessionFrame<'a>> {
        let of_tools = settled.iter().filter(|settlement| {
            settlement
                .result
                .as_ref()
                .is_some_and(|result| result.role == Role::Tool)
        });
        settlements(of_tools, messages)
            .into_iter()
            .map(|settled| SessionFrame::ToolResult {
                outcome: settled.outcome,
                of: self,
            })
            .collect()
    }

    fn end(self, ended: &'a RunEnded) -> Vec<SessionFrame<'a>> {
        let of = self;
        let mut events: Vec<SessionFrame<'a>> = self
            .voided(&ended.stopped)
            .chain(self.results(&ended.stopped, &ended.said))
            .collect();
        let turn = turn_of(&ended.inputs, ended.compacts);
        if matches!(ended.end, TurnEnd::Failed | TurnEnd::Aborted) {
            let code = ended.code.as_deref().unwrap_or_default();
            events.push(SessionFrame::Error {
                code: ended.code.as_deref(),
                retryable: error_code::is_retryable(code),
                category: error_code::category_of_turn(code),
                message: ended.reason.as_deref(),
                turn: turn.clone(),
                of,
            });
        }
        // Otherwise its turn follows, and with that it is complete.
        if ended.turn.is_none() {
            events.push(SessionFrame::StreamComplete {
                end: ended.end,
                turn,
                of,
            });
        }
        events
    }
}

fn turn_of(inputs: &[InputId], compaction: bool) -> TurnOf {
    TurnOf {
        input_ids: inputs.to_vec(),
        compaction,
    }
}
