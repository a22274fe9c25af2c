//! The functions of connectors.

use super::{Exported, Version, call, older};
use crate::bindings::connector::exports::agent_host::plugin::connector;
use crate::bindings::connector_0_1::exports::agent_host::plugin::connector as connector_0_1;
use crate::call::CallState;
use wasmtime::Store;
use wasmtime::component::{ComponentExportIndex, InstancePre};

/// The result of a connector's function.
pub(crate) type Answered<T> = Result<T, connector::ConnectorError>;
type Answered01<T> = Result<T, connector_0_1::ConnectorError>;

/// The functions of a connector.
pub(crate) struct ConnectorExports {
    pre: InstancePre<CallState>,
    version: Version,
    describe: ComponentExportIndex,
    receive: ComponentExportIndex,
    poll: ComponentExportIndex,
    send: ComponentExportIndex,
    /// None in version 0.1.0, in which no files come with messages.
    fetch: Option<ComponentExportIndex>,
}

impl ConnectorExports {
    pub(super) fn new(found: &Exported<'_>, version: Version) -> wasmtime::Result<Self> {
        match version {
            Version::V0_1 => Self::of_0_1(found),
            Version::V0_2 => Self::of_0_2(found),
        }
    }

    fn of_0_1(found: &Exported<'_>) -> wasmtime::Result<Self> {
        type Received = Answered01<Vec<connector_0_1::Incoming>>;
        type Polled = Answered01<connector_0_1::Batch>;
        Ok(Self {
            pre: found.pre.clone(),
            version: Version::V0_1,
            describe: found.function::<(), connector_0_1::Description>("describe")?,
            receive: found.function::<(&str, &connector_0_1::Delivery), Received>("receive")?,
            poll: found.function::<(&str, Option<&str>), Polled>("poll")?,
            send: found.function::<(&str, &connector_0_1::Outgoing), Answered01<String>>("send")?,
            fetch: None,
        })
    }

    fn of_0_2(found: &Exported<'_>) -> wasmtime::Result<Self> {
        type Received = Answered<connector::Batch>;
        let fetch = found.function::<(&str, &str), Answered<Vec<u8>>>("fetch")?;
        Ok(Self {
            pre: found.pre.clone(),
            version: Version::V0_2,
            describe: found.function::<(), connector::Description>("describe")?,
            receive: found.function::<(&str, &connector::IncomingCall), Received>("receive")?,
            poll: found.function::<(&str, Option<&str>), Received>("poll")?,
            send: found.function::<(&str, &connector::Outgoing), Answered<String>>("send")?,
            fetch: Some(fetch),
        })
    }

    /// Asks what it is.
    pub(crate) async fn describe(
        &self,
        store: &mut Store<CallState>,
    ) -> wasmtime::Result<connector::Description> {
        match self.version {
            Version::V0_1 => {
                let description = call(&self.pre, store, &self.describe, ()).await?;
                Ok(older::connector::description(description))
            }
            Version::V0_2 => call(&self.pre, store, &self.describe, ()).await,
        }
    }

    /// Has it read a call of the service.
    pub(crate) async fn receive(
        &self,
        store: &mut Store<CallState>,
        configuration: &str,
        incoming_call: &connector::IncomingCall,
    ) -> wasmtime::Result<Answered<connector::Batch>> {
        if self.version == Version::V0_2 {
            let arguments = (configuration, incoming_call);
            return call(&self.pre, store, &self.receive, arguments).await;
        }
        let incoming_call = older::connector::incoming_call(incoming_call);
        let arguments = (configuration, &incoming_call);
        let received = call(&self.pre, store, &self.receive, arguments).await?;
        Ok(older::connector::received(received))
    }

    /// Has it ask the service for news.
    pub(crate) async fn poll(
        &self,
        store: &mut Store<CallState>,
        configuration: &str,
        cursor: Option<&str>,
    ) -> wasmtime::Result<Answered<connector::Batch>> {
        let arguments = (configuration, cursor);
        if self.version == Version::V0_2 {
            return call(&self.pre, store, &self.poll, arguments).await;
        }
        let polled = call(&self.pre, store, &self.poll, arguments).await?;
        Ok(older::connector::polled(polled))
    }

    /// Has it deliver a message.
    pub(crate) async fn send(
        &self,
        store: &mut Store<CallState>,
        configuration: &str,
        message: &connector::Outgoing,
    ) -> wasmtime::Result<Answered<String>> {
        if self.version == Version::V0_2 {
            let arguments = (configuration, message);
            return call(&self.pre, store, &self.send, arguments).await;
        }
        let message = match older::connector::outgoing(message) {
            Ok(message) => message,
            Err(unknown) => return Ok(Err(unknown)),
        };
        let sent: Answered01<String> =
            call(&self.pre, store, &self.send, (configuration, &message)).await?;
        Ok(sent.map_err(older::connector::error))
    }

    /// Has it get a file.
    pub(crate) async fn fetch(
        &self,
        store: &mut Store<CallState>,
        configuration: &str,
        handle: &str,
    ) -> wasmtime::Result<Answered<Vec<u8>>> {
        match &self.fetch {
            Some(fetch) => call(&self.pre, store, fetch, (configuration, handle)).await,
            None => Ok(Err(older::connector::no_files())),
        }
    }
}
