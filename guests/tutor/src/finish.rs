//! The end of a lesson: what comes again before it, the summary, and what is remembered.

use crate::memory::{Finished, percent};
use crate::session::Session;
use agent_host_sdk::Effect;
use questions::{number_of, rounded};
use serde_json::{Map, Value, json};

/// Below this score an objective is weak. What was right at the second try is not.
const WEAK: f64 = 0.5;
/// Questions that are asked again.
const AGAIN_MAX: usize = 5;
/// Objectives that a summary tells of.
const OBJECTIVES_MAX: usize = 16;

/// The score of one objective.
struct Met {
    objective: String,
    score: f64,
    questions: usize,
}

impl Session<'_> {
    /// Chooses one question for each weak objective that is asked again.
    pub(crate) fn choose_what_comes_again(&mut self) {
        let met = self.met().into_iter().filter(|met| met.score < WEAK);
        let mut weak: Vec<String> = met.map(|met| met.objective).collect();
        let mut again = Vec::new();
        for (at, mark) in self.course.marks.iter().enumerate() {
            let objective = self.objective(at);
            let place = weak
                .iter()
                .position(|weak| Some(weak) == objective.as_ref());
            let is_weak = mark.credit.is_some_and(|credit| credit < WEAK);
            if let (Some(place), true) = (place, is_weak && again.len() < AGAIN_MAX) {
                weak.remove(place);
                again.push(at);
            }
        }
        if !again.is_empty() {
            self.say("Let us come back to what was difficult.");
        }
        self.course.again = Some(again);
    }

    fn objective(&self, at: usize) -> Option<String> {
        let (question, _) = self.question(at)?;
        question.objective
    }

    /// Ends the lesson: says how it went, and keeps what helps the next time.
    pub(crate) fn finish(&mut self) {
        let mut met = self.met();
        let marks = self.course.marks.iter();
        let credits: Vec<f64> = marks.filter_map(|mark| mark.credit).collect();
        let total = credits.len();
        let correct = self.course.correct;
        let score = average(&credits).map(rounded);
        let weak: Vec<String> = met
            .iter()
            .filter(|met| met.score < WEAK)
            .map(|met| met.objective.clone())
            .take(OBJECTIVES_MAX)
            .collect();
        let practised: Vec<String> = met.iter().map(|met| met.objective.clone()).collect();
        met.sort_by(|one, other| one.score.total_cmp(&other.score));
        let reported = |met: &Met| {
            let score = json!({ "score": rounded(met.score), "questions": met.questions });
            (met.objective.clone(), score)
        };
        let by_objective: Map<String, Value> =
            met.iter().take(OBJECTIVES_MAX).map(reported).collect();
        let title = self.lesson.title.clone();
        let now_ms = self.turn.now_ms();
        let result = match score {
            Some(score) => format!("{correct} of {total} right, {}", percent(score)),
            None => "nothing was scored".to_owned(),
        };
        let difficult = if weak.is_empty() {
            String::new()
        } else {
            format!(" Still difficult: {}.", weak.join(", "))
        };
        self.say(format!(
            "That was the lesson \"{title}\": {result}.{difficult}"
        ));
        self.effects.push(Effect::Remember(format!(
            "Lesson \"{title}\" of the user {}: {result}.{difficult}",
            self.turn.user()
        )));
        let finished = Finished {
            title: &title,
            score,
            practised: &practised,
            weak: &weak,
            now_ms,
        };
        let own = self.memory.after(&finished);
        let shared = self.memory.after_for_all(&finished);
        self.effects.push(Effect::PreferForUser(own));
        self.effects.push(Effect::Prefer(shared));
        self.course.over = Some(json!({
            "title": title,
            "score": score,
            "total": total,
            "correct": correct,
            "by_objective": by_objective,
            "weak_objectives": weak,
            "duration_ms": now_ms.saturating_sub(self.course.began_ms),
        }));
    }

    /// Returns the score of each objective, in the order in which they came up.
    fn met(&self) -> Vec<Met> {
        let mut credits: Vec<(String, Vec<f64>)> = Vec::new();
        for (at, mark) in self.course.marks.iter().enumerate() {
            let (Some(objective), Some(credit)) = (self.objective(at), mark.credit) else {
                continue;
            };
            match credits.iter_mut().find(|(known, _)| *known == objective) {
                Some((_, credits)) => credits.push(credit),
                None => credits.push((objective, vec![credit])),
            }
        }
        let met = |(objective, credits): (String, Vec<f64>)| {
            Some(Met {
                objective,
                score: average(&credits)?,
                questions: credits.len(),
            })
        };
        credits.into_iter().filter_map(met).collect()
    }
}

fn average(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    (!values.is_empty()).then(|| sum / number_of(values.len()))
}
