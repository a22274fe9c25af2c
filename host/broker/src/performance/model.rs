//! Calls of models: the prompt is assembled, the reply streamed, and structured replies are
//! checked.
//!
//! A structured reply that does not fit is repaired.

mod ending;
mod fitting;
mod parties;

use crate::computing::Computes;
use crate::core::Core;
use crate::live::Show;
use crate::performance::attempts::Attempts;
use crate::performance::result::{Performed, Thread};
use crate::performance::stopwatch::Stopwatch;
use crate::performance::telling::Telling;
use crate::schemas::GivenUp;
use domain::compaction::{
    Compacted, Compaction, Mark, bytes_for, estimated_tokens, material, shown,
};
use domain::cut_off::CutOff;
use domain::delegate::{self, Presentation};
use domain::digest::Salt;
use domain::event::RunStarted;
use domain::hints::{self, Noted};
use domain::json::bare;
use domain::limits::REPLY_REPAIRS_MAX;
use domain::message::{Draft, Message, MessageId, Part, Role, text_of};
use domain::model::{Prompt, Reply, arrange};
use domain::operation::Operation;
use domain::prompt_cut::PromptCut;
use domain::run::settle::Ended;
use domain::sections::{Section, SystemBlocks};
use domain::speaker;
use domain::step::{Audience, Context, Failure, ModelRequest, Toolset};
use domain::tool::{EffectClass, ToolDefinition};
use ending::{ask_for_repair, failed};
use llm::Failure::TooLong;
use llm::{DeltaSink, Gateway, ResolvedModel};
use parties::{Payer, Trail, Watchers};
use runtime::CallAudit;
use std::sync::{Arc, OnceLock};
use store::ReadError;

/// Times that a prompt is made shorter because its model refused it, each time to half.
const REFUSALS_MAX: u32 = 4;
/// Bytes of a run's sections that are kept in memory from one call of a model to the next.
const SECTIONS_BYTES_KEPT: u64 = 262_144;

/// The reason why a prompt cannot be assembled.
#[derive(Debug, thiserror::Error)]
enum PromptError {
    #[error("the store could not be read")]
    Read(#[from] ReadError),
    #[error("{0} is missing")]
    Missing(String),
}

impl PromptError {
    /// Returns the failure of the call.
    fn failure(self) -> Failure {
        match self {
            Self::Missing(what) => Failure::lasting("not-found", format!("{what} is gone")),
            error @ Self::Read(_) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "a prompt could not be assembled"
                );
                Failure::passing("unavailable", "the thread could not be read")
            }
        }
    }
}

/// The part of a conversation that a prompt is made from.
struct Source {
    /// The summary with which the thread begins, if it was compacted.
    summary: Option<Message>,
    /// The messages of the thread and of the run, in the order of their places.
    said: Vec<Message>,
}

/// A prompt, and its cut.
struct Draw {
    prompt: Prompt,
    cut: PromptCut,
    /// Number of its messages without the requests for a repair.
    said: usize,
}

/// One call of a model.
pub(crate) struct Model<'a> {
    pub(crate) core: &'a Arc<Core>,
    pub(crate) started: &'a RunStarted,
    /// The run's messages that it sends.
    pub(crate) messages: &'a [Arc<Message>],
    /// The messages of the thread before the run, where they are at hand.
    pub(crate) thread: Option<Arc<Thread>>,
    /// The sections of the run's prompts, once they were read.
    pub(crate) sections: &'a OnceLock<Vec<Section>>,
    /// The recorded cut that its prompt is made with.
    pub(crate) cut: Option<&'a PromptCut>,
    pub(crate) operation: &'a Operation,
    pub(crate) request: &'a ModelRequest,
    pub(crate) through: u64,
    /// The call audit for requests that leave the host.
    pub(crate) audit: &'a CallAudit,
    /// The stopwatch, which runs while the model is at work: neither while the call waits for a
    /// place nor in the pauses between attempts.
    pub(crate) stopwatch: &'a Stopwatch,
    /// The note that the session is computed for: not while the model is waited for.
    pub(crate) computes: &'a Computes,
    pub(crate) attempts: Attempts<'a>,
}

