//! The budget of a step: what may still be begun so that the report can be written after it.

use agent_host_sdk::{LimitsLeft, ModelRequest, text_of};

/// Bytes of a prompt that are counted as one token.
const BYTES_PER_TOKEN: u64 = 3;
/// Tokens that stay for the report: its reply, its instructions, and a repair of it.
const REPORT_TOKENS: u64 = 16_000;
/// Tokens that a request without a limit of its own is taken to reply with.
const REPLY_TOKENS: u64 = 4_000;

/// A kind of work, by what has to come after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begins {
    /// Questions are planned; then a search, and what follows from it.
    Plan,
    /// A search; then pages, and what follows from them.
    Search,
    /// Pages; then notes, and what follows from them.
    Read,
    /// Notes; then the report.
    Note,
    /// The report; then its reply.
    Report,
}

impl Begins {
    /// Further steps without which it ends in nothing.
    fn steps(self) -> u32 {
        match self {
            Self::Plan => 5,
            Self::Search => 4,
            Self::Read => 3,
            Self::Note => 2,
            Self::Report => 1,
        }
    }
}

/// The budget that is left to a step, less what the step has begun.
#[derive(Debug)]
pub(crate) struct Budget {
    pub(crate) left: LimitsLeft,
    /// True if the time for reading has passed.
    pub(crate) is_late: bool,
}

impl Budget {
    /// Says why something may not be begun; none if it may. Late, what was read is still noted and
    /// reported.
    pub(crate) fn against(&self, what: Begins) -> Option<&'static str> {
        let is_for_time = matches!(what, Begins::Plan | Begins::Search | Begins::Read);
        if self.left.steps < what.steps() {
            Some("the steps of the turn were nearly used up")
        } else if self.is_late && is_for_time {
            Some("its time was over")
        } else {
            None
        }
    }

    /// Takes one tool call, and returns whether there was one.
    pub(crate) fn take_call(&mut self) -> bool {
        let is_there = self.left.tool_calls > 0;
        self.left.tool_calls = self.left.tool_calls.saturating_sub(1);
        is_there
    }

    /// Takes the tokens of a request, and returns whether there were as many. `notes` bytes are
    /// kept for the prompt of the report, and its reply.
    pub(crate) fn take_tokens(&mut self, request: &ModelRequest, notes: usize) -> bool {
        let kept = REPORT_TOKENS.saturating_add(notes as u64 / BYTES_PER_TOKEN);
        let wanted = tokens(request);
        let is_there = self.left.tokens >= wanted.saturating_add(kept);
        if is_there {
            self.left.tokens = self.left.tokens.saturating_sub(wanted);
        }
        is_there
    }

    /// Returns whether the report can still be asked for.
    pub(crate) fn covers_report(&self, request: &ModelRequest) -> bool {
        self.left.tokens >= tokens(request)
    }
}

/// The tokens that a request may take.
fn tokens(request: &ModelRequest) -> u64 {
    let system: usize = request.system.iter().map(String::len).sum();
    let prompt = (system + text_of(&request.also).len()) as u64 / BYTES_PER_TOKEN;
    prompt.saturating_add(request.max_tokens.map_or(REPLY_TOKENS, u64::from))
}
