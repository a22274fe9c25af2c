//! Reading a person's words or pressed button as the answer to a question.

use super::{ButtonValue, Pressed, bounds, code_of, is_skippable, offered, options};
use crate::access::tool::ClientAction;
use crate::values::id::OperationId;
use crate::work::approval;
use crate::work::connector::incoming::Said;
use serde_json::{Value, json};

/// The default limit of free text in characters, as in the question's schema.
const FREE_TEXT_CHARS: usize = 2_000;
/// Words that mean yes.
const YES: [&str; 5] = ["yes", "y", "ok", "okay", "sure"];
/// Words that mean no.
const NO: [&str; 3] = ["no", "n", "nope"];

/// The reason why something is no answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAnAnswer {
    /// It is an edit or a reaction, and no new text.
    #[error("An edit or a reaction is no answer.")]
    NoWords,
    /// The button is of another question.
    #[error("That button is of another question.")]
    Another,
    /// No chat can answer it.
    #[error("This cannot be answered in a chat. Answer it in a client where you are signed in.")]
    Elsewhere,
    /// It is for one person, and anybody in a group could answer it.
    #[error("This is not answered in a group. Answer it in a client where you are signed in.")]
    InGroup,
    /// It matches no choice.
    #[error("That is none of the choices.")]
    NoChoice,
    /// It is too short or too long.
    #[error("An answer of {min} to {max} characters is needed, this has {chars}.")]
    Length {
        /// Characters at least.
        min: usize,
        /// The most characters.
        max: usize,
        /// Its length.
        chars: usize,
    },
    /// This number of choices is not allowed.
    #[error("{min} to {max} of the choices are needed, these are {chosen}.")]
    Count {
        /// At least.
        min: usize,
        /// The most choices.
        max: usize,
        /// Their number.
        chosen: usize,
    },
}

/// Returns the answer to a question, in the form of its widget.
///
/// # Errors
/// It is none, or is none here.
pub fn read(
    question: OperationId,
    action: &ClientAction,
    said: &Said,
    in_group: bool,
) -> Result<Value, NotAnAnswer> {
    let widget = action.widget.as_str();
    if widget == approval::WIDGET && in_group {
        return Err(NotAnAnswer::InGroup);
    }
    match said {
        Said::Button { value } => {
            let button = ButtonValue::parse(value).ok_or(NotAnAnswer::NoChoice)?;
            if button.question != question {
                return Err(NotAnAnswer::Another);
            }
            pressed(action, button.pressed)
        }
        Said::Text { text } => read_words(question, action, text.trim()),
        Said::Aside { .. } => Err(NotAnAnswer::NoWords),
    }
}

/// Reads the value of a pressed button.
fn pressed(action: &ClientAction, pressed: Pressed) -> Result<Value, NotAnAnswer> {
    let Pressed::Number(number) = pressed else {
        return skipped(action);
    };
    let is_yes = match number {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    };
    match action.widget.as_str() {
        "multiple_choice" => option(action, number),
        "rating_scale" => rating(action, number),
        "confirmation" => is_yes
            .map(|yes| json!({ "confirmed": yes }))
            .ok_or(NotAnAnswer::NoChoice),
        "approval" => is_yes
            .map(|yes| json!({ "approved": yes }))
            .ok_or(NotAnAnswer::NoChoice),
        approval::WIDGET => is_yes
            .and_then(|yes| host_approval(action, yes))
            .ok_or(NotAnAnswer::NoChoice),
        _ => Err(NotAnAnswer::Elsewhere),
    }
}

/// Reads words.
fn read_words(
    question: OperationId,
    action: &ClientAction,
    text: &str,
) -> Result<Value, NotAnAnswer> {
    let is_skip = text.eq_ignore_ascii_case("skip") && is_skippable(action);
    match action.widget.as_str() {
        approval::WIDGET => approved_in_words(question, action, text),
        "multiple_choice" | "confirmation" | "approval" => chosen(action, text),
        "rating_scale" | "multi_select" | "free_text" if is_skip => skipped(action),
        "rating_scale" => number_of(text)
            .ok_or(NotAnAnswer::NoChoice)
            .and_then(|number| rating(action, number)),
        "multi_select" => selection(action, text),
        "free_text" => free_text(action, text),
        _ => Err(NotAnAnswer::Elsewhere),
    }
}

fn skipped(action: &ClientAction) -> Result<Value, NotAnAnswer> {
    if is_skippable(action) {
        Ok(json!({ "skipped": true }))
    } else {
        Err(NotAnAnswer::NoChoice)
    }
}

fn option(action: &ClientAction, index: i64) -> Result<Value, NotAnAnswer> {
    let options = action.props.get("options").and_then(Value::as_array);
    let at = usize::try_from(index).map_err(|_| NotAnAnswer::NoChoice)?;
    let option = options
        .and_then(|options| options.get(at))
        .ok_or(NotAnAnswer::NoChoice)?;
    Ok(json!({ "index": index, "selection": option }))
}

