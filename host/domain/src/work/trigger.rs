//! Triggers: the causes for which the host messages an agent by itself.
//!
//! The host owns schedule, state, missed trigger events, retries and outbound message; a component
//! turns a trigger event into messages.
//!
//! - what an operator says of a trigger: `spec.rs`, and of its target: `target.rs`
//! - when it is due: `schedule.rs`; what becomes of missed trigger events: `missed.rs`
//! - heartbeats: `heartbeat.rs`; webhooks: `webhook.rs`, `cloud_event.rs`; files: `files.rs`;
//!   events of the host: `host_event.rs`
//! - what happened: `trigger_event.rs`; the message with its variables: `template.rs`
//! - the tools with which agents set themselves triggers: `own.rs`
//! - failures in a row: `breaker.rs`; limits: `limits.rs`; faults in a definition: `fault.rs`
//! - intervals: `interval.rs`; time zones: `zone.rs`; names: `name.rs`

mod breaker;
mod cloud_event;
mod fault;
mod files;
mod heartbeat;
mod host_event;
mod interval;
mod limits;
mod missed;
mod name;
mod own;
mod schedule;
mod spec;
mod target;
mod template;
mod trigger_event;
mod webhook;
mod zone;

pub use breaker::*;
pub use cloud_event::*;
pub use fault::SpecFault;
pub use files::*;
pub use heartbeat::*;
pub use host_event::*;
pub use interval::*;
pub use limits::*;
pub use missed::*;
pub use name::*;
pub use own::*;
pub use schedule::*;
pub use spec::*;
pub use target::*;
pub use template::*;
pub use trigger_event::*;
pub use webhook::*;
pub use zone::{BeyondCalendar, Zone};

use fault::{BytesMax, check_line, note};
use target::TargetFault;
use template::check_template;
use webhook::{is_json, percent_decoded, read_body};
