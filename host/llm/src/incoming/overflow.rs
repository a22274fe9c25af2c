//! Recognition of a prompt that does not fit its model. There is no standard: servers say it by
//! status, by a code, in numbers, or in words alone.

use regex::{Regex, RegexSet};
use std::sync::LazyLock;

/// Codes that say it.
const CODES: [&str; 11] = [
    "context_length_exceeded",
    "exceed_context_size_error",
    "context_window_exceeded",
    "model_context_window_exceeded",
    "contextwindowexceedederror",
    "request_too_large",
    "tokens_limit_reached",
    "prompt_too_long",
    "input_too_long",
    "context_overflow",
    "model_max_prompt_tokens_exceeded",
];
/// The least number that can be a model's window.
const WINDOW_MIN: u64 = 256;

/// Words that say it, in small letters.
static PHRASES: LazyLock<Option<RegexSet>> = LazyLock::new(|| {
    RegexSet::new([
        r"(prompt|input|inputs|query|context|conversation|request|messages?) (is|are|was|were)? ?(way |far )?(too (long|large|big|many)|over the)",
        r"(prompt|input|request|context|history|conversation)[^.\n]{0,60} too (long|large)( for| to |;|,|$)",
        r"maximum (context|prompt|input|sequence) ?(window|length|size)?",
        r"max(imum)? (context|prompt|input|sequence)[ _]?(window|length|len|size|tokens)",
        r"context[ _-]?(window|length|size|limit)",
        r"(input|prompt|inputs)[^.\n]{0,60}(exceed|longer than|larger than|greater than|over the)",
        r"(prompt|input|messages)[^.\n]{0,40}max length",
        r"(input|prompt)[^.\n]{0,20} token count",
        r"exceed[a-z]* (the |its |your )?(model('s)? )?(max(imum)? )?(model )?(token|tokens|context|prompt|input) (limit|count|length|size)",
        r"number of (input |prompt )?tokens[^.\n]{0,60}(exceed|allowed|greater|limit)",
        r"(total )?message size[^.\n]{0,30}exceed",
        r"too many (input |prompt )?tokens",
        r"token limit exceeded",
        r"(tokens|inputs`?)[^\n]{0,60}must (be <=|have less than|be less than|not exceed)",
        r"range of input length",
        r"(exceed|over)[^.\n]{0,20} max message tokens",
        r"reduce (the length|your (message|prompt|input)|the (message|prompt|input|number of))",
        r"(shorten|truncate) (the|your) (prompt|input|messages|conversation|context)",
        r"(does|do|will|would|can) ?(not|n't|n’t) fit",
        r"(kv cache|context) (is )?(full|overflow)",
        r"payload size[^.\n]{0,20}exceed",
        r"'messages(\[\d+\]\.content)?': (string|array) too long",
        r"expected maxlength: \d{4,}",
        r"max(imum)? (input|prompt) characters",
        r"sequence length[^.\n]{0,40}(exceed|greater|longer)",
        r"(提示词|输入|上下文|prompt|tokens?)[^\n]{0,12}(超长|过长|超过|超出)",
    ])
    .ok()
});
/// Words of a limit on what is spent in some time.
const OF_RATE: [&str; 17] = [
    "rate limit",
    "per minute",
    "per min",
    "per second",
    "per hour",
    "per day",
    "daily",
    "weekly",
    "monthly",
    "please wait",
    "每分钟",
    "tpm",
    "rpm",
    "quota",
    "throttl",
    "too many requests",
    "concurren",
];
/// Words of the limit of a reply, which a shorter prompt does not change.
const OF_REPLY: [&str; 4] = [
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "maxoutputtokens",
];
/// Words of other things that are too long or too many.
const OF_OTHERS: [&str; 11] = [
    "function.name",
    "tool_calls",
    "tools",
    "tool_call_id",
    "description",
    "stop sequence",
    "'stop'",
    "metadata",
    "image",
    "property keys",
    "schema",
];
static NUMBERS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\d[\d,_]*").ok());

/// Returns whether an error says that the prompt does not fit, by its status, its codes and its
/// words in small letters.
pub(super) fn is_reported(status: u16, codes: &[String], words: &str) -> bool {
    if codes.iter().any(|code| CODES.contains(&code.as_str())) {
        return true;
    }
    let has = |known: &[&str]| known.iter().any(|known| words.contains(known));
    if has(&OF_RATE) {
        // One request over the limit of a minute never fits it.
        let asked = number_behind(words, "requested").zip(number_behind(words, "limit"));
        return asked.is_some_and(|(asked, limit)| asked > limit);
    }
    if status == 413 {
        return true;
    }
    let is_of_prompt = ["prompt", "input", "context", "messages"]
        .iter()
        .any(|known| words.contains(known));
    if has(&OF_REPLY) && !is_of_prompt {
        return false;
    }
    let is_of_others = has(&OF_OTHERS) && !words.contains("context") && !words.contains("token");
    !is_of_others
        && (PHRASES
            .as_ref()
            .is_some_and(|phrases| phrases.is_match(words))
            || is_counted(words))
}

