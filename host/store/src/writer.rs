//! The one thread that writes: all queued requests go into one transaction, and none is
//! acknowledged before it is durable.
//!
//! There is no artificial delay: a lone commit is written at once, and while the disk is busy with
//! it the next ones gather. With several requests each has a savepoint of its own, so its failure
//! does not affect the others. Only a failure of the disk or of the transaction as a whole fails
//! all of them. A panic over one request affects only that request: its writes are undone, and it
//! is refused. So an event on which a projection panics ends its turn, and not the host at every
//! start. Words on which the full-text index panics are skipped for the same reason. Any other
//! panic here ends the process: a store that half works is worse than none.

mod apply;
mod cache;
mod copying;
mod guards;
mod index;
mod log;
mod space;

#[cfg(test)]
pub(crate) use cache::FORGOTTEN;
pub(crate) use guards::keys_since;
pub(crate) use space::ReservedSpace;

use self::log::Holder;
use crate::commit::Prepared;
use crate::commit::{Clash, CommitError, Committed, Conflict};
use crate::event_row::Head;
use crate::fault;
use crate::health::Vitals;
use crate::log::Log;
use crate::panics::caught;
use crate::schema;
use crate::sql::{self, Connection, Sql, args};
use crate::sqlite::{BUSY_TIMEOUT, Checkpoint};
use crate::stats::{Counters, count};
use apply::Stopped;
use cache::Cache;
use domain::time::Timestamp;
use guards::{Keys, Refused, concerns_all, failed, is_full, is_io, is_unstorable};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// Events of one transaction.
const BATCH_EVENTS_MAX: usize = 512;
/// Bytes of one transaction.
const BATCH_BYTES_MAX: usize = 1 << 20;
/// Time that the writer waits for a request, in milliseconds. After that it checks for space and
/// for whether a failure persists.
const ROOM_MS: u64 = 1_000;

