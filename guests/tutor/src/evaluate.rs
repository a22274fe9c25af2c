//! The evaluation of an answer: a verdict for the student, an item on the record, and a second try
//! after a wrong one; and of a lesson that is over.

use crate::course::{Judged, Mark};
use crate::memory::{Finished, percent};
use crate::session::Session;
use agent_host_sdk::{Answer, Effect, Item};
use questions::{Judgement, Question, Solution, number_of, rounded};
use serde_json::{Map, Value, json};

/// The lowest score at which words and code are right.
const RIGHT: f64 = 0.7;
/// The credit of a right answer at the second try.
const SECOND_TRY: f64 = 0.5;

/// An answer, evaluated.
struct Evaluated<'q> {
    question: &'q Question,
    response: Value,
    /// The operation that asked.
    asked: String,
    /// The score from 0 to 1; none when nothing is scored.
    score: Option<f64>,
    is_right: bool,
    feedback: String,
    /// The status of the question when it was not answered.
    status: Option<&'static str>,
}

impl Session<'_> {
    /// Evaluates an answer by comparison, or that there is none.
    pub(crate) fn evaluate(&mut self, asked: &str, answer: Answer) {
        let Some((question, _)) = self.current() else {
            return;
        };
        let (status, words) = match answer {
            Answer::Given(response) => {
                let score = question.score(&response);
                let answered = Evaluated {
                    question: &question,
                    response,
                    asked: asked.to_owned(),
                    score,
                    is_right: score.is_none_or(|score| score >= 1.0),
                    feedback: verdict(&question, score),
                    status: None,
                };
                return self.go_on_from(&answered, question.hint.is_some());
            }
            Answer::Skipped => ("skipped", "We leave this one out.".to_owned()),
            Answer::TimedOut => ("timed_out", "The time for this question is up.".to_owned()),
            Answer::Cancelled => ("cancelled", "The question was withdrawn.".to_owned()),
            Answer::Failed(reason) => (
                "not_asked",
                format!("I could not ask this question ({reason})."),
            ),
        };
        let counts = status != "not_asked" && question.solution() != Solution::Anything;
        let unanswered = Evaluated {
            question: &question,
            response: Value::Null,
            asked: asked.to_owned(),
            score: counts.then_some(0.0),
            is_right: false,
            feedback: format!("{words}{}", solution(&question)),
            status: Some(status),
        };
        self.go_on_from(&unanswered, false);
    }

    /// Evaluates an answer that a model has judged. What the model says is a hint too.
    pub(crate) fn evaluate_judged(&mut self, judged: Judged, judgement: &Judgement) {
        let Some((question, _)) = self.current() else {
            return;
        };
        let is_right = judgement.score >= RIGHT;
        let verdict = if is_right {
            "Good."
        } else {
            "Not quite there."
        };
        let feedback = format!("{verdict} {}", judgement.feedback);
        let evaluated = Evaluated {
            question: &question,
            response: judged.response,
            asked: judged.asked,
            score: Some(judgement.score),
            is_right,
            feedback: feedback.trim_end().to_owned(),
            status: None,
        };
        self.go_on_from(&evaluated, true);
    }

    /// Goes on without a judgement: the answer stays on record and does not count.
    pub(crate) fn leave_unjudged(&mut self, judged: Judged, reason: &str) {
        let Some((question, _)) = self.current() else {
            return;
        };
        let feedback = format!(
            "I cannot judge your answer just now ({reason}). It does not count.{}",
            solution(&question)
        );
        let evaluated = Evaluated {
            question: &question,
            response: judged.response,
            asked: judged.asked,
            score: None,
            is_right: false,
            feedback,
            status: Some("not_judged"),
        };
        self.go_on_from(&evaluated, false);
    }

    /// Puts an answer on record, then asks the same question once more or goes on to the next.
    fn go_on_from(&mut self, evaluated: &Evaluated<'_>, can_help: bool) {
        self.course.tries += 1;
        let Evaluated {
            question,
            score,
            is_right,
            status,
            ..
        } = *evaluated;
        let repeats = self.course.repeats(self.questions());
        let again = can_help && !is_right && status.is_none() && self.course.tries == 1 && !repeats;
        let mut words = evaluated.feedback.clone();
        if again {
            // Not the solution, which the verdict of a closed question gives.
            if !question.is_judged() {
                words = "Not quite.".to_owned();
            }
            words.extend(question.hint.iter().map(|hint| format!(" A hint: {hint}")));
            words.push_str(" Try once more.");
        } else if let Some(explanation) = &question.explanation {
            words = format!("{words} {explanation}");
        }
        self.effects.push(Effect::RecordItem(self.item(evaluated)));
        self.say(words);
        if again {
            return;
        }
        let is_second = self.course.tries > 1 || repeats;
        let share = if is_second { SECOND_TRY } else { 1.0 };
        self.mark(Mark {
            credit: score.map(|score| score * share),
            correct: is_right && score.is_some(),
        });
        self.course.tries = 0;
        self.course.next += 1;
    }

    /// Notes the result of the question; of one that is asked again, the better.
    fn mark(&mut self, mark: Mark) {
        let Some(at) = self.course.current(self.questions()) else {
            return;
        };
        match self.course.marks.get_mut(at) {
            Some(old) => {
                if mark.credit > old.credit {
                    old.credit = mark.credit;
                }
                old.correct |= mark.correct;
            }
            None => self.course.marks.push(mark),
        }
        self.course.correct = self.course.marks.iter().filter(|mark| mark.correct).count();
    }

    fn item(&self, evaluated: &Evaluated<'_>) -> Item {
        let Evaluated {
            question,
            response,
            asked,
            score,
            is_right,
            feedback,
            status,
        } = evaluated;
        let mut evaluation = Map::new();
        let mut tell = |name: &str, value: Value| evaluation.insert(name.to_owned(), value);
        tell("score", json!(score));
        tell("feedback", json!(feedback));
        tell("attempt", json!(self.course.tries));
        if score.is_some() {
            tell("correct", json!(is_right));
        }
        if let Some(answer) = &question.answer {
            tell("expected", answer.clone());
        }
        for (name, text) in [
            ("explanation", &question.explanation),
            ("objective", &question.objective),
        ] {
            if let Some(text) = text {
                tell(name, json!(text));
            }
        }
        if let Some(status) = status {
            tell("status", json!(status));
        }
        Item {
            prompt: question.shown(),
            response: response.clone(),
            evaluation: Some(Value::Object(evaluation)),
            asked: Some(asked.clone()),
        }
    }
}

fn verdict(question: &Question, score: Option<f64>) -> String {
    match score {
        None => "Thank you.".to_owned(),
        Some(whole) if whole >= 1.0 => "Correct.".to_owned(),
        Some(part) => {
            let words = if part > 0.0 {
                "Right in part"
            } else {
                "Not quite"
            };
            format!("{words}: it is \"{}\".", question.solution_in_words())
        }
    }
}

/// Returns a sentence with the right answer; empty where that is not known.
fn solution(question: &Question) -> String {
    match question.solution_in_words() {
        unknown if unknown.is_empty() => String::new(),
        known if question.is_judged() => format!(" A good answer: {known}"),
        known => format!(" It is \"{known}\"."),
    }
}

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
