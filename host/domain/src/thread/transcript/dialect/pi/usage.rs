//! Tokens as pi counts them: those read from a cache, and those written to it, apart from the rest
//! of the prompt.

use crate::thread::model::Usage;
use crate::thread::transcript::fault::TranscriptFault;
use crate::thread::transcript::line::Fields;
use serde_json::{Value, json};

/// Returns a usage in pi's fields. Costs are not known here and are 0.
pub(super) fn shown(usage: Usage) -> Value {
    json!({
        "input": usage.input_tokens.saturating_sub(usage.cached_tokens), "output": usage.output_tokens, "cacheRead": usage.cached_tokens,
        "cacheWrite": 0, "totalTokens": usage.total(), "cost": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0 },
    })
}

/// Reads the usage of an assistant's message. Missing fields are zero.
pub(super) fn read(message: &Fields<'_>) -> Result<Usage, TranscriptFault> {
    let Some(used) = message.object("usage")? else {
        return Ok(Usage::default());
    };
    let cached_tokens = used.count("cacheRead")?;
    let prompt = used
        .count("input")?
        .saturating_add(cached_tokens)
        .saturating_add(used.count("cacheWrite")?);
    Ok(Usage {
        input_tokens: prompt,
        output_tokens: used.count("output")?,
        cached_tokens,
    })
}
