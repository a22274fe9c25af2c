//! `wasi:cli/environment`: the variables that the call is bound to, and nothing of the host's own.

use crate::call::{CallState, Purpose};
use domain::grant::capability;
use wasmtime_wasi::p2::bindings::cli::environment;

impl environment::Host for CallState {
    /// Agents, triggers and descriptions have none. The values are for the guest alone; the audit
    /// record knows their names.
    fn get_environment(&mut self) -> wasmtime::Result<Vec<(String, String)>> {
        let variables = match &self.purpose {
            Purpose::Tool(work) => work.environment.clone().into_iter().collect(),
            Purpose::Connect(environment) => environment.clone().into_iter().collect(),
            Purpose::Describe | Purpose::Step(_) | Purpose::Fire => Vec::new(),
        };
        if variables.is_empty() {
            self.recorder.withheld(capability::ENV_READ, || {
                "wasi:cli/environment.get-environment".to_owned()
            });
        } else {
            let names = || {
                variables
                    .iter()
                    .map(|(name, _): &(String, String)| name.as_str())
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            self.recorder.granted(capability::ENV_READ, names);
        }
        Ok(variables)
    }

    fn get_arguments(&mut self) -> wasmtime::Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn initial_cwd(&mut self) -> wasmtime::Result<Option<String>> {
        Ok(None)
    }
}
