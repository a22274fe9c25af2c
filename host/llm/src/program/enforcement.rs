//! The share of a program's confinement that the system enforces.

#[cfg(target_os = "linux")]
use crate::program::filter;

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
