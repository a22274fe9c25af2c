//! Late replies: results of work that no operation waits for any more.
//!
//! A late reply becomes an input of the session that handed the work over.

use crate::core::{Core, fresh};
use crate::shared::DriverError;
use crate::shared::runs::load_caller;
use domain::event::{Event, InputAccepted, InputDead, Source};
use domain::id::InputId;
use domain::limits::LATE_REPLIES_WAITING_MAX;
use domain::message::{Draft, Part, Role};
use domain::operation::{Operation, Performer};
use domain::run::{Open, Run};
use domain::speaker::Speaker;
use domain::spill::spill;
use domain::time::Timestamp;
use domain::turn::TurnEnd;
use store::{Guard, QueueGuard, Store};

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
    /// True if it depends on content from outside.
    pub(super) untrusted: bool,
}

/// The parts of a commit that deliver a late reply.
pub(super) struct LateReplyParts {
    /// The events of the session's stream.
    pub(super) events: Vec<Event>,
    /// Content that is stored as a blob.
    pub(super) blob: Option<Vec<u8>>,
    /// The guard that they need.
    pub(super) guard: Option<Guard>,
}

impl Late<'_> {
    /// Returns the message of the reply.
    ///
    /// The reply becomes a dead letter at once if it exceeds the maximum of hops, if the receiving
    /// turn was stopped, or if too many inputs wait in the session.
    pub(super) async fn events(
        self,
        core: &Core,
        time: Timestamp,
    ) -> Result<LateReplyParts, DriverError> {
        let to = self.to;
        let session = to.started.session;
        let input = fresh::input();
        // The hops are counted from this run, not from the caller. Otherwise two agents could
        // answer each other for ever.
        let hops = self.hops.saturating_add(1);
        let waiting = core.store.session(session).await?;
        let waiting = waiting.map_or(0, |row| row.waiting);
        // A user who stopped that turn did not request another one.
        let stopped = (to.ended == Some(TurnEnd::Aborted))
            .then(|| "the turn that handed the work over was stopped".to_owned());
        let reason = stopped
            .or_else(|| core.limits().dispatch.too_many_hops(hops))
            .or_else(|| full(waiting));
        let (accepted, blob) = self.accepted(input, hops, time);
        let mut events = vec![Event::InputAccepted(accepted)];
        let mut guard = Some(Guard::Queue(QueueGuard::WaitingAtMost {
            session,
            max: LATE_REPLIES_WAITING_MAX - 1,
        }));
        if let Some(reason) = reason {
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
        Ok(LateReplyParts {
            events,
            blob,
            guard,
        })
    }

    /// Returns the input for the reply, and the part of its content that is stored as a blob.
    fn accepted(
        self,
        input: InputId,
        hops: u32,
        time: Timestamp,
    ) -> (InputAccepted, Option<Vec<u8>>) {
        let to = &self.to.started;
        let from = &self.from.started;
        let (parts, blob) = spill(self.parts);
        let message = Some(Draft {
            role: Role::User,
            parts,
            origin: format!("agent:{}", from.definition),
            untrusted: self.untrusted,
            speaker: Some(Speaker::Agent {
                agent: from.definition.to_string(),
                response_id: from.claimed.first().map(ToString::to_string),
            }),
            answers: None,
        });
        let source = Source::LateReply {
            from: from.definition.to_string(),
            depth: to.depth,
            hops,
            spawn_depth: to.spawn_depth,
            denies: to.denies.clone(),
            permissions: to.permissions.clone(),
            accounts: to.accounts(),
            deadline: to.deadline,
        };
        let accepted = InputAccepted {
            user_id: from.user_id.clone(),
            message,
            ..InputAccepted::of(to.session, input, source, time)
        };
        (accepted, blob)
    }
}

/// Returns the reason why a session with so many waiting inputs accepts no late reply; none if it
/// accepts one.
fn full(waiting: u64) -> Option<String> {
    let reason = || {
        format!(
            "{waiting} inputs wait in the session, and with {LATE_REPLIES_WAITING_MAX} it takes no \
             late reply"
        )
    };
    (waiting >= LATE_REPLIES_WAITING_MAX).then(reason)
}
