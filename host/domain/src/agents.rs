//! The configuration and the addresses of agents. The events of an agent are in `events/agent.rs`.
//!
//! ## Where things are
//!
//! - definitions, from which agents are made: `definition.rs`
//! - sections of a system prompt, by name: `prompt_section.rs`
//! - what one call may do: `authority.rs` (`inherited.rs`: what goes with work that is handed on,
//!   `within.rs`: the run's ceiling, `explain.rs`: every list
//!   that has a say)
//! - personas, which narrow what a turn may do: `persona.rs`
//! - roles of users: `role.rs`; who sees which event is in `events/agent/visibility.rs`
//! - skills, which are read and used by commands instead of being shown as tools: `skill.rs`,
//!   `skill/folder.rs`
//! - structured sessions: phases, questions, ends: `session.rs`
//! - addresses of agents: `path.rs`, and in `path/` its segments (`segment.rs`, `error.rs`), what
//!   an address states (`kind.rs`), what is kept beside it (`config.rs`), rules on subtrees
//!   (`subtree.rs`, `rules.rs`), targets of messages (`target.rs`), connectors (`connector.rs`)
//! - agents that are programs elsewhere: `external.rs`
//! - presence of agents: `residency.rs`
//! - the thread that speaks of the same subject as a message: `routing.rs`

pub mod authority;
pub mod definition;
pub mod external;
pub mod path;
pub mod persona;
pub mod prompt_section;
pub mod residency;
pub mod role;
pub mod routing;
pub mod session;
pub mod skill;
