//! A reader of programs that knows their tokens and brackets, and no grammar.

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

/// Words before a name that is not read there.
const BEFORE_NO_READ: [&str; 6] = ["const", "let", "var", "function", "class", "typeof"];

/// The condition of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Condition {
    /// The byte at which it begins.
    pub(super) at: usize,
    pub(super) is_empty: bool,
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

/// Returns the conditions of loops in their order. None if anything is not as it should be.
pub(super) fn conditions(code: &str) -> Option<Vec<Condition>> {
    Some(Reader::new(code, "").whole()?.found)
}

/// Returns the bytes at which a name is read, in their order. None if anything is not as it should
/// be.
pub(super) fn reads_of(code: &str, name: &str) -> Option<Vec<usize>> {
    Some(Reader::new(code, name).whole()?.reads)
}

/// A reader of a program.
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
    /// A name that is looked for; empty for none.
    sought: &'a str,
    /// The bytes at which it is read.
    reads: Vec<usize>,
}

impl<'a> Reader<'a> {
    fn new(code: &'a str, sought: &'a str) -> Self {
        Self {
            code,
            at: 0,
            open: Vec::new(),
            found: Vec::new(),
            word: "",
            is_after_dot: false,
            ends_value: false,
            sought,
            reads: Vec::new(),
        }
    }

    /// Reads all of it. None if anything is not as it should be.
    fn whole(mut self) -> Option<Self> {
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
                b'.' if self.rest()?.starts_with("...") => self.read(3, false),
                _ => {
                    self.read(1, false);
                    self.is_after_dot = byte == b'.';
                }
            }
        }
        self.open.is_empty().then_some(self)
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
        if word == self.sought && !is_property && !self.is_no_read(bytes) {
            self.reads.push(self.at);
        }
        self.read(bytes, is_property || !BEFORE_VALUES.contains(&word));
        if !is_property {
            self.word = word;
        }
    }

    /// Returns whether the name of so many bytes that is next is defined here, asked for its type,
    /// or a key.
    fn is_no_read(&self, bytes: usize) -> bool {
        let before = self.code.get(..self.at).unwrap_or_default().trim_end();
        let after = self.code.get(self.at + bytes..).unwrap_or_default();
        let after = after.trim_start();
        BEFORE_NO_READ.contains(&self.word)
            || after.starts_with("=>")
            || (after.starts_with(':') && before.ends_with(['{', ',']))
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
