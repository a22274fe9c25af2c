//! Late replies: results of work that no operation waits for any more.
//!
//! A late reply becomes an input of the session that handed the work over.

use super::{DriverError, load_caller};
use crate::core::{Core, fresh};
use domain::dispatch::Depth;
use domain::event::{Event, InputAccepted, InputDead, Source};
use domain::limits::LATE_REPLIES_WAITING_MAX;
use domain::message::{Draft, Part, Role};
use domain::operation::{Operation, Performer};
use domain::run::{Open, Run};
use domain::spill::spill;
use domain::time::Timestamp;
use domain::turn::TurnEnd;
use store::{Guard, Store};

/// Returns the run and the operation that wait for the work of an input, if any do.
pub(crate) async fn waiting_for(
    store: &Store,
    input: &InputAccepted,
) -> Result<Option<(Run, Operation)>, DriverError> {
    let Source::Dispatch {
        reply_to: Some(reply_to),
        ..
    } = &input.source
    else {
        return Ok(None);
    };
    let Some(run) = load_caller(store, reply_to.run).await? else {
        return Ok(None);
    };
    let is_waited_for = |open: &&Open| matches!(open.operation.performer, Performer::Agent { .. });
    let open = run
        .open
        .get(&reply_to.operation)
        .filter(|_| run.ended.is_none())
        .filter(is_waited_for);
    let operation = open.map(|open| open.operation.clone());
    Ok(operation.map(|operation| (run, operation)))
}

/// A reply for a session.
pub(super) struct Late<'a> {
    /// The run that replies.
    pub(super) from: &'a Run,
    /// Number of hops that this run has by now.
    pub(super) hops: u32,
    /// The run that handed it its work.
    pub(super) to: &'a Run,
    /// The content of the reply.
    pub(super) parts: Vec<Part>,
    /// True if it rests on content from outside.
    pub(super) untrusted: bool,
}

/// The parts of a commit that deliver a late reply.
pub(super) struct Told {
    /// The events of the session's stream.
    pub(super) events: Vec<Event>,
    /// Content that is stored as a blob.
    pub(super) blob: Option<Vec<u8>>,
    /// The guard that they need.
    pub(super) guard: Option<Guard>,
}

impl Late<'_> {
    /// Returns the delivery of the reply.
    ///
    /// The reply is put aside as a dead letter at once if it is one hop too many, if the turn that
    /// it goes to was stopped, or if too many inputs wait in the session.
    pub(super) async fn events(self, core: &Core, time: Timestamp) -> Result<Told, DriverError> {
        let Self {
            from,
            hops,
            to,
            parts,
            untrusted,
        } = self;
        let (parts, blob) = spill(parts);
        let definition = &from.started.definition;
        let message = Some(Draft {
            role: Role::User,
            parts,
            origin: format!("agent:{definition}"),
            untrusted,
            answers: None,
        });
        // The hops go on from this run, not from the caller. Otherwise two agents could answer each
        // other for ever.
        let hops = hops.saturating_add(1);
        let Depth {
            call: depth,
            spawn: spawn_depth,
        } = Depth {
            call: to.started.depth,
            spawn: to.started.spawn_depth,
        };
        let source = Source::LateReply {
            from: definition.to_string(),
            depth,
            hops,
            spawn_depth,
            denies: to.started.denies.clone(),
            permissions: to.started.permissions.clone(),
            accounts: to.started.accounts(),
            deadline: to.started.deadline,
        };
        let (input, session) = (fresh::input(), to.started.session);
        let user_id = Some(from.started.user_id.clone());
        let accepted = InputAccepted {
            input,
            session,
            source,
            user_id,
            message,
            model: None,
            waits_for: None,
            priority: None,
            time,
        };
        let mut events = vec![Event::InputAccepted(accepted)];
        // A user who stopped that turn did not ask for another one.
        let stopped = (to.ended == Some(TurnEnd::Aborted))
            .then(|| "the turn that handed the work over was stopped".to_owned());
        let waiting = core
            .store
            .session(session)
            .await?
            .map_or(0, |row| row.waiting);
        let full = || {
            let reason = || {
                format!(
                    "{waiting} inputs wait in the session, and with \
                            {LATE_REPLIES_WAITING_MAX} it takes no late reply"
                )
            };
            (waiting >= LATE_REPLIES_WAITING_MAX).then(reason)
        };
        let mut guard = Some(Guard::WaitingAtMost {
            session,
            max: LATE_REPLIES_WAITING_MAX - 1,
        });
        if let Some(reason) = stopped
            .or_else(|| core.limits.dispatch.too_many_hops(hops))
            .or_else(full)
        {
            guard = None;
            tracing::warn!(session.id = %session, input.id = %input, reason, "a late reply is put \
                aside as a dead letter");
            events.push(Event::InputDead(InputDead {
                input,
                session,
                reason,
                time,
            }));
        }
        Ok(Told {
            events,
            blob,
            guard,
        })
    }
}
