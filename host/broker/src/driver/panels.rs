//! The host's own tools by which an agent reads the panels of its user's clients.
//!
//! An agent whose session has panels is shown these. One without, such as an agent that works for
//! another, is shown those of the user's other open sessions, the latest ones.

use super::context::SessionContext;
use super::scope::{Scope, at_once, failed};
use crate::shared::Broker;
use crate::shared::DriverError;
use domain::error_code::INVALID_ARGUMENTS;
use domain::id::SessionId;
use domain::message::Part;
use domain::panels::{PanelInventory, SESSIONS_MAX, include_context, result};
use domain::ruling::TOOL_CALL;
use domain::run::decide::Resolved;
use domain::step::OperationOutcome;
use serde_json::{Map, Value};
use store::UserSessionFilter;

impl SessionContext {
    /// Resolves a call of one of these tools.
    pub(super) async fn resolve_panels(
        &self,
        scope: &mut Scope<'_>,
        name: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Resolved, DriverError> {
        let with_context = match include_context(name, arguments) {
            Ok(with_context) => with_context,
            Err(wrong) => return Ok(failed(INVALID_ARGUMENTS, wrong)),
        };
        scope.grant(TOOL_CALL, name);
        let shown = self.shown_panels(scope).await?;
        let reported = result(name, &shown, with_context).to_string();
        let parts = vec![Part::text(reported)];
        // A client names panels after their content, which may come from anyone.
        Ok(at_once(
            OperationOutcome::Parts { parts },
            !shown.is_empty(),
        ))
    }

    /// Returns the panels that the run's user is shown: in the run's session, or else in others.
    async fn shown_panels(
        &self,
        scope: &Scope<'_>,
    ) -> Result<Vec<(SessionId, PanelInventory)>, DriverError> {
        let started = &scope.driving.run.started;
        let own = self.session_row().await?;
        if let Some(inventory) = PanelInventory::of_session(&own.attributes) {
            return Ok(vec![(own.id, inventory)]);
        }
        let broker = Broker {
            core: self.core.clone(),
            is_unruled: false,
        };
        let clearance = broker.access().clearance(&started.user_id).await?;
        let open = UserSessionFilter {
            open: true,
            ..UserSessionFilter::default()
        };
        let others = self
            .store()
            .sessions_of_user(&clearance, open, SESSIONS_MAX)
            .await?;
        let shown = others.into_iter().filter_map(|other| {
            let inventory = PanelInventory::of_session(&other.attributes)?;
            Some((other.id, inventory))
        });
        Ok(shown.collect())
    }
}
