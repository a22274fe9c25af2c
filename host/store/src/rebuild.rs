//! Rebuild of the projections while the store serves: rows that differ from the events are
//! replaced, and nothing else is touched.
//!
//! The events are folded into a side database while commits go on. Then all rows are compared as of
//! one position, while the writer notes which rows it changes. Rows that differ, and rows that were
//! changed since, are checked once more between two commits and replaced in one transaction.
//! Commits wait for nothing else, however much is stored, and reads wait for nothing. A crash at
//! any point leaves the rows as they were or as they should be, and the side database is removed
//! when the store is next opened.

mod compare;
mod fold;
mod replace;
mod side;
mod touched;

pub(crate) use compare::same_rows;
pub(crate) use fold::{fold, fold_into};
pub(crate) use side::remove;

use crate::copy::Copy;
use crate::fault;
use crate::log::{Log, Watched};
use crate::read::ReadError;
use crate::readers::connect;
use crate::sql::{Columns, Source, Sql, with_causes};
use crate::store::{Senders, Store};
use crate::writer::{Between, Request};
use rusqlite::{Connection, ErrorCode};
use side::Side;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use touched::Notes;

/// Steps of SQLite's machine after which it looks whether the store is to be closed.
const LOOK_OPS: i32 = 10_000;

/// Result of a rebuild, which folds all events again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebuilt {
    /// Events that were folded.
    pub events: u64,
    /// Tables that differed from the events; none when no table did.
    pub replaced: Vec<Replaced>,
    /// True if the full-text index was replaced.
    pub index_replaced: bool,
    /// Time for which commits waited: nothing was stored meanwhile.
    pub paused: Duration,
}

/// A table that was not as the events say. It is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// The table.
    pub table: &'static str,
    /// Rows that said something else.
    pub changed: u64,
    /// Rows that were not there.
    pub missing: u64,
    /// Rows that should not have been there.
    pub superfluous: u64,
}

/// Stage of a rebuild.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RebuildStage {
    /// Events are folded.
    Folding,
    /// The result of the fold is compared with the tables in use.
    Comparing,
    /// Rows that differ are replaced; commits wait.
    Replacing,
}

/// Progress of a rebuild.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum RebuildState {
    /// No rebuild was requested since the store was opened.
    #[default]
    Never,
    /// A rebuild is in progress.
    Running {
        /// The current stage.
        stage: RebuildStage,
        /// Events that were folded so far.
        events: u64,
        /// Events that there were when it began.
        of: u64,
    },
    /// The last rebuild finished with this result.
    Done(Rebuilt),
    /// The last rebuild failed, and changed nothing.
    Failed {
        /// The reason, with its causes.
        reason: String,
    },
}

/// Reason why nothing was rebuilt. Everything is as it was.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    /// A rebuild is in progress already.
    #[error("a rebuild is going on already")]
    Running,
    /// Something is being purged: what is folded now could hold what is about to be erased.
    #[error("something is being purged")]
    Purging,
    /// The store was closed before or meanwhile.
    #[error("the store was closed")]
    Closed,
    /// The database beside could not be made.
    #[error("`{}` cannot be written", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// An event could not be read, or a database did not do something.
    #[error("the events could not be folded again")]
    Database {
        /// The cause.
        #[source]
        source: Source,
    },
}

impl Store {
    /// Folds all events again and replaces the rows that differ. Commits and reads go on meanwhile;
    /// commits wait only while differing rows are replaced. It takes about as long as storing the
    /// events did without waiting for the disk, and as much space on it as the projections. A
    /// caller that goes away does not end it; closing the store does.
    pub async fn rebuild(&self) -> Result<Rebuilt, RebuildError> {
        self.begin_rebuild()?
            .await
            .unwrap_or(Err(RebuildError::Closed))
    }

