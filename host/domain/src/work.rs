//! Work: an agent's decisions in a step, the operations that follow from them, and their cost.
//!
//! ## Where things are
//!
//! - a step: what goes in and comes out, and its frozen view: `step.rs`, `basis.rs`
//! - operations and their outcomes: `operation.rs`
//! - the queue: `queue.rs`, and in `queue/` modes, settings and directives (`settings.rs`), what
//!   waits, what becomes of a message that arrives and what is dropped (`waiting.rs`), what is
//!   taken next (`plan.rs`)
//! - calls that a user approves first: `approval.rs`
//! - depth of dispatches, and who may wait for whom: `dispatch.rs`, `dispatch/waits.rs`; who waits
//!   for room: `dispatch/blocked.rs`
//! - `dispatch_to_agent`, `reply_to_caller`, `agents_message`: `direct_message.rs`,
//!   `direct_message/arguments.rs`
//! - `delegate`, its table and its result: `delegate.rs`, `delegate/operations.rs`,
//!   `delegate/result.rs`
//! - outbound messages to agents that are programs elsewhere: `outbound_message.rs`
//! - what makes the host speak to an agent by itself: `trigger.rs`; how agents talk with people at
//!   messaging services: `connector.rs`
//! - sessions that may have ended the process, and the order in which they are resumed:
//!   `isolation.rs`
//! - tasks, as people look at work that was handed over: `task.rs`
//! - what all work of one message may use, and what work that is handed over may: `account.rs`,
//!   `budget.rs`
//! - `memory_search`, `memory_save`, `memory_forget`, reading a session into notes: `memory.rs`;
//!   notes that stand in a prompt: `hints.rs`
//! - sections of a system prompt: `sections.rs`; panels that clients show, and the tools that read
//!   them: `panels.rs`
//! - costs of models: `price.rs`; what settled work used, by day and model: `usage.rs`
//! - widgets: `widget.rs` (`document.rs`: their part of `/openapi.json`, `upload.rs`: answers
//!   that name files)

pub mod account;
pub mod approval;
pub mod basis;
pub mod budget;
pub mod connector;
pub mod delegate;
pub mod direct_message;
pub mod dispatch;
pub mod hints;
pub mod isolation;
pub mod memory;
pub mod operation;
pub mod outbound_message;
pub mod panels;
pub mod price;
pub mod queue;
pub mod sections;
pub mod step;
pub mod task;
pub mod trigger;
pub mod trouble;
pub mod usage;
pub mod widget;
