//! Triggers end to end: the real program with schedules, heartbeats, webhooks, watched folders and
//! events of its own, what reaches the agents' threads, and what is on record of it.

mod clock;
mod crash;
mod definitions;
mod events;
mod files;
mod heartbeat;
mod hostile;
mod payload;
mod scene;
mod targets;
mod webhook;