impl Model<'_> {
    pub(crate) async fn perform(self) -> Performed {
        let draw = match self.draw().await {
            Ok(draw) => draw,
            Err(error) => return Performed::ended(Ended::Failed(error.failure())),
        };
        let computes = self.computes;
        computes.while_polled(Box::pin(self.asked(draw))).await
    }

    async fn asked(self, mut draw: Draw) -> Performed {
        self.give_way().await;
        let _place = self.core.model_calls.enter(self.started.into()).await;
        let watched = self.request.audience == Audience::User;
        let deltas = Watchers {
            core: self.core,
            started: self.started,
            operation: self.operation,
            stopwatch: self.stopwatch,
            watched,
            streams: self.core.serving.streams(self.started),
            telling: Telling::new(self.core, self.started, self.operation, watched),
        };
        deltas.show(
            self.attempts.number(),
            0,
            Show::Performing {
                what: format!(
                    "model:{}",
                    self.request.model.as_deref().unwrap_or("default")
                ),
            },
        );
        let trail = Trail {
            audit: self.audit,
            records: self.audit.records(),
        };
        let ended = match Box::pin(self.fit(&mut draw, &trail)).await {
            Ok(()) => Box::pin(self.ask(&mut draw, &deltas, &trail)).await,
            Err(failure) => Ended::Failed(failure),
        };
        Performed {
            attempts: self.attempts.into_ended(),
            ..Performed::ended(ended)
        }
    }

    /// Returns the models among which the call asks one.
    fn gateway(&self, model: Option<&str>) -> Arc<Gateway> {
        self.core.serving.gateway_of_run(self.started, model)
    }

    /// Returns whether the call may use a model. A program in a model's place is started only by a
    /// call that is recorded as not repeatable.
    fn may_ask(&self, route: &ResolvedModel) -> bool {
        !route.is_program || self.operation.effect == EffectClass::NonIdempotent
    }

    /// Returns whether a reply may be requested again. A program without a lasting session would
    /// get the whole conversation again, and repeat its work.
    fn may_repair(&self, reply: &Reply) -> bool {
        let mut parts = reply.parts.iter();
        self.operation.effect != EffectClass::NonIdempotent
            || parts.any(|part| matches!(part, Part::Opaque { .. }))
    }

    /// Returns whether a reply is empty for no known reason, and may be requested once more.
    fn is_to_answer(&self, reply: &Reply) -> bool {
        let is_silent = |part: &Part| match part {
            Part::Text { text } => text.trim().is_empty(),
            Part::Opaque { .. } => true,
            Part::Call { .. } | Part::Blob { .. } => false,
        };
        CutOff::of_stop(&reply.stop).is_none()
            && reply.parts.iter().all(is_silent)
            && self.may_repair(reply)
    }

    /// Returns the JSON of a reply without the text around it.
    fn unwrapped(&self, mut reply: Reply) -> Reply {
        let text = text_of(&reply.parts);
        let document = bare(&text);
        let is_call = |part: &Part| matches!(part, Part::Call { .. });
        if self.request.reply_schema.is_some()
            && document.len() < text.trim().len()
            && !reply.parts.iter().any(is_call)
        {
            reply
                .parts
                .retain(|part| !matches!(part, Part::Text { .. }));
            reply.parts.push(Part::text(document));
        }
        reply
    }

    /// Returns the models among which the call asks its own.
    ///
    /// # Errors
    /// A program took the model's place, or the default model was taken away, since the call began.
    fn asked_gateway(&self) -> Result<Arc<Gateway>, Failure> {
        let model = self.request.model.as_deref();
        let gateway = self.gateway(model);
        if self.core.serving.has_lost_default(self.started, model) {
            let reported = "the default model was taken away while it was asked";
            return Err(Failure::lasting("model-unavailable", reported));
        }
        match gateway.resolve(model) {
            Ok(route) if !self.may_ask(&route) => Err(Failure::passing(
                "model-unavailable",
                "a program took the model's place while it was asked; ask again",
            )),
            Ok(_) | Err(_) => Ok(gateway),
        }
    }

    /// Calls the model until there is an acceptable reply, or none can be had.
    async fn ask(&self, draw: &mut Draw, deltas: &Watchers<'_>, trail: &Trail<'_>) -> Ended {
        let mut repairs = 0;
        let mut refusals = 0;
        let mut has_asked_anew = false;
        loop {
            let model = self.request.model.as_deref();
            let gateway = match self.asked_gateway() {
                Ok(gateway) => gateway,
                Err(changed) => return Ended::Failed(changed),
            };
            let asked = deltas.telling.asked(self.attempts.number(), model);
            let completion = gateway
                .complete_leaving(&draw.prompt, deltas, trail, &self.payer())
                .await;
            self.attempts.completed(&completion.attempts);
            deltas.telling.answered(asked, &completion);
            self.search_outages(&gateway).await;
            let reply = match completion.result {
                Ok(reply) => reply,
                Err(failure) => {
                    // The estimate was too low: it is cut harder.
                    if matches!(failure, TooLong { .. }) && refusals < REFUSALS_MAX {
                        refusals += 1;
                        match Box::pin(self.shorten(draw, trail)).await {
                            Ok(true) => continue,
                            Ok(false) => {}
                            Err(short) => return Ended::Failed(short),
                        }
                    }
                    return failed(&failure, &completion.also_failed);
                }
            };
            let complaint = match self.complaint(&reply).await {
                Ok(Some(complaint)) => match CutOff::of_stop(&reply.stop) {
                    None => complaint,
                    Some(cut_off @ CutOff::Length) => {
                        format!("{}, so make it shorter: {complaint}", cut_off.said())
                    }
                    // A further call would end in the same way.
                    Some(cut_off @ (CutOff::ContentFilter | CutOff::Refusal)) => {
                        return Ended::Failed(Failure::lasting("invalid-reply", cut_off.said()));
                    }
                },
                Ok(None) if !has_asked_anew && self.is_to_answer(&reply) => {
                    has_asked_anew = true;
                    deltas.discarded(self.attempts.number());
                    match self.attempts.again(0).await {
                        Ok(()) => continue,
                        Err(_) => return Ended::Replied(reply),
                    }
                }
                Ok(None) => return Ended::Replied(self.unwrapped(reply)),
                Err(given_up) => return Ended::Failed(given_up.failure()),
            };
            if repairs == REPLY_REPAIRS_MAX || !self.may_repair(&reply) {
                return Ended::Failed(Failure::lasting(
                    "invalid-reply",
                    format!("the reply does not fit its schema: {complaint}"),
                ));
            }
            repairs += 1;
            deltas.discarded(self.attempts.number());
            let said = draw.prompt.messages.len();
            ask_for_repair(&mut draw.prompt, reply, &complaint);
            let more = estimated_tokens(draw.prompt.messages.iter().skip(said));
            if let Err(reported) = self.attempts.again(more).await {
                return Ended::Failed(Failure::lasting("limit-reached", reported));
            }
        }
    }

    /// Records the state of providers after a call.
    async fn search_outages(&self, gateway: &Gateway) {
        let core = self.core;
        core.outages
            .inspect(&core.store, &core.clock, gateway)
            .await;
    }

    fn payer(&self) -> Payer<'_> {
        Payer {
            started: self.started,
            attempts: &self.attempts,
            stopwatch: self.stopwatch,
            refused: self.refused_fallbacks(),
        }
    }

    /// Makes the prompt, with the cut that is on record.
    async fn draw(&self) -> Result<Draw, PromptError> {
        let cut = self.cut.cloned().unwrap_or_default();
        let source = match &self.started.compacts {
            Some(compaction) => Source {
                summary: None,
                said: vec![self.to_be_summarised(compaction, usize::MAX).await?],
            },
            None => self.source().await?,
        };
        let messages = self.shown(source, &cut).await?;
        let tools = self.tools().await?;
        // A tool's output may be in a block, so the explanation stays as it is in a run.
        let has_blocks = !tools.is_empty() || speaker::has_blocks(&messages);
        let system = self.system().await?.explaining(has_blocks);
        Ok(Draw {
            said: messages.len(),
            prompt: Prompt {
                model: self.request.model.clone(),
                system: system.texts,
                stable_blocks: system.stable,
                messages,
                tools,
                max_tokens: self.request.max_tokens,
                reply_schema: self.request.reply_schema.clone(),
                sampling: self.request.sampling.clone(),
            },
            cut,
        })
    }

    /// Returns the system prompt: the agent's own blocks, followed by the sections that the run
    /// began with. A call that may not use all of the agent's tools gets no sections about them,
    /// and neither does a program, which has tools of its own.
    async fn system(&self) -> Result<SystemBlocks, PromptError> {
        let system = SystemBlocks::of_agent(self.request.system.clone());
        let (Toolset::All, Some(frozen)) = (&self.request.tools, self.started.sections) else {
            return Ok(system);
        };
        let model = self.request.model.as_deref();
        if !self.gateway(model).takes_tools(model) {
            return Ok(system);
        }
        let gone = || PromptError::Missing("what this turn's prompts say of its tools".to_owned());
        if let Some(sections) = self.sections.get() {
            return Ok(system.followed_by(sections));
        }
        let stored = self.core.store.blob(frozen.digest).await?;
        let sections: Vec<Section> = stored
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .ok_or_else(gone)?;
        let system = system.followed_by(&sections);
        if frozen.bytes <= SECTIONS_BYTES_KEPT {
            let _ = self.sections.set(sections);
        }
        Ok(system)
    }

    /// Returns the part of the conversation that the model may see.
    async fn source(&self) -> Result<Source, PromptError> {
        Ok(match (self.started.compacted, self.request.context) {
            (Some(compacted), Context::Whole) => Source {
                summary: Some(self.summary(compacted).await?),
                said: self.said(compacted.kept_from).await?,
            },
            (_, context) => Source {
                summary: None,
                said: self.said(context.first()).await?,
            },
        })
    }

    /// Returns the messages of the prompt: the conversation without the cut parts, and the messages
    /// for this call only.
    ///
    /// # Errors
    /// The notes that it hints at could not be read.
    async fn shown(&self, source: Source, cut: &PromptCut) -> Result<Vec<Message>, PromptError> {
        let said = cut.apply(source.said);
        let mut messages = match source.summary {
            Some(summary) => shown(summary, said),
            None => arrange(said),
        };
        self.add_hints(&mut messages).await?;
        if !self.request.also.is_empty() {
            let draft = Draft {
                role: Role::User,
                parts: self.request.also.clone(),
                origin: "agent".into(),
                untrusted: false,
                speaker: None,
                answers: None,
            };
            messages.push(draft.at(self.through + 1, Salt::default()));
        }
        let model = self.request.model.as_deref();
        if !self.gateway(model).is_script(model) {
            messages.iter_mut().for_each(delegate::show_content);
        }
        speaker::show(&mut messages);
        Ok(messages)
    }

    /// Adds the notes that the run began with, before its own first message: the earlier
    /// conversation stays the beginning of the prompt, which a provider may have cached. The newest
    /// comes first, however well it fits, so that a correction precedes the note that it corrects.
    ///
    /// A note that was forgotten meanwhile is left out.
    async fn add_hints(&self, messages: &mut Vec<Message>) -> Result<(), PromptError> {
        if self.started.hints.is_empty() {
            return Ok(());
        }
        let named = self.started.hints.iter().map(|hint| hint.note).collect();
        let mut notes = self
            .core
            .store
            .notes_named(self.started.agent, named)
            .await?;
        notes.sort_by_key(|note| std::cmp::Reverse(note.position));
        let noted: Vec<Noted<'_>> = notes
            .iter()
            .map(|note| Noted {
                text: &note.text,
                time: note.time,
                untrusted: note.untrusted,
            })
            .collect();
        let Some(text) = hints::block(&noted) else {
            return Ok(());
        };
        let draft = Draft {
            untrusted: notes.iter().any(|note| note.untrusted),
            ..Draft::text(Role::User, hints::ORIGIN, text)
        };
        let base_message = self.started.base_message;
        let place = messages
            .iter()
            .position(|message| message.id > base_message)
            .unwrap_or(messages.len());
        messages.insert(place, draft.at(base_message, Salt::default()));
        Ok(())
    }

    /// Returns the messages from one on, of the thread and of the run.
    async fn said(&self, first: MessageId) -> Result<Vec<Message>, PromptError> {
        let base_message = self.started.base_message;
        let at_hand = self.thread.as_ref().filter(|thread| thread.first == first);
        let mut messages = match at_hand {
            Some(thread) => thread.messages.clone(),
            None if first <= base_message => {
                self.core
                    .store
                    .messages(self.started.base, first, base_message)
                    .await?
            }
            None => Vec::new(),
        };
        messages.extend(self.messages.iter().map(|message| Message::clone(message)));
        Ok(messages)
    }

    /// Returns the summary with which the thread begins.
    async fn summary(&self, compacted: Compacted) -> Result<Message, PromptError> {
        let summary = self
            .core
            .store
            .message(self.started.base, compacted.summary)
            .await?;
        summary
            .ok_or_else(|| PromptError::Missing("the summary of what was said before".to_owned()))
    }

    /// Returns the material that a model is to summarise, as one message.
    ///
    /// It is as much as fits into the smallest window of the models that may be called, within the
    /// maximum of bytes.
    async fn to_be_summarised(
        &self,
        compaction: &Compaction,
        bytes_max: usize,
    ) -> Result<Message, PromptError> {
        // From another conversation only the messages since the user switched to it.
        let (thread, compacted, first) = match &compaction.returns {
            Some(back) => (
                Some(compaction.summarized_through),
                None,
                back.first_message,
            ),
            None => {
                let compacted = self.started.compacted;
                let first = compacted.map_or(1, |compacted| compacted.kept_from);
                (self.started.base, compacted, first)
            }
        };
        let former = match compacted {
            Some(compacted) => Some(self.summary(compacted).await?.text()),
            None => None,
        };
        let mut messages = self
            .core
            .store
            .messages(thread, first, compaction.through_message)
            .await?;
        messages.retain(|message| Mark::of(message).is_none());
        messages.iter_mut().for_each(delegate::show_content);
        let gateway = self.gateway(self.request.model.as_deref());
        let asked = gateway.resolve(self.request.model.as_deref());
        let fallbacks = asked
            .iter()
            .flat_map(|route| &route.fallbacks)
            .filter_map(|alias| gateway.resolve(Some(alias)).ok());
        let window = fallbacks
            .chain(asked.clone())
            .map(|route| route.context_window)
            .min()
            .unwrap_or_default();
        let text = material(
            former.as_deref(),
            &messages,
            bytes_for(window, compaction.summary_tokens_max).min(bytes_max),
        );
        Ok(Draft::text(Role::User, "host", text).at(self.through, Salt::default()))
    }

    /// Returns the tools that the model may call, as the run began with them.
    ///
    /// They are the same in the same order in every call of a turn.
    async fn tools(&self) -> Result<Vec<ToolDefinition>, PromptError> {
        let gone = || PromptError::Missing("the tools that this turn began with".to_owned());
        let resolved = self
            .core
            .serving
            .config_of_run(&self.core.store, self.started)
            .await?
            .ok_or_else(gone)?;
        let model = self.request.model.as_deref();
        let of_model = self.gateway(model).resolve(model);
        let of_model = of_model.map_or(Presentation::One, |model| model.operations);
        Ok(resolved.shown(&self.request.tools, of_model))
    }

    /// Returns the fault of a reply that was to fit a schema. A reply that calls tools is not the
    /// final one and is not judged.
    async fn complaint(&self, reply: &Reply) -> Result<Option<String>, GivenUp> {
        let Some(schema) = &self.request.reply_schema else {
            return Ok(None);
        };
        if reply
            .parts
            .iter()
            .any(|part| matches!(part, Part::Call { .. }))
        {
            return Ok(None);
        }
        match domain::json::parse(bare(&text_of(&reply.parts))) {
            Ok(document) => self.core.schemas.judge(schema, document).await,
            Err(refused) => Ok(Some(refused.to_string())),
        }
    }
}
