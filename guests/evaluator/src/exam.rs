//! Exams: where they come from, what they have to be, and the order of their items.

use agent_host_sdk::Turn;
use questions::{Question, Solution, check_text, read};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::ops::RangeInclusive;

const TITLE_BYTES_MAX: usize = 200;
const INSTRUCTIONS_BYTES_MAX: usize = 4 << 10;
const CRITERIA: RangeInclusive<usize> = 1..=20;
const CRITERION_ID_BYTES_MAX: usize = 40;
/// Bytes of a criterion's description or of one of its levels.
const DESCRIPTION_BYTES_MAX: usize = 2 << 10;
const LEVELS_MAX: usize = 10;
const WEIGHT_MAX: f64 = 100.0;
const POINTS_MAX: f64 = 1_000.0;
/// Items that an exam can be chosen from.
const ITEMS_MAX: usize = 200;
/// Items that are asked, unless the exam says otherwise.
const ASKED: usize = 20;
/// Items that can be asked at most: each takes a step of the turn.
const ASKED_RANGE: RangeInclusive<usize> = 1..=40;

/// The message when there is no exam.
const NOTHING_TO_ASK: &str = "there is no exam: set it in the agent's `settings.exam`, or open the \
                              session with one in `exam`. It needs a \
    `title`, a `rubric` with `criteria` and `pass_score`, and `items`";

/// The message when the session was opened with an exam and the operator has set one already.
const TWO_EXAMS: &str =
    "session_config.exam: this agent has its exam in `settings.exam`; open the session without one";

fn exam_of(place: &Value) -> Option<&Value> {
    place.get("exam").filter(|exam| !exam.is_null())
}

/// An exam.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Exam {
    /// Tells exams of one title apart: the SHA-256 of what was written, as JSON with the keys of
    /// objects in order, in hexadecimal.
    #[serde(skip)]
    pub(crate) digest: String,
    pub(crate) title: String,
    /// The instructions before the first item.
    pub(crate) instructions: String,
    pub(crate) rubric: Rubric,
    pub(crate) items: Vec<Question>,
    /// True if items are asked in random order. Where there are more items than are asked, they are
    /// also chosen at random.
    pub(crate) shuffle: bool,
    max_items: Option<usize>,
}

/// The criteria, and the score that is enough.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Rubric {
    pub(crate) criteria: Vec<Criterion>,
    /// The percentage of all points from which on it is passed.
    pub(crate) pass_score: Option<f64>,
}

/// One thing that counts.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Criterion {
    pub(crate) id: String,
    pub(crate) description: String,
    /// The weight of a point of its items; 1 unless said otherwise.
    weight: Option<f64>,
    /// The levels from worst to best.
    pub(crate) levels: Vec<String>,
}

impl Criterion {
    pub(crate) fn weight(&self) -> f64 {
        self.weight.unwrap_or(1.0)
    }
}

impl Exam {
    /// The exam that the agent is set up with, or the one that the session was opened with. Where
    /// there is one for all, a user cannot bring their own.
    ///
    /// # Errors
    /// That there is none or are two, or the first field that makes no sense, for its author.
    pub(crate) fn of(turn: Turn<'_>) -> Result<Self, String> {
        let config: Value = turn.session_config().unwrap_or_default();
        let settings: Value = turn.settings().unwrap_or_default();
        let (exam, place) = match (exam_of(&settings), exam_of(&config)) {
            (None, None) => return Err(NOTHING_TO_ASK.to_owned()),
            (Some(_), Some(_)) => return Err(TWO_EXAMS.to_owned()),
            (Some(exam), None) => (exam, "settings.exam"),
            (None, Some(exam)) => (exam, "session_config.exam"),
        };
        let exam = Self {
            digest: digest(exam),
            ..read(exam, place)?
        };
        exam.check(place)?;
        Ok(exam)
    }

    /// Returns the number of items that are asked.
    pub(crate) fn asked(&self) -> usize {
        self.items.len().min(self.max_items.unwrap_or(ASKED))
    }

    /// Returns the percentage from which on it is passed.
    pub(crate) fn pass_percent(&self) -> f64 {
        self.rubric.pass_score.unwrap_or(100.0)
    }

    /// The criterion that an item counts for: the one that it names, or the only one.
    pub(crate) fn criterion(&self, item: &Question) -> Option<&Criterion> {
        let criteria = &self.rubric.criteria;
        match &item.criterion {
            Some(id) => criteria.iter().find(|criterion| criterion.id == *id),
            None => criteria.first().filter(|_| criteria.len() == 1),
        }
    }

    /// Returns the points of an item, with the weight of its criterion.
    pub(crate) fn points(&self, item: &Question) -> f64 {
        item.points.unwrap_or(1.0) * self.criterion(item).map_or(1.0, Criterion::weight)
    }

    fn check(&self, place: &str) -> Result<(), String> {
        check_text(&format!("{place}.title"), &self.title, 1..=TITLE_BYTES_MAX)?;
        check_text(
            &format!("{place}.instructions"),
            &self.instructions,
            0..=INSTRUCTIONS_BYTES_MAX,
        )?;
        self.rubric.check(&format!("{place}.rubric"))?;
        if !(1..=ITEMS_MAX).contains(&self.items.len()) {
            return Err(format!(
                "{place}.items: 1 to {ITEMS_MAX} are needed, these are {}",
                self.items.len()
            ));
        }
        if !ASKED_RANGE.contains(&self.max_items.unwrap_or(ASKED)) {
            let (least, most) = ASKED_RANGE.into_inner();
            return Err(format!(
                "{place}.max_items: a number from {least} to {most} is needed"
            ));
        }
        let mut items = self.items.iter().enumerate();
        items.try_for_each(|(at, item)| self.check_item(&format!("{place}.items[{at}]"), item))
    }

