//! The rule file: what a rule asks for and what it replies.

use crate::provider::scripted::Situation;
use crate::provider::scripted::said::SaidPattern;
use crate::provider::scripted::template::Fill;
use domain::message::Role;
use domain::model::Stop;
use domain::sampling::ReasoningEffort;
use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

/// A rule file: TOML, rules in their order under `[[rule]]`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Rules {
    #[serde(rename = "rule")]
    pub(super) rules: Vec<Rule>,
}

/// One rule.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Rule {
    /// All of it must hold. Empty: always.
    #[serde(default)]
    when: When,
    pub(super) reply: Reply,
}

/// The condition under which a rule applies.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct When {
    /// The author of the last message.
    last: Option<Last>,
    /// A regular expression somewhere in the last message of the user's.
    user: Option<Pattern>,
    /// Text in the last message of the user's, whatever its case.
    user_contains: Option<String>,
    /// A regular expression somewhere in one of the user's messages before that, of which notes
    /// from memory and notices of the host's are some. It may have words in it that `user` caught.
    said: Option<SaidPattern>,
    /// The tool of the newest result since then.
    result_of: Option<String>,
    /// A regular expression somewhere in that result.
    result: Option<Pattern>,
    /// Text in that result, whatever its case.
    result_contains: Option<String>,
    /// Number of results since the last message of the user's.
    results: Option<Count>,
    /// Text in the system prompt, which tells agents apart.
    agent: Option<String>,
    /// Tools that the model may call.
    tools: Vec<String>,
    /// The temperature of the request.
    temperature: Option<f64>,
    /// Stop sequences of the request.
    stop: Vec<String>,
    /// The effort of the request.
    reasoning_effort: Option<ReasoningEffort>,
    /// Tokens of the reply, at most, as the request has them.
    max_tokens: Option<u32>,
}

impl When {
    /// Returns whether a request is sent with the settings that a rule asks for.
    fn holds_of_sampling(&self, situation: &Situation<'_>) -> bool {
        let sampling = situation.sampling;
        (self.temperature.is_none() || self.temperature == sampling.temperature)
            && self.stop.iter().all(|stop| sampling.stop.contains(stop))
            && (self.reasoning_effort.is_none()
                || self.reasoning_effort == sampling.reasoning_effort)
            && (self.max_tokens.is_none() || self.max_tokens == situation.max_tokens)
    }

    /// Returns a group whose words `said` needs and `user` does not have.
    fn missing_group(&self) -> Option<&str> {
        let mut needed = self.said.as_ref()?.groups().into_iter();
        let user = self.user.as_ref();
        needed.find(|group| user.is_none_or(|Pattern(user)| !has_group(user, group)))
    }
}

/// Returns whether a pattern has a group of this name or number.
fn has_group(pattern: &Regex, group: &str) -> bool {
    let number = group.parse::<usize>();
    number.is_ok_and(|number| number < pattern.captures_len())
        || pattern.capture_names().flatten().any(|name| name == group)
}

/// A regular expression, compiled when the file is read. The engine takes linear time.
#[derive(Debug)]
struct Pattern(Regex);

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Regex::new(&text)
            .map(Self)
            .map_err(serde::de::Error::custom)
    }
}

/// The author of the last message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Last {
    User,
    Assistant,
    Tool,
    Notice,
}

/// A number, or a range of them.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged, expecting = "a number, or a table of `min` and `max`")]
enum Count {
    Exactly(usize),
    Between {
        #[serde(default)]
        min: usize,
        #[serde(default = "no_limit")]
        max: usize,
    },
}

fn no_limit() -> usize {
    usize::MAX
}

/// The reply of a rule.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Reply {
    /// Its text: a template.
    pub(super) text: String,
    /// True to reply with made-up JSON, and nothing else, where the request wants JSON of a schema.
    pub(super) fits: bool,
    /// Its calls.
    pub(super) calls: Vec<Call>,
    /// Milliseconds before the first word.
    pub(super) first_delay_ms: u64,
    /// Milliseconds before each word.
    pub(super) delay_ms: u64,
    /// The reason why the reply is not whole; none for a whole one.
    pub(super) stop: Option<Stopping>,
    /// Not to reply at all.
    pub(super) fail: Option<Failing>,
}

/// The reason why a scripted reply is not whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Stopping {
    Length,
    ContentFilter,
    Refusal,
}

