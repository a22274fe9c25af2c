//! The sessions that this process computes for at the moment, in a file that outlasts it.
//!
//! The next start learns from this file during whose work the process may have ended. The file is
//! never synced, so it costs no wait for a disk: its content survives a kill of the process. It
//! need not survive the machine: after another boot it is ignored. It has the boot's id and then
//! one slot for each piece of work. A start ignores a file with any fault.

use domain::id::SessionId;
use futures::task::{ArcWake, waker};
use std::collections::BTreeSet;
use std::fs::File;
use std::future::poll_fn;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Waker};
use uuid::Uuid;

/// Name of the file in the data directory.
const FILE: &str = "at-work";
/// The file with the id of the machine's present boot.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
/// Bytes before the first slot: the boot's id, and zeros.
const HEAD_BYTES: usize = 64;
/// Bytes of a slot: a session's id, or zeros.
const SLOT_BYTES: usize = 16;
/// Number of slots. More work at the same moment is not noted.
const SLOTS_MAX: usize = 1_024;

/// The sessions that are computed for now.
#[derive(Debug, Clone, Default)]
pub(crate) struct Computing(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// None until the file is recreated, and if it cannot be written.
    file: OnceLock<File>,
    slots: Mutex<Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    /// The slots that were taken so far.
    of: Vec<Option<SessionId>>,
    free: Vec<usize>,
}

impl Computing {
    /// Returns the sessions that the last process computed for as it ended: none after another
    /// boot. They stay in the file until [`Self::renew`].
    pub(crate) fn left(folder: &Path) -> BTreeSet<SessionId> {
        Self::left_in(folder, &head(Path::new(BOOT)))
    }

    fn left_in(folder: &Path, head: &[u8]) -> BTreeSet<SessionId> {
        let written = std::fs::read(folder.join(FILE)).unwrap_or_default();
        written
            .strip_prefix(head)
            .unwrap_or_default()
            .as_chunks::<SLOT_BYTES>()
            .0
            .iter()
            .filter(|slot| **slot != [0; SLOT_BYTES])
            .map(|slot| SessionId(Uuid::from_bytes(*slot)))
            .collect()
    }

    /// Recreates the file with the present computations. Nothing is written before that. So a
    /// process that ends before it has stored the entries of its predecessor leaves them to the
    /// next.
    pub(crate) fn renew(&self, folder: &Path) {
        if let Err(error) = self.renew_in(folder, head(Path::new(BOOT))) {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "it cannot be noted what the host computes for: work that ends the process is not \
                 found"
            );
        }
    }

    fn renew_in(&self, folder: &Path, mut head: Vec<u8>) -> io::Result<()> {
        let mut options = File::options();
        let file = options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(folder.join(FILE))?;
        // Written in full now, so that a disk that fills up later has room for the slots.
        head.resize(HEAD_BYTES + SLOT_BYTES * SLOTS_MAX, 0);
        file.write_all_at(&head, 0)?;
        let file = self.0.file.get_or_init(|| file);
        for (slot, of) in self.slots().of.iter().enumerate() {
            if let Some(session) = of {
                write(file, slot, session.0.as_bytes());
            }
        }
        Ok(())
    }

    /// Notes that a session is computed for, until the mark is dropped.
    pub(crate) fn enter(&self, session: SessionId) -> Computes {
        let mark = Computes {
            computing: self.clone(),
            session,
            slot: Mutex::default(),
        };
        mark.set();
        mark
    }

    /// Returns whether a session is computed for now.
    pub(crate) fn has(&self, session: SessionId) -> bool {
        self.slots().of.contains(&Some(session))
    }

    fn take(&self, session: SessionId) -> Option<usize> {
        let mut slots = self.slots();
        let slot = match slots.free.pop() {
            Some(slot) => slot,
            None if slots.of.len() < SLOTS_MAX => {
                slots.of.push(None);
                slots.of.len() - 1
            }
            None => return None,
        };
        *slots.of.get_mut(slot)? = Some(session);
        self.write(slot, session.0.as_bytes());
        Some(slot)
    }

    fn give_back(&self, slot: usize) {
        let mut slots = self.slots();
        self.write(slot, &[0; SLOT_BYTES]);
        if let Some(of) = slots.of.get_mut(slot) {
            *of = None;
        }
        slots.free.push(slot);
    }

    fn write(&self, slot: usize, bytes: &[u8; SLOT_BYTES]) {
        if let Some(file) = self.0.file.get() {
            write(file, slot, bytes);
        }
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.0.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the header of the file for the boot with the id in a file. If boots have no ids, all of
/// them count as the same.
fn head(boot: &Path) -> Vec<u8> {
    let boot = std::fs::read(boot).unwrap_or_default();
    let mut head = boot.trim_ascii().to_vec();
    head.resize(HEAD_BYTES, 0);
    head
}

fn write(file: &File, slot: usize, bytes: &[u8; SLOT_BYTES]) {
    let at = HEAD_BYTES + slot * SLOT_BYTES;
    // The store reports a disk that refuses this. No session stays suspect by mistake: the work of
    // a slot that stays in use is not the only one at each end.
    let _ = file.write_all_at(bytes, u64::try_from(at).unwrap_or(u64::MAX));
}

/// The note that a session is computed for. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Computes {
    computing: Computing,
    session: SessionId,
    slot: Mutex<Option<usize>>,
}

