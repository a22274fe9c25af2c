//! What sessions of the built-in types are opened with, as a client writes it. The guests read it and have the last word: they tell the
//! field that makes no sense.

#![expect(dead_code, reason = "describes what guests read; the host hands it over as it is")]

use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

/// Schemas with the names of their components.
type Named = Vec<(String, RefOr<Schema>)>;

/// By session type: the name of the component, its schema, and the schemas that it refers to.
pub(super) fn schemas() -> [(&'static str, &'static str, RefOr<Schema>, Named); 3] {
    fn of<T: ToSchema>(session_type: &'static str, name: &'static str) -> (&'static str, &'static str, RefOr<Schema>, Named) {
        let mut others = Vec::new();
        T::schemas(&mut others);
        (session_type, name, T::schema(), others)
    }
    [
        of::<LearningConfig>("learning", "LearningConfig"),
        of::<ThoughtConfig>("thought", "ThoughtConfig"),
        of::<ValidationConfig>("validation", "ValidationConfig"),
    ]
}

/// What a `learning` session is opened with. Without a lesson the operator's is taught, or the built-in one.
#[derive(Debug, Deserialize, ToSchema)]
struct LearningConfig {
    /// What is taught.
    lesson: Option<Lesson>,
    /// How much the student knows: `beginner`, `intermediate`, `advanced`, or in other words; 200 bytes count.
    level: Option<String>,
    /// In which tone to teach; 200 bytes count.
    tone: Option<String>,
    /// A system prompt in the place of the agent's; takes the role primary.
    system_prompt: Option<String>,
}

/// A lesson: a text, objectives or questions, or several of them.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Lesson {
    /// What it is called: 1 to 200 bytes.
    #[schema(min_length = 1, max_length = 200)]
    title: String,
    /// What is taught: 100 KiB at most. Nothing when there are only questions.
    text: Option<String>,
    /// What the student is to learn: 16 at most, each of 1 to 160 bytes.
    #[schema(max_items = 16)]
    objectives: Option<Vec<String>>,
    /// What is asked: 60 at most. A model writes the questions when there are none.
    #[schema(max_items = 60)]
    questions: Option<Vec<Question>>,
}

/// What a `validation` session is opened with. An agent that is set up with an exam takes none here.
#[derive(Debug, Deserialize, ToSchema)]
struct ValidationConfig {
    /// What is examined; needed unless the agent is set up with one.
    exam: Option<Exam>,
    /// A system prompt in the place of the agent's; takes the role primary.
    system_prompt: Option<String>,
}

/// An exam.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Exam {
    /// What it is called: 1 to 200 bytes.
    #[schema(min_length = 1, max_length = 200)]
    title: String,
    /// What is said before the first item: 4 KiB at most.
    instructions: Option<String>,
    /// What counts, and how much of it is enough.
    rubric: Rubric,
    /// What is asked, or chosen from.
    #[schema(min_items = 1, max_items = 200)]
    items: Vec<Question>,
    /// Whether items are asked, and chosen where there are more than are asked, in an order by chance.
    shuffle: Option<bool>,
    /// How many items are asked; 20 without.
    #[schema(minimum = 1, maximum = 40)]
    max_items: Option<u32>,
}

/// What counts, and how much of it is enough.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Rubric {
    /// What counts.
    #[schema(min_items = 1, max_items = 20)]
    criteria: Vec<Criterion>,
    /// From this percentage of all points on it is passed.
    #[schema(minimum = 0, maximum = 100)]
    pass_score: f64,
}

/// One thing that counts.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Criterion {
    /// What items name it by: 1 to 40 bytes, once in a rubric.
    #[schema(min_length = 1, max_length = 40)]
    id: String,
    /// What it means: 2 KiB at most.
    #[schema(min_length = 1)]
    description: String,
    /// What a point of its items counts, above 0; 1 without.
    #[schema(maximum = 100)]
    weight: Option<f64>,
    /// From worst to best.
    #[schema(max_items = 10)]
    levels: Option<Vec<String>>,
}

/// How a question is asked.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum QuestionWidget {
    /// One of some options.
    MultipleChoice,
    /// Any of some options.
    MultiSelect,
    /// Words.
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
    /// How it is asked; `multiple_choice` with options and `free_text` without, unless said otherwise.
    widget: Option<QuestionWidget>,
    /// What is asked.
    prompt: String,
    /// What there is to choose from.
    options: Option<Vec<String>>,
    /// The right answer: the index of an option from 0, a list of them, a rating, or a text or several that are equally right. Without one,
    /// words and code are judged by a model, and a rating is right whatever it is.
    answer: Option<Value>,
    /// What a good answer in words or code says, for the model that judges: 8 KiB at most.
    expects: Option<String>,
    /// How to judge an answer in words or code: 8 KiB at most.
    guidance: Option<String>,
    /// Another name of `guidance`.
    rubric: Option<String>,
    /// The language of the code.
    language: Option<String>,
    /// The code to begin with.
    initial_code: Option<String>,
    /// The lowest rating, or the fewest options.
    min: Option<i64>,
    /// The highest rating, or the most options.
    max: Option<i64>,
    /// Words for ratings.
    #[schema(value_type = Option<Object>)]
    labels: Option<Map<String, Value>>,
    /// The fewest characters.
    min_length: Option<u64>,
    /// The most characters.
    #[schema(maximum = 16_000)]
    max_length: Option<u64>,
    /// What is said once it is answered. Lessons only.
    explanation: Option<String>,
    /// What is said after a wrong answer, before the second try. Lessons only.
    hint: Option<String>,
    /// What it is to show that the student has learned. Lessons only.
    objective: Option<String>,
    /// The id of the rubric's criterion that it counts for; needed where there are several. Exams only.
    criterion: Option<String>,
    /// How much it counts, above 0; 1 without. Exams only.
    #[schema(maximum = 1_000)]
    points: Option<f64>,
}

/// What a `thought` session is opened with.
#[derive(Debug, Deserialize, ToSchema)]
struct ThoughtConfig {
    /// What the dialogue is about; the user is asked without. 1 to 500 bytes.
    #[schema(min_length = 1, max_length = 500)]
    topic: Option<String>,
    /// Exchanges after which it offers to end, again and again; 6 without.
    #[schema(minimum = 1, maximum = 100)]
    offer_every: Option<u64>,
    /// A system prompt in the place of the agent's; takes the role primary.
    system_prompt: Option<String>,
}
