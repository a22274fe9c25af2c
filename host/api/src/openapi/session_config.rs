//! The configurations with which a client opens sessions of the built-in types. The guests read
//! them and validate them: they name the field that is wrong.

#![expect(
    dead_code,
    reason = "describes what guests read; the host hands it over as it is"
)]

use crate::wire::CodedSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Returns the configurations, by session type.
pub(super) fn schemas() -> Vec<CodedSchema> {
    vec![
        CodedSchema::new::<LearningConfig>("learning", "LearningConfig"),
        CodedSchema::new::<ThoughtConfig>("thought", "ThoughtConfig"),
        CodedSchema::new::<ValidationConfig>("validation", "ValidationConfig"),
    ]
}

/// Configuration of a `learning` session. Without a lesson, the operator's lesson is taught, or the
/// built-in one.
#[derive(Debug, Deserialize, ToSchema)]
struct LearningConfig {
    /// The lesson that is taught.
    lesson: Option<Lesson>,
    /// The student's level: `beginner`, `intermediate`, `advanced`, or a description. Only the
    /// first 200 bytes are used.
    level: Option<String>,
    /// The tone of teaching. Only the first 200 bytes are used.
    tone: Option<String>,
    /// A system prompt in the place of the agent's; takes the role primary.
    system_prompt: Option<String>,
}

/// A lesson: a text, objectives or questions, or several of them.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Lesson {
    /// The title: 1 to 200 bytes.
    #[schema(min_length = 1, max_length = 200)]
    title: String,
    /// The text to teach: 100 KiB at most. Absent when there are only questions.
    text: Option<String>,
    /// The learning objectives: 16 at most, each of 1 to 160 bytes.
    #[schema(max_items = 16)]
    objectives: Option<Vec<String>>,
    /// The questions: 60 at most. A model writes them when there are none.
    #[schema(max_items = 60)]
    questions: Option<Vec<Question>>,
}

/// Configuration of a `validation` session. An agent that is set up with an exam takes none here.
#[derive(Debug, Deserialize, ToSchema)]
struct ValidationConfig {
    /// The exam; required unless the agent is set up with one.
    exam: Option<Exam>,
    /// A system prompt in the place of the agent's; takes the role primary.
    system_prompt: Option<String>,
}

/// An exam.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Exam {
    /// The title: 1 to 200 bytes.
    #[schema(min_length = 1, max_length = 200)]
    title: String,
    /// Text shown before the first item: 4 KiB at most.
    instructions: Option<String>,
    /// The criteria, and the score needed to pass.
    rubric: Rubric,
    /// The items that are asked, or from which some are chosen.
    #[schema(min_items = 1, max_items = 200)]
    items: Vec<Question>,
    /// True if items are asked in random order. Where there are more than are asked, they are
    /// chosen at random too.
    shuffle: Option<bool>,
    /// Number of items that are asked; 20 by default.
    #[schema(minimum = 1, maximum = 40)]
    max_items: Option<u32>,
}

/// The criteria of an exam, and the score needed to pass.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Rubric {
    /// The criteria.
    #[schema(min_items = 1, max_items = 20)]
    criteria: Vec<Criterion>,
    /// The percentage of all points from which on it is passed.
    #[schema(minimum = 0, maximum = 100)]
    pass_score: f64,
}

/// One criterion of a rubric.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Criterion {
    /// The id by which items name it: 1 to 40 bytes, unique in the rubric.
    #[schema(min_length = 1, max_length = 40)]
    id: String,
    /// The meaning of the criterion: 2 KiB at most.
    #[schema(min_length = 1)]
    description: String,
    /// The weight of a point of its items, above 0; 1 by default.
    #[schema(maximum = 100)]
    weight: Option<f64>,
    /// The levels, from worst to best.
    #[schema(max_items = 10)]
    levels: Option<Vec<String>>,
}

/// The way in which a question is asked.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum QuestionWidget {
    /// One of some options.
    MultipleChoice,
    /// Any of some options.
    MultiSelect,
    /// Free text.
    FreeText,
    /// Code.
    CodeEditor,
    /// A number on a scale.
    RatingScale,
    /// The same.
    Rating,
}

/// A question of a lesson, or an item of an exam. Which fields it needs depends on its widget.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Question {
    /// The way in which it is asked. By default `multiple_choice` with options, and `free_text`
    /// without.
    widget: Option<QuestionWidget>,
    /// The text of the question.
    prompt: String,
    /// The options to choose from.
    options: Option<Vec<String>>,
    /// The right answer: the index of an option from 0, a list of them, a rating, or one or more
    /// equally right texts. Without one, a model judges text and code, and any rating is right.
    answer: Option<Value>,
    /// A description of a good answer in text or code, for the model that judges: 8 KiB at most.
    expects: Option<String>,
    /// Guidance for judging an answer in text or code: 8 KiB at most.
    guidance: Option<String>,
    /// Another name of `guidance`.
    rubric: Option<String>,
    /// The language of the code.
    language: Option<String>,
    /// The initial code.
    initial_code: Option<String>,
    /// The lowest rating, or the fewest options.
    min: Option<i64>,
    /// The highest rating, or the most options.
    max: Option<i64>,
    /// Labels for ratings.
    #[schema(value_type = Option<Object>)]
    labels: Option<Map<String, Value>>,
    /// The fewest characters.
    min_length: Option<u64>,
    /// The most characters.
    #[schema(maximum = 16_000)]
    max_length: Option<u64>,
    /// Text shown once it is answered. Lessons only.
    explanation: Option<String>,
    /// Text shown after a wrong answer, before the second try. Lessons only.
    hint: Option<String>,
    /// The learning objective that it tests. Lessons only.
    objective: Option<String>,
    /// The id of the rubric's criterion that its points count for; required where there are
    /// several. Exams only.
    criterion: Option<String>,
    /// The number of points it counts, above 0; 1 by default. Exams only.
    #[schema(maximum = 1_000)]
    points: Option<f64>,
}

/// Configuration of a `thought` session.
#[derive(Debug, Deserialize, ToSchema)]
struct ThoughtConfig {
    /// The topic of the dialogue; without it, the user is asked. 1 to 500 bytes.
    #[schema(min_length = 1, max_length = 500)]
    topic: Option<String>,
    /// Exchanges after which it offers to end, again and again; 6 without.
    #[schema(minimum = 1, maximum = 100)]
    offer_every: Option<u64>,
    /// A system prompt in the place of the agent's; takes the role primary.
    system_prompt: Option<String>,
}
