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
        /// The code that was meant; none for the present code.
        code: Option<Digest>,
    },
}

/// Returns an entry without decisions.
pub(crate) fn entry(core: &Core, run: &Run, through: Through<'_>) -> BoundaryDecided {
    let started = &run.started;
    let (tool, component, code) = match through {
        Through::Agent(code) => {
            let own = core
                .catalogue
                .definition(&started.definition)
                .map(|definition| definition.component.clone());
            (None, own, Some(code))
        }
        Through::Tool { name, code } => {
            let there = core.catalogue.tool(name).map(|(entry, _)| entry);
            (
                Some(name.to_owned()),
                there.map(|it| it.name.clone()),
                code.or_else(|| there.map(|it| it.component.digest())),
            )
        }
    };
    BoundaryDecided {
        run: started.run,
        operation: None,
        segment: 0,
        definition: started.definition.clone(),
        grant: component
            .as_deref()
            .and_then(|name| core.resolved_configs.grant(name))
            .map(|grant| grant.digest),
        user_id: Some(started.user_id.clone()),
        tool,
        component,
        code,
        decisions: Vec::new(),
        left_out: 0,
        egress: Traffic::default(),
        time: Timestamp(0),
    }
}

/// Returns the event of an entry that has these decisions.
pub(crate) fn ledger_event(entry: BoundaryDecided, decided: Decided, time: Timestamp) -> Event {
    Event::BoundaryDecided(Box::new(BoundaryDecided {
        decisions: decided.decisions,
        left_out: decided.left_out,
        time,
        ..entry
    }))
}
