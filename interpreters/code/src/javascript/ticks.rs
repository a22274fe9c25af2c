//! Looks at the clock within loops that the engine itself runs.
//!
//! What follows an `await` or stands in a `then` is called by the engine and has no slices. Each
//! `while`, `do` and `for` of a program with such parts therefore asks for the time in its
//! condition, and an error that the program cannot catch ends it when its time is up. Text is only
//! inserted within lines, so lines stay what they were, and columns are counted back.

use super::places::{Changed, Insert, Place};
use super::world::World;
use boa_engine::object::FunctionObjectBuilder;
use boa_engine::property::Attribute;
use boa_engine::{
    Context, EngineError, JsError, JsResult, JsValue, NativeFunction, RuntimeLimitError, js_string,
};

/// The function that looks at the clock. It returns true.
const TICK: &str = "__agent_host_tick";
/// Iterations from one look at the clock to the next.
const TICKS_PER_LOOK: u32 = 8;
/// Words of programs that have the engine call parts of them later.
const LATER: [&str; 5] = ["await", ".then", ".catch", ".finally", "queueMicrotask"];
/// Words after which a slash begins a regular expression. After any other it divides.
const BEFORE_VALUES: [&str; 14] = [
    "return",
    "typeof",
    "case",
    "in",
    "of",
    "delete",
    "void",
    "throw",
    "new",
    "else",
    "do",
    "await",
    "yield",
    "instanceof",
];

/// The condition of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Condition {
    /// The byte at which it begins.
    at: usize,
    is_empty: bool,
}

/// A bracket that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    /// The head of a `for` whose first part is not over.
    For,
    /// Any other parenthesis.
    Round,
    Square,
    Curly,
    /// A value within a template.
    Template,
}

/// Returns a program whose loops look at the clock. None for one that needs none of that, and for
/// one that cannot be read here.
pub(super) fn insert(code: &str) -> Option<Changed> {
    if !LATER.iter().any(|word| code.contains(word)) {
        return None;
    }
    let conditions = Reader::new(code).conditions()?;
    if conditions.is_empty() {
        return None;
    }
    let mut ticking = Changed {
        code: String::new(),
        inserts: Vec::new(),
    };
    let mut done = 0;
    let mut line = 1;
    let mut column = 1;
    for Condition { at, is_empty } in conditions {
        let piece = code.get(done..at)?;
        done = at;
        if let Some((above, last)) = piece.rsplit_once('\n') {
            line += above.matches('\n').count() + 1;
            column = last.chars().count() + 1;
        } else {
            column += piece.chars().count();
        }
        let comma = if is_empty { "" } else { "," };
        let call = format!("{TICK}(){comma}");
        ticking.inserts.push(Insert {
            before: Place {
                line: u32::try_from(line).ok()?,
                column: u32::try_from(column).ok()?,
            },
            width: u32::try_from(call.len()).ok()?,
        });
        ticking.code.push_str(piece);
        ticking.code.push_str(&call);
    }
    ticking.code.push_str(code.get(done..)?);
    Some(ticking)
}

/// Defines the function that looks at the clock.
pub(super) fn install(context: &mut Context) -> JsResult<()> {
    let function =
        FunctionObjectBuilder::new(context.realm(), NativeFunction::from_fn_ptr(tick)).build();
    let attribute = Attribute::READONLY | Attribute::NON_ENUMERABLE | Attribute::PERMANENT;
    context.register_global_property(js_string!(TICK), function, attribute)
}

fn tick(_: &JsValue, _: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let is_over = World::from_context(context).is_some_and(|world| {
        let ticks = world.ticks.get().wrapping_add(1);
        world.ticks.set(ticks);
        ticks.is_multiple_of(TICKS_PER_LOOK) && world.clock.is_over()
    });
    if is_over {
        return Err(RuntimeLimitError::LoopIteration.into());
    }
    Ok(JsValue::from(true))
}

/// Returns whether an error is that of a loop whose program's time was up. The engine's own limit
/// of iterations is never set.
pub(super) fn is_time_up(error: &JsError) -> bool {
    matches!(
        error.as_engine(),
        Some(EngineError::RuntimeLimit(RuntimeLimitError::LoopIteration))
    )
}

/// A reader of a program, as far as it takes to find the conditions of loops.
struct Reader<'a> {
    code: &'a str,
    at: usize,
    open: Vec<Open>,
    found: Vec<Condition>,
    /// The word before; empty after anything else, and for the name of a property.
    word: &'a str,
    is_after_dot: bool,
    /// True if what was read last ends a value.
    ends_value: bool,
}

impl<'a> Reader<'a> {
    fn new(code: &'a str) -> Self {
        Self {
            code,
            at: 0,
            open: Vec::new(),
            found: Vec::new(),
            word: "",
            is_after_dot: false,
            ends_value: false,
        }
    }

