//! Asking a model: assemble the prompt, stream to whoever watches, validate and repair structured replies.

use crate::core::Core;
use crate::driver::{Performed, Trouble};
use crate::live::{Frame, Show};
use crate::outfit::complaints;
use domain::authority::Rule;
use domain::event::{RunStarted, Verdict};
use domain::grant::capability;
use domain::limits::REPLY_REPAIRS_MAX;
use domain::message::{Draft, Message, Part, Role, text_of};
use domain::model::{Prompt, Reply, arrange};
use domain::operation::Operation;
use domain::run::settle::Ended;
use domain::step::{Audience, Failure, ModelRequest, Toolset};
use domain::tool::ToolDefinition;
use llm::{Delta, DeltaSink, Records};
use runtime::Dossier;
use std::sync::Arc;

/// One call of a model.
pub(crate) struct Model<'a> {
    pub(crate) core: &'a Arc<Core>,
    pub(crate) started: &'a RunStarted,
    /// The run's messages that it sends.
    pub(crate) messages: &'a [Arc<Message>],
    pub(crate) operation: &'a Operation,
    pub(crate) request: &'a ModelRequest,
    pub(crate) through: u64,
    /// What goes out is noted here.
    pub(crate) dossier: &'a Dossier,
}

impl Model<'_> {
    pub(crate) async fn perform(self) -> Performed {
        let mut prompt = match self.prompt().await {
            Ok(prompt) => prompt,
            Err(Trouble::Missing(what)) => {
                return Performed::ended(Ended::Failed(Failure::lasting("not-found", format!("{what} is gone"))));
            }
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "a prompt could not be assembled");
                return Performed::ended(Ended::Failed(Failure::passing("unavailable", "the thread could not be read")));
            }
        };
        let _place = self.core.model_calls.enter(self.started.into()).await;
        let watched = self.request.audience == Audience::User;
        let deltas = Watchers { core: self.core, started: self.started, operation: self.operation, watched };
        deltas.show(0, 0, Show::Performing { what: format!("model:{}", self.request.model.as_deref().unwrap_or("default")) });
        let trail = Trail { dossier: self.dossier, records: self.dossier.records() };
        let mut performed = Performed::ended(Ended::Unknown);
        let mut repairs = 0;
        loop {
            let completion = self.core.gateway.complete_leaving(&prompt, &deltas, &trail).await;
            performed.attempts.extend(completion.attempts);
            let reply = match completion.result {
                Ok(reply) => reply,
                Err(failure) => {
                    let told = Failure { code: failure.code().to_owned(), message: failure.to_string(), retryable: failure.retryable() };
                    performed.came_to = crate::driver::CameTo::End(Ended::Failed(told));
                    return performed;
                }
            };
            let Some(complaint) = self.complaint(&reply) else {
                performed.came_to = crate::driver::CameTo::End(Ended::Replied(reply));
                return performed;
            };
            if repairs == REPLY_REPAIRS_MAX {
                let told = Failure::lasting("invalid-reply", format!("the reply does not fit its schema: {complaint}"));
                performed.came_to = crate::driver::CameTo::End(Ended::Failed(told));
                return performed;
            }
            repairs += 1;
            ask_for_repair(&mut prompt, reply, &complaint);
        }
    }

    async fn prompt(&self) -> Result<Prompt, Trouble> {
        let first = self.request.context.first();
        let base_message = self.started.base_message;
        let mut messages = Vec::new();
        if first <= base_message {
            messages = self.core.store.messages(self.started.base, first, base_message).await?;
        }
        messages.extend(self.messages.iter().map(|message| Message::clone(message)));
        let mut messages = arrange(messages);
        if !self.request.also.is_empty() {
            let draft =
                Draft { role: Role::User, parts: self.request.also.clone(), origin: "agent".into(), untrusted: false, answers: None };
            messages.push(draft.at(self.through + 1, domain::digest::Salt::default()));
        }
        Ok(Prompt {
            model: self.request.model.clone(),
            system: self.request.system.clone(),
            messages,
            tools: self.tools().await?,
            max_tokens: self.request.max_tokens,
            reply_schema: self.request.reply_schema.clone(),
        })
    }

    /// The tools that it may call, as the run began with them: the same ones in the same order in every call of a turn.
    async fn tools(&self) -> Result<Vec<ToolDefinition>, Trouble> {
        let gone = || Trouble::Missing("the tools that this turn began with".to_owned());
        let outfit = self.core.outfits.of_run(&self.core.store, self.started).await?.ok_or_else(gone)?;
        Ok(match &self.request.tools {
            Toolset::All => outfit.tool_list.to_vec(),
            Toolset::Named(names) => outfit.tool_list.iter().filter(|tool| names.contains(&tool.name)).cloned().collect(),
            Toolset::None => Vec::new(),
        })
    }

    /// What is wrong with a reply that was to fit a schema. A reply that calls tools is not the final one and is not judged.
    fn complaint(&self, reply: &Reply) -> Option<String> {
        let schema = self.request.reply_schema.as_ref()?;
        if reply.parts.iter().any(|part| matches!(part, Part::Call { .. })) {
            return None;
        }
        match domain::json::parse(text_of(&reply.parts).trim()) {
            Ok(document) => complaints(&jsonschema::validator_for(schema).ok()?, &document),
            Err(refused) => Some(refused.to_string()),
        }
    }
}

/// Shows the model its reply and what is wrong with it. For this operation only: the thread never holds the failed reply.
fn ask_for_repair(prompt: &mut Prompt, reply: Reply, complaint: &str) {
    let next = prompt.messages.last().map_or(1, |message: &Message| message.id + 1);
    let text = format!("That reply does not fit the required JSON Schema: {complaint}\nReply again with nothing but the corrected JSON.");
    let said = Draft { role: Role::Assistant, parts: reply.parts, origin: reply.model, untrusted: false, answers: None };
    prompt.messages.push(said.at(next, domain::digest::Salt::default()));
    prompt.messages.push(Draft::text(Role::User, "host", text).at(next + 1, domain::digest::Salt::default()));
}

/// What the call does at the boundary, for its entry in the ledger.
#[derive(Debug)]
struct Trail<'a> {
    dossier: &'a Dossier,
    records: Arc<dyn Records>,
}

impl llm::Trail for Trail<'_> {
    fn records(&self) -> Arc<dyn Records> {
        self.records.clone()
    }

    fn key_used(&self, used: &str) {
        self.dossier.decided(capability::SECRETS_USE, Verdict::Granted, Rule::Granted, used);
    }
}

/// Whoever watches the session.
struct Watchers<'a> {
    core: &'a Core,
    started: &'a RunStarted,
    operation: &'a Operation,
    watched: bool,
}

impl Watchers<'_> {
    fn show(&self, attempt: u32, seq: u64, show: Show) {
        if self.watched {
            let started = self.started;
            let (agent, session, run) = (started.agent, started.session, started.run);
            self.core.live.show(Frame { agent, session, run, operation: self.operation.id, attempt, seq, show });
        }
    }
}

impl DeltaSink for Watchers<'_> {
    fn delta(&self, attempt: u32, seq: u64, delta: Delta) {
        let show = match delta {
            Delta::Text(text) => Show::Text(text),
            Delta::Thinking(text) => Show::Thinking(text),
            Delta::CallStarted { name, .. } => Show::CallStarted { name },
        };
        self.show(attempt, seq, show);
    }

    fn discarded(&self, attempt: u32) {
        self.show(attempt, 0, Show::Discarded);
    }
}
