//! The return of a user from another agent: a notice with the summary of the conversation there.
//!
//! The host makes this run itself, as it makes a compaction ([`super::compacting`]), and its steps
//! are the same. It belongs to the session to which the user returns. Its subject is fixed with its
//! start, so that a crash changes nothing.

use super::context::SessionContext;
use super::state::Driver;
use crate::come_back::{ComeBack, Returned};
use crate::journal::Context;
use crate::refusals::run_open_where_from;
use crate::shared::DriverError;
use crate::shared::Request;
use crate::shared::guards::allowed;
use domain::compaction::{Compaction, Return, estimated_tokens, summary_tokens_max};
use domain::event::{Event, SessionAttributed};
use domain::id::Stream;
use serde_json::{Map, Value};
use store::{Commit, Expected, SessionGuard, SessionRow};

impl Driver {
    /// Begins the summary of the conversation that a user returns from. Returns the run, once its
    /// start is stored.
    pub(super) async fn bring_back(
        &mut self,
        back: &ComeBack,
        request: Option<&Request>,
    ) -> Result<Returned, DriverError> {
        let busy = run_open_where_from(self.context.session);
        let session = self.idle_chat("only chats are returned to", busy).await?;
        let task = self.context.to_bring_back(&session, back).await?;
        if !self.begin_compaction(&session, task).await? {
            return Err(self.context.not_led(&session).await?);
        }
        let now = self.context.core.now();
        let attributes = Map::from_iter([(back.attribute.to_owned(), Value::Null)]);
        let left = Event::SessionAttributed(SessionAttributed {
            session: back.session,
            attributes,
            time: now,
        });
        let context = Context::by(&back.by, now).about(back.agent, Some(back.session), None);
        let with = Commit::new()
            .guard(allowed(session.agent, &back.by))
            .guard(SessionGuard::Exists(back.session))
            .append(
                Stream::Session(back.session),
                Expected::Any,
                vec![context.event(left)],
            );
        let returned = |run| Returned {
            agent: session.agent,
            session: session.id,
            run: Some(run),
        };
        let run = self
            .store_begun(with, |run| {
                request.map(|request| request.answered(&returned(run)))
            })
            .await?;
        Ok(returned(run))
    }
}

impl SessionContext {
    /// Returns the task of the run that summarises the conversation that a user returns from.
    async fn to_bring_back(
        &self,
        session: &SessionRow,
        back: &ComeBack,
    ) -> Result<Compaction, DriverError> {
        let head = Some(back.head);
        let messages = self
            .store()
            .messages(head, back.first_message, back.last_message)
            .await?;
        let window = self.window_of(session).await?;
        Ok(Compaction {
            summarized_through: back.head,
            through_message: back.last_message,
            first_kept: None,
            tokens_before: estimated_tokens(&messages),
            kept_tokens: 0,
            summary_tokens_max: summary_tokens_max(window),
            untrusted: self.thread_is_untrusted(head).await?,
            asked_by: Some(back.by.clone()),
            returns: Some(Return {
                session: back.session,
                agent: back.definition.clone(),
                first_message: back.first_message,
            }),
        })
    }
}
