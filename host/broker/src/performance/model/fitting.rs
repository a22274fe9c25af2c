//! Prompts that exceed their model's window: the part to leave out is chosen, recorded, and left
//! out.
//!
//! The rules are the domain's ([`domain::prompt_cut`]). A summary of the part that is left out is a
//! further attempt of the call that needs it: charged and recorded before it is made. Without one,
//! the cut is made all the same.

use super::{Draw, Model, Payer, Trail};
use crate::performance::stopwatch::Stopwatch;
use crate::performance::telling::Telling;
use domain::budget::Amount;
use domain::compaction::{BLOB_TOKENS, bytes_for, estimated_tokens, is_due, material, text_tokens};
use domain::cut_off::CutOff;
use domain::digest::Salt;
use domain::event::BoundaryVerdict;
use domain::message::{Draft, Message, Part, Role, text_of};
use domain::model::Prompt;
use domain::operation::Attempt;
use domain::path::ModelRole;
use domain::prompt_cut::{PromptCut, Room, extended};
use domain::ruling::{MODEL_CALL, Rule};
use domain::run::compact::{INSTRUCTION, SYSTEM};
use domain::sampling::Sampling;
use domain::step::Failure;
use llm::fair_semaphore::Party;
use llm::{Afforded, AttemptBudget, Delta, DeltaSink, Measuring, ResolvedModel};

/// Part of the window by which a prompt and its reply may exceed it together before that counts: a
/// twentieth. Both are estimates.
const TOLERANCE_PART: u64 = 20;
/// Bytes of material that are reserved as a token. It is half as many as usual, so that a summary
/// hardly ever exceeds its reserve.
const RESERVED_TOKEN_BYTES: u64 = 2;
/// The code of a prompt that is too long for its model even when it is cut, as gateways return it.
const TOO_LONG: &str = "model-prompt-too-long";

/// The window that a prompt has to fit.
struct Window {
    /// Its size in tokens: the agent's own if that is smaller than its model's.
    tokens: u64,
    /// The size of its model's.
    of_model: u64,
}

