//! The trail of a call at the boundary: its requests and the keys that go with them, for the
//! ledger.

use egress::{Record, Records};
use std::fmt;
use std::sync::Arc;

/// Takes what a call does at the boundary.
pub trait Trail: fmt::Debug + Send + Sync {
    /// Returns the sink for egress's records of its requests.
    fn records(&self) -> Arc<dyn Records>;

    /// A provider's key is about to go out. `used` says where the key is kept and which host gets
    /// it; never the key itself.
    fn key_used(&self, used: &str);

    /// A program is about to be started, or has ended.
    fn program(&self, _note: &ProgramNote) {}
}

/// A note about a program that was started in a model's place, for the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramNote {
    /// The program, its folder, and what became of it.
    pub reported: String,
    /// True if a limit ended it.
    pub is_limit: bool,
}

/// A trail of debug logs alone.
#[derive(Debug)]
pub(crate) struct Traced;

impl Trail for Traced {
    fn records(&self) -> Arc<dyn Records> {
        Arc::new(Self)
    }

    fn key_used(&self, _used: &str) {}
}

impl Records for Traced {
    fn put(&self, record: Record) {
        let Record {
            component,
            outcome,
            dialled,
            bytes_out,
            bytes_in,
            ms,
            ..
        } = record;
        tracing::debug!(
            llm.provider = component,
            ?dialled,
            bytes_out,
            bytes_in,
            ms,
            "a request to a provider ended: {outcome}"
        );
    }
}