fn rating(action: &ClientAction, rating: i64) -> Result<Value, NotAnAnswer> {
    match bounds(action) {
        Some((min, max)) if (min..=max).contains(&rating) => Ok(json!({ "rating": rating })),
        _ => Err(NotAnAnswer::NoChoice),
    }
}

fn host_approval(action: &ClientAction, approve: bool) -> Option<Value> {
    let call = action.props.get("call")?.as_str()?;
    Some(json!({ "approve": approve, "call": call }))
}

/// An approval in words contains the question's code, so that it cannot count for another question.
fn approved_in_words(
    question: OperationId,
    action: &ClientAction,
    text: &str,
) -> Result<Value, NotAnAnswer> {
    let mut said = text.split_whitespace().map(str::to_ascii_lowercase);
    let verb = said.next();
    let code = said.next();
    let is_code = code.is_some_and(|code| code.eq_ignore_ascii_case(&code_of(question)));
    let approve = match verb.as_deref() {
        Some("approve") => true,
        Some("refuse") => false,
        _ => return Err(NotAnAnswer::NoChoice),
    };
    if !is_code || said.next().is_some() {
        return Err(NotAnAnswer::NoChoice);
    }
    host_approval(action, approve).ok_or(NotAnAnswer::NoChoice)
}

/// Reads a choice by its number, by its label, or as yes or no.
fn chosen(action: &ClientAction, text: &str) -> Result<Value, NotAnAnswer> {
    let offered = offered(action).ok_or(NotAnAnswer::NoChoice)?;
    let by_number = number_of(text)
        .and_then(|number| usize::try_from(number).ok()?.checked_sub(1))
        .and_then(|index| offered.get(index));
    let said = normal(text);
    let mut by_label = offered.iter().filter(|one| normal(&one.label) == said);
    // A label that two choices share identifies neither.
    let by_label = match (by_label.next(), by_label.next()) {
        (Some(one), None) => Some(one),
        (Some(_) | None, _) => None,
    };
    let yes_or_no = (action.widget != "multiple_choice")
        .then(|| yes_or_no(&said))
        .flatten();
    let choice = by_label
        .or(by_number)
        .map(|one| one.pressed)
        .or(yes_or_no)
        .ok_or(NotAnAnswer::NoChoice)?;
    pressed(action, choice)
}

fn yes_or_no(said: &str) -> Option<Pressed> {
    if YES.contains(&said) {
        Some(Pressed::Number(1))
    } else if NO.contains(&said) {
        Some(Pressed::Number(0))
    } else {
        None
    }
}

fn selection(action: &ClientAction, text: &str) -> Result<Value, NotAnAnswer> {
    let options = options(action).ok_or(NotAnAnswer::NoChoice)?;
    let mut indices: Vec<usize> = if normal(text) == "none" {
        Vec::new()
    } else {
        let numbers = text
            .split(|char: char| char.is_whitespace() || matches!(char, ',' | ';' | '+' | '&'))
            .filter(|part| !part.is_empty() && !part.eq_ignore_ascii_case("and"));
        numbers
            .map(|part| {
                let index = usize::try_from(number_of(part)?).ok()?.checked_sub(1)?;
                (index < options.len()).then_some(index)
            })
            .collect::<Option<_>>()
            .ok_or(NotAnAnswer::NoChoice)?
    };
    indices.sort_unstable();
    indices.dedup();
    let count = |name: &str, default: usize| {
        let given = action.props.get(name).and_then(Value::as_u64);
        given.map_or(default, |given| {
            usize::try_from(given).unwrap_or(usize::MAX)
        })
    };
    let min = count("min", 0);
    let max = count("max", options.len());
    if !(min..=max).contains(&indices.len()) {
        return Err(NotAnAnswer::Count {
            min,
            max,
            chosen: indices.len(),
        });
    }
    Ok(json!({ "indices": indices }))
}

fn free_text(action: &ClientAction, text: &str) -> Result<Value, NotAnAnswer> {
    let bound = |name: &str, default: usize| {
        let given = action.props.get(name).and_then(Value::as_u64);
        given.map_or(default, |given| {
            usize::try_from(given).unwrap_or(usize::MAX)
        })
    };
    let max = bound("max_length", FREE_TEXT_CHARS);
    let min = bound("min_length", 1).min(max);
    let chars = text.chars().count();
    if (min..=max).contains(&chars) {
        Ok(json!({ "text": text }))
    } else {
        Err(NotAnAnswer::Length { min, max, chars })
    }
}

/// Reads a number as people write one before an option: `2`, `2.`, `#2` or `2)`.
fn number_of(text: &str) -> Option<i64> {
    let text = text.strip_prefix('#').unwrap_or(text);
    text.trim_end_matches(['.', ')', ':']).parse().ok()
}

fn normal(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").to_lowercase()
}
