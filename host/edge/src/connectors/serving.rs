//! A new configuration: the connectors that continue, restart or end with it.

use super::served::{ComponentDeps, ConnectorLink, Served};
use super::{Shared, polling};
use broker::Error;
use domain::connector::{ConnectorSpec, DIRECT};
use domain::digest::Digest;
use domain::path::ConnectorName;
use runtime::Described;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::ReadError;
use tokio_util::sync::CancellationToken;

impl Shared {
    /// Serves the present configuration: changed connectors restart, removed ones end.
    pub(super) async fn serve(self: &Arc<Self>) -> Result<(), Error> {
        let settings = self.core.settings();
        let mut begun = Vec::new();
        let mut next = BTreeMap::new();
        for (name, spec) in &settings.connectors {
            let before = self.served.get(name);
            let lasting = before.as_ref().map(|before| before.lasting.clone());
            let fresh = Served {
                name: name.clone(),
                spec: Arc::new(spec.clone()),
                link: self.link(name, spec),
                lasting: lasting.unwrap_or_default(),
                replaced: CancellationToken::new(),
            };
            let served = match before {
                Some(before) if before.is_as(&fresh) => before,
                _ => {
                    let fresh = Arc::new(fresh);
                    begun.push(fresh.clone());
                    fresh
                }
            };
            next.insert(name.clone(), served);
        }
        for served in next.values() {
            served.lasting.health().note_replaced();
        }
        for served in &begun {
            if self.served.get(&served.name).is_none() {
                self.remember(served).await?;
            }
        }
        self.served.put(next);
        for served in begun {
            if served.is_polling() {
                self.core.spawn(polling::run(self.clone(), served));
            }
        }
        self.arrived.notify_one();
        self.outbox.notify_one();
        Ok(())
    }

    fn link(&self, name: &ConnectorName, spec: &ConnectorSpec) -> ConnectorLink {
        if spec.component == DIRECT {
            return ConnectorLink::Direct;
        }
        let Some(entry) = self.core.component(&spec.component) else {
            tracing::warn!(
                connector.name = %name, component = spec.component,
                "a connector stands still: there is no such component"
            );
            return ConnectorLink::None;
        };
        let Described::Connector(description) = entry.component.describes() else {
            tracing::warn!(
                connector.name = %name, component = spec.component,
                "a connector stands still: its component is none of a connector"
            );
            return ConnectorLink::None;
        };
        if let Err(error) = spec.check_abilities(&description.abilities) {
            tracing::warn!(
                connector.name = %name,
                error = &error as &dyn std::error::Error,
                "a connector stands still: its component cannot do what is asked for"
            );
            return ConnectorLink::None;
        }
        // Serialising a grant cannot fail.
        let grant = serde_json::to_vec(&entry.grant).unwrap_or_default();
        let abilities = description.abilities.clone();
        ConnectorLink::Component(ComponentDeps {
            grant: Digest::of(&grant),
            entry,
            abilities,
        })
    }

    /// Returns how many inbound messages more of a connector may wait to be settled.
    pub(super) async fn room(&self, served: &Served) -> Result<usize, ReadError> {
        let lasting = &served.lasting;
        if lasting.room() == 0 {
            // Some may have been erased.
            let open = self
                .core
                .store()
                .open_inbound_messages_count(&served.name)
                .await?;
            lasting.count(open);
        }
        Ok(lasting.room())
    }

    /// Reads how a connector fared before this process.
    async fn remember(&self, served: &Served) -> Result<(), Error> {
        let store = self.core.store();
        let row = store.connector(&served.name).await?;
        let open = store.open_inbound_messages_count(&served.name).await?;
        let lasting = &served.lasting;
        lasting.count(open);
        let trouble = row.and_then(|row| row.trouble);
        let trouble = trouble.as_ref().map(|(trouble, _)| trouble);
        lasting.health().remember(trouble);
        Ok(())
    }
}
