//! Questions in a chat: presenting an agent's question to people, and reading their words or
//! pressed buttons as an answer.

mod read;

use crate::access::tool::ClientAction;
use crate::values::digest::Digest;
use crate::values::id::OperationId;
use crate::values::shown::is_hidden;
use crate::work::approval;
use crate::work::connector::outgoing::{Choice, Outbound};
use crate::work::connector::sender::sign;
use crate::work::connector::split::units;
use crate::work::connector::{APPROVAL_BYTES_MAX, BUTTON_LABEL_UNITS_MAX, CHOICES_MAX};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
pub use read::{NotAnAnswer, read};
use serde_json::{Map, Value};
use std::fmt::Write as _;

// The value of a question's button: the question and the choice, in few bytes.

/// The first character of a button's value, by which versions are distinguished.
const FORMAT: char = 'q';
/// The word for skipping a question.
const SKIP: &str = "skip";

/// The value of a button.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ButtonValue {
    /// The question.
    pub question: OperationId,
    /// The choice.
    pub pressed: Pressed,
}

/// The choice of a button.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pressed {
    /// The index of an option, a rating, or 1 for yes and 0 for no.
    Number(i64),
    /// The question is passed on.
    Skip,
}

impl ButtonValue {
    /// Returns the value as a text of at most 64 bytes
    /// ([`super::BUTTON_BYTES_MAX`]).
    #[must_use]
    pub fn to_text(self) -> String {
        let question = URL_SAFE_NO_PAD.encode(self.question.0.0);
        match self.pressed {
            Pressed::Number(number) => format!("{FORMAT}{question}.{number}"),
            Pressed::Skip => format!("{FORMAT}{question}.{SKIP}"),
        }
    }

    /// Reads a value; none if it is no button of this host.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (question, pressed) = text.strip_prefix(FORMAT)?.split_once('.')?;
        let bytes = URL_SAFE_NO_PAD.decode(question).ok()?;
        let pressed = match pressed {
            SKIP => Pressed::Skip,
            number => Pressed::Number(number.parse().ok()?),
        };
        Some(Self {
            question: OperationId(Digest(bytes.try_into().ok()?)),
            pressed,
        })
    }
}

// Words and buttons of a question in a chat.

/// The characters of the code for an approval in words.
const CODE_CHARS: usize = 4;

/// A choice before it has a button.
struct Offered {
    /// The text that people see.
    label: String,
    /// The choice of the button.
    pressed: Pressed,
}

/// Returns the presentation of a question in a chat. A question that cannot be answered there is
/// shown too, with the note that it has to be answered elsewhere.
#[must_use]
pub fn ask(question: OperationId, action: &ClientAction) -> Outbound {
    let asked = match action.widget.as_str() {
        "multiple_choice" | "confirmation" => choices(question, action),
        "approval" => details(action).map(|shown| {
            let prompt = format!("{}{shown}", prompt_of(action).unwrap_or_default());
            numbered(question, action, prompt)
        }),
        "rating_scale" => ratings(question, action),
        "multi_select" => selection(action),
        "free_text" => free_text(action),
        approval::WIDGET => host_approval(question, action),
        _ => None,
    };
    asked.unwrap_or_else(|| elsewhere(action))
}

/// Returns the message to a person who writes other text while the host's own question is open: an
/// approval accepts no other words. None for any other question, which accepts free text.
#[must_use]
pub fn open_approval(question: OperationId, action: &ClientAction) -> Option<String> {
    let code = code_of(question);
    (action.widget == approval::WIDGET).then(|| {
        format!(
            "A call still waits for your approval. Press a button of the question above, or reply \
             with `approve {code}` or `refuse {code}`."
        )
    })
}

/// Returns the text for a question that cannot be answered in a chat.
#[must_use]
pub fn elsewhere(action: &ClientAction) -> Outbound {
    let prompt = prompt_of(action).unwrap_or("There is something to fill in.");
    Outbound {
        text: format!(
            "{prompt}\n\nThis cannot be answered in a chat. Answer it in a client where you are \
             signed in."
        ),
        ..Outbound::default()
    }
}

fn prompt_of(action: &ClientAction) -> Option<&str> {
    action.props.get("prompt").and_then(Value::as_str)
}

