//! Verification of all stored data: the chain from its first event to its last, the data that
//! depends on it, and the data stored in addition to it.

pub(crate) mod beside;
mod turns;

use crate::event_row::{Head, RawEvent, decode};
use crate::read::ReadError;
use crate::sql::{self, Sql, args, with_causes};
use crate::sqlite::{DAMAGE_OF, TABLES};
use crate::store::Maintenance;
use crate::texts;
use domain::chain::GENESIS;
use domain::digest::Digest;
use domain::event::Event;
use std::time::Duration;

/// Events that are verified at a time; between two chunks other reads get their turn and the log
/// can be moved to the database.
const CHUNK_EVENTS: usize = 1_000;
/// Maximum number of tries of a chunk that blocked the write-ahead log.
const CHUNK_TRIES_MAX: u32 = 10;
/// The pause before the next attempt.
const CHUNK_PAUSE: Duration = Duration::from_millis(200);

/// Result of a verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    /// Events that were found in order.
    pub events: u64,
    /// Events whose payload was erased. Their place in the chain remains.
    pub erased: u64,
    /// Turns whose id was computed again.
    pub turns: u64,
    /// The hash of the last event that was found in order.
    pub head: Digest,
    /// The first fault; nothing after it was checked.
    pub fault: Option<VerificationFault>,
}

/// Stored data that has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerificationFault {
    /// The position of the event; 0 for data that is stored in addition to the events.
    pub position: u64,
    /// Description of the fault.
    pub problem: String,
}

/// Progress of a verification.
#[derive(Debug, Clone)]
struct Progress {
    through: Head,
    found: Verification,
}

impl Progress {
    fn new(through: Head) -> Self {
        let found = Verification {
            events: 0,
            erased: 0,
            turns: 0,
            head: GENESIS,
            fault: None,
        };
        Self { through, found }
    }

    fn is_over(&self) -> bool {
        self.found.fault.is_some() || self.found.events >= self.through.position
    }

    fn finish(self) -> Verification {
        let mut found = self.found;
        if found.fault.is_none() && found.head != self.through.hash {
            found.fault = Some(VerificationFault {
                position: found.events,
                problem: "it is not the last event that was stored".to_owned(),
            });
        }
        found
    }
}

impl Maintenance {
    /// Checks every page, a table with its indices at a time, and describes the first damage. It
    /// does far less than [`Self::verify`]: it recomputes neither hashes nor projections. Between
    /// two tables the log can be moved to the database; a table whose check would block that for
    /// too long is checked in a copy.
    pub async fn damage(&self) -> Result<Option<String>, ReadError> {
        let tables: Vec<String> = self.read(move |sql| sql.all(TABLES, [])).await?;
        for table in tables {
            let found: Option<String> = self
                .read_at_length(move |sql| sql.one(DAMAGE_OF, [table]))
                .await?;
            if let Some(problem) = found.filter(|found| found != "ok") {
                return Ok(Some(problem));
            }
        }
        Ok(None)
    }

    /// Verifies the whole chain: positions without gaps, hashes, payload digests, stream versions
    /// without gaps, ids of turns, and the presence of the last stored event. Events that are
    /// committed meanwhile are not checked. After the chain it checks all pages and indices, the
    /// digest of each blob, and the id and the place of each turn. Unless a purge is under way, it
    /// also compares each projection with the result of folding all events. Takes about as long as
    /// storing the events did, without waits for the disk. If its second half would keep the
    /// write-ahead log from starting over, it runs in a copy, which takes as much space again as
    /// the database.
    pub async fn verify(&self) -> Result<Verification, ReadError> {
        let head = self.read(recorded_head).await?;
        let mut progress = Progress::new(head);
        while !progress.is_over() {
            progress = self.next_chunk(progress).await?;
        }
        let found = progress.finish();
        if found.fault.is_some() {
            return Ok(found);
        }
        let problem = self.read_at_length(beside::problem).await?;
        Ok(with(found, problem))
    }

    /// Verifies the next chunk. If that was in the way of the write-ahead log, the log starts over
    /// and the chunk is verified once more.
    async fn next_chunk(&self, progress: Progress) -> Result<Progress, ReadError> {
        for _ in 0..CHUNK_TRIES_MAX {
            let from = progress.clone();
            match self.read(move |sql| chunk(sql, from)).await {
                Err(ReadError::InTheWay) => tokio::time::sleep(CHUNK_PAUSE).await,
                verified => return verified,
            }
        }
        Err(ReadError::InTheWay)
    }
}

