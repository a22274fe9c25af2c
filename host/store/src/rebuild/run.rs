//! One rebuild from its beginning to its result.

use super::replace::Side;
use super::{RebuildError, RebuildStage, RebuildState, Rebuilt, compare, replace, touched};
use crate::copy::copy_to_read;
use crate::event_row::Head;
use crate::fault;
use crate::full_text;
use crate::log::{Log, POLL_OPS, Watched};
use crate::read::ReadError;
use crate::readers::connect;
use crate::scratch::Scratch;
use crate::sql::{self, Connection, Failure, Sql, with_causes};
use crate::store::{Maintenance, Senders};
use crate::writer::{Between, Request};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use touched::Notes;

/// Result of a rebuild, for the caller that began it.
type Answer = oneshot::Receiver<Result<Rebuilt, RebuildError>>;

impl Maintenance {
    /// Folds all events again and replaces the rows that differ. Commits and reads go on meanwhile;
    /// commits wait only while differing rows are replaced. It takes about as long as storing the
    /// events did without waits for the disk, and as much disk space as the projections. Dropping
    /// the future does not end it; closing the store does.
    pub async fn rebuild(&self) -> Result<Rebuilt, RebuildError> {
        self.begin_rebuild()?
            .await
            .unwrap_or(Err(RebuildError::Closed))
    }

    /// Begins a rebuild. Its result can be awaited, or seen in [`Self::rebuild_state`].
    pub fn begin_rebuild(&self) -> Result<Answer, RebuildError> {
        let senders = self.senders().ok_or(RebuildError::Closed)?;
        let state = Arc::clone(&self.rebuilds().0);
        let mut alone = Err(RebuildError::Purging);
        state.send_if_modified(|state| {
            alone = match Arc::clone(self.upkeep()).try_lock_owned() {
                Ok(alone) => Ok(alone),
                Err(_) if matches!(state, RebuildState::Running { .. }) => {
                    Err(RebuildError::Running)
                }
                Err(_) => Err(RebuildError::Purging),
            };
            if alone.is_ok() {
                *state = RebuildState::Running {
                    stage: RebuildStage::Folding,
                    events: 0,
                    of: 0,
                };
            }
            alone.is_ok()
        });
        let alone = alone?;
        let (reply, answer) = oneshot::channel();
        let rebuild = Rebuild {
            senders,
            database: self.database().to_owned(),
            closing: Arc::clone(self.closing()),
            log: Arc::clone(self.log()),
            copying: Arc::clone(self.copying()),
            state: Arc::clone(&state),
        };
        let path = rebuild.side_path();
        let ended = Arc::clone(&state);
        let thread = Builder::new()
            .name("store-rebuild".to_owned())
            .spawn(move || {
                let finished = rebuild.run();
                let outcome = match &finished {
                    Ok(rebuilt) => RebuildState::Done(rebuilt.clone()),
                    Err(error) => RebuildState::Failed {
                        reason: with_causes(error),
                    },
                };
                // Set together, so that a caller that may not begin gets the right reason.
                ended.send_modify(|state| {
                    *state = outcome;
                    drop(alone);
                });
                let _ = reply.send(finished);
            });
        if let Err(source) = thread {
            state.send_replace(RebuildState::Failed {
                reason: source.to_string(),
            });
            return Err(RebuildError::Io { path, source });
        }
        Ok(answer)
    }

    /// Returns the progress of the last rebuild, or its result.
    #[must_use]
    pub fn rebuild_state(&self) -> RebuildState {
        self.rebuilds().0.borrow().clone()
    }
}

/// One rebuild, on a thread of its own. It keeps the store's threads running, and so the directory
/// locked, until it has ended.
struct Rebuild {
    senders: Senders,
    database: PathBuf,
    closing: Arc<AtomicBool>,
    log: Arc<Log>,
    copying: Arc<tokio::sync::Mutex<()>>,
    state: Arc<watch::Sender<RebuildState>>,
}

impl Rebuild {
    fn run(self) -> Result<Rebuilt, RebuildError> {
        let finished = catch_unwind(AssertUnwindSafe(|| self.work()));
        // Whatever the result, the writer stops noting changes that no rebuild will use.
        let unwatched = self.between(|sql| touched::unwatch(sql.connection()));
        let panicked = || {
            Err(RebuildError::Database {
                source: "the thread that folded the events panicked".into(),
            })
        };
        let rebuilt = finished.unwrap_or_else(|_| panicked())?;
        unwatched?;
        Ok(rebuilt)
    }

    fn work(&self) -> Result<Rebuilt, RebuildError> {
        let failed = |source| RebuildError::Io {
            path: self.side_path(),
            source,
        };
        let scratch = Scratch::make(&self.database, replace::NAME).map_err(failed)?;
        let mut side = Side::new(scratch.path()).map_err(failed)?;
        self.end_when_closing(&mut side.connection)?;
        let (events, watched) = self.connect()?;
        let events = Sql::new(&events);
        let of = self.done(Head::stored(&events))?.position;
        let tell = |stage, events| self.tell(stage, events, of);
        let fold = |side: &mut Side| {
            // A chunk is never ended. It waits at the gate, and is not mistaken for another
            // program's read.
            let chunk = Watched::unattached(&self.log);
            chunk.begins();
            let folded = side.fold(&events, &mut |position| {
                chunk.ends();
                tell(RebuildStage::Folding, position);
                chunk.begins();
            });
            chunk.ends();
            self.done(folded)
        };
        fold(&mut side)?;
        fault::point("store.rebuild.folded");
        self.between(|sql| touched::watch(sql.connection(), Notes::Own))?;
        watched.begins();
        let compared = self.compare(&events, &mut side, &tell);
        watched.ends();
        let differs = match compared {
            Err(error)
                if error.failure() == Some(Failure::Interrupted)
                    && !self.closing.load(Ordering::Relaxed) =>
            {
                self.compare_copy(&mut side, &tell)?
            }
            compared => self.done(compared)?,
        };
        fault::point("store.rebuild.compared");
        let Some(differs) = differs else {
            // Without any difference so far, folding further events cannot produce one.
            return Ok(Rebuilt {
                events: side.position,
                replaced: Vec::new(),
                index_replaced: false,
                paused: Duration::ZERO,
            });
        };
        // Folding does less for each event than the writer, so it gets to the end; the last few are
        // folded while the writer waits.
        fold(&mut side)?;
        tell(RebuildStage::Replacing, side.position);
        let database = self.database.clone();
        self.between(move |sql| replace::replace(sql, side, &database, differs))
    }

