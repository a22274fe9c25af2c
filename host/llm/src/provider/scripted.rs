//! A model that is none: replies from a rule file, for demos, examples and tests without key and
//! network.
//!
//! Rules are tried in their order; the first that matches replies. Nothing is remembered between
//! calls: everything that a rule can ask for stands in the prompt, so the same prompt always gets
//! the same reply.
//!
//! ```toml
//! [[rule]]
//! # All of these are optional, and all that are given must hold.
//! when.last = "user"              # whose message is the last: user, assistant, tool or notice
//! when.agent = "the assistant"    # text in the system prompt
//! when.user = '(?i)write (.+) to (\S+)'  # a pattern in the last message of the user's; or userContains = "text"
//! when.said = 'likes (\w+)'        # a pattern in an earlier message of the user's, in a notice of
//!                                 # the host's, or in notes; `${name}` in it is what a group of
//!                                 # `user` matched
//! # The block in which a model is shown whose words they are is no part of them.
//! when.resultOf = "delegate"      # the tool of the newest result since then
//! when.result = '"status":"ok"'   # a pattern in that result; or resultContains = "text"
//! when.results = 0                # how many results since then; or { min = 1, max = 3 }
//! when.tools = ["delegate"]       # tools that must be there to be called
//! when.temperature = 0.5          # as the request is sent; and reasoningEffort = "low",
//! when.stop = ["END"]             # stop sequences that the request has, and maxTokens = 100
//! reply.text = "I will write $2. {result}"
//! reply.fits = true               # where JSON of a schema is wanted: made-up JSON that fits, alone
//! reply.calls = [{ tool = "delegate", arguments = { task = "write", path = "$2" } }]
//! reply.firstDelayMs = 0          # before the first word
//! reply.delayMs = 0               # before each word
//! # reply.stop = "length"         # or content_filter, refusal: the reply is not whole, and says so
//! # reply.fail = "unavailable"    # or rate-limited, refused, garbage, too-long: no reply at all; or
//! #                               # cut-short: the text comes, and then it breaks off
//! ```

mod rules;
mod said;
mod template;

use crate::config::ConfigProblem;
use crate::delta::Feed;
use crate::failure::{Failure, Reason, Refusal};
use crate::peer::Peer;
use crate::provider::{Answer, Ask, OwnWork};
use crate::retry::{AttemptError, Mode, Stage};
use domain::message::{Message, Part, Role};
use domain::model::{Prompt, Stop, Usage};
use domain::sample;
use domain::sampling::Sampling;
use domain::speaker::without_block;
use rules::{Failing, Rule, Rules};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;
use template::Fill;

/// Bytes of a rule file.
const SCRIPT_BYTES_MAX: u64 = 1 << 20;

/// A rule file, ready for use.
pub(crate) struct Script {
    path: PathBuf,
    rules: Vec<Rule>,
}

/// The facts that a rule can look at.
pub(super) struct Situation<'a> {
    pub(super) system: String,
    pub(super) last: Option<Role>,
    pub(super) user: String,
    /// The messages of the user's before that, the newest first. Notes from memory are among them,
    /// and notices of the host's, which real models hear as the user's too.
    pub(super) said: Vec<String>,
    /// Tool results since the last message of the user's, the newest last.
    pub(super) results: Vec<&'a Message>,
    pub(super) tools: Vec<&'a str>,
    /// The settings that the request is sent with.
    pub(super) sampling: &'a Sampling,
    /// Tokens of the reply, at most.
    pub(super) max_tokens: Option<u32>,
}

impl<'a> Situation<'a> {
    fn new(prompt: &'a Prompt) -> Self {
        let user = prompt
            .messages
            .iter()
            .rposition(|message| message.role == Role::User);
        let since = prompt
            .messages
            .get(user.map_or(0, |at| at + 1)..)
            .unwrap_or_default();
        Self {
            system: prompt.system.join("\n"),
            last: prompt.messages.last().map(|message| message.role),
            user: user
                .and_then(|at| prompt.messages.get(at))
                .map(said)
                .unwrap_or_default(),
            said: prompt
                .messages
                .get(..user.unwrap_or_default())
                .unwrap_or_default()
                .iter()
                .rev()
                .filter(|message| matches!(message.role, Role::User | Role::Notice))
                .map(said)
                .collect(),
            results: since
                .iter()
                .filter(|message| message.role == Role::Tool)
                .collect(),
            tools: prompt.tools.iter().map(|tool| tool.name.as_str()).collect(),
            sampling: &prompt.sampling,
            max_tokens: prompt.max_tokens,
        }
    }

    /// The texts of all tool results since the last message of the user's, one after the other.
    pub(super) fn all_results(&self) -> String {
        let texts: Vec<String> = self.results.iter().map(|message| said(message)).collect();
        texts.join("\n")
    }

    /// The newest tool result: its text and the tool's name.
    pub(super) fn result(&self) -> Option<(String, &str)> {
        let message = self.results.last()?;
        Some((
            said(message),
            message
                .answers
                .as_ref()
                .map_or("", |answers| answers.name.as_str()),
        ))
    }
}

impl Script {
    /// Reads a rule file.
    pub(crate) fn read(path: &Path) -> Result<Self, ConfigProblem> {
        let unreadable = |source| ConfigProblem::Unreadable {
            path: path.to_owned(),
            source,
        };
        let mut text = String::new();
        std::fs::File::open(path)
            .map_err(unreadable)?
            .take(SCRIPT_BYTES_MAX)
            .read_to_string(&mut text)
            .map_err(unreadable)?;
        let Rules { rules } = Rules::parse(&text).map_err(|problem| ConfigProblem::Script {
            path: path.to_owned(),
            problem,
        })?;
        Ok(Self {
            path: path.to_owned(),
            rules,
        })
    }

