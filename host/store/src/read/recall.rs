//! Full-text search over an agent's threads and notes.

use super::ReadError;
use crate::full_text;
use crate::projections::{NoteDetails, owner_token};
use crate::sql::{self, named, row, text, unreadable};
use crate::store::Store;
use crate::texts::Packed;
use domain::id::{AgentId, NoteId, SessionId, TurnId};
use domain::limits::RECALL_HITS_MAX;
use domain::message::{Message, MessageId, Role};
use domain::time::Timestamp;
use domain::user::UserId;

/// Maximum number of words of one query; further words are ignored.
const WORDS_MAX: usize = 64;
/// Words that occur in texts on any subject: of English, German, French and Spanish.
const STOP_WORDS: [&str; 4] = [
    "a about am an and any are as at be been but by can could did do does for from had has have he \
     her him his how i i'm if in into is it it's its me my no not of on or our please she should so \
     some tell that the their them then there these they this to us was we were what what's when \
     where which who whom whose why will with would you your",
    "aber als am an auch auf aus bei bin bist bitte das dass dein deine dem den der des die dies du \
     ein eine einem einen einer er es für hat habe haben ich ihr ihre im in ist ja kann man mein \
     meine meinem meinen meiner mir mich mit nach nicht noch oder sein seine sich sie sind so über \
     und uns unser von war warum was wann welche welcher wem wen wenn wer wie wir wird wo zu zum zur",
    "à au aux avec ce ces cette comment dans de des du elle en est et il ils je la le les leur ma \
     mais me mes mon ne nous on ou où par pas pour pourquoi quand que quel quelle qui sa se ses son \
     sont sur ta te tes ton tu un une vos votre vous",
    "al como con cuando cuál cuándo cómo de del donde dónde e el ella en es esta este la las lo los \
     me mi mis no nos o para pero por que qué quien quién se ser si sin son su sus te tu tus un una \
     y yo",
];

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The message's text, or the note.
    pub text: String,
    /// The turn of the message. For a note, it is the last turn that it was taken from, if it was
    /// taken from turns.
    pub turn: Option<TurnId>,
    /// The message's place in its thread; none for a note.
    pub message: Option<MessageId>,
    /// The session of the message.
    pub session: SessionId,
    /// The user of that session.
    pub user_id: UserId,
    /// The note's id; none for a message.
    pub note: Option<NoteId>,
    /// The subject of the note, if it names one.
    pub about: Option<String>,
    /// True if it depends on content outside the user's and the operator's control.
    pub untrusted: bool,
    /// Time of the message or note.
    pub time: Timestamp,
}

/// Messages of committed turns, and notes.
const ALL: &str = text!(
    "SELECT ",
    HitRow::COLUMNS,
    ", m.message, coalesce(t.untrusted, FALSE) FROM ",
    full_text::ALL.found,
    " JOIN sessions s ON s.id = r.session LEFT JOIN turns t ON t.id = r.turn LEFT JOIN messages m \
     ON m.run = r.run AND m.id = r.message WHERE ",
    full_text::ALL.matches,
    " AND (:of IS NULL OR s.user_id = :of) AND (r.note IS NOT NULL OR s.status != 'deleted') ORDER \
     BY ",
    full_text::ALL.rank,
    ", r.id DESC LIMIT :limit"
);
/// Notes only.
const NOTES: &str = text!(
    "SELECT ",
    HitRow::COLUMNS,
    ", NULL, FALSE FROM ",
    full_text::NOTES.found,
    " JOIN sessions s ON s.id = r.session WHERE ",
    full_text::NOTES.matches,
    " AND (:of IS NULL OR s.user_id = :of) ORDER BY ",
    full_text::NOTES.rank,
    ", r.id DESC LIMIT :limit"
);

row! {
    /// A row that was found, without its message.
    struct HitRow {
        session: SessionId = "r.session",
        turn: Option<TurnId> = "r.turn",
        message: Option<MessageId> = "r.message",
        untrusted: bool = "r.untrusted",
        time: Timestamp = "r.time",
        note: Option<String> = "r.note",
        note_id: Option<NoteId> = "r.note_id",
        details: NoteDetails as json_or_default = "r.details",
        user_id: UserId = "s.user_id",
    }
}

/// A source that a recall searches.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// The statement that searches it.
    text: &'static str,
    agent: AgentId,
    /// The user to whose sessions the search is restricted.
    of: Option<&'a UserId>,
}

