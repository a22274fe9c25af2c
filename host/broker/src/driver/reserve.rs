//! The reservation for a model's call: the estimate of its prompt, and the most of its reply.

use super::context::SessionContext;
use super::driving::Driving;
use super::driving::THREAD_TOKENS_KEPT;
use crate::performance::attempts::Short;
use crate::performance::result::Thread;
use crate::resolved_config::ResolvedConfig;
use crate::shared::DriverError;
use domain::budget::{Amount, Available};
use domain::compaction::{estimated_tokens, parts_tokens, text_tokens};
use domain::event::RunStarted;
use domain::hints::estimated_bytes;
use domain::message::{Message, MessageId};
use domain::price::Price;
use domain::prompt_cut::PromptCut;
use domain::run::intake::Intake;
use domain::step::{Context, ModelRequest, Toolset};
use domain::tool::ToolDefinition;
use llm::ResolvedModel;
use std::sync::Arc;

/// The tokens that are reserved for a model's call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reserve {
    /// The estimate of its prompt.
    pub(super) prompt: u64,
    /// The most that its reply may have.
    pub(super) reply: u64,
}

impl Reserve {
    /// Creates a reserve, whose prompt is at most the model's window minus the reply.
    pub(super) fn of(prompt: u64, reply: u64, window: u64) -> Self {
        Self {
            prompt: prompt.min(window.saturating_sub(reply)),
            reply,
        }
    }

    pub(super) fn tokens(self) -> u64 {
        self.prompt.saturating_add(self.reply)
    }

    /// Returns the highest cost of the call; none if the model has no price.
    ///
    /// The error is the exceeded limit. `of` names the owner of the limits.
    pub(super) fn afforded(
        self,
        left: &Available,
        price: Option<Price>,
        of: &str,
    ) -> Result<Option<u64>, Short> {
        let micros = left
            .afford(price, self.prompt, self.reply)
            .map_err(|reported| Short {
                limit: "costMicrosMax",
                reported,
            })?;
        let needed = Amount {
            tokens: self.tokens(),
            ..Amount::default()
        };
        match left.short_of(needed, of) {
            Some((limit, reported)) => Err(Short { limit, reported }),
            None => Ok(micros),
        }
    }
}

/// The tokens that a model's call requests from the budget.
#[derive(Debug, Clone, Copy)]
pub(super) struct TokenRequest {
    /// The estimate of its prompt.
    prompt: u64,
    /// The maximum tokens of its reply.
    reply: u64,
    /// The reply without which the call is not made.
    least: u64,
    /// The tokens that the model can hold.
    window: u64,
}

impl TokenRequest {
    /// Creates the request of a call with a prompt of so many tokens.
    ///
    /// A call that names a limit of its reply requests exactly that. Any other requests the
    /// provider's usual maximum, and accepts `reserved_tokens`.
    fn of(
        request: &ModelRequest,
        route: &ResolvedModel,
        prompt: u64,
        reserved_tokens: u64,
    ) -> Self {
        let window = route.context_window;
        let (reply, least) = match request.max_tokens.map(u64::from) {
            Some(named) => (named, named),
            None => {
                let usual = route
                    .max_tokens
                    .or(route.default_output_tokens)
                    .map_or(reserved_tokens, u64::from);
                // Providers refuse a limit for which the prompt leaves no room in the window. The
                // prompt is only estimated: a tenth of the window is the reply's in any case.
                let room = window.saturating_sub(prompt).max(window / 10);
                let reply = usual.min(room).max(1);
                (reply, reply.min(reserved_tokens.max(1)))
            }
        };
        Self {
            prompt,
            reply,
            least,
            window,
        }
    }

    /// Returns the reservation that fits into the available budget, and the highest cost of the
    /// call if the model has a price. The reply is halved until it fits.
    ///
    /// The error is the limit that does not even allow the shortest reply. `of` names the owner of
    /// the limits.
    pub(super) fn within(
        self,
        left: &Available,
        price: Option<Price>,
        of: &str,
    ) -> Result<(Reserve, Option<u64>), Short> {
        let mut reply = self.reply;
        loop {
            let reserve = Reserve::of(self.prompt, reply, self.window);
            match reserve.afforded(left, price, of) {
                Ok(micros) => return Ok((reserve, micros)),
                Err(short) if reply <= self.least => return Err(short),
                Err(_) => reply = (reply / 2).max(self.least),
            }
        }
    }
}

/// A call of a model, and the way that it goes.
#[derive(Clone, Copy)]
pub(super) struct RoutedCall<'a> {
    pub(super) request: &'a ModelRequest,
    pub(super) route: &'a ResolvedModel,
}

