//! Work: what an agent decides in a step, the operations that follow, and what they may cost.
//!
//! - What goes into an agent's step and what comes out: [`step`]; the frozen view is [`basis`].
//! - An operation, its performer and its settlement: [`operation`].
//! - What becomes of messages while an agent is busy, and which are taken next: [`queue`] and
//!   `queue/`.
//! - The question whether a call may be made: [`approval`].
//! - How far agents may go with each other, and who may wait for whom: [`dispatch`] and
//!   `dispatch/waits.rs`.
//! - How agents talk: `dispatch_to_agent`, `reply_to_caller`, `agents_message`: [`talk`] and
//!   `talk/`.
//! - How `delegate` is checked: [`delegate`] and the table in `delegate/operations.rs`.
//! - What all may use together that one message began, and the words for it: [`account`].
//! - What work that is handed over may use: [`budget`].
//! - What models cost: [`price`].
//! - The widgets that every client has, and what each is shown and answers: [`widget`]; their part
//!   of `/openapi.json` is `widget/document.rs`.
//!
//! ## Where things are
//!
//! - a step: what it sees, what it decides: `work/basis.rs`, `work/step.rs`
//! - operations and their outcomes: `work/operation.rs`
//! - modes of the queue, and what arrives and is taken next: `work/queue/mode.rs`,
//!   `work/queue/arrive.rs`, `work/queue/plan.rs`
//! - limits of work that is handed over, accounts and prices: `work/budget.rs`, `work/account.rs`,
//!   `work/price.rs`
//! - depth of dispatches, and who may wait for whom: `work/dispatch.rs`, `work/dispatch/waits.rs`
//! - `dispatch_to_agent`, `reply_to_caller`, `agents_message`: `work/talk.rs`
//! - `delegate` and its table of operations: `work/delegate.rs`, `work/delegate/operations.rs`
//! - calls that a user approves first: `work/approval.rs`
//! - widgets, their answers and their public description: `work/widget.rs`,
//!   `work/widget/shapes.rs`, `work/widget/document.rs`
//! - answers that name uploaded files: `work/widget/upload.rs`

pub mod account;
pub mod approval;
pub mod basis;
pub mod budget;
pub mod delegate;
pub mod dispatch;
pub mod operation;
pub mod price;
pub mod queue;
pub mod step;
pub mod talk;
pub mod widget;
