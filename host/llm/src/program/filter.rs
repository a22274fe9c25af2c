//! The filter of system calls that keeps a program from changing other processes without a signal:
//! their limits, their priorities and their processors; and from the keys that the kernel keeps for
//! the host's user. Landlock has no rule for these.

use nix::libc;
use seccompiler::{
    BackendError, BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp,
    SeccompCondition, SeccompFilter, SeccompRule, TargetArch, apply_filter,
};
use std::collections::BTreeMap;
use std::fs;

/// The list of what filters of this kernel can do; there is none where it has no filters.
const ACTIONS: &str = "/proc/sys/kernel/seccomp/actions_avail";
/// Calls whose first argument is the process that they change; 0 is the caller.
const OF_A_PROCESS: [i64; 5] = [
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];
/// Calls whose first argument is the kind of what they change, with the kind that is a process. The
/// second one is the process; 0 is the caller.
const OF_A_KIND: [(i64, u64); 2] = [
    (libc::SYS_setpriority, PRIORITY_OF_PROCESS),
    (libc::SYS_ioprio_set, STORAGE_PRIORITY_OF_PROCESS),
];
/// `PRIO_PROCESS` of setpriority(2).
const PRIORITY_OF_PROCESS: u64 = 0;
/// `IOPRIO_WHO_PROCESS` of ioprio_set(2).
const STORAGE_PRIORITY_OF_PROCESS: u64 = 1;
/// Calls on the kernel's keys. A keyring of its own is not enough: that of the host's user is open
/// to every process of that user.
const OF_KEYS: [i64; 3] = [libc::SYS_add_key, libc::SYS_keyctl, libc::SYS_request_key];
/// `KEYCTL_JOIN_SESSION_KEYRING` of keyctl(2).
const JOIN_SESSION_KEYRING: libc::c_long = 1;
/// The bit of the numbers that the same calls have in the x32 interface of x86-64.
const X32: i64 = 0x4000_0000;

/// Returns whether this system has such filters.
pub(super) fn is_there() -> bool {
    let actions = fs::read_to_string(ACTIONS).unwrap_or_default();
    TargetArch::try_from(std::env::consts::ARCH).is_ok()
        && actions.split_whitespace().any(|action| action == "errno")
}

/// Gives this process a new session keyring, which has no name and nothing in it. A kernel without
/// keys, and a service's filter that refuses the call, leave nothing to take.
///
/// # Errors
/// The system has keys, and the keyring cannot be joined.
pub(super) fn join_keyring() -> std::io::Result<()> {
    let nameless = std::ptr::null::<libc::c_char>();
    #[expect(
        unsafe_code,
        reason = "no crate of ours has this call; its arguments are a number and a null pointer"
    )]
    // SAFETY: a null name asks for a keyring without one, so the kernel reads no memory of ours.
    let joined = unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, nameless) };
    if joined >= 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ENOSYS | libc::EPERM) => Ok(()),
        _ => Err(error),
    }
}

/// Has the system refuse, to this process and to all that it starts, every such call on another
/// process. It counts as another one also if it names its own number. A program of another
/// interface than this processor's own, such as a 32-bit one, is ended at its first call.
///
/// # Errors
/// The filter cannot be made or put in force.
pub(super) fn install() -> Result<(), Error> {
    apply_filter(&program().map_err(Error::Backend)?)
}

fn program() -> Result<BpfProgram, BackendError> {
    let mut rules = BTreeMap::new();
    for call in OF_A_PROCESS {
        add(&mut rules, call, vec![unless(0, 0)?]);
    }
    for (call, kind) in OF_A_KIND {
        add(&mut rules, call, vec![unless(0, kind)?, unless(1, 0)?]);
    }
    for call in OF_KEYS {
        // Without a rule, every such call is refused.
        add(&mut rules, call, Vec::new());
    }
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        refused,
        TargetArch::try_from(std::env::consts::ARCH)?,
    )?;
    filter.try_into()
}

fn add(rules: &mut BTreeMap<i64, Vec<SeccompRule>>, call: i64, refused: Vec<SeccompRule>) {
    if cfg!(target_arch = "x86_64") {
        rules.insert(call | X32, refused.clone());
    }
    rules.insert(call, refused);
}

/// The rule for calls whose argument at a place is another one.
fn unless(place: u8, allowed: u64) -> Result<SeccompRule, BackendError> {
    let other = SeccompCondition::new(place, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, allowed)?;
    SeccompRule::new(vec![other])
}

#[cfg(test)]
mod tests {
    use super::{install, is_there, join_keyring};
    use nix::libc;

    /// The number of the session keyring, by `KEYCTL_GET_KEYRING_ID` of keyctl(2).
    fn session_keyring() -> std::io::Result<libc::c_long> {
        const GET_KEYRING_ID: libc::c_long = 0;
        const SESSION_KEYRING: libc::c_long = -3;
        const MADE: libc::c_long = 1;
        #[expect(
            unsafe_code,
            reason = "no crate of ours has this call; it takes numbers alone"
        )]
        // SAFETY: all arguments are numbers, so the kernel reads no memory of ours.
        let id = unsafe { libc::syscall(libc::SYS_keyctl, GET_KEYRING_ID, SESSION_KEYRING, MADE) };
        match id {
            ..0 => Err(std::io::Error::last_os_error()),
            id => Ok(id),
        }
    }

    /// The keyring and the filter are those of a thread, and go with it.
    #[test]
    fn a_program_has_another_keyring_and_no_call_on_keys() {
        std::thread::spawn(|| {
            // Where a service's filter refuses the call, it is refused before and after.
            let of_host = session_keyring().ok();
            join_keyring().unwrap();
            assert!(of_host.is_none() || session_keyring().ok() != of_host);
            if is_there() {
                rustix::thread::set_no_new_privs(true).unwrap();
                install().unwrap();
                let refused = session_keyring().unwrap_err();
                assert_eq!(refused.raw_os_error(), Some(libc::EPERM));
            }
        })
        .join()
        .unwrap();
    }
}
