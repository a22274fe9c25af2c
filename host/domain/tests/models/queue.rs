//! The simplest queue that could be right, for tests: a list in memory that is asked and changes.
//!
//! It shares no rule with [`domain::queue::Queue`], only its terms. It keeps the texts, marks
//! nothing but what it must, and says which messages the agent gets. So a test can drive it beside
//! the real one, or hold what a broker stored against it, and compare the messages. It is slow, and
//! it forgets everything with its process.
//!
//! Two crates compile this file as a module of theirs: the tests of the domain, which drive the
//! queue beside it, and the tests of the whole host, which hold the broker's stored events against
//! it.

use domain::delegate::Priority;
use domain::queue::{
    COLLECTED_BYTES_MAX, Condition, DropPolicy, JOINED_INPUTS_MAX, Mode, OVERFLOW_LINES_MAX,
    QueueSettings,
};
use domain::time::Timestamp;
use std::fmt;

/// Something to be dealt with, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// Its settings; none for an input that gets a turn of its own whatever the mode.
    pub settings: Option<QueueSettings>,
    /// Its urgency.
    pub priority: Priority,
    /// Its user.
    pub from: String,
    /// The route of its answer.
    pub route: Option<String>,
    /// Its text.
    pub text: String,
}

/// The messages for the agent, or the reason why it gets none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next<Id> {
    /// Nothing is to be done.
    Nothing,
    /// Nothing is to be done before this time.
    Wait(Timestamp),
    /// The open run is to end because of this one.
    Abort(Id),
    /// The open run hears these messages, which say what these inputs say.
    Join(Vec<Id>, Vec<ModelMessage>),
    /// A turn begins with these messages, which say what these inputs say.
    Start(Vec<Id>, Vec<ModelMessage>),
}

/// A message that enters the thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelMessage {
    /// The host's.
    Notice(String),
    /// The message of the sender of the input, or of the inputs that it stands for.
    Words(String),
}

/// The queue is full and drops nothing that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the queue is full")
    }
}

impl std::error::Error for Full {}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Item<Id> {
    id: Id,
    /// Number of inputs that came before it.
    number: usize,
    letter: Letter,
    /// Its mode; none for a turn of its own.
    mode: Option<Mode>,
    /// Period of its debounce. If it is the last of the queue, the queue moves on after it.
    quiet: (Timestamp, Timestamp),
    /// True if it came when inputs of several routes were being collected.
    apart: bool,
}

/// The queue of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference<Id> {
    items: Vec<Item<Id>>,
    /// Those that were taken out by name, and may come back.
    gone: Vec<Item<Id>>,
    /// Number of inputs that came.
    received: usize,
    dropped: usize,
    lines: Vec<String>,
    /// The overflow that was reported last: the number of inputs, and their lines.
    reported: (usize, Vec<String>),
}

impl<Id> Default for Reference<Id> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            gone: Vec::new(),
            received: 0,
            dropped: 0,
            lines: Vec::new(),
            reported: (0, Vec::new()),
        }
    }
}

impl<Id: Clone + PartialEq> Reference<Id> {
    /// Returns the inputs that wait, in the order in which they came.
    #[must_use]
    pub fn waiting(&self) -> Vec<Id> {
        self.items.iter().map(|item| item.id.clone()).collect()
    }

    /// Something arrives. Returns which were dropped for it.
    ///
    /// # Errors
    /// The queue is full and drops nothing that waits; it is not taken.
    pub fn arrive(
        &mut self,
        id: Id,
        letter: Letter,
        condition: Condition,
        now: Timestamp,
    ) -> Result<Vec<Id>, Full> {
        let number = self.received;
        self.received += 1;
        let Some(settings) = letter.settings else {
            self.items.push(Item {
                id,
                number,
                letter,
                mode: None,
                quiet: (now, now),
                apart: false,
            });
            return Ok(Vec::new());
        };
        let mut mode = settings.mode;
        if condition == Condition::AwaitingClient && mode != Mode::Collect {
            mode = Mode::Followup;
        }
        let mut quiet = (now, now);
        let mut apart = false;
        let mut dropped = Vec::new();
        if is_queued(Some(mode)) {
            if condition != Condition::Free {
                quiet.1 = now.plus_ms(settings.debounce_ms.ms());
            } else if !self.items.iter().any(|item| is_queued(item.mode)) {
                mode = Mode::Followup;
            }
            dropped = self.make_room(settings)?;
            let mut collected = self
                .items
                .iter()
                .filter(|item| item.mode == Some(Mode::Collect));
            apart = mode == Mode::Collect
                && collected.any(|item| item.apart || item.letter.route != letter.route);
        }
        self.items.push(Item {
            id,
            number,
            letter,
            mode: Some(mode),
            quiet,
            apart,
        });
        Ok(dropped)
    }