fn is_skippable(action: &ClientAction) -> bool {
    action.props.get("skippable") == Some(&Value::Bool(true))
}

/// Returns the lowest and the highest rating.
fn bounds(action: &ClientAction) -> Option<(i64, i64)> {
    let number = |name: &str| action.props.get(name).and_then(Value::as_i64);
    Some((number("min")?, number("max")?))
}

/// Returns the options of a question as people see them.
fn options(action: &ClientAction) -> Option<Vec<String>> {
    let options = action.props.get("options")?.as_array()?;
    options
        .iter()
        .map(|option| option.as_str().map(one_line))
        .collect()
}

/// Returns the choices of a question, if any, in order: numbers in words count them from 1.
fn offered(action: &ClientAction) -> Option<Vec<Offered>> {
    let label = |name: &str, default: &str| {
        one_line(
            action
                .props
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or(default),
        )
    };
    let yes_or_no = |yes: String, no: String| {
        let pair = [(yes, 1), (no, 0)];
        pair.map(|(label, number)| Offered {
            label,
            pressed: Pressed::Number(number),
        })
    };
    let mut offered: Vec<Offered> = match action.widget.as_str() {
        "multiple_choice" => {
            let numbers = 0_i64..;
            options(action)?
                .into_iter()
                .zip(numbers)
                .map(|(label, number)| Offered {
                    label,
                    pressed: Pressed::Number(number),
                })
                .collect()
        }
        "confirmation" => {
            yes_or_no(label("confirm_label", "Yes"), label("cancel_label", "No")).into()
        }
        "approval" => yes_or_no("Approve".to_owned(), "Decline".to_owned()).into(),
        _ => return None,
    };
    if is_skippable(action) {
        offered.push(skip());
    }
    Some(offered)
}

fn skip() -> Offered {
    Offered {
        label: "Skip".to_owned(),
        pressed: Pressed::Skip,
    }
}

/// Returns the code for an approval in words, which is specific to this question.
fn code_of(question: OperationId) -> String {
    question
        .0
        .0
        .iter()
        .take(CODE_CHARS)
        .copied()
        .map(sign)
        .collect()
}

fn choices(question: OperationId, action: &ClientAction) -> Option<Outbound> {
    let prompt = prompt_of(action)?;
    offered(action)?;
    Some(numbered(question, action, prompt.to_owned()))
}

/// A question with numbered choices for services without buttons.
fn numbered(question: OperationId, action: &ClientAction, prompt: String) -> Outbound {
    let offered = offered(action).unwrap_or_default();
    let mut list = prompt.clone();
    list.push('\n');
    for (index, choice) in offered.iter().enumerate() {
        // Writing into a text does not fail.
        let _ = write!(list, "\n{}. {}", index + 1, choice.label);
    }
    let is_short = |choice: &Offered| units(&choice.label) <= BUTTON_LABEL_UNITS_MAX;
    let are_short = offered.iter().all(is_short);
    let choices = offered.iter().enumerate().map(|(index, choice)| Choice {
        label: if are_short {
            choice.label.clone()
        } else {
            (index + 1).to_string()
        },
        value: value_of(question, choice.pressed),
    });
    Outbound {
        choices: choices.take(CHOICES_MAX + 1).collect(),
        text: if are_short { prompt } else { list.clone() },
        without_buttons: Some(format!("{list}\n\nReply with a number.")),
    }
}

fn value_of(question: OperationId, pressed: Pressed) -> String {
    ButtonValue { question, pressed }.to_text()
}

fn ratings(question: OperationId, action: &ClientAction) -> Option<Outbound> {
    let (min, max) = bounds(action)?;
    let mut text = prompt_of(action)?.to_owned();
    let labels = action.props.get("labels").and_then(Value::as_object);
    let mut legend: Vec<(i64, &str)> = labels
        .into_iter()
        .flatten()
        .filter_map(|(rating, label)| Some((rating.parse().ok()?, label.as_str()?)))
        .collect();
    legend.sort_unstable();
    if !legend.is_empty() {
        text.push('\n');
    }
    for (rating, label) in legend {
        let _ = write!(text, "\n{rating}: {}", one_line(label));
    }
    let skip_words = skip_words(action);
    let without = format!("{text}\n\nReply with a number from {min} to {max}{skip_words}.");
    let mut offered: Vec<Offered> = (min..=max)
        .take(CHOICES_MAX + 1)
        .map(|rating| Offered {
            label: rating.to_string(),
            pressed: Pressed::Number(rating),
        })
        .collect();
    if is_skippable(action) {
        offered.push(skip());
    }
    let choices = offered.into_iter().map(|choice| Choice {
        value: value_of(question, choice.pressed),
        label: choice.label,
    });
    Some(Outbound {
        text,
        choices: choices.collect(),
        without_buttons: Some(without),
    })
}

