//! The way from a permitted target to a connection. The name is resolved once, every address is
//! judged, and only those are dialled.

use crate::awake::{Instant, timeout_at};
use crate::error::{EgressError, Phase, Refused, Unreachable};
use crate::limits::{DIALS_MAX, Limits};
use crate::record::Trace;
use crate::request::RequestPermit;
use crate::wire::Stream;
use domain::egress::{Host, Permit, Scheme, Target};
use rustls::pki_types::ServerName;
use std::future::Future;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

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

/// TLS as the host uses it: by ring, trusting the machine's authorities, without tickets that would
/// tell a server that two connections are from the same machine.
///
/// # Errors
/// The machine has no certificate authorities installed.
pub fn system_tls() -> Result<rustls::ClientConfig, rustls::Error> {
    use rustls_platform_verifier::BuilderVerifierExt;
    Ok(tls()?.with_platform_verifier()?.with_no_client_auth())
}

/// TLS that trusts no authority, for clients that send nothing but plain HTTP: it needs no
/// authorities.
///
/// # Errors
/// None on any machine that is known.
pub fn no_tls() -> Result<rustls::ClientConfig, rustls::Error> {
    let trusted = rustls::RootCertStore::empty();
    Ok(tls()?.with_root_certificates(trusted).with_no_client_auth())
}

fn tls() -> Result<rustls::ConfigBuilder<rustls::ClientConfig, rustls::WantsVerifier>, rustls::Error>
{
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()
}

/// The end of a request's time, and the time that it had.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    pub(crate) at: Instant,
    pub(crate) total_ms_max: u64,
}

impl Deadline {
    pub(crate) fn over(&self) -> EgressError {
        EgressError::TimedOut {
            phase: Phase::Total,
            ms_max: self.total_ms_max,
        }
    }

    /// Waits for something within the limit of the whole.
    pub(crate) async fn cover<T>(
        &self,
        what: impl Future<Output = Result<T, EgressError>>,
    ) -> Result<T, EgressError> {
        timeout_at(self.at, what).await.map_err(|_| self.over())?
    }

    /// Waits for something within the limit of its phase and of the whole.
    pub(crate) async fn within<T>(
        &self,
        phase: Phase,
        ms_max: u64,
        what: impl Future<Output = T>,
    ) -> Result<T, EgressError> {
        let phase_at = Instant::now() + Duration::from_millis(ms_max);
        timeout_at(phase_at.min(self.at), what).await.map_err(|_| {
            if phase_at < self.at {
                EgressError::TimedOut { phase, ms_max }
            } else {
                self.over()
            }
        })
    }
}

/// A connection, and the address that it leads to.
pub(crate) struct Dialled {
    pub(crate) stream: Box<dyn Stream>,
    pub(crate) address: IpAddr,
}

/// The inputs of a dial.
pub(crate) struct Dial<'a> {
    pub(crate) target: &'a Target,
    pub(crate) permit: &'a Permit<'a>,
    pub(crate) resolver: &'a dyn Resolve,
    pub(crate) tls: &'a Arc<rustls::ClientConfig>,
    pub(crate) limits: &'a Limits,
    pub(crate) deadline: Deadline,
}

impl Dial<'_> {
    /// Resolves, judges and connects.
    pub(crate) async fn open(
        &self,
        request_permit: &RequestPermit,
        trace: &mut Trace,
    ) -> Result<Dialled, EgressError> {
        let addresses = self.addresses(request_permit).await?;
        trace.addresses(&addresses);
        for &address in &addresses {
            self.permit
                .admits(address)
                .map_err(|source| Refused::Barred {
                    host: self.host(),
                    source,
                })?;
        }
        let connecting = self.connect(&addresses, trace);
        let (stream, address) = self
            .deadline
            .within(Phase::Connect, self.limits.connect_ms_max, connecting)
            .await??;
        let stream = match self.target.scheme() {
            Scheme::Http => Box::new(stream) as Box<dyn Stream>,
            Scheme::Https => {
                let securing = self.secure(stream);
                let secured = self
                    .deadline
                    .within(Phase::Tls, self.limits.connect_ms_max, securing)
                    .await??;
                Box::new(secured)
            }
        };
        Ok(Dialled { stream, address })
    }

    fn host(&self) -> String {
        self.target.host().to_string()
    }

    async fn addresses(&self, request_permit: &RequestPermit) -> Result<Vec<IpAddr>, EgressError> {
        let name = match self.target.host() {
            Host::Address(address) => return Ok(vec![*address]),
            Host::Name(name) => name,
        };
        let lookup = self.resolver.resolve(name.clone(), request_permit.clone());
        let found = self
            .deadline
            .within(Phase::Resolve, self.limits.resolve_ms_max, lookup)
            .await?;
        let found = found.map_err(|source| Unreachable::Unresolved {
            host: self.host(),
            source,
        })?;
        if found.is_empty() {
            Err(Unreachable::NoAddress { host: self.host() }.into())
        } else {
            Ok(found)
        }
    }

    /// Tries the addresses in their order. Each gets an equal share of what is left of the time.
    async fn connect(
        &self,
        addresses: &[IpAddr],
        trace: &mut Trace,
    ) -> Result<(TcpStream, IpAddr), EgressError> {
        let tried = addresses.len().min(DIALS_MAX);
        let end = Instant::now() + Duration::from_millis(self.limits.connect_ms_max);
        let mut last = io::Error::from(io::ErrorKind::TimedOut);
        for (&address, left) in addresses.iter().zip((1..=tried).rev()) {
            trace.dialled(address);
            let share =
                end.saturating_duration_since(Instant::now()) / u32::try_from(left).unwrap_or(1);
            match timeout_at(
                Instant::now() + share,
                TcpStream::connect(SocketAddr::new(address, self.target.port())),
            )
            .await
            {
                Ok(Ok(stream)) => {
                    // Only a matter of speed: a socket that does not know the option works without.
                    _ = stream.set_nodelay(true);
                    return Ok((stream, address));
                }
                Ok(Err(source)) => last = source,
                Err(_) => last = io::ErrorKind::TimedOut.into(),
            }
        }
        Err(Unreachable::Dial {
            host: self.host(),
            source: last,
        }
        .into())
    }

    async fn secure(&self, stream: TcpStream) -> Result<TlsStream<TcpStream>, EgressError> {
        let failed = |source| Unreachable::Tls {
            host: self.host(),
            source,
        };
        let name = match self.target.host() {
            Host::Address(address) => ServerName::from(*address),
            Host::Name(name) => ServerName::try_from(name.clone())
                .map_err(|error| failed(io::Error::other(error)))?,
        };
        let connector = TlsConnector::from(Arc::clone(self.tls));
        Ok(connector.connect(name, stream).await.map_err(failed)?)
    }
}
