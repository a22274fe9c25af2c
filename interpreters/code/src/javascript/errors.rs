//! Errors of a program, with the place in it that they are about.

use super::clock::ProgramClock;
use super::places::{Place, last_line, place_of_read};
use super::rendering::text_of;
use super::world::World;
use super::{CALLS_MAX, PROGRAM};
use crate::output::Thrown;
use boa_engine::{
    Context, EngineError, JsError, JsObject, JsString, JsValue, RuntimeLimitError, js_string,
};
use std::error::Error as _;

/// The message about a program that is left waiting when there is nothing more to run.
pub(super) const NEVER_RESOLVED: &str = "the program awaits a promise that nothing resolves";
/// Bytes of a message.
const MESSAGE_BYTES_MAX: usize = 8 << 10;
/// The engine's message about a program that ends too early.
const ABRUPT_END: &str = "abrupt end";
/// Words of the engine's errors about buffers for which there is no memory.
const NO_ROOM: [&str; 2] = [
    "while allocating data block",
    "exceeds the maximum buffer size",
];
/// Frames of a stack.
const FRAMES_MAX: usize = 10;
/// Bytes of the name of a function, or of an error.
const FRAME_BYTES_MAX: usize = 200;

/// A call of a function of the program.
#[derive(PartialEq)]
struct Frame<'a> {
    function: &'a str,
    place: Option<Place>,
}

impl Frame<'_> {
    fn text(&self) -> String {
        let function = cut(self.function, FRAME_BYTES_MAX);
        match self.place {
            Some(Place { line, column }) => format!("{function} ({PROGRAM}:{line}:{column})"),
            None => format!("{function} ({PROGRAM})"),
        }
    }
}

/// Reads an error.
pub(super) fn thrown(error: &JsError, world: &World, context: &mut Context) -> Thrown {
    if let Some(engine) = error.as_engine() {
        let mut thrown = unnamed(&engine.to_string());
        if is_of_depth(engine) {
            thrown.name = "RangeError".to_owned();
            thrown.message = "Maximum call stack size exceeded".to_owned();
        }
        return placed(thrown, &error.to_string(), world);
    }
    let trace = error.to_string();
    let Some(value) = error.as_opaque() else {
        let mut thrown = unnamed(&trace);
        if let Some(native) = error.as_native() {
            thrown.name = native.kind().to_string();
            thrown.message = cut(native.message(), MESSAGE_BYTES_MAX);
        }
        return placed(thrown, &trace, world);
    };
    let object = value.as_object();
    let mut field = |name: &str| text_field(object.as_ref()?, name, context);
    let name = field("name");
    let message = field("message");
    let stack = field("stack").unwrap_or_default();
    let mut thrown = match message {
        Some(message) => unnamed(&message),
        None => {
            let said = text_of(value, world, context).unwrap_or_default();
            unnamed(&format!("the program threw {said}"))
        }
    };
    if let Some(name) = name {
        thrown.name = cut(&name, FRAME_BYTES_MAX);
    }
    placed(thrown, &format!("{trace}\n{stack}"), world)
}

/// Returns whether the engine met a limit on calls within calls, also where it did not expect to.
fn is_of_depth(error: &EngineError) -> bool {
    match error {
        EngineError::RuntimeLimit(limit) => match limit {
            RuntimeLimitError::Recursion | RuntimeLimitError::StackSize => true,
            RuntimeLimitError::LoopIteration => false,
        },
        EngineError::Panic(panic) => panic
            .source()
            .and_then(|source| source.downcast_ref::<Box<JsError>>()?.as_engine())
            .is_some_and(is_of_depth),
    }
}

/// An error of which no more than its message is known.
pub(super) fn unnamed(message: &str) -> Thrown {
    Thrown {
        name: "Error".to_owned(),
        message: cut(message, MESSAGE_BYTES_MAX),
        line: None,
        column: None,
        stack: Vec::new(),
        hint: None,
    }
}

/// The error of a program whose time was up.
pub(super) fn timed_out(clock: &ProgramClock) -> Thrown {
    let allowance = clock.allowance();
    let whole_ms = allowance.whole.as_millis();
    let computing_ms = allowance.computing.as_millis();
    let is_bounded_twice = computing_ms < whole_ms;
    let had = if is_bounded_twice {
        format!("{computing_ms} ms to run, and {whole_ms} ms with its timers")
    } else {
        format!("{whole_ms} ms, timers included")
    };
    let run_ms = clock.run_ms();
    let ran = match clock.skipped_ms() {
        0 => format!("{run_ms} ms"),
        skipped_ms => format!("{run_ms} ms, and {skipped_ms} ms that its timers skipped"),
    };
    Thrown {
        name: "TimedOut".to_owned(),
        hint: is_bounded_twice.then(|| "A call with a `timeout` may have more.".to_owned()),
        ..unnamed(&format!(
            "the program was stopped after {ran}: it had {had}"
        ))
    }
}

/// Returns whether an error is that of a buffer for which there is no memory.
pub(super) fn is_for_want_of_memory(thrown: &Thrown) -> bool {
    thrown.name == "RangeError" && NO_ROOM.iter().any(|words| thrown.message.contains(words))
}