impl Model<'_> {
    /// Cuts a prompt that is estimated to fill nine tenths of its model's window, or to leave no
    /// room for its reply.
    ///
    /// # Errors
    /// It is still too long, the thread could not be read, or a limit is reached.
    pub(super) async fn fit(&self, draw: &mut Draw, trail: &Trail<'_>) -> Result<(), Failure> {
        let Some((room, window)) = self.room(&draw.prompt) else {
            return Ok(());
        };
        let window_of_model = window.of_model;
        let window = window.tokens;
        let tokens = prompt_tokens(&draw.prompt);
        let with_reply = room.most.saturating_add(window / TOLERANCE_PART);
        if !is_due(tokens, window) && tokens <= with_reply {
            return Ok(());
        }
        self.cut_to(draw, room, trail).await?;
        let at_least = prompt_tokens(&draw.prompt).saturating_sub(blob_tokens(&draw.prompt));
        // The estimate may be too high for a model, which reports it itself. The operator's limit
        // is enforced only here.
        let is_cut = draw.cut != PromptCut::default();
        if at_least > window && (is_cut || window < window_of_model) {
            let whose = if window < window_of_model {
                "the agent's window (contextWindowSize)"
            } else {
                "its model's window"
            };
            return Err(Failure::lasting(
                TOO_LONG,
                format!(
                    "the prompt has about {at_least} tokens and {whose} has {window}, though all \
                     that may be left out is"
                ),
            ));
        }
        Ok(())
    }

    /// Cuts a prompt that its model refused as too long, and reserves another attempt. The material
    /// of a compaction is halved. Returns false when nothing more can be left out.
    ///
    /// # Errors
    /// When the thread could not be read, or a limit is reached.
    pub(super) async fn shorten(
        &self,
        draw: &mut Draw,
        trail: &Trail<'_>,
    ) -> Result<bool, Failure> {
        if let Some(compaction) = &self.started.compacts {
            let bytes: usize = draw
                .prompt
                .messages
                .iter()
                .map(|said| said.text().len())
                .sum();
            let material = self.to_be_summarised(compaction, bytes / 2).await;
            draw.prompt.messages = vec![material.map_err(super::PromptError::failure)?];
            return self.afford_again().await.map(|()| true);
        }
        let repairs = draw.prompt.messages.split_off(draw.said);
        let room = self.room(&draw.prompt);
        let tokens = prompt_tokens(&draw.prompt);
        let is_shorter = match room {
            Some((room, _)) => self.cut_to(draw, room.after_refusal(tokens), trail).await?,
            None => false,
        };
        draw.prompt.messages.extend(repairs);
        if !is_shorter {
            return Ok(false);
        }
        self.afford_again().await.map(|()| true)
    }

    async fn afford_again(&self) -> Result<(), Failure> {
        let afforded = self.attempts.afford(&[]).await;
        afforded
            .map(drop)
            .map_err(|reported| Failure::lasting("limit-reached", reported))
    }

    /// Returns the room for a prompt, and its window; none for a prompt that is not cut. A
    /// compaction's material is made to fit.
    fn room(&self, prompt: &Prompt) -> Option<(Room, Window)> {
        if self.started.compacts.is_some() {
            return None;
        }
        let model = prompt.model.as_deref();
        let route = self.gateway(model).resolve(model).ok()?;
        let of_model = route.context_window;
        let tokens = self.core.serving.window_of_run(self.started, of_model);
        let reply = prompt.max_tokens.map_or(0, u64::from);
        Some((Room::of(tokens, reply, 0), Window { tokens, of_model }))
    }

    /// Cuts a prompt to a room, as far as that is possible, and has the cut recorded. Returns
    /// whether anything was left out.
    async fn cut_to(
        &self,
        draw: &mut Draw,
        room: Room,
        trail: &Trail<'_>,
    ) -> Result<bool, Failure> {
        let source = self.source().await.map_err(super::PromptError::failure)?;
        let said = estimated_tokens(&draw.cut.apply(source.said.clone()));
        let room = Room {
            around: prompt_tokens(&draw.prompt).saturating_sub(said),
            ..room
        };
        let mut cut = extended(&draw.cut, &source.said, room);
        if !cut.goes_beyond(&draw.cut) {
            return Ok(false);
        }
        let left_out = cut.newly_left_out(&draw.cut, &source.said);
        let room = Room {
            summary: cut.summary_room(source.said.clone(), room),
            ..room
        };
        if !left_out.is_empty()
            && room.summary > 0
            && let Some(summary) = self
                .summary_of_cut(&draw.cut, &left_out, room, trail)
                .await?
        {
            cut = cut.summarised(&summary, room.summary);
        }
        let shown = estimated_tokens(&cut.apply(source.said.clone()));
        cut.tokens_after = room.around.saturating_add(shown);
        self.attempts.record_cut(&cut).await;
        tracing::info!(
            session.id = %self.started.session, run.id = %self.started.run,
            operation.id = %self.operation.id, tokens.before = cut.tokens_before,
            tokens.after = cut.tokens_after, "a prompt was cut to fit its model's window"
        );
        draw.prompt.messages = self
            .shown(source, &cut)
            .await
            .map_err(super::PromptError::failure)?;
        draw.said = draw.prompt.messages.len();
        draw.cut = cut;
        Ok(true)
    }

    /// Requests a summary of the part that is left out from the model of the role `memory`, or the
    /// call's own. None if a limit leaves too little for it, or the result was unusable.
    ///
    /// # Errors
    /// When nothing is left for the call itself.
    async fn summary_of_cut(
        &self,
        former: &PromptCut,
        left_out: &[Message],
        room: Room,
        trail: &Trail<'_>,
    ) -> Result<Option<String>, Failure> {
        let model = self.model_of_summary();
        let gateway = self.gateway(model.as_deref());
        let route = gateway.resolve(model.as_deref()).ok();
        let Some(route) = route.filter(|route| self.may_ask(route)) else {
            return Ok(None);
        };
        let summary_tokens_max = u32::try_from(room.summary).unwrap_or(u32::MAX);
        let bytes_max = bytes_for(route.context_window, summary_tokens_max);
        let text = material(former.summary.as_deref(), left_out, bytes_max);
        let Some(beside) = self.reserve_of_summary(&route, text.len(), room.summary) else {
            return Ok(None);
        };
        if let Err(reported) = self.attempts.again_beside(beside).await {
            tracing::info!(
                session.id = %self.started.session, reported, "what is left out of a prompt is not \
                summarised"
            );
            return Ok(None);
        }
        self.audit.decided(
            MODEL_CALL,
            BoundaryVerdict::Granted,
            Rule::Granted,
            &route.alias,
        );
        let prompt = summary_prompt(model, text, summary_tokens_max);
        let payer = OnlyOnce(self.payer());
        let unseen = Unseen {
            stopwatch: self.stopwatch,
            telling: Telling::new(self.core, self.started, self.operation, false),
        };
        let asked_model = prompt.model.as_deref();
        let asked = unseen.telling.asked(self.attempts.number(), asked_model);
        let completion = gateway
            .complete_leaving(&prompt, &unseen, trail, &payer)
            .await;
        self.attempts.summarised(&completion.attempts, beside);
        unseen.telling.answered(asked, &completion);
        // From here on the reservation is that of the call alone.
        if let Err(reported) = self.attempts.again(0).await {
            return Err(Failure::lasting("limit-reached", reported));
        }
        Ok(match completion.result {
            // The beginning of a summary is one.
            Ok(reply)
                if CutOff::of_stop(&reply.stop).is_none_or(|cut_off| cut_off == CutOff::Length) =>
            {
                Some(text_of(&reply.parts)).filter(|text| !text.trim().is_empty())
            }
            Ok(_) => None,
            Err(failure) => {
                tracing::warn!(
                    session.id = %self.started.session, error.code = failure.code(),
                    "what is left out of a prompt could not be summarised"
                );
                None
            }
        })
    }

    /// Returns the model that is asked for a summary; none for the default one.
    fn model_of_summary(&self) -> Option<String> {
        let began_with = self.core.serving.of_run(self.started);
        let models = &began_with.settings.paths.models;
        let model = models.get(&ModelRole::Memory).filter(|model| {
            let route = began_with.settings.gateway.resolve(Some(model));
            route.is_ok_and(|route| self.may_fall_back_to(&route.alias))
        });
        model.cloned().or_else(|| self.request.model.clone())
    }

    /// Returns the reservation for a summary; none if its cost is limited and not known.
    fn reserve_of_summary(
        &self,
        route: &ResolvedModel,
        bytes: usize,
        summary_tokens: u64,
    ) -> Option<Amount> {
        let prompt = (bytes as u64)
            .div_ceil(RESERVED_TOKEN_BYTES)
            .min(route.context_window);
        let cost_micros = match route.price {
            Some(price) => price.at_most(prompt, summary_tokens),
            None if self.started.limits.cost_micros_max.is_some() => return None,
            None => 0,
        };
        Some(Amount {
            tokens: prompt.saturating_add(summary_tokens),
            calls: 0,
            cost_micros,
        })
    }
}

