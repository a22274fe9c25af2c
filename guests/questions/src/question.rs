//! One question, as it is written down and as it is asked.

use crate::score::Solution;
use agent_host_sdk::ClientAction;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The highest limit on the characters of an answer in words or code. An agent keeps the answer
/// that is being judged.
const TEXT_CHARS_MAX: u64 = 16_000;
/// Characters of code unless the question says otherwise.
const CODE_CHARS: u64 = 8_000;
/// Bytes of each text about a question that a model gets.
const NOTES_BYTES_MAX: usize = 8 << 10;

/// The widget that asks a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Widget {
    /// One of some options.
    MultipleChoice,
    /// Any of some options.
    MultiSelect,
    /// Words.
    FreeText,
    /// Code.
    CodeEditor,
    /// A number on a scale.
    #[serde(alias = "rating")]
    RatingScale,
}

/// A question. Which fields it needs depends on its widget; [`check`](Self::check) says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// The widget that asks it: `multiple_choice` when there are options and `free_text` when there
    /// are none, unless said otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub widget: Option<Widget>,
    /// The text of the question.
    pub prompt: String,
    /// The options to choose from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The right answer: the index of an option from 0, a list of them, a rating, or a text or
    /// several that are equally right. Without one, words and code are judged by a model and a
    /// rating is right whatever it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
    /// The content of a good answer in words or code, for the model that judges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expects: Option<String>,
    /// Guidance for judging an answer in words or code.
    #[serde(skip_serializing_if = "Option::is_none", alias = "rubric")]
    pub guidance: Option<String>,
    /// The language of the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// The code to begin with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_code: Option<String>,
    /// The lowest rating, or the fewest options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<i64>,
    /// The highest rating, or the most options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<i64>,
    /// Words for ratings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Map<String, Value>>,
    /// The fewest characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_length: Option<u64>,
    /// The most characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u64>,
    /// The explanation after the answer. Lessons only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
    /// The hint after a wrong answer, before the second try. Lessons only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The learning objective that it checks. Lessons only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objective: Option<String>,
    /// The id of the rubric's criterion that it counts for. Exams only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub criterion: Option<String>,
    /// Its points. Exams only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub points: Option<f64>,
}

impl Question {
    /// Returns the widget that asks it.
    #[must_use]
    pub fn widget(&self) -> Widget {
        let usual = if self.options.is_empty() {
            Widget::FreeText
        } else {
            Widget::MultipleChoice
        };
        self.widget.unwrap_or(usual)
    }

    /// Checks that it can be asked and scored. `place` says where it is written.
    ///
    /// # Errors
    /// The first field at fault, and what it has to be.
    pub fn check(&self, place: &str) -> Result<(), String> {
        let chooses = matches!(self.widget(), Widget::MultipleChoice | Widget::MultiSelect);
        if !chooses && !self.options.is_empty() {
            return Err(format!(
                "{place}.options: only `multiple_choice` and `multi_select` have options"
            ));
        }
        if self.max_length.is_some_and(|chars| chars > TEXT_CHARS_MAX) {
            return Err(format!(
                "{place}.max_length: at most {TEXT_CHARS_MAX} characters are allowed"
            ));
        }
        for (name, text) in [
            ("expects", &self.expects),
            ("guidance", &self.guidance),
            ("explanation", &self.explanation),
            ("hint", &self.hint),
        ] {
            if text.as_ref().map_or(0, String::len) > NOTES_BYTES_MAX {
                return Err(format!(
                    "{place}.{name}: at most {NOTES_BYTES_MAX} bytes are allowed"
                ));
            }
        }
        self.action().check().map_err(|fault| {
            format!("{place}.{}", fault.strip_prefix("props.").unwrap_or(&fault))
        })?;
        Solution::of(self)
            .map(|_| ())
            .map_err(|fault| format!("{place}.answer: {fault}"))
    }

    /// The question as the user is asked it. It may be skipped.
    #[must_use]
    pub fn action(&self) -> ClientAction {
        let prompt = self.prompt.as_str();
        let action = match self.widget() {
            Widget::MultipleChoice => ClientAction::multiple_choice(prompt, &self.options),
            Widget::MultiSelect => {
                let choice = ClientAction::multi_select(prompt, &self.options);
                with(with(choice, "min", &self.min), "max", &self.max)
            }
            Widget::FreeText => {
                let text = ClientAction::free_text(prompt);
                let text = with(text, "min_length", &self.min_length);
                with(text, "max_length", &self.max_length)
            }
            Widget::CodeEditor => {
                let editor = ClientAction::code_editor(prompt);
                let editor = with(editor, "language", &self.language);
                let editor = editor.with_prop("max_length", self.max_length.unwrap_or(CODE_CHARS));
                with(editor, "initial_code", &self.initial_code)
            }
            Widget::RatingScale => {
                let least = self.min.unwrap_or(1);
                let most = self.max.unwrap_or(5);
                let scale = ClientAction::rating_scale(prompt, least, most);
                with(scale, "labels", &self.labels)
            }
        };
        action.skippable()
    }

    /// Returns the question as it goes on record.
    #[must_use]
    pub fn shown(&self) -> Value {
        let mut shown = json!({ "widget": self.widget(), "prompt": self.prompt });
        if let (Some(fields), false) = (shown.as_object_mut(), self.options.is_empty()) {
            fields.insert("options".to_owned(), json!(self.options));
        }
        shown
    }
}

fn with(action: ClientAction, name: &str, value: &Option<impl Serialize>) -> ClientAction {
    match value {
        Some(value) => action.with_prop(name, json!(value)),
        None => action,
    }
}