    fn check_item(&self, place: &str, item: &Question) -> Result<(), String> {
        for (name, text) in [
            ("hint", &item.hint),
            ("explanation", &item.explanation),
            ("objective", &item.objective),
        ] {
            if text.is_some() {
                return Err(format!(
                    "{place}.{name}: questions of lessons have it, items of exams do not"
                ));
            }
        }
        item.check(place)?;
        if item.solution() == Solution::Anything {
            return Err(format!(
                "{place}.answer: the right rating is needed, there is none"
            ));
        }
        let points = item.points.unwrap_or(1.0);
        if !(points > 0.0 && points <= POINTS_MAX) {
            return Err(format!(
                "{place}.points: a number above 0 and up to {POINTS_MAX} is needed"
            ));
        }
        if self.criterion(item).is_none() {
            let criteria = self.rubric.criteria.iter();
            let known: Vec<&str> = criteria.map(|criterion| criterion.id.as_str()).collect();
            return Err(format!(
                "{place}.criterion: the id of one of the rubric's criteria is needed: {}",
                known.join(", ")
            ));
        }
        Ok(())
    }
}

impl Rubric {
    fn check(&self, place: &str) -> Result<(), String> {
        if !CRITERIA.contains(&self.criteria.len()) {
            let (least, most) = CRITERIA.into_inner();
            return Err(format!(
                "{place}.criteria: {least} to {most} are needed, these are {}",
                self.criteria.len()
            ));
        }
        let is_percentage = |percent| (0.0..=100.0).contains(&percent);
        if !self.pass_score.is_some_and(is_percentage) {
            return Err(format!(
                "{place}.pass_score: a percentage from 0 to 100 is needed"
            ));
        }
        for (at, criterion) in self.criteria.iter().enumerate() {
            let place = format!("{place}.criteria[{at}]");
            let Criterion {
                id, description, ..
            } = criterion;
            check_text(&format!("{place}.id"), id, 1..=CRITERION_ID_BYTES_MAX)?;
            let bytes = 1..=DESCRIPTION_BYTES_MAX;
            check_text(&format!("{place}.description"), description, bytes.clone())?;
            let mut before = self.criteria.iter().take(at);
            if before.any(|other| other.id == *id) {
                return Err(format!(
                    "{place}.id: `{id}` is the id of another criterion too"
                ));
            }
            if !(criterion.weight() > 0.0 && criterion.weight() <= WEIGHT_MAX) {
                return Err(format!(
                    "{place}.weight: a number above 0 and up to {WEIGHT_MAX} is needed"
                ));
            }
            if criterion.levels.len() > LEVELS_MAX {
                return Err(format!(
                    "{place}.levels: at most {LEVELS_MAX} are allowed, these are {}",
                    criterion.levels.len()
                ));
            }
            for (at, level) in criterion.levels.iter().enumerate() {
                check_text(&format!("{place}.levels[{at}]"), level, bytes.clone())?;
            }
        }
        Ok(())
    }
}

/// The SHA-256 of a document, in hexadecimal. Objects keep their keys in order, so that it does not
/// matter how they were written.
fn digest(document: &Value) -> String {
    Sha256::digest(document.to_string())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The first `count` of `all` items, or as many of them chosen and ordered at random. The random
/// numbers follow from what the step reads, so that the same step, run again, makes the same
/// choice. The order is kept from then on.
pub(crate) fn order(turn: Turn<'_>, all: usize, count: usize, shuffle: bool) -> Vec<usize> {
    let mut order: Vec<usize> = (0..all).collect();
    if shuffle {
        let seed = format!("{} {} {}", turn.agent_id(), turn.user(), turn.now_ms());
        let mut chance = Chance::seeded(&seed);
        for last in (1..all).rev() {
            order.swap(last, chance.below(last + 1));
        }
    }
    order.truncate(count);
    order
}

/// SplitMix64: short, and good enough for an order.
struct Chance(u64);

impl Chance {
    /// Seeded with the FNV-1a hash of some text.
    fn seeded(text: &str) -> Self {
        Self(text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        }))
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from((mixed ^ (mixed >> 31)) % bound).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_host_sdk::harness::Scene;

    #[test]
    fn the_same_turn_gets_the_same_order_and_another_user_or_time_another_one() {
        let of = |scene: Scene| order(scene.turn(), 30, 30, true);
        let order_of_ann = of(Scene::new().user("ann"));
        assert_eq!(order_of_ann, of(Scene::new().user("ann")));
        assert_ne!(order_of_ann, of(Scene::new().user("ben")));
        assert_ne!(order_of_ann, of(Scene::new().user("ann").now_ms(1)));
        let mut sorted = order_of_ann;
        sorted.sort_unstable();
        assert_eq!(sorted, (0..30).collect::<Vec<_>>());
    }

    #[test]
    fn without_chance_the_first_items_are_asked() {
        assert_eq!(order(Scene::new().turn(), 5, 3, false), [0, 1, 2]);
        assert_eq!(order(Scene::new().turn(), 5, 3, true).len(), 3);
    }
}
