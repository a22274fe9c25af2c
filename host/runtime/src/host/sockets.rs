//! `wasi:sockets`: no guest gets a socket.

use crate::call::CallState;
use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::sockets::ip_name_lookup::{
    self, IpAddress, Network, ResolveAddressStream,
};
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, IpAddressFamily};
use wasmtime_wasi::p2::bindings::sockets::{network, tcp_create_socket, udp_create_socket};
use wasmtime_wasi::p2::{DynPollable, IoError, SocketError, SocketResult, TcpSocket, UdpSocket};

impl tcp_create_socket::Host for CallState {
    fn create_tcp_socket(&mut self, _family: IpAddressFamily) -> SocketResult<Resource<TcpSocket>> {
        self.recorder.refused("wasi:sockets", || {
            "wasi:sockets/tcp-create-socket.create-tcp-socket".to_owned()
        });
        Err(ErrorCode::AccessDenied.into())
    }
}

impl udp_create_socket::Host for CallState {
    async fn create_udp_socket(
        &mut self,
        _family: IpAddressFamily,
    ) -> SocketResult<Resource<UdpSocket>> {
        self.recorder.refused("wasi:sockets", || {
            "wasi:sockets/udp-create-socket.create-udp-socket".to_owned()
        });
        Err(ErrorCode::AccessDenied.into())
    }
}

/// Refuses all lookups: a lookup itself would tell others that the name is of interest.
impl ip_name_lookup::Host for CallState {
    fn resolve_addresses(
        &mut self,
        _network: Resource<Network>,
        name: String,
    ) -> SocketResult<Resource<ResolveAddressStream>> {
        self.recorder.refused("wasi:sockets", || {
            format!("wasi:sockets/ip-name-lookup.resolve-addresses `{name}`")
        });
        Err(ErrorCode::PermanentResolverFailure.into())
    }
}

/// Answers of name servers, of which there are none.
impl ip_name_lookup::HostResolveAddressStream for CallState {
    fn resolve_next_address(
        &mut self,
        _answers: Resource<ResolveAddressStream>,
    ) -> SocketResult<Option<IpAddress>> {
        Err(ErrorCode::PermanentResolverFailure.into())
    }

    fn subscribe(
        &mut self,
        _answers: Resource<ResolveAddressStream>,
    ) -> wasmtime::Result<Resource<DynPollable>> {
        Err(wasmtime::format_err!(
            "there are no answers of name servers here"
        ))
    }

    fn drop(&mut self, answers: Resource<ResolveAddressStream>) -> wasmtime::Result<()> {
        self.table.delete(answers)?;
        Ok(())
    }
}

impl network::Host for CallState {
    fn convert_error_code(&mut self, error: SocketError) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }

    /// Only streams of sockets have such errors, and there are none.
    fn network_error_code(
        &mut self,
        _error: Resource<IoError>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        Ok(None)
    }
}

impl network::HostNetwork for CallState {
    fn drop(&mut self, network: Resource<network::Network>) -> wasmtime::Result<()> {
        self.table.delete(network)?;
        Ok(())
    }
}