/// Requests to the writer.
pub(crate) enum Request {
    /// Store a commit.
    Commit(Box<QueuedCommit>),
    /// Run some work between two commits.
    Between(Between),
    /// Index some of the rows that wait.
    Index(oneshot::Sender<sql::Result<()>>),
    /// Copy the database to a file that is empty, chunk by chunk between commits.
    Copy(PathBuf, oneshot::Sender<sql::Result<()>>),
    /// Run a statement: how tests make the disk full.
    #[cfg(test)]
    Execute(&'static str, oneshot::Sender<()>),
}

/// Work for the writer's thread while no commit is under way. It leaves no transaction open.
pub(crate) struct Between(Box<dyn FnOnce(&Sql<'_>) + Send>);

impl Between {
    pub(crate) fn new(work: impl FnOnce(&Sql<'_>) + Send + 'static) -> Self {
        Self(Box::new(work))
    }
}

/// State of the writer's thread.
pub(crate) struct Writer<'c> {
    pub(crate) sql: Sql<'c>,
    pub(crate) requests: Receiver<Request>,
    pub(crate) counters: Arc<Counters>,
    /// Bytes of all commits that wait.
    pub(crate) queued_bytes: Arc<AtomicUsize>,
    pub(crate) durable: watch::Sender<u64>,
    pub(crate) reserved_space: ReservedSpace,
    /// State that the writer reports to other threads.
    pub(crate) vitals: Arc<Vitals>,
    /// The write-ahead log.
    pub(crate) log: Arc<Log>,
    pub(crate) state: State,
}

/// State that the writer keeps from one transaction to the next.
pub(crate) struct State {
    /// The last event.
    pub(crate) head: Head,
    /// The time of the last event, by which the idempotency key of a commit without events ages.
    pub(crate) latest: Timestamp,
    /// Milliseconds by which the lifetime of keys is extended.
    pub(crate) kept_longer_ms: Arc<AtomicU64>,
    /// Pages in the log when it was last moved to the database.
    pub(crate) checkpointed_pages: usize,
    /// The number of batches since the disk is full; none while it has space.
    pub(crate) full: Option<u64>,
    /// True if the last transaction ended and its outcome is not known.
    pub(crate) ended: bool,
    /// Request that did not fit into the last transaction.
    pub(crate) transferred: Option<Request>,
    /// Number of events since the full-text index was last complete whose words it lacks.
    unindexed: u64,
    /// The holder of the log, while the log is full and commits have waited for it in vain.
    holder: Option<Holder>,
    cache: Cache,
    keys: Keys,
}

impl State {
    /// Returns the state of an idle writer after the last event, on a disk that is full or not.
    pub(crate) fn new(head: Head, latest: Timestamp, is_full: bool) -> Self {
        Self {
            head,
            latest,
            kept_longer_ms: Arc::default(),
            checkpointed_pages: 0,
            full: is_full.then_some(0),
            ended: false,
            transferred: None,
            // The number of rows to be indexed is unknown, so it checks once.
            unindexed: 1,
            holder: None,
            cache: Cache::default(),
            keys: Keys::default(),
        }
    }
}

/// Makes the connection report the log's length after each commit, instead of moving the log to the
/// database by itself.
pub(crate) fn watch_log(connection: &mut Connection) -> sql::Result<Arc<AtomicUsize>> {
    let pages = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&pages);
    connection.on_commit(move |frames| seen.store(frames, Ordering::Relaxed))?;
    Ok(pages)
}

/// Channel on which a caller waits for the outcome of its commit.
type Reply = oneshot::Sender<Result<Committed, CommitError>>;

/// A commit with the channel to its waiting caller.
pub(crate) struct QueuedCommit {
    pub(crate) prepared: Prepared,
    pub(crate) reply: Reply,
}

/// Part of a transaction that can be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Undo {
    /// The whole transaction.
    All,
    /// Each commit of it on its own.
    Each,
}

/// Runs the writer until all senders are dropped; then moves the log to the database.
pub(crate) fn run(connection: &Connection, build: impl FnOnce(Sql<'_>) -> Writer<'_>) {
    if caught(|| build(Sql::new(connection)).work()).is_err() {
        tracing::error!(
            "the store's writer panicked: the process ends, so that it can be started again whole"
        );
        std::process::abort();
    }
}

impl Writer<'_> {
    fn work(mut self) {
        loop {
            match self.next(Duration::from_millis(ROOM_MS)) {
                Ok(request) => self.serve(request),
                Err(RecvTimeoutError::Timeout) => {
                    self.search_space();
                    self.try_again();
                    self.checkpoint_if_full();
                    self.index_at_leisure();
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.checkpoint(Checkpoint::Truncate);
    }

    /// Returns the next request, if one arrives in time.
    fn next(&mut self, patience: Duration) -> Result<Request, RecvTimeoutError> {
        self.vitals.rests();
        let next = self
            .state
            .transferred
            .take()
            .map_or_else(|| self.requests.recv_timeout(patience), Ok);
        self.vitals.begins();
        next
    }

    fn serve(&mut self, request: Request) {
        match request {
            Request::Commit(first) => {
                let batch = self.gather(*first);
                self.commit(batch);
                self.checkpoint_if_due();
                self.index_if_much();
            }
            Request::Between(between) => {
                let changes = self.sql.connection().total_changes();
                // The caller finds that its channel was dropped without an answer.
                if let Err(panic) = caught(|| (between.0)(&self.sql)) {
                    tracing::error!(
                        panic,
                        "the store's writer panicked between two commits: what it was about is \
                         undone"
                    );
                    self.roll_back();
                }
                if self.sql.connection().total_changes() != changes {
                    self.state.cache.forget();
                }
                self.checkpoint_if_due();
            }
            Request::Index(reply) => {
                let _ = reply.send(self.index_chunk());
            }
            Request::Copy(to, reply) => {
                let _ = reply.send(self.copy(&to));
            }
            #[cfg(test)]
            Request::Execute(text, reply) => {
                self.sql.connection().execute_batch(text).unwrap();
                self.state.cache.forget();
                let _ = reply.send(());
            }
        }
    }

    /// Returns all waiting commits that fit into one transaction. The request that did not fit, or
    /// is no commit, is carried over.
    fn gather(&mut self, first: QueuedCommit) -> Vec<QueuedCommit> {
        let mut events = first.prepared.events;
        let mut bytes = first.prepared.bytes;
        let mut batch = vec![first];
        while let Ok(request) = self.requests.try_recv() {
            let Request::Commit(queued) = request else {
                self.state.transferred = Some(request);
                break;
            };
            events += queued.prepared.events;
            bytes += queued.prepared.bytes;
            if events > BATCH_EVENTS_MAX || bytes > BATCH_BYTES_MAX {
                self.state.transferred = Some(Request::Commit(queued));
                break;
            }
            batch.push(*queued);
        }
        batch
    }

    fn commit(&mut self, batch: Vec<QueuedCommit>) {
        let waited: usize = batch.iter().map(|queued| queued.prepared.bytes).sum();
        self.queued_bytes.fetch_sub(waited, Ordering::Relaxed);
        let (commits, replies): (Vec<_>, Vec<_>) = batch
            .into_iter()
            .map(|queued| (queued.prepared, queued.reply))
            .unzip();
        if !self.has_space() {
            for reply in replies {
                let _ = reply.send(Err(CommitError::Full));
            }
            return;
        }
        let before = self.state.head;
        match self.transact(commits) {
            Ok(outcomes) => {
                self.count(&outcomes, before);
                // Published first, so that a caller with an answer also finds its position
                // published.
                if self.state.head.position > before.position {
                    self.works_again();
                    self.durable.send_replace(self.state.head.position);
                }
                for (reply, outcome) in replies.into_iter().zip(outcomes) {
                    // The caller may have been dropped; its commit is stored all the same.
                    let _ = reply.send(outcome.map_err(Refused::into_error));
                }
            }
            Err(error) => {
                self.state.head = before;
                self.state.cache.forget();
                self.roll_back();
                // Done before any caller learns that nothing was stored.
                if std::mem::take(&mut self.state.ended) {
                    self.disown();
                }
                self.fail(error, replies);
            }
        }
    }

    /// Runs one transaction over all commits. An error concerns the transaction as a whole.
    ///
    /// Savepoints cost as much as a small commit, and hardly any is ever needed: a refused commit
    /// has mostly written nothing. So the transaction is tried without them first.
    fn transact(
        &mut self,
        mut commits: Vec<Prepared>,
    ) -> sql::Result<Vec<Result<Committed, Refused>>> {
        fault::point("store.commit.begin");
        match self.attempt(&mut commits, Undo::All)? {
            Some(outcomes) => Ok(outcomes),
            None => Ok(self.attempt(&mut commits, Undo::Each)?.unwrap_or_default()),
        }
    }

    /// One attempt at it. Returns none, with nothing written, when a commit among several would
    /// have to be undone and cannot be undone alone.
    fn attempt(
        &mut self,
        commits: &mut [Prepared],
        undo: Undo,
    ) -> sql::Result<Option<Vec<Result<Committed, Refused>>>> {
        let before = self.state.head;
        self.sql.execute("BEGIN IMMEDIATE", [])?;
        self.state.cache.begin(&self.sql)?;
        let alone = commits.len() == 1;
        let mut outcomes = Vec::with_capacity(commits.len());
        for prepared in commits {
            let unchanged = self.state.head;
            if undo == Undo::Each {
                self.sql.execute("SAVEPOINT request", [])?;
            }
            match self.apply(prepared) {
                Ok(committed) => outcomes.push(Ok(committed)),
                Err(Stopped { refused, wrote }) => {
                    let refused = self.own_affair(refused)?;
                    if wrote {
                        self.state.head = unchanged;
                        self.state.cache.forget();
                    }
                    match undo {
                        Undo::Each => self.sql.execute("ROLLBACK TO request", [])?,
                        Undo::All if wrote => {
                            self.sql.execute("ROLLBACK", [])?;
                            self.state.head = before;
                            return Ok(alone.then(|| vec![Err(refused)]));
                        }
                        Undo::All => 0,
                    };
                    outcomes.push(Err(refused));
                }
            }
            if undo == Undo::Each {
                self.sql.execute("RELEASE request", [])?;
            }
        }
        self.end_transaction(before)?;
        Ok(Some(outcomes))
    }

    fn end_transaction(&mut self, before: Head) -> sql::Result<()> {
        self.state.cache.write_brought(&self.sql)?;
        let oldest = keys_since(self.state.latest, &self.state.kept_longer_ms);
        self.state.keys.prune_if_due(&self.sql, oldest)?;
        let head = self.state.head;
        if head.position > before.position {
            self.sql.execute(
                "UPDATE head SET position = ?1, hash = ?2 WHERE id = 1",
                args![head.position, head.hash],
            )?;
        }
        fault::point("store.commit.inserted");
        self.state.ended = true;
        self.sql.execute("COMMIT", [])?;
        self.state.ended = false;
        fault::point("store.commit.committed");
        Ok(())
    }

    /// Writes one commit. A commit over which this panics would panic at each retry: it can never
    /// be stored.
    fn apply(&mut self, prepared: &mut Prepared) -> Result<Committed, Stopped> {
        // The caller undoes the writes and the changes to the cache.
        let sql = &self.sql;
        let state = &mut self.state;
        caught(|| apply::apply(sql, state, prepared)).unwrap_or_else(|panic| {
            tracing::error!(
                panic,
                "the store's writer panicked over a commit: it is refused for good, and nothing of \
                 it is stored"
            );
            Err(Stopped {
                refused: Refused::Unstorable(format!("the host failed over it: {panic}").into()),
                wrote: true,
            })
        })
    }

    /// Passes on a failure of one request only; returns an error for a failure of the whole
    /// transaction.
    fn own_affair(&self, refused: Refused) -> sql::Result<Refused> {
        match refused {
            Refused::Storage(error)
                if concerns_all(&error) || !self.sql.connection().in_transaction() =>
            {
                Err(error)
            }
            Refused::Storage(error) if is_unstorable(&error) => {
                Ok(Refused::Unstorable(error.into()))
            }
            Refused::Storage(error) if error.failure().is_some() => {
                Ok(Refused::Conflict(Conflict {
                    clash: Clash::Row,
                    detail: error.to_string(),
                }))
            }
            // Not the database's fault: a row that a guard or a projection reads has an unexpected
            // value.
            Refused::Storage(error) => Ok(Refused::Unreadable(error.into())),
            Refused::Conflict(_)
            | Refused::Replayed(_)
            | Refused::KeyReused
            | Refused::Unstorable(_)
            | Refused::Unreadable(_) => Ok(refused),
        }
    }

    fn roll_back(&self) {
        // Some failures have ended the transaction already.
        if self.sql.connection().in_transaction()
            && let Err(error) = self.sql.execute("ROLLBACK", [])
        {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "a failed transaction could not be rolled back"
            );
        }
    }

    fn fail(&mut self, error: sql::Error, replies: Vec<Reply>) {
        count(&self.counters.failures, 1);
        // SQLite reports a used-up quota and a broken disk in the same way.
        let full = is_full(&error)
            || (is_io(&error)
                && self
                    .reserved_space
                    .refill()
                    .is_err_and(|error| space::is_missing(&error)));
        if full {
            self.out_of_space();
        } else {
            self.vitals.set_failing(true);
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "a transaction failed"
            );
        }
        let error = Arc::new(error);
        for reply in replies {
            let _ = reply.send(Err(if full {
                CommitError::Full
            } else {
                failed(&error)
            }));
        }
    }

    /// Returns whether to try at all. While the disk is full every second batch is tried, and only
    /// once there is space again.
    fn has_space(&mut self) -> bool {
        let Some(batches) = &mut self.state.full else {
            return true;
        };
        *batches += 1;
        (*batches).is_multiple_of(2) && self.recover()
    }

    /// Checks for space also while no request arrives, so that the reported state is current.
    fn search_space(&mut self) {
        if self.state.full.is_some() {
            self.recover();
            return;
        }
        let short = self.reserved_space.is_short();
        if short != self.vitals.set_full(short) {
            match short {
                true => tracing::warn!("the disk is all but full"),
                false => tracing::info!("there is space again"),
            }
        }
    }

    /// Takes commits again if the ballast can be put back. Whether it could.
    fn recover(&mut self) -> bool {
        if self.reserved_space.refill().is_err() {
            return false;
        }
        self.state.full = None;
        self.vitals.set_full(false);
        tracing::info!("there is space again: the store takes commits");
        true
    }

    /// Checks whether a failure persists, also while no request arrives, so that the reported state
    /// is current. It writes the version of the database once more, which changes nothing and is
    /// synced like a commit.
    fn try_again(&self) {
        if !self.vitals.is_failing() || self.state.full.is_some() {
            return;
        }
        let connection = self.sql.connection();
        // Callers that commit meanwhile do not wait for another process's lock twice.
        let tried = connection
            .set_busy_timeout(Duration::ZERO)
            .and_then(|()| schema::write_version_again(connection));
        let patient = connection.set_busy_timeout(BUSY_TIMEOUT);
        match tried.and(patient) {
            Ok(()) => self.works_again(),
            Err(error) => tracing::debug!(
                error = &error as &dyn std::error::Error,
                "the store still cannot be written to"
            ),
        }
    }

    fn works_again(&self) {
        if self.vitals.set_failing(false) {
            tracing::info!("the store can be written to again");
        }
    }

    fn out_of_space(&mut self) {
        tracing::error!("the disk is full: nothing is stored until there is space");
        self.state.full = Some(0);
        self.vitals.set_full(true);
        self.reserved_space.free();
        // With the ballast's space the log can be moved to the database, which may give back more
        // than that.
        self.checkpoint(Checkpoint::Truncate);
    }

    fn count(&self, outcomes: &[Result<Committed, Refused>], before: Head) {
        let landed = outcomes.iter().filter(|outcome| outcome.is_ok()).count() as u64;
        let conflicts = outcomes
            .iter()
            .filter(|outcome| matches!(outcome, Err(Refused::Conflict(_))))
            .count() as u64;
        let replayed = outcomes
            .iter()
            .filter(|outcome| matches!(outcome, Err(Refused::Replayed(_))))
            .count() as u64;
        count(&self.counters.conflicts, conflicts);
        count(&self.counters.replayed, replayed);
        if landed > 0 {
            count(&self.counters.transactions, 1);
            count(
                &self.counters.events,
                self.state.head.position - before.position,
            );
            self.counters
                .largest_batch
                .fetch_max(landed, Ordering::Relaxed);
        }
    }
}
