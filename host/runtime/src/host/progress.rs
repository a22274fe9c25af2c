//! `progress`: how a tool call is getting on, passed on as it comes and kept nowhere.

pub(crate) mod note_relay;

use crate::bindings::tool::agent_host::plugin::progress;
use crate::call::{CallState, Purpose};

impl progress::Host for CallState {
    fn note(&mut self, message: String) -> wasmtime::Result<()> {
        match &mut self.purpose {
            Purpose::Tool(work) => {
                if !work.notes.relay(&message) {
                    self.met("notesPerSecond");
                }
            }
            Purpose::Describe | Purpose::Step(_) | Purpose::Fire | Purpose::Connect(_) => {
                self.recorder.refused("agent-host:plugin/progress", || {
                    "agent-host:plugin/progress.note".to_owned()
                })
            }
        }
        Ok(())
    }
}