    fn make_room(&mut self, settings: QueueSettings) -> Result<Vec<Id>, Full> {
        let cap = settings.cap.inputs();
        let mut dropped = Vec::new();
        while self
            .items
            .iter()
            .filter(|item| is_queued(item.mode))
            .count()
            >= cap
        {
            if settings.drop == DropPolicy::New {
                return Err(Full);
            }
            let oldest = self
                .items
                .iter()
                .position(|item| is_queued(item.mode))
                .unwrap_or_default();
            let item = self.items.remove(oldest);
            self.dropped += 1;
            if settings.drop == DropPolicy::Summarize {
                self.lines.push(line(&item.letter.text));
                self.lines = self
                    .lines
                    .split_off(self.lines.len().saturating_sub(cap.min(OVERFLOW_LINES_MAX)));
            }
            dropped.push(item.id);
        }
        Ok(dropped)
    }

    /// The driver is free, or at a boundary of a run of this user's. What it takes waits no longer.
    pub fn next(&mut self, condition: Condition, of: Option<&str>, now: Timestamp) -> Next<Id> {
        let interrupting = self.pick(usize::MAX, |item| item.mode == Some(Mode::Interrupt));
        if condition != Condition::Free {
            if let Some(newest) = interrupting.last().and_then(|place| self.items.get(*place)) {
                return Next::Abort(newest.id.clone());
            }
            let steering = self.pick(JOINED_INPUTS_MAX, |item| {
                item.mode == Some(Mode::Steer) && of == Some(&*item.letter.from)
            });
            if condition != (Condition::Running { steerable: true }) || steering.is_empty() {
                return Next::Nothing;
            }
            let taken = self.take(&steering);
            return Next::Join(ids(&taken), words(&taken));
        }
        if let Some(first) = interrupting.first() {
            let theirs: Vec<usize> = interrupting
                .iter()
                .copied()
                .take_while(|place| self.is_of_one(*first, *place))
                .take(JOINED_INPUTS_MAX)
                .collect();
            return self.start(&theirs);
        }
        let last = self.items.iter().rfind(|item| is_queued(item.mode));
        let deferred_until = last
            .map(|item| item.quiet)
            .filter(|(from, until)| *from <= now && now < *until)
            .map(|(_, until)| until);
        let urgencies = [
            Priority::Critical,
            Priority::High,
            Priority::Normal,
            Priority::Low,
        ];
        for urgency in urgencies {
            let urgent = self.pick(usize::MAX, |item| item.letter.priority == urgency);
            let may_go = |place: &&usize| {
                self.items
                    .get(**place)
                    .is_some_and(|item| deferred_until.is_none() || !is_queued(item.mode))
            };
            if let Some(place) = urgent.iter().find(may_go) {
                return self.begin(*place, &urgent);
            }
        }
        deferred_until.map_or(Next::Nothing, Next::Wait)
    }

    /// A turn begins with the item at this place, among those that are as urgent.
    fn begin(&mut self, place: usize, urgent: &[usize]) -> Next<Id> {
        let mode = self.items.get(place).and_then(|item| item.mode);
        let is = |place: &usize, mode: Mode| {
            self.items
                .get(*place)
                .is_some_and(|item| item.mode == Some(mode))
        };
        match mode {
            None => {
                let taken = self.take(&[place]);
                Next::Start(ids(&taken), words(&taken))
            }
            Some(Mode::Steer) => {
                let theirs = urgent
                    .iter()
                    .copied()
                    .filter(|other| is(other, Mode::Steer) && self.is_of_one(place, *other));
                let places: Vec<usize> = theirs.take(JOINED_INPUTS_MAX).collect();
                self.start(&places)
            }
            Some(Mode::Collect) if !self.is_mixed() => {
                let rest = urgent
                    .iter()
                    .copied()
                    .filter(|place| !is(place, Mode::Steer));
                let next: Vec<usize> = rest
                    .take_while(|other| is(other, Mode::Collect) && self.is_of_one(place, *other))
                    .collect();
                let fits = |count: &usize| {
                    let texts = next
                        .iter()
                        .take(*count)
                        .filter_map(|place| self.items.get(*place))
                        .map(|item| item.letter.text.len());
                    *count == 1 || texts.sum::<usize>() as u64 <= COLLECTED_BYTES_MAX
                };
                let count = (1..=next.len()).rev().find(fits).unwrap_or(1);
                let taken = self.take(next.get(..count).unwrap_or_default());
                Next::Start(ids(&taken), vec![self.one_message(&taken)])
            }
            Some(Mode::Collect | Mode::Followup | Mode::Interrupt) => self.start(&[place]),
        }
    }

