//! Agents as they are set up and addressed; what happens to one is in `events/agent.rs`.
//!
//! - An entry of the configuration from which agents are made: [`definition`].
//! - What one call may do, and what goes with work that is handed on: [`authority`] and
//!   `authority/inherited.rs`.
//! - A persona, which narrows what a turn may do: [`persona`].
//! - Who may do what with an agent: [`role`]; who sees which event is in
//!   `events/agent/visibility.rs`.
//! - A structured session: its phases, its questions, how it ends: [`session`].
//! - The address of an agent, and the rules on subtrees: [`path`] and `path/`.
//! - How present an agent is, and where messages without an address go: [`residency`].
//! - The thread that speaks of the same thing: [`routing`].
//!
//! ## Where things are
//!
//! - definitions of agents: `agents/definition.rs`
//! - addresses of agents, and rules on subtrees: `agents/path.rs`, `agents/path/rules.rs`
//! - personas: `agents/persona.rs`
//! - roles of users, and what each role may do: `agents/role.rs`
//! - effective authority of a call, and denies along the chain of callers: `agents/authority.rs`
//! - presence of agents: `agents/residency.rs`
//! - the thread that speaks of the same subject: `agents/routing.rs`

pub mod authority;
pub mod definition;
pub mod path;
pub mod persona;
pub mod residency;
pub mod role;
pub mod routing;
pub mod session;
