//! An attempt at an exam: what was asked, answered and judged so far, and its result.

use crate::session::{Session, key_of_item, score_or_null};
use agent_host_sdk::{Effect, Item, shortened};
use questions::{Question, rounded};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Bytes of an answer that are kept for the item's own record; the host has it whole.
const KEPT_BYTES_MAX: usize = 1_000;
/// Bytes of feedback, or of the reason why there is none.
const FEEDBACK_BYTES_MAX: usize = 600;

/// The attempt: the session's state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Attempt {
    pub(crate) began_ms: u64,
    /// The items that are asked, in order. Empty before the exam has begun.
    pub(crate) order: Vec<usize>,
    /// Number of items that were asked, the open one among them.
    pub(crate) asked: usize,
    /// The results of those that were asked.
    pub(crate) answers: Vec<Answered>,
    /// Whole answers that a model judges, by their place among the answers.
    pub(crate) judged: BTreeMap<usize, Value>,
    /// The summary, once the exam is over.
    pub(crate) over: Option<Value>,
}

/// The result of one item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Answered {
    /// The answer, or its beginning.
    pub(crate) response: Value,
    pub(crate) status: Status,
    /// The share of the points from 0 to 1; none when it cannot be scored.
    pub(crate) score: Option<f64>,
    /// The feedback of the model that judged it.
    pub(crate) feedback: Option<String>,
    /// Number of times that a model failed to judge it.
    pub(crate) failures: u32,
    /// True if it is on the session's record.
    #[serde(default)]
    pub(crate) recorded: bool,
}

/// The way in which an item ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    /// An answer came and is scored.
    Answered,
    /// The user passed on it.
    Skipped,
    /// Its time was up.
    TimedOut,
    /// It was withdrawn.
    Cancelled,
    /// An answer came and could not be scored.
    NotJudged,
    /// It could not be asked.
    NotAsked,
}

impl Status {
    /// Returns true if a person has to review the item.
    pub(crate) fn needs_review(self) -> bool {
        matches!(self, Self::NotJudged | Self::NotAsked)
    }
}

impl Answered {
    /// An item that has no answer: nothing of it is right, unless it was never asked.
    pub(crate) fn without_answer(status: Status) -> Self {
        let score = (!status.needs_review()).then_some(0.0);
        Self {
            status,
            ..Self::with_answer(&Value::Null, score)
        }
    }

    /// The same with what was said about it.
    pub(crate) fn explain(&mut self, feedback: &str) {
        self.feedback = Some(beginning(feedback, FEEDBACK_BYTES_MAX));
    }

    /// An item with an answer, scored already or not yet.
    pub(crate) fn with_answer(response: &Value, score: Option<f64>) -> Self {
        Self {
            response: kept(response),
            status: Status::Answered,
            score,
            feedback: None,
            failures: 0,
            recorded: false,
        }
    }
}

/// An answer as it is kept: itself, or if it is long the beginnings of its texts.
fn kept(response: &Value) -> Value {
    if response.to_string().len() <= KEPT_BYTES_MAX {
        return response.clone();
    }
    let fields = response.as_object().into_iter().flatten();
    let texts = fields.filter_map(|(name, value)| {
        let text = beginning(value.as_str()?, KEPT_BYTES_MAX / 2);
        Some((name.clone(), json!(text)))
    });
    Value::Object(texts.collect::<Map<String, Value>>())
}

/// The beginning of a text, of at most twice so many bytes as JSON, in which some characters take
/// six.
fn beginning(text: &str, bytes_max: usize) -> String {
    let beginning = shortened(text, bytes_max);
    if json!(beginning).to_string().len() > 2 * bytes_max {
        shortened(text, bytes_max / 6)
    } else {
        beginning
    }
}

/// The result of a part of the exam.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    score: f64,
    /// Points of what could be scored.
    max: f64,
    /// Points of what needs a review.
    open: f64,
}

impl Tally {
    fn add(&mut self, score: Option<f64>, points: f64) {
        match score {
            Some(score) => {
                self.score += score * points;
                self.max += points;
            }
            None => self.open += points,
        }
    }

    /// Returns the percentage of what could be scored; none when nothing could.
    fn percent(self) -> Option<f64> {
        (self.max > 0.0).then(|| rounded(self.score / self.max * 100.0))
    }

    /// Returns whether the exam is passed; none while a review can change that.
    fn passed(self, pass_percent: f64) -> Option<bool> {
        // Halves of a cent that binary fractions lose must not decide.
        let reaches = |score: f64| score + 1e-9 >= pass_percent / 100.0 * (self.max + self.open);
        match (reaches(self.score), reaches(self.score + self.open)) {
            (true, _) => Some(true),
            (false, false) => Some(false),
            (false, true) => None,
        }
    }
}