impl From<Stopping> for Stop {
    fn from(stopping: Stopping) -> Self {
        match stopping {
            Stopping::Length => Self::Length,
            Stopping::ContentFilter => Self::Filtered,
            Stopping::Refusal => Self::Refused,
        }
    }
}

/// A call.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Call {
    /// The tool: a template.
    pub(super) tool: String,
    /// The arguments, in which every text is a template.
    #[serde(default = "no_arguments")]
    pub(super) arguments: Value,
}

fn no_arguments() -> Value {
    Value::Object(serde_json::Map::new())
}

/// A way to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Failing {
    Unavailable,
    RateLimited,
    Refused,
    Garbage,
    TooLong,
    /// Its text comes, and then the reply breaks off: its usage is not known.
    CutShort,
}

impl Rules {
    /// Reads a rule file. The error says what is wrong and where.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let rules: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        for (number, rule) in (1..).zip(&rules.rules) {
            if let Some(group) = rule.when.missing_group() {
                return Err(format!(
                    "rule {number}: `${{{group}}}` in `when.said` is no group of `when.user`"
                ));
            }
        }
        Ok(rules)
    }
}

impl Rule {
    /// Returns the values for the reply's templates, if the rule applies.
    pub(super) fn matches<'a>(&'a self, situation: &'a Situation<'_>) -> Option<Fill<'a>> {
        let When {
            last,
            user,
            user_contains,
            said,
            result_of,
            result,
            result_contains,
            results,
            agent,
            tools,
            temperature: _,
            stop: _,
            reasoning_effort: _,
            max_tokens: _,
        } = &self.when;
        let newest = situation.result();
        let text = newest.as_ref().map(|(text, _)| text.as_str());
        let holds = last.is_none_or(|last| situation.last.is_some_and(|role| last.is(role)))
            && user_contains
                .as_ref()
                .is_none_or(|part| contains(&situation.user, part))
            && result_of
                .as_ref()
                .is_none_or(|tool| newest.as_ref().is_some_and(|(_, of)| of == tool))
            && result_contains
                .as_ref()
                .is_none_or(|part| text.is_some_and(|text| contains(text, part)))
            && results.is_none_or(|count| count.holds(situation.results.len()))
            && agent
                .as_ref()
                .is_none_or(|marker| situation.system.contains(marker))
            && tools
                .iter()
                .all(|tool| situation.tools.contains(&tool.as_str()))
            && self.when.holds_of_sampling(situation);
        if !holds {
            return None;
        }
        let of_result = match (result, text) {
            (Some(Pattern(pattern)), Some(text)) => Some(captures(pattern, text)?),
            (Some(_), None) => return None,
            (None, _) => None,
        };
        let of_user = match user {
            Some(Pattern(pattern)) => Some(captures(pattern, &situation.user)?),
            None => None,
        };
        let of_said = match said {
            Some(pattern) => {
                let expression = pattern.expression(of_user.as_deref().unwrap_or_default())?;
                let mut said = situation.said.iter();
                Some(said.find_map(|text| captures(&expression, text))?)
            }
            None => None,
        };
        // What a name or number stands for is looked up from the front.
        let all_caught = [of_user, of_said, of_result];
        Some(Fill {
            captures: all_caught.into_iter().flatten().flatten().collect(),
            user: &situation.user,
            result: newest.map(|(text, _)| text).unwrap_or_default(),
            results: situation.all_results(),
        })
    }
}

impl Last {
    fn is(self, role: Role) -> bool {
        match role {
            Role::User => self == Self::User,
            Role::Assistant => self == Self::Assistant,
            Role::Tool => self == Self::Tool,
            Role::Notice => self == Self::Notice,
        }
    }
}

impl Count {
    fn holds(self, number: usize) -> bool {
        match self {
            Self::Exactly(exactly) => number == exactly,
            Self::Between { min, max } => (min..=max).contains(&number),
        }
    }
}

fn contains(text: &str, part: &str) -> bool {
    text.to_lowercase().contains(&part.to_lowercase())
}

/// Returns the captures of a pattern: each group under its number and, if it has one, its name.
fn captures(pattern: &Regex, text: &str) -> Option<Vec<(String, String)>> {
    let found = pattern.captures(text)?;
    let mut caught = Vec::new();
    for (number, (group, name)) in found.iter().zip(pattern.capture_names()).enumerate() {
        let value = group
            .map(|group| group.as_str().to_owned())
            .unwrap_or_default();
        caught.extend(name.map(|name| (name.to_owned(), value.clone())));
        caught.push((number.to_string(), value));
    }
    Some(caught)
}
