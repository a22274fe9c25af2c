//! The ends of a call of a model without a reply that will do: its failure, and the request for a
//! repair.

use domain::digest::Salt;
use domain::message::{Draft, Message, Role};
use domain::model::{Prompt, Reply};
use domain::run::settle::Ended;
use domain::step::Failure;

/// Returns the end of a call without a reply. It is unknown what a program did that was cut off.
pub(super) fn failed(failure: &llm::Failure, also_failed: &[String]) -> Ended {
    if let llm::Failure::CutOff { .. } = failure {
        return Ended::Unknown(Failure::lasting("cut-off", failure.to_string()));
    }
    let message = match also_failed {
        [] => failure.to_string(),
        also => format!(
            "{failure}; asked instead, and without a reply too: {}",
            also.join(", ")
        ),
    };
    Ended::Failed(Failure {
        retryable: failure.retryable(),
        ..Failure::lasting(failure.code(), message)
    })
}

/// Adds the reply and its fault to the prompt. For this operation only: the thread never holds the
/// failed reply.
pub(super) fn ask_for_repair(prompt: &mut Prompt, reply: Reply, complaint: &str) {
    let next = prompt
        .messages
        .last()
        .map_or(1, |message: &Message| message.id + 1);
    let text = format!(
        "That reply does not fit the required JSON Schema: {complaint}\nReply again with \
                 nothing but the corrected JSON."
    );
    let said = Draft {
        role: Role::Assistant,
        parts: reply.parts,
        origin: reply.model,
        untrusted: false,
        speaker: None,
        answers: None,
    };
    prompt.messages.push(said.at(next, Salt::default()));
    prompt
        .messages
        .push(Draft::text(Role::User, "host", text).at(next + 1, Salt::default()));
}