impl Session<'_> {
    /// Puts an item on record, once: it is scored, or will never be.
    pub(crate) fn put_on_record(&mut self, at: usize) {
        let Some(item) = self.item(at) else { return };
        let points = self.exam.points(&item);
        let criterion = self.criterion_id(&item);
        let answered = self.attempt.answers.get_mut(at);
        let Some(answered) = answered.filter(|answered| !answered.recorded) else {
            return;
        };
        answered.recorded = true;
        let item = record(at, &item, answered, &criterion, points);
        self.effects.push(Effect::RecordItem(item));
    }

    fn criterion_id(&self, item: &Question) -> String {
        let criterion = self.exam.criterion(item);
        criterion
            .map(|criterion| criterion.id.clone())
            .unwrap_or_default()
    }

    /// Ends the exam: says how it went, and keeps what helps the next time.
    pub(crate) fn finish(&mut self) {
        let answers = std::mem::take(&mut self.attempt.answers);
        let mut all = Tally::default();
        let mut by_criterion: Vec<(String, Tally)> = Vec::new();
        let mut items = Vec::new();
        for (at, answered) in answers.iter().enumerate() {
            let Some(item) = self.item(at) else { continue };
            let points = self.exam.points(&item);
            let criterion = self.criterion_id(&item);
            all.add(answered.score, points);
            match by_criterion.iter_mut().find(|(id, _)| *id == criterion) {
                Some((_, result)) => result.add(answered.score, points),
                None => {
                    let mut result = Tally::default();
                    result.add(answered.score, points);
                    by_criterion.push((criterion.clone(), result));
                }
            }
            items.push(summary_of(at, answered, &criterion, points));
        }
        let review: Vec<usize> = answers
            .iter()
            .zip(1..)
            .filter(|(answered, _)| answered.status.needs_review())
            .map(|(_, number)| number)
            .collect();
        self.attempt.answers = answers;
        let passed = all.passed(self.exam.pass_percent());
        self.tell(all, passed, &by_criterion, review.len());
        let title = self.exam.title.clone();
        let points_of = |(id, result): (String, Tally)| {
            let points =
                json!({ "score": rounded(result.score), "max_score": rounded(result.max) });
            (id, points)
        };
        let criteria: Map<String, Value> = by_criterion.into_iter().map(points_of).collect();
        self.attempt.over = Some(json!({
            "title": title,
            "digest": self.exam.digest,
            "score": rounded(all.score),
            "max_score": rounded(all.max),
            "percent": all.percent(),
            "passed": passed,
            "by_criterion": criteria,
            "items": items,
            "needs_review": review,
            "attempt": self.memory.attempts(),
            "duration_ms": self.turn.now_ms().saturating_sub(self.attempt.began_ms),
        }));
    }

    /// Says how it went, and remembers it.
    fn tell(
        &mut self,
        all: Tally,
        passed: Option<bool>,
        by_criterion: &[(String, Tally)],
        review: usize,
    ) {
        let verdict = match passed {
            Some(true) => "passed",
            Some(false) => "not passed",
            None => "not decided yet",
        };
        let percent = all.percent();
        let in_percent = percent.map(|percent| format!(" ({percent:.0} %)"));
        let mut words = format!(
            "{} of {} points{}: {verdict}.",
            rounded(all.score),
            rounded(all.max),
            in_percent.unwrap_or_default()
        );
        let title = self.exam.title.clone();
        self.effects.push(Effect::Remember(format!(
            "Exam \"{title}\" of the user {}: {words}",
            self.turn.user()
        )));
        let now_ms = self.turn.now_ms();
        let own = self.memory.after(percent, now_ms);
        let shared = self.memory.after_for_all(percent, passed, now_ms);
        self.effects.push(Effect::PreferForUser(own));
        self.effects.push(Effect::Prefer(shared));
        if by_criterion.len() > 1 {
            let line = |(id, result): &(String, Tally)| {
                let score = rounded(result.score);
                format!("\n- {id}: {score} of {}", rounded(result.max))
            };
            words.extend(by_criterion.iter().map(line));
        }
        if review > 0 {
            let answers = if review == 1 {
                "One item".to_owned()
            } else {
                format!("{review} items")
            };
            words.push_str(&format!(
                "\n\n{answers} could not be scored; a person has to look at that. It does not \
                 count against you."
            ));
        }
        self.say(format!("The exam \"{title}\" is over. You have {words}"));
    }
}

/// A line of the summary.
fn summary_of(at: usize, answered: &Answered, criterion: &str, points: f64) -> Value {
    let mut line = json!({
        "number": at + 1, "criterion": criterion, "score": score(answered, points),
        "max": rounded(points),
    });
    if let (Some(fields), false) = (line.as_object_mut(), answered.status == Status::Answered) {
        fields.insert("status".to_owned(), json!(answered.status));
    }
    line
}

fn score(answered: &Answered, points: f64) -> Value {
    score_or_null(answered.score.map(|score| score * points))
}

fn record(at: usize, item: &Question, answered: &Answered, criterion: &str, points: f64) -> Item {
    let mut prompt = item.shown();
    if let Some(fields) = prompt.as_object_mut() {
        fields.insert("number".to_owned(), json!(at + 1));
    }
    let mut evaluation = json!({
        "score": score(answered, points),
        "max": rounded(points),
        "criterion": criterion,
        "status": answered.status,
        "feedback": answered.feedback,
        "needs_review": answered.status.needs_review(),
    });
    if let (Some(fields), Some(answer)) = (evaluation.as_object_mut(), &item.answer) {
        fields.insert("expected".to_owned(), answer.clone());
        fields.insert("correct".to_owned(), json!(answered.score == Some(1.0)));
    }
    Item {
        prompt,
        response: answered.response.clone(),
        evaluation: Some(evaluation),
        asked: Some(key_of_item(at)),
    }
}
