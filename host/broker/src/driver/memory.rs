//! The host's own tools by which an agent keeps notes: the owner of the memory, the rules, and the
//! result.
//!
//! Saving and deleting notes is part of the commit of the step that decides it, so it happens once.
//! An agent at `<agent>/memory` or `<agent>/search/<n>` works for the agent above it: the host
//! decides whose memory is used, and from which session a note is taken.

use super::context::SessionContext;
use super::handover::{Handover, Sent, To, Waits};
use super::scope::{Scope, failed, simply};
use crate::journal::Context;
use crate::shared::DriverError;
use domain::budget::Budget;
use domain::error_code::INVALID_ARGUMENTS;
use domain::event::{Event, NoteForgotten, NoteRemembered, Provenance};
use domain::id::{AgentId, NoteId, SessionId, Stream, TurnId};
use domain::memory::{
    self, FORGET, MEMORY_FULL, NOTE_FORBIDDEN, NOTE_NOT_FOUND, NOTES_OF_USER_MAX, NOTHING_READ,
    SAVE, SEARCH, SaveCall, may_forget, may_see,
};
use domain::message::Part;
use domain::operation::Performer;
use domain::path::PathKind;
use domain::ruling::{AGENT_CALL, TOOL_CALL};
use domain::run::decide::Resolved;
use domain::tool::EffectClass;
use serde_json::{Map, Value, json};
use store::{AgentRow, Guard, UserGuard};

/// The place where a note of a run belongs.
struct Place {
    session: SessionId,
    /// The last turn that it is taken from, if the run reads another session.
    turn: Option<TurnId>,
}

/// The change of a memory by a call.
struct Change {
    tool: &'static str,
    /// The session of the note.
    of: SessionId,
    event: Event,
    /// The bound that the change has to respect.
    guard: Option<Guard>,
    /// The result of the call.
    reported: Value,
}

/// Returns the agent whose memory an agent works with: the one above it, if it exists to serve that
/// one's memory, else its own.
pub(super) fn owner(agent: &AgentRow) -> AgentId {
    let works_for = match agent.kind {
        PathKind::Memory | PathKind::Search => agent.parent,
        PathKind::Connector
        | PathKind::Agent
        | PathKind::Cron
        | PathKind::Task
        | PathKind::Subuser
        | PathKind::App
        | PathKind::System
        | PathKind::Sub => None,
    };
    works_for.unwrap_or(agent.agent.id)
}

/// Returns whether a step's events delete a note: its words have to be removed from the store's
/// files once that is durable.
pub(super) fn forgets(sent: &[Sent]) -> bool {
    let mut events = sent.iter().flat_map(|sent| &sent.events);
    events.any(|(_, event)| matches!(event, Event::NoteForgotten(_)))
}

impl SessionContext {
    /// Resolves a call of one of these tools.
    pub(super) async fn resolve_memory(
        &self,
        scope: &mut Scope<'_>,
        name: &str,
        arguments: Map<String, Value>,
        sent: &mut Vec<Sent>,
    ) -> Result<Resolved, DriverError> {
        let invalid = |invalid: memory::Invalid| Ok(failed(INVALID_ARGUMENTS, invalid.to_string()));
        match name {
            SAVE => match memory::save(arguments) {
                Ok(call) => self.resolve_save(scope, call, sent).await,
                Err(wrong) => invalid(wrong),
            },
            FORGET => match memory::forget(arguments) {
                Ok(note) => self.resolve_forget(scope, note, sent).await,
                Err(wrong) => invalid(wrong),
            },
            _ => match memory::search(arguments) {
                Ok(call) if call.deep => self.resolve_deep_search(scope, call.query, sent).await,
                Ok(call) => {
                    scope.grant(TOOL_CALL, name);
                    let performer = Performer::Recall {
                        query: call.query,
                        limit: call.limit,
                        of: Some(owner(scope.agent)),
                        notes: call.notes,
                        // An agent that reads for one user compares with that user's notes. An
                        // equal note of another user is no reason to leave one out.
                        own: scope.agent.kind == PathKind::Memory,
                    };
                    Ok(simply(performer, EffectClass::ReadOnly))
                }
                Err(wrong) => invalid(wrong),
            },
        }
    }

    /// Resolves a search that an agent of its own makes, in the memory of the agent that asks.
    async fn resolve_deep_search(
        &self,
        scope: &mut Scope<'_>,
        query: String,
        sent: &mut Vec<Sent>,
    ) -> Result<Resolved, DriverError> {
        let searcher = scope.definition.memory.as_ref();
        let searcher = searcher.and_then(|settings| settings.search.as_ref());
        let searcher = searcher.and_then(|id| self.served.catalogue.definition(id));
        let Some(searcher) = searcher.filter(|it| scope.knows(it)).cloned() else {
            return Ok(failed(
                INVALID_ARGUMENTS,
                "there is no agent that searches; leave out `deep`",
            ));
        };
        if let Err(denied) = scope.may_hand_over(&searcher) {
            return Ok(scope.deny(Some(SEARCH), AGENT_CALL, &denied));
        }
        let handover = Handover {
            to: To::Searcher(searcher),
            content: vec![Part::text(query)],
            waits: Waits::Attached {
                timeout_ms: self.limits_of(scope).dispatch_ms,
            },
            delegation: None,
            priority: scope.driving.run.started.priority,
            budget: Budget::default(),
            tool: Some(SEARCH),
        };
        Box::pin(self.hand_over(scope, handover, sent)).await
    }

