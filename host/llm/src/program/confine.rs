//! The process that confines itself and then becomes the program, and the share of that which the
//! system enforces.

#[cfg(target_os = "linux")]
use crate::program::filter;
use crate::program::running::{Confinement, Exit, OPEN_FILES_MAX};
use rustix::process::{Resource, Rlimit, getppid, setrlimit};
use std::convert::Infallible;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The descriptors that a program starts with: stdin, stdout and stderr.
const STANDARD_DESCRIPTORS: i32 = 3;
/// The folders in which systems list the descriptors of the process that looks.
const DESCRIPTORS: [&str; 2] = ["/proc/self/fd", "/dev/fd"];

/// The reason why a program is not started.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// Its folders and limits could not be read.
    #[error("the confinement cannot be read")]
    Unreadable(#[source] serde_json::Error),
    /// No program is named.
    #[error("no program is named")]
    NoProgram,
    /// Another process than its supervisor started it, or its supervisor is gone.
    #[error("the process is not the child of process {0}")]
    Orphaned(u32),
    /// A limit could not be set.
    #[error("the process could not be limited")]
    Unlimited(#[source] rustix::io::Errno),
    /// Its rights as an administrator could not be given up.
    #[error("the capabilities of the process could not be given up")]
    Capable(#[source] rustix::io::Errno),
    /// It could have kept the keyring of the host.
    #[cfg(target_os = "linux")]
    #[error("the process could not join a keyring of its own")]
    Keyring(#[source] std::io::Error),
    /// Descriptors of the host could have been inherited.
    #[error("the open descriptors cannot be listed")]
    Descriptors,
    /// The rules for its folders could not be made.
    #[cfg(target_os = "linux")]
    #[error("the folders of the program could not be enforced")]
    Rules(#[source] landlock::RulesetError),
    /// The filter of its calls could not be made.
    #[cfg(target_os = "linux")]
    #[error("the calls of the program could not be filtered")]
    Unfiltered(#[source] seccompiler::Error),
    /// The system does not enforce the whole confinement, and it has to.
    #[error(
        "this system cannot confine a program to its folders and processes (Landlock, seccomp)"
    )]
    NotConfined,
    /// The program's file cannot be executed.
    #[error("the program could not be started")]
    NotStarted(#[source] std::io::Error),
}

impl ConfineError {
    /// Returns the exit code that tells the supervisor of it.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NotConfined => Exit::NotConfined.code(),
            _ => Exit::NotStarted.code(),
        }
    }
}

/// Confines this process for good and becomes the program. Its environment, its folder and its
/// standard descriptors are those of this process.
///
/// # Errors
/// It could not be confined, or the program cannot be executed. Nothing was started then.
pub fn confine(confinement: &str, command: &[OsString]) -> Result<Infallible, ConfineError> {
    let confinement: Confinement =
        serde_json::from_str(confinement).map_err(ConfineError::Unreadable)?;
    let (program, arguments) = command.split_first().ok_or(ConfineError::NoProgram)?;
    stay_with(confinement.supervisor)?;
    close_descriptors()?;
    leave_keyring()?;
    limit(Resource::Core, 0)?;
    limit(Resource::Cpu, confinement.cpu_s_max)?;
    limit(Resource::Fsize, confinement.file_bytes_max)?;
    limit(Resource::Nofile, OPEN_FILES_MAX)?;
    give_up_capabilities()?;
    if !is_enough(Enforcement::of_system(), confinement.is_required) {
        return Err(ConfineError::NotConfined);
    }
    restrict(&confinement)?;
    filter_calls()?;
    Err(ConfineError::NotStarted(
        Command::new(program).args(arguments).exec(),
    ))
}

/// Ends with the supervisor, or at once when that has ended already.
fn stay_with(supervisor: u32) -> Result<(), ConfineError> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(ConfineError::Unlimited)?;
    // Looked at only now: a parent that ended before sends no signal any more.
    let is_its_child =
        getppid().is_some_and(|pid| u32::try_from(pid.as_raw_nonzero().get()) == Ok(supervisor));
    if is_its_child {
        Ok(())
    } else {
        Err(ConfineError::Orphaned(supervisor))
    }
}

/// Closes every descriptor but the standard ones. The host's own close by themselves; those that it
/// was started with may not.
fn close_descriptors() -> Result<(), ConfineError> {
    let entries = DESCRIPTORS
        .iter()
        .find_map(|folder| std::fs::read_dir(folder).ok())
        .ok_or(ConfineError::Descriptors)?;
    let open: Vec<i32> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    for descriptor in open {
        if descriptor >= STANDARD_DESCRIPTORS {
            // The list's own descriptor is among them, and closed already.
            let _ = nix::unistd::close(descriptor);
        }
    }
    Ok(())
}

/// Leaves the session keyring that the host was started with, for an empty one without a name.
#[cfg(target_os = "linux")]
fn leave_keyring() -> Result<(), ConfineError> {
    filter::join_keyring().map_err(ConfineError::Keyring)
}

/// Does nothing: only Linux has keyrings of a session.
#[cfg(not(target_os = "linux"))]
fn leave_keyring() -> Result<(), ConfineError> {
    Ok(())
}

/// Sets a limit for good, or leaves a stricter one that is set already.
fn limit(resource: Resource, wanted: u64) -> Result<(), ConfineError> {
    let allowed = rustix::process::getrlimit(resource).maximum;
    let max = allowed.map_or(wanted, |allowed| allowed.min(wanted));
    let limit = Rlimit {
        current: Some(max),
        maximum: Some(max),
    };
    setrlimit(resource, limit).map_err(ConfineError::Unlimited)
}

/// Gives up what the host's user may do as an administrator, for good. With some of that, a program
/// could read the memory and the environment of the host whatever its folders are.
#[cfg(target_os = "linux")]
fn give_up_capabilities() -> Result<(), ConfineError> {
    use rustix::thread::{
        CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set,
        set_capabilities, set_no_new_privs,
    };
    // No program that it starts gets any back.
    set_no_new_privs(true).map_err(ConfineError::Capable)?;
    for bit in 0..u64::BITS {
        // Only an administrator may, and there are fewer than bits.
        let _ = remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << bit));
    }
    let none = CapabilitySet::empty();
    let sets = CapabilitySets {
        effective: none,
        permitted: none,
        inheritable: none,
    };
    // Where there is none, a service's filter may refuse the call.
    if capabilities(None).map_err(ConfineError::Capable)? == sets {
        return Ok(());
    }
    set_capabilities(None, sets).map_err(ConfineError::Capable)
}