    /// Replies as the first rule that matches says.
    pub(crate) async fn ask(
        &self,
        ask: &Ask<'_>,
        mode: Mode,
        feed: &Feed<'_>,
    ) -> Result<Answer, AttemptError> {
        let situation = Situation::new(ask.prompt);
        let matched = self
            .rules
            .iter()
            .find_map(|rule| Some((rule, rule.matches(&situation)?)));
        let Some((rule, fill)) = matched else {
            let text = self.no_rule(&situation);
            feed.text(&text);
            return Ok(answer(ask, vec![Part::Text { text }]));
        };
        if let Some(failing) = rule
            .reply
            .fail
            .filter(|failing| *failing != Failing::CutShort)
        {
            return Err(failure(ask, mode, failing));
        }
        let parts = parts(rule, &fill, ask.prompt);
        pause(rule.reply.first_delay_ms).await;
        let mut index = 0;
        for part in &parts {
            match part {
                Part::Text { text } => {
                    for word in text.split_inclusive(char::is_whitespace) {
                        pause(rule.reply.delay_ms).await;
                        feed.text(word);
                    }
                }
                Part::Call { name, .. } => {
                    feed.call(index, name);
                    index += 1;
                }
                Part::Blob { .. } | Part::Opaque { .. } => {}
            }
        }
        match rule.reply.fail {
            Some(failing) => Err(failure(ask, mode, failing)),
            None => {
                let answer = answer(ask, parts);
                let stop = rule.reply.stop.map(Stop::from);
                Ok(Answer {
                    stop: stop.unwrap_or(answer.stop),
                    ..answer
                })
            }
        }
    }

    fn no_rule(&self, situation: &Situation<'_>) -> String {
        let (what, text) = match (situation.last, situation.result()) {
            (Some(Role::Tool), Some((text, tool))) => (format!("the result of {tool}"), text),
            _ => ("your message".to_owned(), situation.user.clone()),
        };
        let shown = crate::key::clean(&text, None, 100);
        format!(
            "I am a scripted model, not a real one, and no rule in {} answers {what}: \"{shown}\". \
             Add a rule, or configure a real model.",
            self.path.file_name().unwrap_or_default().display()
        )
    }
}

/// Returns what a message says, without the block in which models are shown whose words it is:
/// rules are about words alone.
fn said(message: &Message) -> String {
    without_block(&message.text()).to_owned()
}

async fn pause(ms: u64) {
    if ms > 0 {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

fn parts(rule: &Rule, fill: &Fill<'_>, prompt: &Prompt) -> Vec<Part> {
    if let Some(schema) = prompt.reply_schema.as_ref().filter(|_| rule.reply.fits) {
        return vec![Part::text(sample::fitting_any(schema).to_string())];
    }
    let text = fill.text(&rule.reply.text);
    let text = (!text.is_empty()).then_some(Part::Text { text });
    // The id says where in the thread the call stands, so that it is the same whenever the call is
    // repeated.
    let position = prompt.messages.len();
    let calls = rule
        .reply
        .calls
        .iter()
        .enumerate()
        .map(|(index, call)| Part::Call {
            call_id: format!("scripted_{position}_{index}"),
            name: fill.text(&call.tool),
            arguments: fill.value(&call.arguments).to_string(),
        });
    text.into_iter().chain(calls).collect()
}

fn answer(ask: &Ask<'_>, parts: Vec<Part>) -> Answer {
    let calls = parts.iter().any(|part| matches!(part, Part::Call { .. }));
    let output_tokens: u64 = parts.iter().map(count_words).sum();
    let system: u64 = ask.prompt.system.iter().map(|text| count(text)).sum();
    let heard: u64 = ask
        .prompt
        .messages
        .iter()
        .flat_map(|message| &message.parts)
        .map(count_words)
        .sum();
    let usage = Usage {
        input_tokens: system + heard,
        output_tokens,
        cached_tokens: 0,
    };
    Answer {
        parts,
        stop: if calls { Stop::ToolCalls } else { Stop::End },
        usage: Some(usage),
        own_work: OwnWork::default(),
    }
}

/// Counts the words of a part, which stand for tokens.
fn count_words(part: &Part) -> u64 {
    match part {
        Part::Text { text } => count(text),
        Part::Call {
            name, arguments, ..
        } => count(name) + count(arguments),
        Part::Blob { .. } | Part::Opaque { .. } => 1,
    }
}

fn count(text: &str) -> u64 {
    // A prompt may have a thousand lines of items, and is counted at each call.
    let words = match text.is_ascii() {
        true => text.split_ascii_whitespace().count(),
        false => text.split_whitespace().count(),
    };
    u64::try_from(words).unwrap_or(u64::MAX)
}

fn failure(ask: &Ask<'_>, mode: Mode, failing: Failing) -> AttemptError {
    let peer = Peer {
        provider: ask.provider,
        model: ask.model,
        key: None,
    };
    let failure: Failure = match failing {
        Failing::Unavailable => peer.unavailable(Reason::Scripted, ""),
        Failing::RateLimited => peer.rate_limited(None, "the rule file says so"),
        Failing::Refused => peer.refused(0, Refusal::Request, "the rule file says so"),
        Failing::Garbage => peer.garbage("the rule file says so", ""),
        Failing::TooLong => peer.too_long("the rule file says so"),
        Failing::CutShort => peer.unavailable(Reason::CutShort, "the rule file says so"),
    };
    let stage = if failing == Failing::CutShort {
        Stage::Begun
    } else {
        Stage::Answered
    };
    AttemptError::new(mode, stage, failure)
}

#[cfg(test)]
mod tests;