impl Computes {
    /// Runs a future, such as a call of a model or a server. The session counts as computing only
    /// while it is polled, not while it waits.
    pub(crate) async fn while_polled<F: Future>(&self, work: F) -> F::Output {
        let mut work = pin!(work);
        let done = poll_fn(|context| {
            self.set();
            let yielded = Arc::new(Yielded {
                waker: context.waker().clone(),
                is_woken: AtomicBool::new(false),
            });
            let polled = work
                .as_mut()
                .poll(&mut Context::from_waker(&waker(yielded.clone())));
            // Work that only lets others go first is not waiting.
            if polled.is_pending() && !yielded.is_woken.load(Ordering::Acquire) {
                self.clear();
            }
            polled
        })
        .await;
        self.set();
        done
    }

    /// Waits for a shared resource, such as a place. The session does not count as computing
    /// meanwhile.
    pub(crate) async fn while_waiting<F: Future>(&self, waits: F) -> F::Output {
        self.clear();
        let outcome = waits.await;
        self.set();
        outcome
    }

    fn set(&self) {
        let mut slot = self.slot();
        if slot.is_none() {
            *slot = self.computing.take(self.session);
        }
    }

    fn clear(&self) {
        if let Some(slot) = self.slot().take() {
            self.computing.give_back(slot);
        }
    }

    fn slot(&self) -> MutexGuard<'_, Option<usize>> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Computes {
    fn drop(&mut self) {
        self.clear();
    }
}

/// A waker that knows whether it was used.
struct Yielded {
    waker: Waker,
    is_woken: AtomicBool,
}