    /// Begins a rebuild. Its result can be awaited, or seen in [`Self::rebuild_state`].
    pub fn begin_rebuild(
        &self,
    ) -> Result<oneshot::Receiver<Result<Rebuilt, RebuildError>>, RebuildError> {
        let senders = self.senders().ok_or(RebuildError::Closed)?;
        let state = Arc::clone(self.rebuilds());
        let mut purging = false;
        let begun = state.send_if_modified(|state| {
            purging = self.purging().load(Ordering::Acquire);
            let free = !purging && !matches!(state, RebuildState::Running { .. });
            if free {
                *state = RebuildState::Running {
                    stage: RebuildStage::Folding,
                    events: 0,
                    of: 0,
                };
            }
            free
        });
        if !begun {
            return Err(if purging {
                RebuildError::Purging
            } else {
                RebuildError::Running
            });
        }
        let (reply, answer) = oneshot::channel();
        let side = side::beside(self.database());
        let database = self.database().to_owned();
        let closing = self.closing();
        let log = Arc::clone(self.log());
        let copying = Arc::clone(self.copying());
        let rebuild = Rebuild {
            senders,
            database,
            side,
            closing,
            log,
            copying,
            state: Arc::clone(&state),
        };
        let path = rebuild.side.clone();
        let thread = Builder::new()
            .name("store-rebuild".to_owned())
            .spawn(move || {
                let came = rebuild.run();
                state.send_replace(match &came {
                    Ok(rebuilt) => RebuildState::Done(rebuilt.clone()),
                    Err(error) => RebuildState::Failed {
                        reason: with_causes(error),
                    },
                });
                let _ = reply.send(came);
            });
        if let Err(source) = thread {
            self.rebuilds().send_replace(RebuildState::Failed {
                reason: source.to_string(),
            });
            return Err(RebuildError::Io { path, source });
        }
        Ok(answer)
    }

    /// Returns the progress of the last rebuild, or its result.
    #[must_use]
    pub fn rebuild_state(&self) -> RebuildState {
        self.rebuilds().borrow().clone()
    }
}

/// One rebuild, on a thread of its own. It keeps the store's threads, and so the directory's lock,
/// until it has ended.
struct Rebuild {
    senders: Senders,
    database: PathBuf,
    side: PathBuf,
    closing: Arc<AtomicBool>,
    log: Arc<Log>,
    copying: Arc<tokio::sync::Mutex<()>>,
    state: Arc<watch::Sender<RebuildState>>,
}

impl Rebuild {
    fn run(self) -> Result<Rebuilt, RebuildError> {
        let came = catch_unwind(AssertUnwindSafe(|| self.work()));
        // Whatever it came to: the writer does not go on noting what nobody will ask for.
        let unwatched = self.between(|sql| touched::unwatch(sql.connection()));
        remove(&self.side);
        let panicked = || {
            Err(RebuildError::Database {
                source: "the thread that folded the events panicked".into(),
            })
        };
        let rebuilt = came.unwrap_or_else(|_| panicked())?;
        unwatched?;
        Ok(rebuilt)
    }