/// The part of a conversation that a call is about.
struct CallConversation<'a> {
    /// Its first message.
    first: MessageId,
    /// True if it is the whole conversation.
    is_whole: bool,
    /// The messages of the run among them.
    own: Vec<&'a Message>,
}

impl SessionContext {
    /// Returns the request of a model's call: the estimate of its prompt, and the most of its
    /// reply.
    pub(super) async fn token_request(
        &self,
        driving: &Driving,
        resolved: &ResolvedConfig,
        intake: &Intake,
        call: RoutedCall<'_>,
    ) -> Result<TokenRequest, DriverError> {
        let RoutedCall { request, route } = call;
        let started = &driving.run.started;
        let first = match (request.context, started.compacted) {
            (Context::Whole, Some(compacted)) => compacted.kept_from,
            (context, _) => context.first(),
        };
        let own = driving
            .run
            .messages
            .iter()
            .map(Arc::as_ref)
            .chain(&intake.heard);
        let said = CallConversation {
            first,
            is_whole: request.context == Context::Whole,
            own: own.filter(|message| message.id >= first).collect(),
        };
        let asked = request.model.as_deref().or(started.model.as_deref());
        let cut = driving.run.cuts.get(asked.unwrap_or_default());
        let conversation = self.conversation_tokens(driving, &said, cut).await?;
        let system = request.system.iter().map(String::len).sum::<usize>();
        let shown = resolved.shown(&request.tools, route.operations);
        let tools: usize = shown.iter().map(ToolDefinition::shown_bytes).sum();
        let reported = match (&request.tools, started.sections) {
            (Toolset::All, Some(sections)) => usize::try_from(sections.bytes).unwrap_or(usize::MAX),
            (Toolset::All | Toolset::Named(_) | Toolset::None, _) => 0,
        };
        let noted = usize::try_from(estimated_bytes(&started.hints)).unwrap_or(usize::MAX);
        let prompt = conversation
            .saturating_add(text_tokens(noted))
            .saturating_add(text_tokens(reported))
            .saturating_add(text_tokens(system + tools))
            .saturating_add(parts_tokens(&request.also));
        let reserved_tokens = self.core.serving.limits_of_run(started).reserved_tokens;
        Ok(TokenRequest::of(request, route, prompt, reserved_tokens))
    }

    /// Returns the estimated tokens of a conversation as a model is shown it, with the cut that its
    /// prompts are made with.
    async fn conversation_tokens(
        &self,
        driving: &Driving,
        said: &CallConversation<'_>,
        cut: Option<&PromptCut>,
    ) -> Result<u64, DriverError> {
        let kept = driving.thread.get().cloned();
        let mut thread = kept.filter(|thread| said.is_whole && thread.first == said.first);
        let known = driving.thread_tokens.get().filter(|_| said.is_whole);
        let in_thread = match known {
            // The tokens that a cut removes are counted message by message.
            Some(tokens) if cut.is_none() || thread.is_some() => *tokens,
            _ => {
                let (tokens, messages) = self
                    .thread_before(&driving.run.started, said.first, said.is_whole)
                    .await?;
                let read = Arc::new(Thread {
                    first: said.first,
                    messages,
                });
                if said.is_whole {
                    let _ = driving.thread_tokens.set(tokens);
                    if tokens <= THREAD_TOKENS_KEPT {
                        // The prompt is made of the same messages.
                        let _ = driving.thread.set(read.clone());
                    }
                }
                thread = Some(read);
                tokens
            }
        };
        let own = || said.own.iter().copied();
        let uncut = in_thread.saturating_add(estimated_tokens(own()));
        Ok(match cut.zip(thread) {
            Some((cut, thread)) => {
                uncut.saturating_sub(cut.saved_tokens(thread.messages.iter().chain(own())))
            }
            None => uncut,
        })
    }

