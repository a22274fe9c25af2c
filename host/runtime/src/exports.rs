//! The functions that components export, in each version of the interface that this host serves:
//! found and checked when a component is loaded, and called on a fresh instance each time.
//!
//! Agents and tools are the same in both versions. Of triggers and connectors the older version is
//! a thin layer over the newer, so that whoever calls knows one version only.

mod connector;
mod trigger;

pub(crate) use connector::{Answered, ConnectorExports};
pub(crate) use trigger::TriggerExports;

use crate::bindings::agent::agent_host::plugin::types;
use crate::bindings::agent::exports::agent_host::plugin::agent;
use crate::bindings::tool::exports::agent_host::plugin::tools;
use crate::call::CallState;
use crate::host::turn::step_view::ViewHandle;
use domain::operation::Progress;
use domain::tool::ToolError;
use wasmtime::Store;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{
    ComponentExportIndex, ComponentNamedList, InstancePre, Lift, Lower, Resource,
};
use wasmtime::error::Context;

/// The package of the interface between plugins and the host.
pub(crate) const PACKAGE: &str = "agent-host:plugin";

/// A version of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    V0_1,
    V0_2,
}

impl Version {
    /// The versions that this host serves, the present one first.
    pub(crate) const ALL: [Self; 2] = [Self::V0_2, Self::V0_1];

    /// Returns it as names have it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::V0_1 => "0.1.0",
            Self::V0_2 => "0.2.0",
        }
    }
}

/// A kind of plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Agent,
    Tools,
    Trigger,
    Connector,
}

impl Kind {
    /// The kinds that this host runs.
    pub(crate) const ALL: [Self; 4] = [Self::Agent, Self::Tools, Self::Trigger, Self::Connector];

    /// Returns the interface that a plugin of this kind exports.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Tools => "tools",
            Self::Trigger => "trigger",
            Self::Connector => "connector",
        }
    }
}

/// An export that makes a component a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Export {
    pub(crate) kind: Kind,
    pub(crate) version: Version,
}

impl Export {
    /// Returns what an export of this name makes of a component; none when it makes no plugin of it
    /// that this host runs.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let (interface, version) = name.split_once('@')?;
        let kind = interface.strip_prefix(PACKAGE)?.strip_prefix('/')?;
        Some(Self {
            kind: Kind::ALL.into_iter().find(|it| it.as_str() == kind)?,
            version: Version::ALL.into_iter().find(|it| it.as_str() == version)?,
        })
    }
}

impl std::fmt::Display for Export {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kind, version } = self;
        write!(f, "{PACKAGE}/{}@{}", kind.as_str(), version.as_str())
    }
}

/// An interface that a component exports.
struct Exported<'a> {
    pre: &'a InstancePre<CallState>,
    index: ComponentExportIndex,
}

impl<'a> Exported<'a> {
    fn find(pre: &'a InstancePre<CallState>, name: &str) -> wasmtime::Result<Self> {
        let index = pre
            .component()
            .get_export_index(None, name)
            .with_context(|| format!("it exports no `{name}`"))?;
        Ok(Self { pre, index })
    }

    /// Returns one of its functions, if that has these parameters and this result.
    fn function<P, R>(&self, name: &str) -> wasmtime::Result<ComponentExportIndex>
    where
        P: ComponentNamedList + Lower,
        (R,): ComponentNamedList + Lift,
    {
        let found = self.pre.component().get_export(Some(&self.index), name);
        let Some((ComponentItem::ComponentFunc(function), index)) = found else {
            return Err(wasmtime::format_err!("it exports no function `{name}`"));
        };
        function
            .typecheck::<P, (R,)>(&self.pre.instance_type())
            .with_context(|| format!("its function `{name}`"))?;
        Ok(index)
    }
}

