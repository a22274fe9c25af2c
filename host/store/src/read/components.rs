//! Reads of components as they were admitted.

use super::ReadError;
use crate::event_row::{EVENT_COLUMNS, EVENTS};
use crate::sql::{self, Sql, text};
use crate::store::Maintenance;
use domain::event::{ComponentAdmitted, Event, Recorded};

impl Maintenance {
    /// Returns the newest admission of each of these components that was ever admitted.
    ///
    /// The cost grows with the number of names alone, whatever else the ledger contains.
    pub async fn last_admissions(
        &self,
        components: Vec<String>,
    ) -> Result<Vec<ComponentAdmitted>, ReadError> {
        self.read(move |sql| newest_admissions(sql, &components))
            .await
    }
}

/// Returns the newest admission of each of these components that was ever admitted.
pub(crate) fn newest_admissions(
    sql: &Sql<'_>,
    components: &[String],
) -> sql::Result<Vec<ComponentAdmitted>> {
    let mut admissions = Vec::with_capacity(components.len());
    for component in components {
        let text = text!(
            "SELECT ",
            EVENT_COLUMNS,
            " FROM ",
            EVENTS,
            " WHERE kind = 'component.admitted.v1' AND about = ?1 ORDER BY position \
             DESC LIMIT 1"
        );
        let newest = sql
            .one::<Recorded>(text, [component])?
            .and_then(|recorded| recorded.event);
        if let Some(Event::ComponentAdmitted(admitted)) = newest {
            admissions.push(admitted);
        }
    }
    Ok(admissions)
}
