//! The broker, between the outside and the agents.
//!
//! All input of agents passes through it, and it carries out all decisions of agents. It claims
//! inputs, steps agents, commits their decisions, and only then performs them. Rules are in
//! `domain`, durability in `store`, guests in `runtime`, models in `llm`; the order of the work is
//! here. Never in here: HTTP routing, WIT types, SQL.
//!
//! ## Where things are
//!
//! - commands from outside: `command.rs`; what they share with drivers: `shared.rs`
//! - state that all share, commits that wake the driver of their session: `core.rs`; the start of
//!   the broker, and the way in which a driver is started: `start.rs`; what a driver receives:
//!   `signal.rs`
//! - the return of a user from another agent: `come_back.rs`
//! - the order of the work in one session: `driver.rs`
//! - the engine that executes guests, and its stand-in for tests: `engine.rs`
//! - signatures of external agents' requests: `external.rs`
//! - work on operations: `performance.rs`
//! - entries of the ledger: `ledger.rs`; of components that are loaded: `admission.rs`
//! - agents, components and settings that an operator defines: `catalogue.rs`; as events:
//!   `resolved_config.rs`
//! - what a step is shown: `view.rs`
//! - the host's time: `clock.rs`
//! - the sections of a prompt about tools, artifacts and peers: `prompting.rs`
//! - the component of command lines: `line_component.rs`
//! - timers: `timers.rs`
//! - places for calls of tools: `tool_places.rs`
//! - sessions with work after a start: `recovery.rs`, and the note of those that it inspects:
//!   `inspections.rs`
//! - a host on a restored backup: `restored.rs`
//! - panics of tasks: `panics.rs`
//! - sessions that cannot continue: `quarantine.rs`
//! - holders of buckets: `buckets.rs`
//! - past sessions that an agent sees: `history.rs`
//! - the users who read a run's messages: `readers.rs`
//! - the configuration that is served, and those that turns began with: `serving.rs`
//! - validation against schemas, on threads of its own: `schemas.rs`
//! - the attribute that boxes the futures of public functions: `boxed.rs`
//! - the same rules for tests of a component without a host: `conformance.rs`
//! - the steps of a purge: `purge.rs`
//! - the live feed: `live.rs`
//! - telemetry for listeners: `telemetry.rs`, `telemetry/`
//! - repeating a recorded step: `replay.rs`

mod admission;
mod asking;
mod boxed;
mod buckets;
pub mod catalogue;
mod clock;
mod come_back;
pub mod command;
mod computing;
mod conformance;
mod core;
mod driver;
mod engine;
pub mod external;
mod fresh;
pub mod guest_log;
mod history;
mod inspections;
mod isolation;
mod journal;
mod kept_results;
mod ledger;
mod line_component;
pub mod live;
pub mod models;
mod outages;
mod panics;
mod paths;
mod performance;
mod prompting;
mod purge;
mod quarantine;
mod readers;
mod recovering;
mod recovery;
mod refusals;
mod refused_late;
pub mod replay;
mod resolved_config;
mod restored;
mod schemas;
mod serving;
mod shared;
mod signal;
mod start;
mod telemetry;
#[cfg(test)]
mod tests;
mod timers;
mod tool_places;
mod view;

pub use catalogue::{Catalogue, Entry, LeftOutDefinition, Misfit};
pub use clock::{Clock, ClockState};
pub use come_back::Returned;
pub use command::{
    Address, AddressLevel, AgentSessions, AgentView, Arriving, AttachExternal, Attached, Below, By,
    CallReport, Cancelled, Coming, CreateAgent, DIFF_TURNS_MAX, ExternalPost, Fork, Gone,
    ImportSession, Imported, ImportedSession, InputReceipt, InputView, Isolated, IssuedKey,
    KeyBefore, KeysOf, MakeDefinition, Meant, NewSession, Other, PathEntry, PathFilter,
    PostMessage, PostOutcome, PostRouted, PostToAll, PostedTo, PromptPart, PromptTool, PurgeOf,
    QueueSaid, Reading, RefusedReload, Reload, Reloaded, Respond, Routed, RoutedReceipt,
    SessionIds, SessionNumbers, SessionView, SessionsByAgent, Setup, ShownPrompt, Switch, Switched,
    TRANSCRIPT_BYTES_MAX, TaskList, TaskQuery, Template, TurnFailure, TurnOutcome, TurnReport,
    UploadFile, Viewer, WaitingInputs, WantedNotes, WindowFill,
};
pub use core::{Limits, Stats, UserLimits};
pub use line_component::LineComponent;
pub use live::{Frame, Joined, Live, Placed, SharedText, Show};
pub use paths::PathSettings;
pub use quarantine::{QuarantineCause, Quarantined};
pub use refused_late::refused_late;
pub use restored::AfterRestore;
pub use serving::Settings;
pub use shared::{
    Access, Agents, Broker, Configuration, Connectors, DeadLetters, Definitions, Error,
    ExternalAgents, Feeds, Files, Handle, Imports, Keys, Memory, Messages, Models, Paths,
    Quarantines, Queue, Requests, Runs, Sessions, Switches, Target, Tasks, Transcripts, subject,
};
pub use start::Parts;
pub use telemetry::{Heard, Listener, TELEMETRY_WAITING_MAX};

/// The crash points of this crate, for a test that goes through all of them: see `store::point`.
pub const CRASH_POINTS: &[&str] = &[
    "broker.accept.before",
    "broker.accept.after",
    "broker.step.before",
    "broker.step.after",
    "broker.commit.before",
    "broker.commit.after",
    "broker.suspicions.before",
    "broker.recover.before",
    "broker.recover.after",
    "broker.started.after",
    "broker.attempt.before",
    "broker.attempt.after",
    "broker.cut.before",
    "broker.cut.after",
    "broker.memory.before",
    "broker.memory.after",
    "broker.perform.before",
    "broker.perform.after",
    "broker.settle.before",
    "broker.settle.after",
    "broker.end.before",
    "broker.end.after",
    "broker.requeue.before",
    "broker.requeue.after",
    "broker.timer.due",
    "broker.timer.fired",
];
