//! The failure to listen at an address, with what to do about it.

use crate::config::Loaded;
use crate::failure::{Exit, Failure};
use crate::invocation;
use anyhow::anyhow;
use std::io::{Error, ErrorKind};
use std::net::{IpAddr, SocketAddr};

/// The first port that programs of ordinary users may listen at.
const UNPRIVILEGED_PORT_MIN: u16 = 1_024;

/// Returns the failure of a host that cannot listen at the address of its configuration.
pub(super) fn failure(error: Error, loaded: &Loaded) -> Failure {
    let listen = loaded.config.server.listen;
    let advice = advice(&error, listen, &another_port(loaded));
    let failure = Failure::new(
        Exit::Failed,
        anyhow!(error).context(format!("cannot listen at {listen} (`server.listen`)")),
    );
    match advice {
        Some(advice) => failure.advise(advice),
        None => failure,
    }
}

/// Returns the command that serves at another port.
fn another_port(loaded: &Loaded) -> String {
    let listen = SocketAddr::new(loaded.config.server.listen.ip(), 0);
    invocation::command(loaded, &format!("serve --listen {listen}"))
}

fn advice(error: &Error, listen: SocketAddr, another_port: &str) -> Option<String> {
    match error.kind() {
        ErrorKind::AddrInUse => Some(format!(
            "another program listens there, perhaps a host that runs already: stop it, or change \
             `server.listen`, or take any free port with: {another_port}"
        )),
        ErrorKind::AddrNotAvailable => Some(format!(
            "this machine has no address {}: set `server.listen` to 127.0.0.1:{}, or to {}:{} for \
             all of its addresses",
            listen.ip(),
            listen.port(),
            everywhere(listen.ip()),
            listen.port(),
        )),
        ErrorKind::PermissionDenied if listen.port() < UNPRIVILEGED_PORT_MIN => Some(format!(
            "ports below {UNPRIVILEGED_PORT_MIN} are for the administrator: take a higher one in \
             `server.listen`, and put a proxy in front"
        )),
        _ => None,
    }
}

fn everywhere(like: IpAddr) -> &'static str {
    if like.is_ipv4() { "0.0.0.0" } else { "[::]" }
}

#[cfg(test)]
mod tests {
    use super::advice;
    use std::io::{Error, ErrorKind};

    #[test]
    fn who_cannot_listen_is_told_why_and_what_to_change() {
        for (kind, listen, expected) in [
            (
                ErrorKind::AddrInUse,
                "127.0.0.1:7777",
                "any free port with: COMMAND",
            ),
            (ErrorKind::AddrNotAvailable, "10.9.9.9:80", "127.0.0.1:80"),
            (ErrorKind::PermissionDenied, "127.0.0.1:80", "below 1024"),
        ] {
            let reported = advice(&Error::from(kind), listen.parse().unwrap(), "COMMAND").unwrap();
            assert!(reported.contains(expected), "{reported}");
        }
        let other = Error::from(ErrorKind::PermissionDenied);
        assert_eq!(advice(&other, "127.0.0.1:8080".parse().unwrap(), ""), None);
    }
}