    fn work(&self) -> Result<Rebuilt, RebuildError> {
        let mut side = Side::make(&self.side).map_err(|source| RebuildError::Io {
            path: self.side.clone(),
            source,
        })?;
        self.interruptible(side.connection_mut())?;
        let (events, watched) = self.connect()?;
        let events = Sql::new(&events);
        let of = self.done(head(&events))?;
        let tell = |stage, events| self.tell(stage, events, of);
        self.done(side.fold(&events, &mut |position| {
            tell(RebuildStage::Folding, position)
        }))?;
        fault::point("store.rebuild.folded");
        self.between(|sql| touched::watch(sql.connection(), Notes::Own))?;
        watched.begins();
        let compared = self.compare(&events, &mut side, &tell);
        watched.ends();
        let differs = match compared {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted)
                    && !self.is_closing() =>
            {
                self.compare_copy(&mut side, &tell)?
            }
            compared => self.done(compared)?,
        };
        fault::point("store.rebuild.compared");
        let Some(differs) = differs else {
            // As long as nothing differs, what is folded from further events cannot differ either.
            return Ok(Rebuilt {
                events: side.position,
                replaced: Vec::new(),
                index_replaced: false,
                paused: Duration::ZERO,
            });
        };
        // Folding does less for each event than the writer, so it gets to the end; the last few are
        // folded while the writer waits.
        self.done(side.fold(&events, &mut |position| {
            tell(RebuildStage::Folding, position)
        }))?;
        tell(RebuildStage::Replacing, side.position);
        let database = self.database.clone();
        self.between(move |sql| replace::replace(sql, side, &database, differs))
    }

    /// Compares all rows as of one position, and keeps in the database beside which differ; none
    /// when all are the same.
    fn compare(
        &self,
        events: &Sql<'_>,
        side: &mut Side,
        tell: &impl Fn(RebuildStage, u64),
    ) -> rusqlite::Result<Option<replace::Differs>> {
        let seen = events.connection().unchecked_transaction()?;
        side.fold(events, &mut |position| {
            tell(RebuildStage::Comparing, position)
        })?;
        tell(RebuildStage::Comparing, side.position);
        side.index(&Sql::new(&seen))?;
        touched::watch(side.connection(), Notes::Kept)?;
        let differing = compare::differing_rows(&seen, side.connection())?;
        let index = differing.words || !compare::same_index(&seen, side.connection())?;
        Ok((differing.rows > 0 || index).then_some(replace::Differs { index }))
    }

    /// Compares all rows with those of a copy. Comparing them with the store's own would be in the
    /// way of the write-ahead log.
    fn compare_copy(
        &self,
        side: &mut Side,
        tell: &impl Fn(RebuildStage, u64),
    ) -> Result<Option<replace::Differs>, RebuildError> {
        // What the comparison had begun on the other side, where nothing is ever rolled back.
        if !side.connection().is_autocommit() {
            self.done(side.connection().execute_batch("COMMIT"))?;
        }
        self.done(touched::unwatch(side.connection()))?;
        self.done(
            side.connection()
                .execute_batch("DROP TABLE IF EXISTS main.touched"),
        )?;
        let _alone = Arc::clone(&self.copying).blocking_lock_owned();
        let made =
            Copy::make(&self.database, self.senders.writer.clone()).map_err(|error| match error {
                ReadError::Closed => RebuildError::Closed,
                error => RebuildError::Database {
                    source: error.into(),
                },
            });
        let (_copy, mut connection) = made?;
        let closing = Arc::clone(&self.closing);
        self.done(
            connection.progress_handler(LOOK_OPS, Some(move || closing.load(Ordering::Relaxed))),
        )?;
        self.done(connection.execute_batch("PRAGMA query_only = OFF"))?;
        self.done(self.compare(&Sql::new(&connection), side, tell))
    }

    /// A connection that reads, and can look into the full-text index. What it reads in one piece
    /// while it is watched is ended when that is in the way of the write-ahead log.
    fn connect(&self) -> Result<(Connection, Watched), RebuildError> {
        let mut connection = self.done(connect(&self.database))?;
        let watched = Watched::unattached(&self.log);
        let closing = Arc::clone(&self.closing);
        let seen = watched.clone();
        self.done(connection.progress_handler(
            LOOK_OPS,
            Some(move || closing.load(Ordering::Relaxed) || seen.is_in_the_way()),
        ))?;
        self.done(connection.execute_batch("PRAGMA query_only = OFF"))?;
        Ok((connection, watched))
    }

    fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Lets what a connection does end when the store is closed.
    fn interruptible(&self, connection: &mut Connection) -> Result<(), RebuildError> {
        let closing = Arc::clone(&self.closing);
        self.done(
            connection.progress_handler(LOOK_OPS, Some(move || closing.load(Ordering::Relaxed))),
        )
    }

    /// Has the writer do something between two commits, and waits for it.
    fn between<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Sql<'_>) -> rusqlite::Result<T> + Send + 'static,
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

    fn done<T>(&self, result: rusqlite::Result<T>) -> Result<T, RebuildError> {
        result.map_err(|error| match (error.sqlite_error_code(), error) {
            (Some(ErrorCode::OperationInterrupted), _) if self.closing.load(Ordering::Relaxed) => {
                RebuildError::Closed
            }
            (_, rusqlite::Error::FromSqlConversionFailure(_, _, source)) => {
                RebuildError::Database { source }
            }
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

/// The position of the last event.
fn head(sql: &Sql<'_>) -> rusqlite::Result<u64> {
    Ok(sql
        .row("SELECT position FROM head", [], |row| row.uint(0))?
        .unwrap_or(0))
}