/// Returns whether a number of tokens is told with a smaller one that it exceeds.
fn is_counted(words: &str) -> bool {
    let exceeds = [
        "exceed",
        "too ",
        "more than",
        "greater than",
        "longer than",
        "larger than",
        "above",
        "limit",
        "maximum",
        "at most",
        "only",
        ">",
    ];
    if !words.contains("token") || !exceeds.iter().any(|known| words.contains(known)) {
        return false;
    }
    let numbers = NUMBERS.iter().flat_map(|numbers| numbers.find_iter(words));
    let mut counts: Vec<u64> = numbers
        .filter_map(|number| number.as_str().replace([',', '_'], "").parse().ok())
        .filter(|count| *count >= WINDOW_MIN)
        .collect();
    counts.sort_unstable();
    counts.dedup();
    counts.len() > 1
}

/// Returns the first number behind a word.
fn number_behind(words: &str, word: &str) -> Option<u64> {
    let mut places = words.match_indices(word);
    places.find_map(|(at, _)| {
        let behind = words
            .get(at + word.len()..)?
            .trim_start_matches([':', ' ', '=']);
        let number = NUMBERS
            .as_ref()?
            .find(behind)
            .filter(|number| number.start() == 0)?;
        number.as_str().replace([',', '_'], "").parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(words: &str) -> bool {
        is_reported(400, &[], &words.to_lowercase())
    }

    #[test]
    fn a_prompt_that_does_not_fit_is_recognised_in_the_words_of_many_servers() {
        for words in [
            "prompt is too long: 208310 tokens > 200000 maximum",
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again",
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
            "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).",
            "Unable to submit request because the input token count is 40000 but model only supports up to 32767.",
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            "Invalid request: Your request exceeded model token limit: 262144",
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 9000",
            "Input validation error: `inputs` must have less than 1024 tokens. Given: 2000",
            "Input is too long for requested model.",
            "Please reduce the length of the messages or completion.",
            "prompt token count of 130000 exceeds the limit of 128000",
            "tokens to keep from the initial prompt is greater than the context length",
            "Context size has been exceeded.",
            "the request exceeds the available context size, try increasing it",
            "invalid params, context window exceeds limit (2013)",
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            "prompt too long; exceeded max context length by 5 tokens",
            "Requested token count exceeds the model's maximum context length of 4096 tokens.",
            "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
            "Range of input length should be [1, 30720]",
            "Prompt exceeds max length",
            "too many tokens: total number of tokens in the prompt cannot exceed 4081",
            "Requested tokens (5000) exceed context window of 4096",
            "Prompt length (5000) exceeds maximum input length (4096)",
            "Total tokens of image and text exceed max message tokens",
            "输入内容过长",
            "Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 10036, please reduce your message size",
            "We counted 70000 tokens, and at most 65536 are allowed here",
            "Request payload size exceeds the limit: 20971520 bytes.",
            "Invalid 'messages[1].content': string too long. Expected a string with maximum length 10485760, but got a string with length 10500000 instead.",
            "Invalid 'messages': array too long. Expected an array with maximum length 2048, but got an array with length 2100 instead.",
            "Malformed input request: expected maxLength: 51200, actual: 60000, please reformat your input and try again.",
            "the max input characters is 24000",
            "请求的tokens数量超过模型限制",
        ] {
            assert!(reported(words), "{words}");
        }
    }

    #[test]
    fn other_refusals_are_not_taken_for_a_prompt_that_does_not_fit() {
        for words in [
            "Invalid 'messages[2].tool_calls[0].function.name': string too long. Expected a string with maximum length 64, but got a string with length 70 instead.",
            "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 200 instead.",
            "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000.",
            "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 28000, Requested 4000. Please try again in 4s.",
            "You exceeded your current quota, please check your plan and billing details.",
            "Too many tokens, please wait before trying again.",
            "Monthly token limit exceeded",
            "This request requires more credits, or fewer max_tokens. You requested up to 32000 tokens, but can only afford 1234.",
            "Incorrect API key provided",
            "The model `gpt-9` does not exist or you do not have access to it.",
            "Failed to initialize samplers: failed to parse grammar",
            "Conversation roles must alternate user/assistant/user/assistant/...",
            "temperature must be at most 2",
        ] {
            assert!(!reported(words), "{words}");
        }
    }
}