    /// Returns the estimated tokens of a run's earlier thread, from a message on, and those
    /// messages. The estimate includes the summary at the start of the thread if the whole thread
    /// is shown.
    async fn thread_before(
        &self,
        started: &RunStarted,
        first: MessageId,
        whole: bool,
    ) -> Result<(u64, Vec<Message>), DriverError> {
        let store = self.store();
        let summary = match started
            .compacted
            .filter(|compacted| whole && compacted.summary < first)
        {
            Some(compacted) => store.message(started.base, compacted.summary).await?,
            None => None,
        };
        let messages = if first <= started.base_message {
            store
                .messages(started.base, first, started.base_message)
                .await?
        } else {
            Vec::new()
        };
        Ok((estimated_tokens(summary.iter().chain(&messages)), messages))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::delegate::Presentation;
    use domain::step::Audience;

    /// Tokens that are reserved for a reply without any other limit.
    const RESERVED: u64 = 4_096;

    fn request(max_tokens: Option<u32>) -> ModelRequest {
        ModelRequest {
            system: Vec::new(),
            context: Context::Whole,
            also: Vec::new(),
            tools: Toolset::None,
            model: None,
            max_tokens,
            reply_schema: None,
            audience: Audience::User,
            sampling: domain::sampling::Sampling::default(),
        }
    }

    fn route(
        max_tokens: Option<u32>,
        default_output_tokens: Option<u32>,
        context_window: u64,
    ) -> ResolvedModel {
        ResolvedModel {
            alias: "m".to_owned(),
            provider: "p".to_owned(),
            model: "m".to_owned(),
            context_window,
            max_tokens,
            default_output_tokens,
            fallbacks: Vec::new(),
            operations: Presentation::One,
            is_program: false,
            price: None,
        }
    }

    fn left(tokens: u64, cost_micros: Option<u64>) -> Available {
        Available {
            tokens,
            calls: 0,
            cost_micros,
        }
    }

    /// The reply that a request gets, or the limit that leaves too little for any.
    fn reply(
        token_request: TokenRequest,
        left: Available,
        price: Option<Price>,
    ) -> Result<u64, &'static str> {
        let (reserve, micros) = token_request
            .within(&left, price, "this turn's limit")
            .map_err(|short| short.limit)?;
        assert!(
            reserve.tokens() <= left.tokens,
            "{token_request:?}: {left:?}"
        );
        let costs = micros.zip(left.cost_micros);
        assert!(
            costs.is_none_or(|(micros, left)| micros <= left),
            "{token_request:?}: {left:?}"
        );
        Ok(reserve.reply)
    }

    #[test]
    fn a_call_that_names_no_limit_wishes_for_what_its_provider_would_be_asked_for() {
        for (max_tokens, default_output_tokens, window, prompt, expected) in [
            (None, None, 128_000, 1_000, 4_096),
            (None, Some(8_192), 128_000, 1_000, 8_192),
            (Some(100), Some(8_192), 128_000, 1_000, 100),
            (Some(64_000), None, 128_000, 1_000, 64_000),
            // The window has room for no more.
            (None, None, 4_000, 1_000, 3_000),
            (None, None, 4_000, 9_000, 400),
        ] {
            let route = route(max_tokens, default_output_tokens, window);
            let token_request = TokenRequest::of(&request(None), &route, prompt, RESERVED);
            assert_eq!(
                reply(token_request, left(1_000_000, None), None),
                Ok(expected),
                "{route:?}"
            );
        }
    }

    #[test]
    fn a_reply_is_halved_until_it_fits_and_never_below_what_is_always_reserved() {
        let long = route(Some(64_000), None, 128_000);
        let token_request = TokenRequest::of(&request(None), &long, 1_000, RESERVED);
        for (tokens, expected) in [
            (65_000, Ok(64_000)),
            (64_999, Ok(32_000)),
            (9_000, Ok(8_000)),
            (8_999, Ok(4_096)),
            (5_096, Ok(4_096)),
            (5_095, Err("tokensMax")),
        ] {
            assert_eq!(
                reply(token_request, left(tokens, None), None),
                expected,
                "{tokens}"
            );
        }
        let price = Price::per_million(1.0, None, 2.0);
        for (micros, expected) in [
            (129_000, Ok(64_000)),
            (17_000, Ok(8_000)),
            (16_999, Ok(4_096)),
            (9_192, Ok(4_096)),
            (9_191, Err("costMicrosMax")),
        ] {
            let left = left(1_000_000, Some(micros));
            assert_eq!(reply(token_request, left, price), expected, "{micros}");
        }
        assert_eq!(
            reply(token_request, left(1_000_000, Some(1)), None),
            Err("costMicrosMax"),
            "without a price nobody knows what it costs"
        );
        // A model whose replies are short has no use for more.
        let short = route(Some(100), None, 128_000);
        let token_request = TokenRequest::of(&request(None), &short, 1_000, RESERVED);
        assert_eq!(reply(token_request, left(1_100, None), None), Ok(100));
        assert_eq!(
            reply(token_request, left(1_099, None), None),
            Err("tokensMax")
        );
    }

    #[test]
    fn a_limit_that_a_call_names_is_neither_lowered_nor_raised() {
        let route = route(Some(100), Some(8_192), 4_000);
        let token_request = TokenRequest::of(&request(Some(50_000)), &route, 1_000, RESERVED);
        assert_eq!(reply(token_request, left(50_000, None), None), Ok(50_000));
        assert_eq!(
            reply(token_request, left(49_999, None), None),
            Err("tokensMax")
        );
    }
}