/// Returns the request for a summary of some material.
fn summary_prompt(model: Option<String>, material: String, tokens_max: u32) -> Prompt {
    let draft = Draft {
        parts: vec![Part::text(material), Part::text(INSTRUCTION)],
        ..Draft::text(Role::User, "host", "")
    };
    Prompt {
        model,
        system: vec![SYSTEM.to_owned()],
        stable_blocks: 1,
        messages: vec![draft.at(1, Salt::default())],
        tools: Vec::new(),
        max_tokens: Some(tokens_max),
        reply_schema: None,
        sampling: Sampling::default(),
    }
}

/// Estimated tokens of a prompt.
fn prompt_tokens(prompt: &Prompt) -> u64 {
    let system = prompt.system.iter().map(String::len).sum::<usize>();
    let tools = prompt
        .tools
        .iter()
        .map(|tool| serde_json::to_vec(tool).map_or(0, |tool| tool.len()))
        .sum::<usize>();
    let schema = prompt
        .reply_schema
        .as_ref()
        .map_or(0, |schema| schema.to_string().len());
    estimated_tokens(&prompt.messages).saturating_add(text_tokens(system + tools + schema))
}

/// Tokens that a prompt's blobs are taken for.
fn blob_tokens(prompt: &Prompt) -> u64 {
    let blobs = prompt
        .messages
        .iter()
        .flat_map(|message| &message.parts)
        .filter(|part| matches!(part, Part::Blob { .. }))
        .count();
    BLOB_TOKENS.saturating_mul(blobs as u64)
}

/// The payer of a summary: one attempt is made at it, and no other model is asked instead.
#[derive(Debug)]
struct OnlyOnce<'a>(Payer<'a>);

impl AttemptBudget for OnlyOnce<'_> {
    fn first(&self) -> u32 {
        self.0.first()
    }

    fn afford<'a>(&'a self, _ended: &'a [Attempt]) -> Afforded<'a> {
        Box::pin(std::future::ready(Err(
            "one attempt is made at a summary".to_owned()
        )))
    }

    fn party(&self) -> Party {
        self.0.party()
    }

    fn measure(&self, quiet_ms: Option<u64>) -> Measuring<'_> {
        self.0.measure(quiet_ms)
    }
}

/// The sink of a summary, which no user is shown: the run still progresses with it, and telemetry
/// reports it.
struct Unseen<'a> {
    stopwatch: &'a Stopwatch,
    telling: Telling<'a>,
}

impl DeltaSink for Unseen<'_> {
    fn delta(&self, attempt: u32, seq: u64, delta: Delta) {
        self.stopwatch.progressed();
        self.telling.said(attempt, seq, &delta);
    }

    fn discarded(&self, attempt: u32) {
        self.telling.discarded(attempt);
    }
}