    /// Returns the conditions of loops in their order. None if anything is not as it should be.
    fn conditions(mut self) -> Option<Vec<Condition>> {
        loop {
            self.skip_blank()?;
            let Some(byte) = self.byte(0) else {
                break;
            };
            match byte {
                b'"' | b'\'' => self.string(byte)?,
                b'`' => self.template()?,
                b'}' if self.open.last() == Some(&Open::Template) => {
                    self.open.pop();
                    self.template()?;
                }
                b'/' if !self.ends_value => self.regex()?,
                b'(' | b'[' | b'{' => self.bracket(byte),
                b')' | b']' | b'}' => self.closing(byte)?,
                b';' => self.semicolon()?,
                b'+' | b'-' if self.byte(1) == Some(byte) => {
                    // What stands before or after it is the value.
                    let ends_value = self.ends_value;
                    self.read(2, ends_value);
                }
                _ if is_of_word(byte) => self.name_or_number(),
                _ => {
                    self.read(1, false);
                    self.is_after_dot = byte == b'.';
                }
            }
        }
        self.open.is_empty().then_some(self.found)
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.code.as_bytes().get(self.at + ahead).copied()
    }

    fn rest(&self) -> Option<&'a str> {
        self.code.get(self.at..)
    }

    /// Notes that some bytes were read, and whether they end a value.
    fn read(&mut self, bytes: usize, ends_value: bool) {
        self.at += bytes;
        self.ends_value = ends_value;
        self.word = "";
        self.is_after_dot = false;
    }

    /// Skips blanks and comments.
    fn skip_blank(&mut self) -> Option<()> {
        loop {
            let rest = self.rest()?;
            let blank = rest.len() - rest.trim_start().len();
            self.at += blank;
            let rest = self.rest()?;
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                self.at += rest.find("*/")? + 2;
            } else {
                return Some(());
            }
        }
    }

    fn name_or_number(&mut self) {
        let code = self.code.as_bytes().iter().skip(self.at);
        let bytes = code.take_while(|byte| is_of_word(**byte)).count();
        let word = self.code.get(self.at..self.at + bytes).unwrap_or_default();
        let is_property = self.is_after_dot;
        self.read(bytes, is_property || !BEFORE_VALUES.contains(&word));
        if !is_property {
            self.word = word;
        }
    }

    fn bracket(&mut self, byte: u8) {
        let open = match byte {
            b'(' if self.word == "for" => Open::For,
            b'(' => Open::Round,
            b'[' => Open::Square,
            _ => Open::Curly,
        };
        let is_while = byte == b'(' && self.word == "while";
        self.open.push(open);
        self.read(1, false);
        if is_while {
            self.found.push(Condition {
                at: self.at,
                is_empty: false,
            });
        }
    }

    fn closing(&mut self, byte: u8) -> Option<()> {
        let fits = match self.open.pop()? {
            Open::For | Open::Round => byte == b')',
            Open::Square => byte == b']',
            Open::Curly => byte == b'}',
            Open::Template => false,
        };
        self.read(1, byte != b'}');
        fits.then_some(())
    }

    fn semicolon(&mut self) -> Option<()> {
        self.read(1, false);
        if self.open.last() == Some(&Open::For) {
            self.open.pop();
            self.open.push(Open::Round);
            let at = self.at;
            self.skip_blank()?;
            let is_empty = self.byte(0) == Some(b';');
            self.found.push(Condition { at, is_empty });
        }
        Some(())
    }

    fn string(&mut self, quote: u8) -> Option<()> {
        let mut bytes = 1;
        loop {
            match self.byte(bytes)? {
                b'\\' => bytes += 2,
                b'\n' => return None,
                byte if byte == quote => break,
                _ => bytes += 1,
            }
        }
        self.read(bytes + 1, true);
        Some(())
    }

    /// Reads a template up to its end, or up to a value in it, from its first quote or from the end
    /// of a value on.
    fn template(&mut self) -> Option<()> {
        let mut bytes = 1;
        loop {
            match self.byte(bytes)? {
                b'\\' => bytes += 2,
                b'`' => {
                    self.read(bytes + 1, true);
                    return Some(());
                }
                b'$' if self.byte(bytes + 1) == Some(b'{') => {
                    self.open.push(Open::Template);
                    self.read(bytes + 2, false);
                    return Some(());
                }
                _ => bytes += 1,
            }
        }
    }

    fn regex(&mut self) -> Option<()> {
        let mut bytes = 1;
        let mut is_in_class = false;
        loop {
            match self.byte(bytes)? {
                b'\\' => bytes += 1,
                b'\n' => return None,
                b'[' => is_in_class = true,
                b']' => is_in_class = false,
                b'/' if !is_in_class => break,
                _ => {}
            }
            bytes += 1;
        }
        self.read(bytes + 1, true);
        Some(())
    }
}

/// Returns whether a byte is one of a word or a number. All letters beyond ASCII count as such.
fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'#') || !byte.is_ascii()
}

#[cfg(test)]
mod tests;