/// Verifies through one connection at once; for a database that is not open as a store.
pub(crate) fn whole(sql: &Sql<'_>) -> sql::Result<Verification> {
    let mut progress = Progress::new(recorded_head(sql)?);
    while !progress.is_over() {
        progress = chunk(sql, progress)?;
    }
    let found = progress.finish();
    let problem = if found.fault.is_none() {
        beside::problem(sql)?
    } else {
        None
    };
    Ok(with(found, problem))
}

/// Returns the result with a problem found outside of the events.
fn with(mut found: Verification, problem: Option<String>) -> Verification {
    found.fault = found.fault.or(problem.map(|problem| VerificationFault {
        position: 0,
        problem,
    }));
    found
}

/// Reads the event that was stored last: its recorded hash, and at least its position.
fn recorded_head(sql: &Sql<'_>) -> sql::Result<Head> {
    let recorded = Head::stored(sql)?;
    let last = sql.one::<Option<u64>>("SELECT max(position) FROM events", [])?;
    Ok(Head {
        position: recorded.position.max(last.flatten().unwrap_or(0)),
        ..recorded
    })
}

fn chunk(sql: &Sql<'_>, mut progress: Progress) -> sql::Result<Progress> {
    let after = progress.found.events;
    let events: Vec<RawEvent> = sql.all(RawEvent::AFTER, args![after, CHUNK_EVENTS])?;
    let found = &mut progress.found;
    if events.is_empty() {
        found.fault = Some(VerificationFault {
            position: after + 1,
            problem: "it is missing".to_owned(),
        });
    }
    for event in events {
        if found.events == progress.through.position {
            break;
        }
        if let Some(problem) = problem(sql, &event, found)? {
            found.fault = Some(VerificationFault {
                position: found.events + 1,
                problem,
            });
            break;
        }
        found.events += 1;
        found.head = event.hash.unwrap_or(found.head);
    }
    Ok(progress)
}

/// Returns the problem with the next event, if there is one.
fn problem(
    sql: &Sql<'_>,
    event: &RawEvent,
    found: &mut Verification,
) -> sql::Result<Option<String>> {
    if event.position != found.events + 1 {
        return Ok(Some("it is missing".to_owned()));
    }
    if event.hash.is_none() || event.follows(found.head) != event.hash {
        return Ok(Some(
            "its hash does not follow from the event before it and from what it says".to_owned(),
        ));
    }
    found.erased += u64::from(event.payload.is_none());
    if event.version > 1 {
        let before = sql.one::<u64>(
            "SELECT position FROM events WHERE stream = ?1 AND version = ?2",
            args![event.stream, event.version - 1],
        )?;
        if before.is_none_or(|before| before >= event.position) {
            return Ok(Some(format!(
                "version {} of its stream is not before it",
                event.version - 1
            )));
        }
    }
    turn_problem(sql, event, found)
}

fn turn_problem(
    sql: &Sql<'_>,
    event: &RawEvent,
    found: &mut Verification,
) -> sql::Result<Option<String>> {
    let Some(payload) = &event.payload else {
        return Ok(None);
    };
    let payload = match texts::whole(sql, payload) {
        Ok(payload) => payload,
        Err(error) => return Ok(Some(with_causes(&error))),
    };
    match decode(&event.kind, &payload) {
        Ok(Event::TurnCommitted(committed)) if committed.turn.compute_id() != committed.turn.id => {
            return Ok(Some(
                "its turn's id does not follow from the turn".to_owned(),
            ));
        }
        // These were counted with their import.
        Ok(Event::TurnsImported(imported)) if imported.erased.is_some() => {}
        Ok(Event::TurnsImported(imported)) => match imported
            .turns
            .iter()
            .find(|it| it.turn.compute_id() != it.turn.id)
        {
            Some(_) => {
                return Ok(Some(
                    "an imported turn's id does not follow from the turn".to_owned(),
                ));
            }
            None => found.turns += imported.turns.len() as u64,
        },
        Ok(Event::TurnCommitted(_)) => found.turns += 1,
        Ok(_) => {}
        Err(error) => return Ok(Some(with_causes(&error))),
    }
    Ok(None)
}