/// Calls a function of a fresh instance in this store.
async fn call<P, R>(
    pre: &InstancePre<CallState>,
    store: &mut Store<CallState>,
    function: &ComponentExportIndex,
    arguments: P,
) -> wasmtime::Result<R>
where
    P: ComponentNamedList + Lower + Send + Sync,
    (R,): ComponentNamedList + Lift + Send + Sync + 'static,
{
    let instance = pre.instantiate_async(&mut *store).await?;
    let function = instance.get_typed_func::<P, (R,)>(&mut *store, function)?;
    let (result,) = function.call_async(&mut *store, arguments).await?;
    Ok(result)
}

/// The functions of an agent.
pub(crate) struct AgentExports {
    pre: InstancePre<CallState>,
    describe: ComponentExportIndex,
    step: ComponentExportIndex,
}

impl AgentExports {
    fn new(agent: &Exported<'_>) -> wasmtime::Result<Self> {
        Ok(Self {
            describe: agent.function::<(), agent::Description>("describe")?,
            step: agent
                .function::<(Resource<ViewHandle>, &[agent::News]), agent::StepResult>("step")?,
            pre: agent.pre.clone(),
        })
    }

    /// Asks what it is.
    pub(crate) async fn describe(
        &self,
        store: &mut Store<CallState>,
    ) -> wasmtime::Result<agent::Description> {
        call(&self.pre, store, &self.describe, ()).await
    }

    /// Asks what happens next.
    pub(crate) async fn step(
        &self,
        store: &mut Store<CallState>,
        news: &[agent::News],
    ) -> wasmtime::Result<agent::StepResult> {
        // The host knows which view is meant, so the number behind the handle says nothing.
        let view = Resource::<ViewHandle>::new_borrow(0);
        call(&self.pre, store, &self.step, (view, news)).await
    }
}

/// The functions of a component of tools.
pub(crate) struct ToolsExports {
    pre: InstancePre<CallState>,
    describe: ComponentExportIndex,
    call: ComponentExportIndex,
}

type ToolResult = Result<tools::Progress, tools::ToolError>;

impl ToolsExports {
    fn new(tools: &Exported<'_>) -> wasmtime::Result<Self> {
        Ok(Self {
            describe: tools.function::<(), Vec<types::ToolDefinition>>("describe")?,
            call: tools.function::<(&tools::CallContext, &str, &str), ToolResult>("call")?,
            pre: tools.pre.clone(),
        })
    }

    /// Asks which tools there are.
    pub(crate) async fn describe(
        &self,
        store: &mut Store<CallState>,
    ) -> wasmtime::Result<Vec<types::ToolDefinition>> {
        call(&self.pre, store, &self.describe, ()).await
    }

    /// Calls the tool of this name.
    pub(crate) async fn call(
        &self,
        store: &mut Store<CallState>,
        context: &tools::CallContext,
        name: &str,
        arguments: &str,
    ) -> wasmtime::Result<ToolResult> {
        let arguments = (context, name, arguments);
        call(&self.pre, store, &self.call, arguments).await
    }
}

/// The exports of a component, ready to be instantiated.
pub(crate) enum World {
    /// No code: the host answers each call of a tool in its place, or none of them ever.
    StandIn(Option<Result<Progress, ToolError>>),
    Agent(AgentExports),
    Tools(ToolsExports),
    Trigger(TriggerExports),
    Connector(ConnectorExports),
}

impl World {
    /// Finds the functions of a component with this export.
    pub(crate) fn find(pre: &InstancePre<CallState>, export: &Export) -> wasmtime::Result<Self> {
        let Export { kind, version } = *export;
        let found = Exported::find(pre, &export.to_string())?;
        Ok(match kind {
            Kind::Agent => Self::Agent(AgentExports::new(&found)?),
            Kind::Tools => Self::Tools(ToolsExports::new(&found)?),
            Kind::Trigger => Self::Trigger(TriggerExports::new(&found, version)?),
            Kind::Connector => Self::Connector(ConnectorExports::new(&found, version)?),
        })
    }
}

#[cfg(test)]
mod tests;
