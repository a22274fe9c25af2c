//! The streams of files in folders with patterns or a quota: every write is charged, and an
//! unlinked file is held as long as a stream is.

use super::account::{OpenFileGuard, Sheet};
use super::change;
use super::failed::Failed;
use super::folders::Folder;
use crate::host::audit_recorder::AuditRecorder;
use bytes::Bytes;
use domain::grant::capability;
use std::fs::File;
use std::sync::Arc;
use wasmtime_wasi::p2::{
    DynInputStream, InputStream, OutputStream, Pollable, StreamError, StreamResult,
};
use wasmtime_wasi::runtime::{AbortOnDropJoinHandle, spawn_blocking};

/// Bytes that are taken at once, and so wait in the host's memory.
const WRITE_BYTES_MAX: usize = 64 << 10;

/// The file that a stream writes to, open as long as this is.
pub(super) struct Target {
    pub(super) folder: Arc<Folder>,
    pub(super) file: Arc<File>,
    pub(super) _open_file: Option<Arc<OpenFileGuard>>,
    pub(super) recorder: AuditRecorder,
    /// The file as the guest sees it.
    pub(super) shown: String,
}

impl Target {
    /// Makes a change in the file, while no other is made in the granted folder.
    pub(super) fn changed<T>(
        &self,
        change: impl FnOnce(&mut Sheet<'_>, &File) -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        self.folder.changed(|sheet| change(sheet, &self.file))
    }

    /// Writes all of it, from there or from the end on.
    fn write(&self, mut at: Option<u64>, data: &[u8]) -> Result<(), Failed> {
        let mut left = data;
        while !left.is_empty() {
            let written = self.changed(|sheet, file| change::write(sheet, file, at, left))?;
            if written == 0 {
                return Err(std::io::Error::from(std::io::ErrorKind::WriteZero).into());
            }
            left = left.get(written..).unwrap_or_default();
            at = at.map(|at| at.saturating_add(written as u64));
        }
        Ok(())
    }
}

/// Writes a file from a place on, or at its end.
pub(super) struct Writing {
    target: Arc<Target>,
    at: Option<u64>,
    state: State,
}

enum State {
    Ready,
    Busy(AbortOnDropJoinHandle<Result<(), Failed>>, u64),
    Failed(StreamError),
    Closed,
}

impl Writing {
    pub(super) fn new(target: Target, at: Option<u64>) -> Self {
        Self {
            target: Arc::new(target),
            at,
            state: State::Ready,
        }
    }

    /// Returns the error of the last write, once.
    fn check(&mut self) -> StreamResult<()> {
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Failed(error) => Err(error),
            State::Closed => Err(StreamError::Closed),
            state @ (State::Ready | State::Busy(..)) => {
                self.state = state;
                Ok(())
            }
        }
    }

    fn failed(&self, failed: Failed) -> StreamError {
        if matches!(failed, Failed::OverBytes | Failed::OverFiles) {
            self.target
                .recorder
                .limited(capability::FILES_WRITE, || self.target.shown.clone());
        }
        match failed.code() {
            Ok(code) => StreamError::LastOperationFailed(code.into()),
            Err(trap) => StreamError::Trap(wasmtime::Error::from(trap)),
        }
    }
}

#[async_trait::async_trait]
impl OutputStream for Writing {
    fn write(&mut self, data: Bytes) -> StreamResult<()> {
        self.check()?;
        if !matches!(self.state, State::Ready) {
            return Err(StreamError::trap("a write before the last one has ended"));
        }
        let target = self.target.clone();
        let at = self.at;
        let length = data.len() as u64;
        self.state = State::Busy(spawn_blocking(move || target.write(at, &data)), length);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.check()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.check()?;
        let is_ready = matches!(self.state, State::Ready);
        Ok(if is_ready { WRITE_BYTES_MAX } else { 0 })
    }

    /// Waits for a write that has begun: what was taken is written.
    async fn cancel(&mut self) {
        if let State::Busy(writing, _) = std::mem::replace(&mut self.state, State::Closed) {
            // It ends the stream; no reader is left for the error.
            let _ = writing.await;
        }
    }
}

#[async_trait::async_trait]
impl Pollable for Writing {
    async fn ready(&mut self) {
        let State::Busy(writing, length) = &mut self.state else {
            return;
        };
        let length = *length;
        self.state = match writing.await {
            Ok(()) => {
                self.at = self.at.map(|at| at.saturating_add(length));
                State::Ready
            }
            Err(failed) => State::Failed(self.failed(failed)),
        };
    }
}

/// Reads a file, which is open as long as this is.
pub(super) struct Reading {
    pub(super) inner: DynInputStream,
    pub(super) _open_file: Arc<OpenFileGuard>,
}

#[async_trait::async_trait]
impl InputStream for Reading {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        self.inner.read(size)
    }

    async fn blocking_read(&mut self, size: usize) -> StreamResult<Bytes> {
        self.inner.blocking_read(size).await
    }

    async fn cancel(&mut self) {
        self.inner.cancel().await;
    }
}

#[async_trait::async_trait]
impl Pollable for Reading {
    async fn ready(&mut self) {
        self.inner.ready().await;
    }
}
