//! Parts that all operations share: results of tools, requests to a model, the room of a reply.

use agent_host_sdk::{Blob, ModelRequest, Outcome, Part, Settlement, Turn, text_of};

/// Tokens that a turn must have left for a model to be asked.
pub(crate) const MODEL_TOKENS_MIN: u64 = 2_000;

/// Bytes of a reply, so that whoever delegated sees all of it: the host keeps text over 32 KiB as a
/// blob. Generated files may take more.
pub(crate) const REPLY_BYTES_MAX: usize = 28 << 10;

/// Bytes of a result that are read from a blob.
const RESULT_BYTES_MAX: u64 = 4 << 20;
/// Bytes that are read from a blob at once.
const BLOB_CHUNK_BYTES: u32 = 1 << 20;

/// Returns an error if the agent may not use one of these tools.
pub(crate) fn need_tools(turn: Turn<'_>, names: &[&str]) -> Result<(), String> {
    let has = turn.tool_names();
    match names
        .iter()
        .find(|name| !has.iter().any(|one| one == *name))
    {
        None => Ok(()),
        Some(missing) => Err(format!(
            "this coder has no tool `{missing}`; the operator adds it to its `toolAllowlist`"
        )),
    }
}

/// Returns the text of an operation's result, whole also where the host keeps it as a blob.
///
/// # Errors
/// Why there is none.
pub(crate) fn text_from(turn: Turn<'_>, settlement: &Settlement) -> Result<String, String> {
    let parts = match &settlement.outcome {
        Outcome::Parts(parts) => parts,
        outcome => return Err(outcome.to_string()),
    };
    let blob = parts.iter().find_map(|part| match part {
        Part::Blob(blob) => Some(blob),
        Part::Text(_) | Part::Call(_) | Part::Opaque(_) => None,
    });
    match blob {
        Some(blob) => text_of_blob(turn, blob),
        None => Ok(text_of(parts)),
    }
}

fn text_of_blob(turn: Turn<'_>, blob: &Blob) -> Result<String, String> {
    if blob.size > RESULT_BYTES_MAX {
        return Err(format!("a result has more than {RESULT_BYTES_MAX} bytes"));
    }
    let mut bytes = Vec::new();
    loop {
        let offset = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if offset >= blob.size {
            return String::from_utf8(bytes).map_err(|_| "a result is not text".to_owned());
        }
        match turn.read_blob(&blob.handle, offset, BLOB_CHUNK_BYTES) {
            Some(chunk) if !chunk.is_empty() => bytes.extend(chunk),
            Some(_) | None => return Err("a result is gone".to_owned()),
        }
    }
}

/// A hidden request that shows the model nothing but these words and this data.
pub(crate) fn hidden_request(turn: Turn<'_>, rules: &str, data: String) -> ModelRequest {
    ModelRequest::for_task(turn, [rules])
        .without_thread(turn)
        .with_also(data)
        .hidden()
}