/// Adds place, stack and hint.
fn placed(mut thrown: Thrown, trace: &str, world: &World) -> Thrown {
    let mut frames = frames_of(trace, world);
    let place = match undefined_name(&thrown) {
        Some(name) if is_innermost_own(trace) => {
            let from = frames.first().and_then(|frame| frame.place);
            let place = place_of_read(&world.code, name, from);
            if let Some(frame) = frames.first_mut() {
                frame.place = place;
            }
            place
        }
        _ => frames
            .iter()
            .find_map(|frame| frame.place)
            .or_else(|| place_of_syntax(&thrown.message).map(|place| world.original(place)))
            .or_else(|| place_in(trace).and_then(|place| own_place(place, world))),
    };
    if let Some(place) = place {
        thrown.line = Some(place.line);
        thrown.column = Some(place.column);
    } else if thrown.message == ABRUPT_END {
        thrown.line = Some(last_line(&world.code));
        "the program ends in the middle of something".clone_into(&mut thrown.message);
    }
    thrown.stack = frames.iter().map(Frame::text).collect();
    thrown.hint = hint(&thrown);
    thrown
}

/// Returns the frames of the program, innermost first, each of them once. Left out is what was put
/// around the program: it is called beyond the last line.
fn frames_of<'a>(trace: &'a str, world: &World) -> Vec<Frame<'a>> {
    let mut frames = Vec::new();
    for frame in trace.lines().filter_map(frame_in) {
        let place = frame.place.and_then(|place| own_place(place, world));
        let is_around = frame.place.is_some() && place.is_none();
        let frame = Frame { place, ..frame };
        if frames.len() < FRAMES_MAX && !is_around && !frames.contains(&frame) {
            frames.push(frame);
        }
    }
    frames
}

/// Returns a place in the program as it was. None for one beyond its last line.
fn own_place(place: Place, world: &World) -> Option<Place> {
    let place = world.original(place);
    (place.line <= last_line(&world.code)).then_some(place)
}

/// Reads `at f (program.js:3:7)`, or `at f (program.js:?:?)`.
fn frame_in(line: &str) -> Option<Frame<'_>> {
    let frame = line.trim().strip_prefix("at ")?;
    let (function, _) = frame.rsplit_once(&format!(" ({PROGRAM}:"))?;
    Some(Frame {
        function,
        place: place_in(frame),
    })
}

/// Returns whether what was running is the program's own.
fn is_innermost_own(trace: &str) -> bool {
    let mut frames = trace.lines().filter(|line| line.trim().starts_with("at "));
    frames.next().and_then(frame_in).is_some()
}

/// Returns the name that an error says is not defined.
fn undefined_name(thrown: &Thrown) -> Option<&str> {
    if thrown.name != "ReferenceError" {
        return None;
    }
    thrown.message.strip_suffix(" is not defined")
}

/// Reads `program.js:3:7`.
fn place_in(text: &str) -> Option<Place> {
    let (_, after) = text.split_once(&format!("{PROGRAM}:"))?;
    let (line, rest) = number(after)?;
    let (column, _) = number(rest.strip_prefix(':')?)?;
    Some(Place { line, column })
}

/// Reads `… at line 3, col 7`.
fn place_of_syntax(message: &str) -> Option<Place> {
    let (_, after) = message.rsplit_once("line ")?;
    let (line, rest) = number(after)?;
    let (column, _) = number(
        rest.strip_prefix(", col")?
            .trim_start_matches("umn")
            .trim_start(),
    )?;
    Some(Place { line, column })
}

/// Takes a number from the beginning of some text.
fn number(text: &str) -> Option<(u32, &str)> {
    let end = text
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(text.len());
    let number = text.get(..end)?.parse().ok()?;
    Some((number, text.get(end..)?))
}

/// Returns what may help with an error that comes of what is not there, or that has another cause
/// than it seems.
fn hint(thrown: &Thrown) -> Option<String> {
    if thrown.message == NEVER_RESOLVED {
        // The engine drops the error of a limit that is met while it goes on after an `await`.
        return Some(format!(
            "So ends also one whose calls nest deeper than {CALLS_MAX} after an `await`."
        ));
    }
    let is_of_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '$');
    let names = |words: &[&str]| {
        let mut said = thrown.message.split(|letter: char| !is_of_name(letter));
        said.any(|word| words.contains(&word))
    };
    let hint = if names(&["fetch", "XMLHttpRequest", "WebSocket"]) {
        "A program has no network here."
    } else if names(&[
        "require", "import", "module", "process", "Deno", "Bun", "Buffer",
    ]) {
        "A program has no modules, files, network or environment here; it is plain ECMAScript."
    } else if names(&[
        "Intl",
        "Temporal",
        "toLocaleString",
        "toLocaleDateString",
        "toLocaleTimeString",
    ]) {
        "Intl and Temporal are not part of this interpreter."
    } else {
        return None;
    };
    matches!(
        thrown.name.as_str(),
        "ReferenceError" | "TypeError" | "SyntaxError"
    )
    .then(|| hint.to_owned())
}

fn text_field(object: &JsObject, name: &str, context: &mut Context) -> Option<String> {
    let value: JsValue = object.get(js_string!(name), context).ok()?;
    value
        .as_string()
        .as_ref()
        .map(JsString::to_std_string_lossy)
}

fn cut(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes_max);
    format!("{}…", text.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::{Place, place_in, place_of_syntax};

    #[test]
    fn places_are_read_from_frames_and_from_messages() {
        assert_eq!(
            place_in("at f (program.js:3:14)"),
            Some(Place {
                line: 3,
                column: 14
            })
        );
        assert_eq!(place_in("at f (native)"), None);
        for message in [
            "unexpected token ')', primary expression at line 2, col 5",
            "expected something at line 2, column 5",
        ] {
            assert_eq!(
                place_of_syntax(message),
                Some(Place { line: 2, column: 5 }),
                "{message}"
            );
        }
    }
}
