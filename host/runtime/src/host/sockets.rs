//! `wasi:sockets`: no guest gets a socket.

use crate::call::CallState;
use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, IpAddressFamily};
use wasmtime_wasi::p2::bindings::sockets::{network, tcp_create_socket, udp_create_socket};
use wasmtime_wasi::p2::{IoError, SocketError, SocketResult, TcpSocket, UdpSocket};

impl tcp_create_socket::Host for CallState {
    fn create_tcp_socket(&mut self, _family: IpAddressFamily) -> SocketResult<Resource<TcpSocket>> {
        self.book.refused("wasi:sockets", || "wasi:sockets/tcp-create-socket.create-tcp-socket".to_owned());
        Err(ErrorCode::AccessDenied.into())
    }
}

impl udp_create_socket::Host for CallState {
    async fn create_udp_socket(&mut self, _family: IpAddressFamily) -> SocketResult<Resource<UdpSocket>> {
        self.book.refused("wasi:sockets", || "wasi:sockets/udp-create-socket.create-udp-socket".to_owned());
        Err(ErrorCode::AccessDenied.into())
    }
}

impl network::Host for CallState {
    fn convert_error_code(&mut self, error: SocketError) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }

    /// Only streams of sockets have such errors, and there are none.
    fn network_error_code(&mut self, _error: Resource<IoError>) -> wasmtime::Result<Option<ErrorCode>> {
        Ok(None)
    }
}

impl network::HostNetwork for CallState {
    fn drop(&mut self, network: Resource<network::Network>) -> wasmtime::Result<()> {
        self.table.delete(network)?;
        Ok(())
    }
}
