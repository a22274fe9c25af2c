//! Command lines: their calls, and the outcomes that they receive.
//!
//! A call is a separate operation, with its own outcome. The agent that requested the line receives
//! only the line's outcome.

use super::{Corrupt, Open, Run, Within};
use crate::values::id::OperationId;
use crate::work::operation::{Called, CommandCall, Continuation, Settlement};

impl Run {
    pub(super) fn apply_continued(&mut self, continuation: &Continuation) -> Result<(), Corrupt> {
        self.recoveries = 0;
        self.segments_bytes += continuation.left_bytes();
        let open = self.open_mut(continuation.operation)?;
        open.segment = continuation.segment;
        open.state = Some(continuation.state.clone());
        open.pause = continuation.pause.clone();
        open.answer = None;
        open.sent = None;
        open.calling = continuation.call.as_ref().map(|call| call.started.id);
        self.spending.work(continuation.active_ms);
        if let Some(call) = &continuation.call {
            self.start_call(continuation.operation, call);
        }
        Ok(())
    }

    /// Starts a call of a command line. Guests do not see it, so it takes none of their keys.
    fn start_call(&mut self, line: OperationId, call: &CommandCall) {
        self.begin_operation(&call.started, call.time);
        self.name_call(call.started.id, &call.tool);
        if let Some(open) = self.open.get_mut(&call.started.id) {
            open.within = Some(Box::new(Within {
                line,
                tool: call.tool.clone(),
                arguments: call.arguments.clone(),
            }));
        }
    }

    /// Gives a command line the outcome of its call. A finished line receives nothing more.
    pub(super) fn tell_line(&mut self, call: &Open, settlement: &Settlement) {
        let Some(within) = &call.within else {
            return;
        };
        if let Some(line) = self.open.get_mut(&within.line) {
            line.calling = None;
            line.called.push(Called {
                tool: within.tool.clone(),
                arguments: within.arguments.clone(),
                outcome: settlement.outcome.clone(),
                untrusted: settlement.is_untrusted(),
            });
        }
    }
}
