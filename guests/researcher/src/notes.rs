//! Questions and notes: what models reply with on the way to a report, bounded and checked.

use agent_host_sdk::shortened;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Notes of one source.
pub(crate) const PER_SOURCE_MAX: usize = 8;
/// Notes of one task.
pub(crate) const NOTES_MAX: usize = 120;
/// Bytes of a claim and of a quote.
const WORDS_BYTES_MAX: usize = 400;
/// Letters and digits of a quote that bears a note, unless the whole source has fewer.
const QUOTE_CHARS_MIN: usize = 4;
/// Bytes of a question and of its search words.
const QUESTION_BYTES_MAX: usize = 300;

/// A question of a round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Question {
    pub(crate) question: String,
    /// Words for a search engine.
    pub(crate) search: String,
}

impl Question {
    /// The query itself, when nobody planned better ones.
    pub(crate) fn plain(query: &str) -> Self {
        let words = shortened(query, QUESTION_BYTES_MAX);
        Self {
            question: words.clone(),
            search: words,
        }
    }

    pub(crate) fn is_like(&self, other: &Self) -> bool {
        words_of(&self.search) == words_of(&other.search)
    }
}

/// The questions of a round, as a model plans them.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Plan {
    questions: Vec<Question>,
}

impl Plan {
    /// The JSON Schema of so many questions at most.
    pub(crate) fn schema(count: usize) -> Value {
        let words = json!({ "type": "string", "maxLength": QUESTION_BYTES_MAX });
        json!({
            "type": "object",
            "properties": {
                "questions": {
                    "type": "array", "maxItems": count,
                    "items": {
                        "type": "object",
                        "properties": { "question": words, "search": words },
                        "required": ["question", "search"],
                        "additionalProperties": false,
                    },
                },
            },
            "required": ["questions"],
            "additionalProperties": false,
        })
    }

    /// The questions that can be searched for, no more and no longer than asked for. None of them
    /// has the words of another, or words that were `searched` for already.
    pub(crate) fn questions(self, count: usize, searched: &[String]) -> Vec<Question> {
        let mut known: Vec<String> = searched.iter().map(|search| words_of(search)).collect();
        let mut questions: Vec<Question> = Vec::new();
        for planned in self.questions {
            let search = shortened(planned.search.trim(), QUESTION_BYTES_MAX);
            let words = words_of(&search);
            if !search.is_empty() && !known.contains(&words) {
                known.push(words);
                let question = shortened(planned.question.trim(), QUESTION_BYTES_MAX);
                questions.push(Question { question, search });
            }
        }
        questions.truncate(count);
        questions
    }
}

/// The words of a search in small letters, with one space between them: what repeats are known by.
fn words_of(search: &str) -> String {
    let words: Vec<&str> = search.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

/// A claim with the number of the source that makes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Note {
    pub(crate) claim: String,
    /// The words of the source that bear it.
    pub(crate) quote: String,
    /// The number of the source. This agent writes it, never a model.
    pub(crate) source: u32,
}

/// The notes on one source, as a model writes them.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Noted {
    notes: Vec<NotedClaim>,
}

#[derive(Debug, Deserialize)]
struct NotedClaim {
    claim: String,
    quote: String,
    source: u32,
}

impl Noted {
    /// The JSON Schema of notes.
    pub(crate) fn schema() -> Value {
        let words = json!({ "type": "string", "maxLength": WORDS_BYTES_MAX });
        json!({
            "type": "object",
            "properties": {
                "notes": {
                    "type": "array", "maxItems": PER_SOURCE_MAX,
                    "items": {
                        "type": "object",
                        "properties": {
                            "claim": words, "quote": words, "source": { "type": "integer" },
                        },
                        "required": ["claim", "quote", "source"],
                        "additionalProperties": false,
                    },
                },
            },
            "required": ["notes"],
            "additionalProperties": false,
        })
    }

    /// The notes that hold: of this source, with words that its text has, and no fewer of them than
    /// bear anything.
    pub(crate) fn compared_with(self, source: u32, text: &str) -> Vec<Note> {
        let text = plain(text);
        let chars_min = QUOTE_CHARS_MIN.min(text.chars().count()).max(1);
        let mut notes: Vec<Note> = self
            .notes
            .into_iter()
            .filter(|note| note.source == source && !note.claim.trim().is_empty())
            .filter(|note| {
                let quote = plain(&note.quote);
                quote.chars().count() >= chars_min && text.contains(&quote)
            })
            .map(|note| Note {
                claim: shortened(note.claim.trim(), WORDS_BYTES_MAX),
                quote: shortened(note.quote.trim(), WORDS_BYTES_MAX),
                source,
            })
            .collect();
        notes.truncate(PER_SOURCE_MAX);
        notes
    }
}

/// The letters and digits of a text, in small letters: what a quote is compared by, whatever became
/// of spaces, quotation marks and markdown.
fn plain(text: &str) -> String {
    text.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}
