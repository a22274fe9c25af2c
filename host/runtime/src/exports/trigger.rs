//! The functions of triggers.

use super::{Exported, Version, call, older};
use crate::bindings::trigger::exports::agent_host::plugin::trigger;
use crate::bindings::trigger_0_1::exports::agent_host::plugin::trigger as trigger_0_1;
use crate::call::CallState;
use wasmtime::Store;
use wasmtime::component::{ComponentExportIndex, InstancePre};

type Fired = Result<trigger::TriggerRun, trigger::TriggerError>;
type Fired01 = Result<trigger_0_1::Firing, trigger_0_1::TriggerError>;

/// The arguments of `fire`.
type Arguments<'a> = (
    &'a trigger::Context,
    Option<&'a trigger::State>,
    &'a trigger::TriggerEvent,
);
/// The arguments of `fire` in version 0.1.0.
type Arguments01<'a> = (
    &'a str,
    Option<&'a trigger_0_1::State>,
    u64,
    &'a trigger_0_1::Occasion,
);

/// The functions of a trigger.
pub(crate) struct TriggerExports {
    version: Version,
    pre: InstancePre<CallState>,
    describe: ComponentExportIndex,
    fire: ComponentExportIndex,
}

impl TriggerExports {
    pub(super) fn new(found: &Exported<'_>, version: Version) -> wasmtime::Result<Self> {
        let (describe, fire) = match version {
            Version::V0_1 => (
                found.function::<(), trigger_0_1::Description>("describe")?,
                found.function::<Arguments01<'_>, Fired01>("fire")?,
            ),
            Version::V0_2 => (
                found.function::<(), trigger::Description>("describe")?,
                found.function::<Arguments<'_>, Fired>("fire")?,
            ),
        };
        Ok(Self {
            version,
            pre: found.pre.clone(),
            describe,
            fire,
        })
    }

    /// Asks what it is.
    pub(crate) async fn describe(
        &self,
        store: &mut Store<CallState>,
    ) -> wasmtime::Result<trigger::Description> {
        match self.version {
            Version::V0_1 => {
                let description = call(&self.pre, store, &self.describe, ()).await?;
                Ok(older::trigger::description(description))
            }
            Version::V0_2 => call(&self.pre, store, &self.describe, ()).await,
        }
    }

    /// Asks for the messages that a trigger event makes.
    pub(crate) async fn fire(
        &self,
        store: &mut Store<CallState>,
        context: &trigger::Context,
        state: Option<&trigger::State>,
        trigger_event: &trigger::TriggerEvent,
    ) -> wasmtime::Result<Fired> {
        if self.version == Version::V0_2 {
            return call(
                &self.pre,
                store,
                &self.fire,
                (context, state, trigger_event),
            )
            .await;
        }
        let trigger_event = match older::trigger::trigger_event(trigger_event) {
            Ok(trigger_event) => trigger_event,
            Err(unknown) => return Ok(Err(unknown)),
        };
        let state = state.map(older::trigger::state);
        let configuration = context.configuration.as_str();
        let arguments = (
            configuration,
            state.as_ref(),
            context.now_ms,
            &trigger_event,
        );
        let fired: Fired01 = call(&self.pre, store, &self.fire, arguments).await?;
        Ok(older::trigger::fired(fired))
    }
}
