//! The part of the system that every program may use.

/// Files and folders of the system that programs read, and where they start others from. Of `/etc`
/// only what they cannot do without: keys of the host and of other services are in there too.
pub const SYSTEM_READ: [&str; 48] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/run/systemd/resolve",
    "/proc",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
    "/dev/fd",
    // Libraries and where programs are found.
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    // Names of hosts, services and users.
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    // Whom a server is trusted by; not `/etc/ssl/private`.
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/crypto-policies",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    // The machine, its place and its terminals.
    "/etc/inputrc",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/os-release",
    "/etc/terminfo",
    "/etc/timezone",
    // Settings of shells and of the programs themselves.
    "/etc/bash.bashrc",
    "/etc/claude-code",
    "/etc/codex",
    "/etc/gitconfig",
    "/etc/profile",
];
/// Devices that hold nothing.
pub(crate) const SYSTEM_WRITE: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

#[cfg(test)]
mod tests {
    use super::SYSTEM_READ;
    use std::path::Path;

    #[test]
    fn the_place_of_the_hosts_keys_is_nothing_that_programs_read() {
        for key in [
            "/etc/agent-host/anthropic-key",
            "/etc/ssl/private/host.key",
            "/etc/shadow",
        ] {
            let mut read = SYSTEM_READ.iter();
            assert!(read.all(|read| !Path::new(key).starts_with(read)), "{key}");
        }
    }
}
