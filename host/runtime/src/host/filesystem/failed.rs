//! The failures of file system functions, and the codes that the guest gets for them.

use rustix::io::Errno;
use std::io;
use wasmtime::component::ResourceTableError;
use wasmtime_wasi::p2::FsError;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

/// The reason that something was not done.
#[derive(Debug)]
pub(super) enum Failed {
    /// The grant does not go so far. The guest gets one code for it, without a reason.
    Refused,
    /// The folder may not hold so many bytes.
    OverBytes,
    /// The folder may not hold so many files and folders.
    OverFiles,
    /// The machine's answer, or that of a standard: nothing that the boundary decided.
    Code(ErrorCode),
    /// The host's fault, or the guest's with its handles: the call ends.
    Trap(FsError),
}

impl Failed {
    /// The guest's code for it; an error where the call ends.
    pub(super) fn code(self) -> Result<ErrorCode, FsError> {
        match self {
            Self::Refused => Ok(ErrorCode::NotPermitted),
            Self::OverBytes => Ok(ErrorCode::InsufficientSpace),
            Self::OverFiles => Ok(ErrorCode::Quota),
            Self::Code(code) => Ok(code),
            Self::Trap(trap) => Err(trap),
        }
    }
}

impl From<Failed> for FsError {
    fn from(failed: Failed) -> Self {
        failed.code().map_or_else(|trap| trap, Self::from)
    }
}

/// Converts an error of wasmtime-wasi. Its "not permitted" always comes from what was granted.
impl From<FsError> for Failed {
    fn from(error: FsError) -> Self {
        match error.downcast_ref() {
            Some(ErrorCode::NotPermitted) => Self::Refused,
            Some(code) => Self::Code(*code),
            None => Self::Trap(error),
        }
    }
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        let known = Errno::from_io_error(&error).and_then(standard_code);
        Self::Code(known.unwrap_or_else(|| ErrorCode::from(error)))
    }
}

impl From<Errno> for Failed {
    fn from(error: Errno) -> Self {
        Self::from(io::Error::from(error))
    }
}

/// The standard's codes for errors that wasmtime-wasi does not tell apart from `io`. Programs act
/// on them: they copy what cannot be moved to another disk.
fn standard_code(error: Errno) -> Option<ErrorCode> {
    Some(match error {
        Errno::XDEV => ErrorCode::CrossDevice,
        Errno::ROFS => ErrorCode::ReadOnly,
        Errno::DQUOT => ErrorCode::Quota,
        Errno::NOSPC => ErrorCode::InsufficientSpace,
        Errno::FBIG => ErrorCode::FileTooLarge,
        Errno::MLINK => ErrorCode::TooManyLinks,
        Errno::TXTBSY => ErrorCode::TextFileBusy,
        Errno::NODEV => ErrorCode::NoDevice,
        Errno::NXIO => ErrorCode::NoSuchDevice,
        Errno::NOMEM => ErrorCode::InsufficientMemory,
        Errno::NOTEMPTY => ErrorCode::NotEmpty,
        Errno::NAMETOOLONG => ErrorCode::NameTooLong,
        Errno::LOOP => ErrorCode::Loop,
        Errno::BUSY => ErrorCode::Busy,
        Errno::OPNOTSUPP => ErrorCode::Unsupported,
        Errno::OVERFLOW => ErrorCode::Overflow,
        Errno::SPIPE => ErrorCode::InvalidSeek,
        Errno::ILSEQ => ErrorCode::IllegalByteSequence,
        Errno::INTR => ErrorCode::Interrupted,
        Errno::NOLCK => ErrorCode::NoLock,
        Errno::DEADLK => ErrorCode::Deadlock,
        Errno::ALREADY => ErrorCode::Already,
        Errno::INPROGRESS => ErrorCode::InProgress,
        Errno::NOTRECOVERABLE => ErrorCode::NotRecoverable,
        _ => return None,
    })
}

impl From<ResourceTableError> for Failed {
    fn from(error: ResourceTableError) -> Self {
        Self::Trap(FsError::trap(error))
    }
}

/// Work that may wait for the disk, on a thread that may wait.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failed> + Send + 'static,
) -> Result<T, Failed> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|panic| Err(Failed::Trap(FsError::trap(panic))))
}

#[cfg(test)]
mod tests {
    use super::{Errno, ErrorCode, Failed};

    #[test]
    fn an_error_of_the_machine_has_the_code_of_the_standard() {
        for (error, expected) in [
            (Errno::XDEV, ErrorCode::CrossDevice),
            (Errno::ROFS, ErrorCode::ReadOnly),
            (Errno::DQUOT, ErrorCode::Quota),
            (Errno::NOSPC, ErrorCode::InsufficientSpace),
            (Errno::FBIG, ErrorCode::FileTooLarge),
            (Errno::TXTBSY, ErrorCode::TextFileBusy),
            (Errno::MLINK, ErrorCode::TooManyLinks),
            (Errno::NOTEMPTY, ErrorCode::NotEmpty),
            (Errno::ACCESS, ErrorCode::Access),
            (Errno::NOENT, ErrorCode::NoEntry),
            (Errno::IO, ErrorCode::Io),
        ] {
            let code = Failed::from(error).code().ok();
            assert_eq!(code, Some(expected), "{error}");
        }
    }
}
