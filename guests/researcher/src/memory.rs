//! The memory of a turn: how far a task has come, so that each step, also one after a crash, goes
//! on from the last. It is the memo, or the session's state where it is too large for that.

use crate::notes::{Note, Question};
use crate::report::Draft;
use crate::sources::Source;
use agent_host_sdk::{Memo, MessageId, Turn, Unreadable};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The version of the memo's layout.
pub(crate) const MEMO_FORMAT: u32 = 1;
/// Bytes of a memory that is kept in the memo, of 64 KiB.
const MEMO_BYTES_MAX: usize = 60 << 10;
/// Bytes of a memory that is kept in the session's state, of 256 KiB.
const STATE_BYTES_MAX: usize = 250 << 10;
/// Remarks on one task.
const REMARKS_MAX: usize = 20;

/// The work that comes next when nothing is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stage {
    /// The task is to be looked at.
    New,
    /// The questions of a round are to be planned.
    Plan,
    /// Their answers are to be searched for.
    Search,
    /// A few of the findings are to be chosen.
    Select,
    /// The chosen and the given sources are to be read.
    Read,
    /// All that was read has been noted: one more round, or the report.
    Weigh,
    /// The report is to be written.
    Report,
    /// The report is written, or cannot be.
    Finish,
}

/// The purpose of an open operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Doing {
    /// A model plans questions.
    Plan,
    /// The web is searched.
    Search,
    /// This folder is searched.
    Find(String),
    /// The source at this place of the list is read.
    Read(usize),
    /// A model notes what the source with this number says.
    Note(u32),
    /// A model writes the report.
    Report,
}

/// A task under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Research {
    /// The message that the task is in.
    pub(crate) message: MessageId,
    pub(crate) started_ms: u64,
    pub(crate) stage: Stage,
    /// Rounds that were begun.
    pub(crate) depth: u32,
    pub(crate) questions: Vec<Question>,
    /// The words that were searched for, in all rounds.
    #[serde(default)]
    pub(crate) searched: Vec<String>,
    pub(crate) sources: Vec<Source>,
    /// True if a search ended and found nothing.
    #[serde(default)]
    pub(crate) searched_in_vain: bool,
    pub(crate) notes: Vec<Note>,
    /// The texts of sources that are being noted, by their numbers.
    pub(crate) texts: BTreeMap<u32, String>,
    pub(crate) open: BTreeMap<String, Doing>,
    /// Sentences on how the report came about, for its reader.
    pub(crate) remarks: Vec<String>,
    pub(crate) draft: Option<Draft>,
}

impl Research {
    pub(crate) fn new(message: MessageId, started_ms: u64) -> Self {
        Self {
            message,
            started_ms,
            stage: Stage::New,
            depth: 1,
            questions: Vec::new(),
            searched: Vec::new(),
            sources: Vec::new(),
            searched_in_vain: false,
            notes: Vec::new(),
            texts: BTreeMap::new(),
            open: BTreeMap::new(),
            remarks: Vec::new(),
            draft: None,
        }
    }

    /// Adds a remark, once.
    pub(crate) fn remark(&mut self, remark: impl Into<String>) {
        let remark = remark.into();
        if self.remarks.len() < REMARKS_MAX && !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }

    /// Number of sources that were read.
    pub(crate) fn read(&self) -> usize {
        self.sources
            .iter()
            .filter(|source| source.number().is_some())
            .count()
    }

    /// Makes it smaller by the least that helps. Returns whether anything was left to drop.
    fn shrink(&mut self) -> bool {
        let longest = self
            .texts
            .iter()
            .max_by_key(|(_, text)| text.len())
            .map(|(number, _)| *number);
        if let Some(number) = longest {
            return self.texts.remove(&number).is_some();
        }
        self.remark("There was more to note than could be kept; the last notes are missing.");
        self.notes.pop().is_some()
    }
}

/// The memory of a turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Memory {
    /// Operations that were started, so that each gets a key of its own.
    pub(crate) operations: u64,
    /// Messages with tasks that are to be done after the present one.
    pub(crate) waiting: Vec<MessageId>,
    pub(crate) research: Option<Research>,
}

/// A memo.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kept {
    /// The memory.
    Here(Box<Memory>),
    /// The memory is the session's state.
    InState,
}

impl Memory {
    /// The memory that the last step of the turn left, and an empty one at first.
    ///
    /// # Errors
    /// Another version of the agent left it.
    pub(crate) fn load(turn: Turn<'_>) -> Result<Self, Unreadable> {
        match turn.memo() {
            None => Ok(Self::default()),
            Some(memo) => match memo.read::<Kept>()? {
                Kept::Here(memory) => Ok(*memory),
                Kept::InState => turn.state(),
            },
        }
    }

    /// Returns whether the session's state has the memory of this turn.
    pub(crate) fn is_in_state(turn: Turn<'_>) -> bool {
        let kept = turn.memo().and_then(|memo| memo.read::<Kept>().ok());
        matches!(kept, Some(Kept::InState))
    }

    /// The same in the form in which it is kept.
    pub(crate) fn save(mut self) -> Saved {
        let mut bytes = json!(self).to_string().len();
        if bytes <= MEMO_BYTES_MAX {
            return Saved {
                memo: Memo::json(MEMO_FORMAT, &Kept::Here(Box::new(self))),
                state: None,
            };
        }
        while bytes > STATE_BYTES_MAX && self.research.as_mut().is_some_and(Research::shrink) {
            bytes = json!(self).to_string().len();
        }
        Saved {
            memo: Memo::json(MEMO_FORMAT, &Kept::InState),
            state: Some(json!(self)),
        }
    }
}

/// A memory in the form in which it is kept.
pub(crate) struct Saved {
    pub(crate) memo: Memo,
    /// The session's state, when it is there that the memory is kept.
    pub(crate) state: Option<Value>,
}