impl ArcWake for Yielded {
    fn wake_by_ref(yielded: &Arc<Self>) {
        yielded.is_woken.store(true, Ordering::Release);
        yielded.waker.wake_by_ref();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn session(number: u128) -> SessionId {
        SessionId(Uuid::from_u128(number))
    }

    /// The sessions that a process that is killed now leaves to one in the boot of this name.
    fn left(folder: &Path, boot: &str) -> BTreeSet<SessionId> {
        let copy = tempfile::tempdir().unwrap();
        std::fs::copy(folder.join(FILE), copy.path().join(FILE)).unwrap();
        begin(copy.path(), boot).1
    }

    fn begin(folder: &Path, boot: &str) -> (Computing, BTreeSet<SessionId>) {
        let name = folder.join("boot");
        std::fs::write(&name, format!("{boot}\n")).unwrap();
        let left = Computing::left_in(folder, &head(&name));
        let computing = Computing::default();
        computing.renew_in(folder, head(&name)).unwrap();
        (computing, left)
    }

    #[test]
    fn whoever_computes_as_the_process_ends_is_known_to_the_next_of_the_same_boot() {
        let folder = tempfile::tempdir().unwrap();
        let (computing, none) = begin(folder.path(), "a");
        assert_eq!(none, BTreeSet::new());
        let first = computing.enter(session(1));
        let again = computing.enter(session(1));
        let second = computing.enter(session(2));
        drop(first);
        drop(second);
        assert_eq!(left(folder.path(), "a"), BTreeSet::from([session(1)]));
        assert_eq!(left(folder.path(), "b"), BTreeSet::new(), "another boot");
        assert!(computing.has(session(1)) && !computing.has(session(2)));
        drop(again);
        assert_eq!(left(folder.path(), "a"), BTreeSet::new());
        // A start recreates the file, whatever it finds.
        let kept = computing.enter(session(3));
        assert_eq!(begin(folder.path(), "a").1, BTreeSet::from([session(3)]));
        assert_eq!(begin(folder.path(), "a").1, BTreeSet::new());
        drop(kept);
        std::fs::write(folder.path().join(FILE), "a").unwrap();
        assert_eq!(begin(folder.path(), "a").1, BTreeSet::new());
    }

    #[test]
    fn what_a_process_left_stays_until_the_next_has_noted_it() {
        let folder = tempfile::tempdir().unwrap();
        let boot = folder.path().join("boot");
        let (computing, _) = begin(folder.path(), "a");
        let _last = computing.enter(session(1));
        let next = Computing::default();
        let now = next.enter(session(2));
        assert!(next.has(session(2)));
        // The process ends here: the next one finds the same entries.
        assert_eq!(left(folder.path(), "a"), BTreeSet::from([session(1)]));
        next.renew_in(folder.path(), head(&boot)).unwrap();
        assert_eq!(left(folder.path(), "a"), BTreeSet::from([session(2)]));
        drop(now);
        assert_eq!(left(folder.path(), "a"), BTreeSet::new());
    }

    #[test]
    fn more_work_than_there_are_slots_goes_on_without_a_note() {
        let folder = tempfile::tempdir().unwrap();
        let (computing, _) = begin(folder.path(), "a");
        let marks: Vec<Computes> = (1..=1_030)
            .map(|number| computing.enter(session(number)))
            .collect();
        assert_eq!(left(folder.path(), "a").len(), SLOTS_MAX);
        drop(marks);
        assert_eq!(left(folder.path(), "a"), BTreeSet::new());
    }

    #[tokio::test]
    async fn who_waits_does_not_compute_and_who_lets_others_go_first_does() {
        let folder = tempfile::tempdir().unwrap();
        let (computing, _) = begin(folder.path(), "a");
        let mark = computing.enter(session(1));
        let waits = mark.while_polled(async {
            assert!(computing.has(session(1)));
            tokio::time::sleep(Duration::from_millis(20)).await;
            assert!(computing.has(session(1)));
        });
        let inspections = async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            assert!(!computing.has(session(1)));
        };
        tokio::join!(waits, inspections);
        assert!(computing.has(session(1)), "it goes on");
        {
            let mut yields = pin!(mark.while_polled(async {
                let mut is_over = false;
                poll_fn(|context| {
                    context.waker().wake_by_ref();
                    match std::mem::replace(&mut is_over, true) {
                        true => std::task::Poll::Ready(()),
                        false => std::task::Poll::Pending,
                    }
                })
                .await;
            }));
            assert!(futures::poll!(&mut yields).is_pending());
            assert!(computing.has(session(1)));
        }
        let mut waits = pin!(mark.while_waiting(tokio::task::yield_now()));
        assert!(futures::poll!(&mut waits).is_pending());
        assert!(!computing.has(session(1)));
        waits.await;
        assert!(computing.has(session(1)));
    }
}
