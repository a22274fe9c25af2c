//! Connections beyond the limits that have sent nothing yet. Any of them may be a health check, so
//! they share a few places; when all are taken, the one that has been silent longest gives up its
//! place to the newest.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// The silent connections, the longest silent first. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Silent(Arc<Mutex<Listed>>);

#[derive(Debug, Default)]
struct Listed {
    next: u64,
    connections: VecDeque<Entry>,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    place: OwnedSemaphorePermit,
    /// Dropped with the entry, by which its connection learns that it has lost its place.
    _kept: oneshot::Sender<()>,
}

/// The place of one silent connection.
#[derive(Debug)]
pub(super) struct Guest {
    silent: Silent,
    number: u64,
    lost: oneshot::Receiver<()>,
}

impl Silent {
    /// Enters a connection with a place of its own, or with that of the longest silent one. None if
    /// all places belong to connections that have sent something.
    pub(super) fn enter(&self, place: Option<OwnedSemaphorePermit>) -> Option<Guest> {
        let mut listed = self.lock();
        let place = match place {
            Some(place) => place,
            None => listed.connections.pop_front()?.place,
        };
        let number = listed.next;
        listed.next += 1;
        let (kept, lost) = oneshot::channel();
        listed.connections.push_back(Entry {
            number,
            place,
            _kept: kept,
        });
        Some(Guest {
            silent: self.clone(),
            number,
            lost,
        })
    }

    fn leave(&self, number: u64) -> Option<OwnedSemaphorePermit> {
        let mut listed = self.lock();
        let at = listed
            .connections
            .iter()
            .position(|entry| entry.number == number)?;
        listed.connections.remove(at).map(|entry| entry.place)
    }

    fn lock(&self) -> MutexGuard<'_, Listed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guest {
    /// Waits until the connection sends something, and returns its place, which is its own from
    /// then on. None if it lost the place or stayed silent for too long.
    pub(super) async fn speaks(
        mut self,
        stream: &TcpStream,
        within: Duration,
    ) -> Option<OwnedSemaphorePermit> {
        let mut first = [0];
        let has_spoken = tokio::select! {
            biased;
            _ = &mut self.lost => false,
            // A socket may be called readable when there is nothing to read.
            bytes = stream.peek(&mut first) => bytes.is_ok_and(|bytes| bytes > 0),
            () = tokio::time::sleep(within) => false,
        };
        if has_spoken {
            self.silent.leave(self.number)
        } else {
            None
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.silent.leave(self.number);
    }
}
