//! `wasi:logging`: lines for the call's log.

use crate::bindings::agent::agent_host::plugin::types;
use crate::bindings::agent::wasi::logging::logging;
use crate::call::CallState;
use crate::convert::same;
use crate::log::Level;

impl logging::Host for CallState {
    fn log(
        &mut self,
        level: logging::Level,
        context: String,
        message: String,
    ) -> wasmtime::Result<()> {
        let level = same!(
            level,
            logging::Level => Level: Trace, Debug, Info, Warn, Error, Critical
        );
        self.log.write(level, &context, &message);
        Ok(())
    }
}

impl types::Host for CallState {}
