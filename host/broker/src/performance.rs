//! The performance of operations, after the commit that decided them: models, tools, recall.
//!
//! It does not depend on drivers: work is begun with all that it needs, pays for further attempts
//! through a port ([`attempts::AttemptPayer`]), and returns its result.
//!
//! ## Where things are
//!
//! - calls of models: `performance/model.rs`; prompts that outgrow a window:
//!   `performance/model/fitting.rs`; the parties to them: `performance/model/parties.rs`
//! - attempts and what they cost: `performance/attempts.rs`
//! - calls of tools: `performance/tool.rs`
//! - command lines over skills: `performance/command.rs`, in the sandbox:
//!   `performance/lines.rs`
//! - outbound messages to external agents: `performance/external.rs`
//! - searches of threads and notes: `performance/recall.rs`
//! - one piece of work in its task, and its result: `performance/work.rs`, `performance/result.rs`
//! - work under way, with its entry in the ledger: `performance/busy.rs`
//! - active time: `performance/stopwatch.rs`
//! - telemetry of calls of models: `performance/telling.rs`

pub(crate) mod attempts;
pub(crate) mod busy;
mod command;
mod external;
mod lines;
mod model;
mod recall;
pub(crate) mod result;
pub(crate) mod stopwatch;
mod telling;
mod tool;
pub(crate) mod work;