    /// Compares all rows as of one position, and stores the differing ones in the side database;
    /// none if all are equal.
    fn compare(
        &self,
        events: &Sql<'_>,
        side: &mut Side,
        tell: &impl Fn(RebuildStage, u64),
    ) -> sql::Result<Option<replace::Differs>> {
        let connection = events.connection();
        connection.execute_batch("BEGIN")?;
        let compared = self.compare_seen(events, side, tell);
        // Nothing was written; some failures have ended the transaction already.
        if connection.in_transaction() {
            connection.execute_batch("ROLLBACK")?;
        }
        compared
    }

    /// The same, in a transaction that reads.
    fn compare_seen(
        &self,
        events: &Sql<'_>,
        side: &mut Side,
        tell: &impl Fn(RebuildStage, u64),
    ) -> sql::Result<Option<replace::Differs>> {
        let seen = events.connection();
        side.fold(events, &mut |position| {
            tell(RebuildStage::Comparing, position)
        })?;
        tell(RebuildStage::Comparing, side.position);
        side.index(events)?;
        touched::watch(&side.connection, Notes::Kept)?;
        let differing = compare::differing_rows(seen, &side.connection)?;
        let index = differing.words || !full_text::are_same(seen, &side.connection)?;
        Ok((differing.rows > 0 || index).then_some(replace::Differs { index }))
    }

    /// Compares all rows with those of a copy. A comparison with the store's own would be in the
    /// way of the write-ahead log.
    fn compare_copy(
        &self,
        side: &mut Side,
        tell: &impl Fn(RebuildStage, u64),
    ) -> Result<Option<replace::Differs>, RebuildError> {
        // Unfinished work of the comparison in the side database, where nothing is ever rolled
        // back.
        let connection = &side.connection;
        if connection.in_transaction() {
            self.done(connection.execute_batch("COMMIT"))?;
        }
        self.done(touched::unwatch(connection))?;
        self.done(connection.execute_batch("DROP TABLE IF EXISTS main.touched"))?;
        let _alone = Arc::clone(&self.copying).blocking_lock_owned();
        let copied = copy_to_read(&self.database, self.senders.writer.clone());
        let (_copy, mut connection) = copied.map_err(|error| match error {
            ReadError::Closed => RebuildError::Closed,
            error => RebuildError::Database {
                source: error.into(),
            },
        })?;
        self.end_when_closing(&mut connection)?;
        self.done(connection.allow_writes())?;
        self.done(self.compare(&Sql::new(&connection), side, tell))
    }

    /// Opens a connection that reads, including the full-text index. While it is watched, a long
    /// read is ended when it is in the way of the write-ahead log.
    fn connect(&self) -> Result<(Connection, Watched), RebuildError> {
        let mut connection = self.done(connect(&self.database))?;
        let watched = Watched::unattached(&self.log);
        let closing = Arc::clone(&self.closing);
        let seen = watched.clone();
        self.done(connection.end_when(POLL_OPS, move || {
            closing.load(Ordering::Relaxed) || seen.is_in_the_way()
        }))?;
        self.done(connection.allow_writes())?;
        Ok((connection, watched))
    }

    fn side_path(&self) -> PathBuf {
        self.database.with_file_name(replace::NAME)
    }

    /// Makes a connection's work end when the store is closed.
    fn end_when_closing(&self, connection: &mut Connection) -> Result<(), RebuildError> {
        let closing = Arc::clone(&self.closing);
        self.done(connection.end_when(POLL_OPS, move || closing.load(Ordering::Relaxed)))
    }

    /// Has the writer run some work between two commits, and waits for it.
    fn between<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Sql<'_>) -> sql::Result<T> + Send + 'static,
    ) -> Result<T, RebuildError> {
        let (reply, answer) = oneshot::channel();
        let between = Between::new(move |sql| {
            let _ = reply.send(work(sql));
        });
        self.senders
            .writer
            .send(Request::Between(between))
            .map_err(|_| RebuildError::Closed)?;
        self.done(answer.blocking_recv().map_err(|_| RebuildError::Closed)?)
    }

    fn done<T>(&self, result: sql::Result<T>) -> Result<T, RebuildError> {
        result.map_err(|error| match (error.failure(), error) {
            (Some(Failure::Interrupted), _) if self.closing.load(Ordering::Relaxed) => {
                RebuildError::Closed
            }
            (_, sql::Error::Unreadable { source, .. }) => RebuildError::Database { source },
            (_, error) => RebuildError::Database {
                source: error.into(),
            },
        })
    }

    fn tell(&self, stage: RebuildStage, events: u64, of: u64) {
        self.state.send_replace(RebuildState::Running {
            stage,
            events,
            of: of.max(events),
        });
    }
}
