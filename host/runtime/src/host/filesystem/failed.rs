//! The failures of file system functions, and the codes that the guest gets for them.

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
        Self::Code(ErrorCode::from(error))
    }
}

impl From<rustix::io::Errno> for Failed {
    fn from(error: rustix::io::Errno) -> Self {
        Self::from(io::Error::from(error))
    }
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
