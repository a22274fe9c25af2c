//! The end of a lesson: what comes again before it, the summary, and what is remembered.

use crate::memory::{Finished, percent};
use crate::session::Session;
use agent_host_sdk::Effect;
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
        let mut weak: Vec<String> = self
            .met()
            .into_iter()
            .filter(|met| met.score < WEAK)
            .map(|met| met.objective)
            .collect();
        let mut again = Vec::new();
        for (at, mark) in self.course.marks.iter().enumerate() {
            let objective = self
                .question(at)
                .and_then(|(question, _)| question.objective);
            let place = weak
                .iter()
                .position(|weak| Some(weak) == objective.as_ref());
            if let (Some(place), true) = (
                place,
                mark.credit.is_some_and(|credit| credit < WEAK) && again.len() < AGAIN_MAX,
            ) {
                weak.remove(place);
                again.push(at);
            }
        }
        if !again.is_empty() {
            self.say("Let us come back to what was difficult.");
        }
        self.course.again = Some(again);
    }

    /// Ends the lesson: says how it went, and keeps what helps the next time.
    pub(crate) fn finish(&mut self) {
        let mut met = self.met();
        let credits: Vec<f64> = self
            .course
            .marks
            .iter()
            .filter_map(|mark| mark.credit)
            .collect();
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
        let told = |met: &Met| {
            (
                met.objective.clone(),
                json!({ "score": rounded(met.score), "questions": met.questions }),
            )
        };
        let by_objective: Map<String, Value> = met.iter().take(OBJECTIVES_MAX).map(told).collect();
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
        self.effects
            .push(Effect::PreferForUser(self.memory.after(&finished)));
        self.effects
            .push(Effect::Prefer(self.memory.after_for_all(&finished)));
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
            let objective = self
                .question(at)
                .and_then(|(question, _)| question.objective);
            let (Some(objective), Some(credit)) = (objective, mark.credit) else {
                continue;
            };
            match credits.iter_mut().find(|(known, _)| *known == objective) {
                Some((_, credits)) => credits.push(credit),
                None => credits.push((objective, vec![credit])),
            }
        }
        let met = |(objective, credits): (String, Vec<f64>)| {
            let questions = credits.len();
            Some(Met {
                objective,
                score: average(&credits)?,
                questions,
            })
        };
        credits.into_iter().filter_map(met).collect()
    }
}

fn average(values: &[f64]) -> Option<f64> {
    let count = u32::try_from(values.len())
        .ok()
        .filter(|count| *count > 0)?;
    Some(values.iter().sum::<f64>() / f64::from(count))
}

fn rounded(score: f64) -> f64 {
    (score * 100.0).round() / 100.0
}
