//! Verification of everything that is stored: the chain from its first event to its last, what
//! hangs on it, and what is kept beside it.

mod at_length;
pub(crate) mod beside;
mod turns;

use crate::event_row::{Head, RawEvent, decode};
use crate::read::ReadError;
use crate::sql::{self, Sql, args, with_causes};
use crate::sqlite::{DAMAGE_OF, TABLES};
use crate::store::Store;
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
/// The pause before it is tried again.
const CHUNK_PAUSE: Duration = Duration::from_millis(200);

/// Result of a verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    /// Events that were found in order.
    pub events: u64,
    /// Events whose payload was erased: their place in the chain holds, what they said is
    /// gone.
    pub erased: u64,
    /// Turns whose id was computed again.
    pub turns: u64,
    /// The hash of the last event that was found in order.
    pub head: Digest,
    /// The first fault; nothing after it was checked.
    pub fault: Option<VerificationFault>,
}

/// Something that is not as it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerificationFault {
    /// The position of the event; 0 when it is no event but something that is kept beside them.
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

impl Store {
    /// Checks every page, a table with its indices at a time, and describes the first damage. It
    /// does far less than [`Store::verify`]: neither hashes nor projections are computed again.
    /// Between two tables the log can be moved to the database; a table that would take too long
    /// for that is checked in a copy.
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
    /// without gaps, ids of turns, and that the last event that was stored is there. Commits go on
    /// meanwhile; what they add is not looked at. Then all pages and indices, that each blob is
    /// what its digest says, each turn of the tree what its id says and where its parent puts it,
    /// and, unless a purge is under way, that each projection is what folding all events again
    /// gives. Takes about as long as storing them did without waiting for the disk. When its second
    /// half would keep the write-ahead log from beginning anew, it is done in a copy, which takes
    /// as much space again as the database.
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

    /// Verifies the next chunk; once more where that was in the way of the write-ahead log, which
    /// then begins anew meanwhile.
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

/// Returns the result with a problem that was found beside the events.
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
    match event.payload_intact() {
        Some(true) => {}
        Some(false) => return Ok(Some("its payload was changed".to_owned())),
        None => found.erased += 1,
    }
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
        // Those were counted where they came in.
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
