//! The lookup of names: done once per hop, for names that a grant allows, and nowhere else.

use crate::request_semaphore::RequestPermit;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::pin::Pin;

/// An answer on its way.
pub type Resolving = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Turns a name into addresses.
pub trait Resolve: Send + Sync + fmt::Debug {
    /// Looks up a name. The caller may stop waiting at any time. The permit is to be kept until the
    /// lookup has really ended, so that abandoned ones count as under way.
    fn resolve(&self, name: String, request_permit: RequestPermit) -> Resolving;
}

/// The machine's own resolver, with its hosts file and search list.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, name: String, request_permit: RequestPermit) -> Resolving {
        Box::pin(async move {
            // The lookup blocks a thread and cannot be interrupted. The permit stays with it.
            let lookup = move || {
                let addresses = (name.as_str(), 0)
                    .to_socket_addrs()
                    .map(|found| found.map(|socket| socket.ip()).collect());
                drop(request_permit);
                addresses
            };
            tokio::task::spawn_blocking(lookup)
                .await
                .map_err(io::Error::other)?
        })
    }
}