    fn is_of_one(&self, one: usize, other: usize) -> bool {
        let from = |place: usize| self.items.get(place).map(|item| &item.letter.from);
        from(one) == from(other)
    }

    fn is_mixed(&self) -> bool {
        let collected: Vec<&Item<Id>> = self
            .items
            .iter()
            .filter(|item| item.mode == Some(Mode::Collect))
            .collect();
        let routes = collected.iter().map(|item| &item.letter.route);
        collected.iter().any(|item| item.apart)
            || routes
                .clone()
                .zip(routes.skip(1))
                .any(|(one, other)| one != other)
    }

    fn one_message(&mut self, taken: &[Item<Id>]) -> ModelMessage {
        let mut text = "[Queued messages while agent was busy]".to_owned();
        if let Some(notice) = self.tell() {
            text += &format!("\n\n{notice}");
        }
        for (index, item) in taken.iter().enumerate() {
            text += &format!("\n\n---\nQueued #{}\n{}", index + 1, item.letter.text);
        }
        ModelMessage::Words(text)
    }

    fn start(&mut self, places: &[usize]) -> Next<Id> {
        let taken = self.take(places);
        let mut said: Vec<ModelMessage> =
            self.tell().map(ModelMessage::Notice).into_iter().collect();
        said.extend(words(&taken));
        Next::Start(ids(&taken), said)
    }

    /// Takes out one that waits, by its id. It was taken back or put aside, or another took it up.
    /// Returns false if it does not wait.
    pub fn leave(&mut self, id: &Id) -> bool {
        let Some(place) = self.items.iter().position(|item| item.id == *id) else {
            return false;
        };
        self.gone.push(self.items.remove(place));
        true
    }

    /// One that was taken out by name waits again, where it stood. False when it was not.
    pub fn come_back(&mut self, id: &Id) -> bool {
        let Some(place) = self.gone.iter().position(|item| item.id == *id) else {
            return false;
        };
        let item = self.gone.remove(place);
        self.items.insert(
            self.items
                .partition_point(|other| other.number < item.number),
            item,
        );
        true
    }

    /// Reports the inputs that were dropped since the last report.
    pub fn tell(&mut self) -> Option<String> {
        let reported = self.untold();
        self.reported = (
            std::mem::take(&mut self.dropped),
            std::mem::take(&mut self.lines),
        );
        reported
    }

    /// Takes back the last report, which reached no one. Its inputs are reported again, before
    /// those that were dropped since.
    pub fn tell_again(&mut self) {
        let (dropped, mut lines) = std::mem::take(&mut self.reported);
        self.dropped += dropped;
        lines.append(&mut self.lines);
        self.lines = lines.split_off(lines.len().saturating_sub(OVERFLOW_LINES_MAX));
    }

    /// Returns the report of the inputs that were dropped since the last one.
    #[must_use]
    pub fn untold(&self) -> Option<String> {
        let mut reported = match self.dropped {
            0 => return None,
            1 => vec!["[Queue overflow] Dropped 1 message due to cap.".to_owned()],
            many => vec![format!(
                "[Queue overflow] Dropped {many} messages due to cap."
            )],
        };
        if !self.lines.is_empty() {
            reported.push("Summary:".to_owned());
        }
        reported.extend(self.lines.iter().map(|line| format!("- {line}")));
        Some(reported.join("\n"))
    }

    fn pick(&self, most: usize, which: impl Fn(&Item<Id>) -> bool) -> Vec<usize> {
        self.items
            .iter()
            .enumerate()
            .filter(|(_, item)| which(item))
            .map(|(place, _)| place)
            .take(most)
            .collect()
    }

    fn take(&mut self, places: &[usize]) -> Vec<Item<Id>> {
        let taken = places
            .iter()
            .filter_map(|place| self.items.get(*place))
            .cloned()
            .collect();
        let mut place = 0;
        self.items.retain(|_| {
            place += 1;
            !places.contains(&(place - 1))
        });
        taken
    }
}

fn is_queued(mode: Option<Mode>) -> bool {
    matches!(mode, Some(Mode::Followup | Mode::Collect))
}

fn ids<Id: Clone>(items: &[Item<Id>]) -> Vec<Id> {
    items.iter().map(|item| item.id.clone()).collect()
}

fn words<Id>(items: &[Item<Id>]) -> Vec<ModelMessage> {
    items
        .iter()
        .map(|item| ModelMessage::Words(item.letter.text.clone()))
        .collect()
}

fn line(text: &str) -> String {
    let letters: Vec<char> = text
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .collect();
    match letters.get(..159) {
        Some(beginning) if letters.len() > 160 => {
            beginning.iter().collect::<String>().trim_end().to_owned() + "…"
        }
        Some(_) | None => letters.into_iter().collect(),
    }
}
