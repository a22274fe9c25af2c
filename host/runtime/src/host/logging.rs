//! `wasi:logging`: lines for the call's log.

use crate::bindings::agent::agent_host::plugin::types;
use crate::bindings::agent::wasi::logging::logging;
use crate::call::CallState;
use crate::log::Level;

impl logging::Host for CallState {
    fn log(
        &mut self,
        level: logging::Level,
        context: String,
        message: String,
    ) -> wasmtime::Result<()> {
        let level = match level {
            logging::Level::Trace => Level::Trace,
            logging::Level::Debug => Level::Debug,
            logging::Level::Info => Level::Info,
            logging::Level::Warn => Level::Warn,
            logging::Level::Error => Level::Error,
            logging::Level::Critical => Level::Critical,
        };
        self.log.write(level, &context, &message);
        Ok(())
    }
}

impl types::Host for CallState {}
