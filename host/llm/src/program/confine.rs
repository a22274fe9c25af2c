//! The process that confines itself and then becomes the program.

use crate::program::enforcement::Enforcement;
#[cfg(target_os = "linux")]
use crate::program::filter;
use crate::program::order::{Confinement, Exit, OPEN_FILES_MAX};
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
        RulesetStatus::NotEnforced
        | RulesetStatus::PartiallyEnforced
        | RulesetStatus::FullyEnforced => Ok(()),
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

#[cfg(test)]
mod tests {
    use super::is_enough;
    use crate::program::enforcement::Enforcement;

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
