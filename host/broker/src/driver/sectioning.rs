//! The sections of a run's prompts, made when it begins and recorded with its start.
//!
//! They are made once for an opening. A start that waits for a place begins again at each check,
//! and would call the tools that list items each time.

use super::context::SessionContext;
use crate::ledger::{Through, entry, ledger_event};
use crate::prompting::{Made, Prompting};
use crate::resolved_config::Sealed;
use domain::basis::ResolvedConfigDigests;
use domain::definition::Definition;
use domain::digest::Digest;
use domain::event::{Event, RunStarted};
use domain::id::InputId;
use domain::panels::PanelInventory;
use domain::run::Run;
use domain::sections::{FrozenSections, bytes};
use store::SessionRow;

/// A start that is to have its sections.
pub(super) struct ToSection<'a> {
    pub(super) session: &'a SessionRow,
    pub(super) definition: &'a Definition,
    pub(super) started: RunStarted,
}

/// A run with its sections, and the ledger's entries of the calls that they took.
pub(super) struct BegunWith {
    pub(super) run: Run,
    pub(super) sections: Option<Sealed>,
    pub(super) entries: Vec<Event>,
}

/// The sections of an opening.
pub(super) struct Sectioned {
    inputs: Vec<InputId>,
    config: ResolvedConfigDigests,
    /// The configuration as a whole, by which its persona's lists follow.
    configuration: Digest,
    panels: Option<PanelInventory>,
    model: Option<String>,
    made: Made,
}

impl Sectioned {
    /// Returns the sections if they were made for the same start, under the same configuration.
    fn again(&self, started: &RunStarted, panels: Option<&PanelInventory>) -> Option<Made> {
        (self.inputs == started.claimed
            && self.config == started.resolved_config
            && self.configuration == started.configuration
            && self.panels.as_ref() == panels
            && self.model == started.model)
            .then(|| self.made.clone())
    }
}

impl SessionContext {
    /// Begins a run with the sections of its prompts. Its agent's tools are asked for their items,
    /// unless that was done for the same start `before`.
    pub(super) async fn with_sections(
        &self,
        to_section: ToSection<'_>,
        before: &mut Option<Sectioned>,
    ) -> BegunWith {
        let ToSection {
            session,
            definition,
            mut started,
        } = to_section;
        let panels = PanelInventory::of_session(&session.attributes);
        let again = before
            .as_ref()
            .and_then(|it| it.again(&started, panels.as_ref()));
        let made = match again {
            Some(made) => made,
            None => {
                let prompting = Prompting {
                    core: &self.core,
                    served: &self.served,
                    definition,
                    model: started.model.as_deref(),
                    denies: &started.denies,
                    permissions: &started.permissions,
                    behalf: (&started).into(),
                    panels: panels.clone(),
                };
                let made = Box::pin(prompting.make()).await;
                *before = Some(Sectioned {
                    inputs: started.claimed.clone(),
                    config: started.resolved_config,
                    configuration: started.configuration,
                    panels,
                    model: started.model.clone(),
                    made: made.clone(),
                });
                made
            }
        };
        started.untrusted |= made.untrusted;
        let sections = (!made.sections.is_empty()).then(|| Sealed::json(&made.sections));
        started.sections = sections.as_ref().map(|sealed| FrozenSections {
            digest: sealed.digest,
            bytes: bytes(&made.sections),
        });
        let run = Run::begin(started);
        let now = self.core.now();
        let entries = made.listed.into_iter().map(|listed| {
            let through = Through::Tool {
                name: &listed.tool,
                code: Some(listed.code),
            };
            let entry = entry(&self.core, &run, through);
            ledger_event(entry, listed.decided, now)
        });
        let entries = entries.collect();
        BegunWith {
            run,
            sections,
            entries,
        }
    }
}
