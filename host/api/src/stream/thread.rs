//! The thread of a session before its stream: of one that is followed from its thread, and of one
//! that began with the thread of another.

use super::frame::bytes;
use crate::wire::{self, Repeatable, SessionFrame};
use broker::{Broker, Target};
use bytes::Bytes;
use domain::event::InputAccepted;
use domain::id::{AgentId, SessionId, TurnId};
use domain::message::{Message, MessageId};
use domain::user::UserId;
use store::EventFilter;

/// Messages that are read at a time.
const PAGE: u64 = 32;
/// Times that a session is read until nothing about it is stored meanwhile. What is stored while it
/// is read for the last time may come twice.
const READS_MAX: usize = 3;

/// See the module.
#[derive(Debug)]
pub(super) struct Thread {
    /// The reader, and the agent and session that they read.
    user: UserId,
    target: Target,
    session: SessionId,
    /// The turn that it ends with.
    head: Option<TurnId>,
    /// The next message of it.
    next: MessageId,
    /// The last message of it.
    last: MessageId,
    /// The messages of the turn in progress.
    open: Vec<Message>,
    /// The inputs that wait.
    waiting: Vec<InputAccepted>,
    /// The position after which the stream continues.
    pub(super) position: u64,
}

impl Thread {
    /// Returns the thread of a session as it is now, with what is said in the turn in progress and
    /// what waits.
    pub(super) async fn now(
        broker: &Broker,
        user: &UserId,
        agent: AgentId,
        session: SessionId,
    ) -> Result<Self, broker::Error> {
        let target = Target::Agent(agent);
        let mut reads = 0;
        loop {
            reads += 1;
            let before = broker
                .sessions()
                .get(user, &target, session, Some((1, 0)))
                .await?;
            let open = Some((before.row.head_message + 1, MessageId::MAX));
            let now = broker.sessions().get(user, &target, session, open).await?;
            let waiting = broker.queue().inputs(user, &target, session).await?.inputs;
            let of_session = EventFilter {
                session: Some(session),
                ..EventFilter::default()
            };
            let since = broker
                .feeds()
                .events(before.position, of_session, 1)
                .await?;
            if since.is_empty() || reads == READS_MAX {
                return Ok(Self {
                    user: user.clone(),
                    target,
                    session,
                    head: before.row.head,
                    next: 1,
                    last: before.row.head_message,
                    open: now.messages,
                    waiting,
                    position: before.position,
                });
            }
        }
    }

    /// Returns the thread that a session began with; none of one that began empty.
    pub(super) async fn before(
        broker: &Broker,
        user: &UserId,
        agent: AgentId,
        session: SessionId,
    ) -> Result<Option<Self>, broker::Error> {
        let target = Target::Agent(agent);
        let base = broker.transcripts().base(user, &target, session).await?;
        let Some((base, last)) = base else {
            return Ok(None);
        };
        Ok(Some(Self {
            user: user.clone(),
            target,
            session,
            head: Some(base),
            next: 1,
            last,
            open: Vec::new(),
            waiting: Vec::new(),
            position: 0,
        }))
    }

    /// Returns the next frames; none when all of them were returned.
    pub(super) async fn page(
        &mut self,
        broker: &Broker,
    ) -> Result<Option<Vec<Bytes>>, broker::Error> {
        if self.next <= self.last {
            let to = self.last.min(self.next + PAGE - 1);
            let page = broker
                .transcripts()
                .thread(
                    &self.user,
                    &self.target,
                    self.session,
                    self.head,
                    self.next..=to,
                )
                .await?;
            self.next = to + 1;
            return Ok(Some(page.iter().map(|it| self.message(it)).collect()));
        }
        let open = std::mem::take(&mut self.open);
        let waiting = std::mem::take(&mut self.waiting);
        let said = open.iter().map(|it| self.message(it));
        let of = Repeatable::again(self.session, None);
        let waits = waiting
            .iter()
            .filter_map(|it| wire::message_accepted(it, of));
        let rest: Vec<Bytes> = said.chain(waits.map(|it| bytes(&it))).collect();
        Ok(Some(rest).filter(|rest| !rest.is_empty()))
    }

    fn message(&self, message: &Message) -> Bytes {
        bytes(&SessionFrame::ThreadMessage {
            session_id: self.session,
            message: wire::message(message),
        })
    }
}
