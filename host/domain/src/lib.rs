//! The vocabulary of the host and every rule it follows, as pure functions.
//!
//! Each rule decides whether something may happen, what follows from it, and the state afterwards.
//! All rules are in this crate, so that each can be read and tested without a database, a clock, a
//! network or a WebAssembly engine. This crate has no IO, async, clocks, randomness, wasmtime, SQL
//! or HTTP.
//!
//! There is one file for each noun, in six folders. A folder imports only from itself and from the
//! folders before it:
//!
//! | folder | subject |
//! |---|---|
//! | `values` | ids, digests, times, JSON, limits: values without a rule of the host's own |
//! | `access` | users and their keys, tools, grants, secrets, where requests may go |
//! | `thread` | messages, turns and their tree, models, compaction, transcripts |
//! | `agents` | definitions, authority, personas, roles, structured sessions, paths |
//! | `work` | steps, operations, the queue, agents that hand work over, budgets, widgets |
//! | `events` | stored events, and the agents and runs that are folds of them |
//!
//! Other crates name a module without its folder: `domain::turn`.

mod access;
mod agents;
mod events;
mod thread;
mod values;
mod work;

pub use access::{
    artifact, bucket, confirm, egress, glob, grant, key, manifest, proof, redact, ruling, secret,
    tool, user,
};
pub use agents::{
    authority, definition, external, path, persona, prompt_section, residency, role, routing,
    session, skill,
};
pub use events::{agent, event, import, run, session_label, telemetry};
pub use thread::{
    compaction, cut_off, message, message_labels, model, prompt_cut, reply_schema, sampling,
    speaker, spill, thinking, transcript, turn,
};
pub use values::{
    backoff, chain, clock, difference, digest, error_code, file, id, json, limits, ranges, refusal,
    sample, schema, shown, time,
};
pub use work::{
    account, approval, basis, budget, connector, delegate, direct_message, dispatch, hints,
    isolation, memory, operation, outbound_message, panels, price, queue, sections, step, task,
    trigger, trouble, usage, widget,
};

// The model of the queue in `tests/models/` names this crate as other crates do.
#[cfg(test)]
extern crate self as domain;
