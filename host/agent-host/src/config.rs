//! The configuration: one file, TOML or JSON, the same shape in both, and strict.
//!
//! A key that is not known is an error that names the key and the nearest known one, because a
//! grant or a deny list that is silently not read is worse than a host that does not start. The
//! environment may overlay single keys. Never in here: anything that acts on it.

mod agents;
mod check;
pub(crate) mod component;
mod connectors;
mod directories;
pub(crate) mod document;
mod elsewhere;
mod extend;
mod external;
mod file;
mod finding;
#[cfg(test)]
mod fuzz;
mod hooks;
mod known;
mod left_behind;
mod limits;
mod literal_paths;
pub(crate) mod locations;
pub(crate) mod outlook;
mod overlay;
mod patterns;
mod programs;
mod queue;
mod ranges;
mod roles;
mod secrets;
mod server;
mod shared;
pub(crate) mod skills;
#[cfg(test)]
mod tests;
mod triggers;
mod turn_limits;

pub(crate) use check::{about_code, check, check_with_commands};
pub(crate) use component::{BUILT_INS, ComponentConfig};
pub(crate) use connectors::{unfit, without_secret};
pub(crate) use document::{Config, Loaded, schema};
pub(crate) use external::alike as secrets_alike;
pub(crate) use file::{LoadError, load, read_at_a_start, reloaded};
pub(crate) use finding::{Finding, Severity, closest, error, meant, warning};
pub(crate) use hooks::HooksConfig;
pub(crate) use left_behind::{InForce, LeftBehind, kept_of, left_behind};
pub(crate) use limits::LimitsConfig;
pub(crate) use locations::{locate, text_variable, variable};
#[cfg(test)]
pub(crate) use overlay::overlaid;
pub(crate) use ranges::check as out_of_range;
pub(crate) use secrets::read as secrets;
pub(crate) use server::{ReloadMode, listen_address};
pub(crate) use triggers::odd_targets;