fn selection(action: &ClientAction) -> Option<Outbound> {
    let mut text = prompt_of(action)?.to_owned();
    text.push('\n');
    for (index, option) in options(action)?.iter().enumerate() {
        let _ = write!(text, "\n{}. {option}", index + 1);
    }
    let none = match action.props.get("min").and_then(Value::as_i64) {
        None | Some(0) => ", or with `none`",
        Some(_) => "",
    };
    let skip_words = skip_words(action);
    let _ = write!(
        text,
        "\n\nReply with the numbers, such as `1, 2`{none}{skip_words}."
    );
    Some(Outbound {
        text,
        ..Outbound::default()
    })
}

fn free_text(action: &ClientAction) -> Option<Outbound> {
    let mut text = prompt_of(action)?.to_owned();
    if is_skippable(action) {
        text.push_str("\n\nReply in your words, or with `skip`.");
    }
    Some(Outbound {
        text,
        ..Outbound::default()
    })
}

fn skip_words(action: &ClientAction) -> &'static str {
    if is_skippable(action) {
        ", or with `skip`"
    } else {
        ""
    }
}

/// The host's own question: the whole call, or a question that cannot be answered there.
fn host_approval(question: OperationId, action: &ClientAction) -> Option<Outbound> {
    let call = block(action.props.get("arguments")?)?;
    let of = |name: &str| action.props.get(name).and_then(Value::as_str);
    let component = of("component")?;
    // `2026-11-29T10:15:00.000Z`, for people.
    let until = of("until")?.replace('T', " ");
    let (until, _) = until.rsplit_once(':')?;
    let text = format!(
        "{}{call}\n\nIt is done by `{component}`, if you approve it before {until} UTC.",
        prompt_of(action)?
    );
    let code = code_of(question);
    let choice = |label: &str, number| Choice {
        label: label.to_owned(),
        value: value_of(question, Pressed::Number(number)),
    };
    Some(Outbound {
        choices: vec![choice("Approve", 1), choice("Refuse", 0)],
        without_buttons: Some(format!(
            "{text}\n\nReply with `approve {code}` or `refuse {code}`."
        )),
        text,
    })
}

/// The complete details of an action that needs approval; none if a chat does not show all of them.
fn details(action: &ClientAction) -> Option<String> {
    prompt_of(action)?;
    match action.props.get("details") {
        None | Some(Value::Null) => Some(String::new()),
        Some(details) => block(details),
    }
}

/// A value as a code block with hidden characters made visible; none if it is too long.
fn block(value: &Value) -> Option<String> {
    if value.as_object().is_some_and(Map::is_empty) {
        return Some("\n\n`{}`".to_owned());
    }
    let json = serde_json::to_string_pretty(value).ok()?;
    if json.len() > APPROVAL_BYTES_MAX {
        return None;
    }
    let mut shown = String::with_capacity(json.len());
    for char in json.chars() {
        if char != '\n' && is_hidden(char) {
            for unit in char.encode_utf16(&mut [0; 2]) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(char);
        }
    }
    let fence = "`".repeat(longest_run(&shown).max(2) + 1);
    Some(format!("\n\n{fence}json\n{shown}\n{fence}"))
}

/// Returns the length of the longest run of backquotes.
fn longest_run(text: &str) -> usize {
    text.split(|char| char != '`')
        .map(str::len)
        .max()
        .unwrap_or(0)
}

/// A label in one line, with hidden characters made visible.
fn one_line(label: &str) -> String {
    let seen: String = label
        .chars()
        .map(|char| if is_hidden(char) { ' ' } else { char })
        .collect();
    seen.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
