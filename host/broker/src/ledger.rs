//! Entries of the ledger. Each has the run, component, code and grant with which the boundary was
//! asked.

use crate::core::Core;
use domain::digest::Digest;
use domain::egress::Traffic;
use domain::event::{BoundaryDecided, Event};
use domain::run::Run;
use domain::time::Timestamp;
use runtime::Decided;

/// The asker of the boundary.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Through<'a> {
    /// The agent itself, with this code.
    Agent(Digest),
    /// A tool of this name, whether it exists or not.
    Tool {
        /// The name.
        name: &'a str,
        /// The code that was called; none for the present code.
        code: Option<Digest>,
    },
}

/// Returns an entry without decisions.
pub(crate) fn entry(core: &Core, run: &Run, through: Through<'_>) -> BoundaryDecided {
    let started = &run.started;
    let served = core.served();
    let (tool, component, code) = match through {
        Through::Agent(code) => {
            let own = served
                .catalogue
                .definition(&started.definition)
                .map(|definition| definition.component.clone());
            (None, own, Some(code))
        }
        Through::Tool { name, code } => {
            let there = core.serving.tool(&served, started, name);
            let present = there.as_ref().map(|there| there.component.digest());
            (
                Some(name.to_owned()),
                there.map(|there| there.entry.name.clone()),
                code.or(present),
            )
        }
    };
    BoundaryDecided {
        run: Some(started.run),
        operation: None,
        segment: 0,
        definition: started.definition.clone(),
        grant: component
            .as_deref()
            .and_then(|name| served.resolved_configs.grant(name))
            .map(|grant| grant.digest),
        user_id: Some(started.user_id.clone()),
        tool,
        version: component
            .as_deref()
            .zip(code)
            .and_then(|(name, code)| core.serving.version(name, code)),
        component,
        code,
        decisions: Vec::new(),
        left_out: 0,
        folders: Vec::new(),
        egress: Traffic::default(),
        time: Timestamp(0),
    }
}

/// Returns the event of an entry that has these decisions.
pub(crate) fn ledger_event(entry: BoundaryDecided, decided: Decided, time: Timestamp) -> Event {
    Event::BoundaryDecided(Box::new(BoundaryDecided {
        decisions: decided.decisions,
        left_out: decided.left_out,
        folders: decided.folders,
        time,
        ..entry
    }))
}
