//! Programs of the operating system: started without a shell, confined, watched, and ended with all
//! that they started.
//!
//! They stand apart because nothing else in the host starts what may change the world by itself.
//! Three processes take part. The host starts a *supervisor* ([`keep`]), which is this same
//! executable. The supervisor starts a process that confines itself ([`confine`]) and then becomes
//! the program. Never in here: what a program says, and what that means.

mod below;
pub(crate) mod confine;
#[cfg(target_os = "linux")]
mod filter;
mod keep;
pub(crate) mod running;

pub use confine::{ConfineError, Enforcement, SYSTEM_READ, confine};
pub use keep::{Starter, keep};
pub use running::Supervisor;