/// Does nothing: only Linux has parts of an administrator's rights.
#[cfg(not(target_os = "linux"))]
fn give_up_capabilities() -> Result<(), ConfineError> {
    Ok(())
}

/// Leaves this process nothing of the file system but what it is granted, no signals to processes
/// outside of it, and no way to more rights.
#[cfg(target_os = "linux")]
fn restrict(confinement: &Confinement) -> Result<(), ConfineError> {
    use landlock::{
        ABI, Access, AccessFs, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr,
        RulesetStatus, Scope, path_beneath_rules,
    };
    let abi = ABI::V6;
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(abi))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(abi)))
        .and_then(Ruleset::create)
        .and_then(|ruleset| {
            ruleset.add_rules(path_beneath_rules(
                &confinement.read,
                AccessFs::from_read(abi),
            ))
        })
        .and_then(|ruleset| {
            ruleset.add_rules(path_beneath_rules(
                &confinement.write,
                AccessFs::from_all(abi),
            ))
        })
        .and_then(RulesetCreated::restrict_self)
        .map_err(ConfineError::Rules)?;
    match status.ruleset {
        RulesetStatus::NotEnforced if confinement.is_required => Err(ConfineError::NotConfined),
        _ => Ok(()),
    }
}

/// Leaves the file system as it is: this system has nothing like it.
#[cfg(not(target_os = "linux"))]
fn restrict(_confinement: &Confinement) -> Result<(), ConfineError> {
    Ok(())
}

/// Leaves this process no call that changes another one, where the system can refuse such calls.
#[cfg(target_os = "linux")]
fn filter_calls() -> Result<(), ConfineError> {
    if !filter::is_there() {
        return Ok(());
    }
    filter::install().map_err(ConfineError::Unfiltered)
}

/// Leaves all calls as they are: only Linux has such filters.
#[cfg(not(target_os = "linux"))]
fn filter_calls() -> Result<(), ConfineError> {
    Ok(())
}

/// Returns whether a system enforces enough of a confinement. One that is required leaves no gap.
fn is_enough(enforced: Enforcement, is_required: bool) -> bool {
    !is_required || enforced.gap().is_none()
}

/// The share of a program's confinement that a system enforces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enforcement {
    /// Nothing of it.
    Nothing,
    /// The folders alone: Landlock's third version, which knows of truncating, or a later one.
    Folders,
    /// The folders and the signals: Landlock's sixth version or a later one.
    Signals,
    /// These, and the calls that change other processes without a signal: filters of calls as well
    /// (seccomp).
    Whole,
}

impl Enforcement {
    /// Returns the share that this system enforces. Nothing is restricted by asking.
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn of_system() -> Self {
        use landlock::{
            ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, Scope,
        };
        let strict = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        let has_folders = strict()
            .handle_access(AccessFs::from_all(ABI::V3))
            .and_then(Ruleset::create)
            .is_ok();
        let has_all = strict()
            .handle_access(AccessFs::from_all(ABI::V6))
            .and_then(|ruleset| ruleset.scope(Scope::from_all(ABI::V6)))
            .and_then(Ruleset::create)
            .is_ok();
        match (has_folders, has_all) {
            (_, true) if filter::is_there() => Self::Whole,
            (_, true) => Self::Signals,
            (true, false) => Self::Folders,
            (false, false) => Self::Nothing,
        }
    }

    /// Returns the share that this system enforces: no other than Linux enforces any.
    #[cfg(not(target_os = "linux"))]
    #[must_use]
    pub fn of_system() -> Self {
        Self::Nothing
    }

    /// Returns what is open to a program in spite of its confinement, for the operator.
    #[must_use]
    pub fn gap(self) -> Option<&'static str> {
        match self {
            Self::Nothing => Some(
                "this system cannot confine a program (Landlock's third version, of Linux 6.2): it \
                 may do whatever the host's own user may",
            ),
            Self::Folders => Some(
                "this system does not confine the signals of a program (Landlock's sixth version, \
                 of Linux 6.12): it may stop the host, and outlive its turn",
            ),
            Self::Signals => Some(
                "this system does not filter the calls of a program (seccomp): it may lower the \
                 limits of the host and of its supervisor, so stop the host, and outlive its turn",
            ),
            Self::Whole => None,
        }
    }
}

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
    use super::{Enforcement, SYSTEM_READ, is_enough};
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

    #[test]
    fn a_required_confinement_takes_folders_signals_and_calls() {
        for (enforced, is_started) in [
            (Enforcement::Nothing, false),
            (Enforcement::Folders, false),
            (Enforcement::Signals, false),
            (Enforcement::Whole, true),
        ] {
            assert_eq!(is_enough(enforced, true), is_started, "{enforced:?}");
            assert!(is_enough(enforced, false), "{enforced:?}");
            let reported = enforced.gap().is_some();
            assert_ne!(reported, is_started, "{enforced:?} is told of otherwise");
        }
    }
}