impl Store {
    /// Searches this agent's committed turns and notes for the words of a query. Messages of
    /// deleted sessions are left out. The best hits come first, at most `limit` and never more than
    /// [`RECALL_HITS_MAX`]; `of` restricts them to one user's sessions. A query consists of words,
    /// without operators; an empty query finds nothing.
    pub async fn recall(
        &self,
        agent: AgentId,
        of: Option<&UserId>,
        query: &str,
        limit: u32,
    ) -> Result<Vec<Hit>, ReadError> {
        let place = Place {
            text: ALL,
            agent,
            of,
        };
        self.recall_in(place, query, limit).await
    }

    /// Searches this agent's notes in the same way. Its cost does not depend on the messages.
    pub async fn recall_notes(
        &self,
        agent: AgentId,
        of: Option<&UserId>,
        query: &str,
        limit: u32,
    ) -> Result<Vec<Hit>, ReadError> {
        let place = Place {
            text: NOTES,
            agent,
            of,
        };
        self.recall_in(place, query, limit).await
    }

    async fn recall_in(
        &self,
        place: Place<'_>,
        query: &str,
        limit: u32,
    ) -> Result<Vec<Hit>, ReadError> {
        let Some(expression) = expression(place.agent, query) else {
            return Ok(Vec::new());
        };
        let of = place.of.map(|user| user.as_str().to_owned());
        let text = place.text;
        self.index_all().await;
        self.read(move |sql| {
            let limit = limit.min(RECALL_HITS_MAX);
            let found = sql.all(text, named![words = expression, limit, of])?;
            found
                .into_iter()
                .map(
                    |(row, message, untrusted): (HitRow, Option<Packed<Message>>, bool)| {
                        hit(row, message.map(|message| message.0), untrusted)
                    },
                )
                .collect()
        })
        .await
    }
}

/// Any of the words, in texts of this agent. Each word is quoted, and nothing in it can end the
/// quotation.
fn expression(agent: AgentId, query: &str) -> Option<String> {
    Some(format!(
        "agent : \"{}\" AND {}",
        owner_token(agent),
        any_of(query)?
    ))
}

/// Returns a query for any of the significant words, each of them quoted; none without words. If
/// all of them are stop words, it uses the stop words.
pub(super) fn any_of(query: &str) -> Option<String> {
    let words: Vec<&str> = query
        .split(|letter: char| letter.is_whitespace() || letter.is_control() || letter == '"')
        .filter(|word| word.chars().any(char::is_alphanumeric))
        .collect();
    let telling: Vec<&str> = words
        .iter()
        .copied()
        .filter(|word| !is_stop_word(word))
        .collect();
    let wanted = if telling.is_empty() { words } else { telling };
    let quoted: Vec<String> = wanted
        .into_iter()
        .take(WORDS_MAX)
        .map(|word| format!("\"{word}\""))
        .collect();
    if quoted.is_empty() {
        return None;
    }
    Some(format!("body : ({})", quoted.join(" OR ")))
}

/// Returns whether a word occurs in nearly every text, such as `what` and `is`.
fn is_stop_word(word: &str) -> bool {
    let word = word.trim_matches(|letter: char| !letter.is_alphanumeric());
    let word = word.to_lowercase().replace('’', "'");
    STOP_WORDS
        .iter()
        .any(|of_language| of_language.split(' ').any(|stop| stop == word))
}

/// Makes a hit. `is_turn_untrusted` is about the turn of a message.
fn hit(row: HitRow, message: Option<Message>, is_turn_untrusted: bool) -> sql::Result<Hit> {
    let details = row.details;
    let taken_from = details.provenance.and_then(|provenance| provenance.turn);
    // An agent's words depend on everything that its turn depends on; people's words are their own.
    let (text, by_agent, untrusted) = match (row.note, message) {
        (Some(note), _) => (note, false, row.untrusted),
        (None, Some(message)) => (
            message.text(),
            message.role != Role::User,
            message.untrusted,
        ),
        (None, None) => return Err(unreadable("message", "it is not there")),
    };
    Ok(Hit {
        text,
        turn: row.turn.or(taken_from),
        message: row.message,
        session: row.session,
        user_id: row.user_id,
        note: row.note_id,
        about: details.about,
        untrusted: untrusted || (by_agent && is_turn_untrusted),
        time: row.time,
    })
}