    async fn resolve_save(
        &self,
        scope: &mut Scope<'_>,
        call: SaveCall,
        sent: &mut Vec<Sent>,
    ) -> Result<Resolved, DriverError> {
        let started = &scope.driving.run.started;
        let agent = owner(scope.agent);
        let Some(place) = self.place_of_note(scope).await? else {
            return Ok(failed(
                NOTHING_READ,
                "this agent keeps notes of sessions that the host has it read, and this session \
                 reads none",
            ));
        };
        // The guard counts stored notes only, so the other notes of this step are subtracted from
        // its bound.
        let kept = sent
            .iter()
            .flat_map(|sent| &sent.events)
            .filter(
                |(_, event)| matches!(event, Event::NoteRemembered(note) if note.agent == agent),
            )
            .count() as u64;
        let count = self.store().note_count(agent, &started.user_id).await?;
        if count.saturating_add(kept) >= NOTES_OF_USER_MAX {
            return Ok(failed(
                MEMORY_FULL,
                format!(
                    "{NOTES_OF_USER_MAX} notes are kept in the sessions of this user, and no more \
                     are; forget some first (memory_forget)"
                ),
            ));
        }
        let guard = UserGuard::NotesAtMost {
            user: started.user_id.clone(),
            agent,
            max: NOTES_OF_USER_MAX.saturating_sub(kept + 1),
        };
        let id = NoteId::of_operation(scope.operation);
        let note = NoteRemembered {
            agent,
            session: place.session,
            note: call.text,
            untrusted: scope.is_untrusted(),
            id: Some(id),
            about: call.about,
            provenance: Some(Provenance {
                user_id: started.user_id.clone(),
                written_by: scope.agent.agent.id,
                run: started.run,
                turn: place.turn,
            }),
            time: scope.now,
        };
        let event = Event::NoteRemembered(note);
        let change = Change {
            tool: SAVE,
            of: place.session,
            event,
            guard: Some(guard.into()),
            reported: json!({ "saved": id }),
        };
        Ok(scope.remembers(change, sent))
    }

    /// Returns the place where a note of this run belongs; none for a memory agent that reads
    /// nothing.
    async fn place_of_note(&self, scope: &Scope<'_>) -> Result<Option<Place>, DriverError> {
        let session = scope.driving.run.started.session;
        if owner(scope.agent) == scope.agent.agent.id {
            return Ok(Some(Place {
                session,
                turn: None,
            }));
        }
        // A later chunk may have been handed over while this one is being read.
        for input in &scope.driving.run.started.claimed {
            if let Some(chunk) = self.store().chunk_read(*input).await? {
                return Ok(Some(Place {
                    session: chunk.session,
                    turn: Some(chunk.through),
                }));
            }
        }
        // Somebody speaks with the memory agent itself.
        let reading = self.store().reading_by(session).await?;
        Ok(reading.map(|reading| Place {
            session: reading.session,
            turn: None,
        }))
    }

    async fn resolve_forget(
        &self,
        scope: &mut Scope<'_>,
        note: NoteId,
        sent: &mut Vec<Sent>,
    ) -> Result<Resolved, DriverError> {
        let user = &scope.driving.run.started.user_id;
        let agent = owner(scope.agent);
        let role = self.store().role(user, agent).await?;
        let found = self.store().note(agent, note).await?;
        // A note that the user may not see looks absent.
        let Some(found) = found.filter(|found| may_see(role, found.user_id == *user)) else {
            return Ok(failed(NOTE_NOT_FOUND, format!("there is no note {note}")));
        };
        if !may_forget(role, found.user_id == *user) {
            return Ok(failed(
                NOTE_FORBIDDEN,
                "the user's role does not allow to have this note forgotten",
            ));
        }
        let event = Event::NoteForgotten(NoteForgotten {
            agent,
            note,
            position: found.position,
            session: found.session,
            user_id: user.clone(),
            time: scope.now,
        });
        let change = Change {
            tool: FORGET,
            of: found.session,
            event,
            guard: None,
            reported: json!({ "forgotten": note }),
        };
        Ok(scope.remembers(change, sent))
    }
}

impl Scope<'_> {
    /// Adds the memory change of a call to the step's commit. Returns the call with its result.
    fn remembers(&mut self, change: Change, sent: &mut Vec<Sent>) -> Resolved {
        let Change {
            tool,
            of,
            event,
            guard,
            reported,
        } = change;
        self.grant(TOOL_CALL, tool);
        let started = &self.driving.run.started;
        let agent = owner(self.agent);
        // Everyone who may see the session may see the event.
        let context = Context::of_run(started, self.now);
        let context = if of == started.session {
            context
        } else {
            context.about(agent, Some(of), None)
        };
        sent.push(Sent {
            session: started.session,
            guards: guard.into_iter().collect(),
            events: vec![(Stream::Agent(agent), event)],
            blobs: Vec::new(),
            context,
        });
        let reported = reported.to_string();
        simply(Performer::Memory { reported }, EffectClass::Idempotent)
    }
}
