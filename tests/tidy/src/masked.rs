//! Rust source with its comments and literals blanked, so that a rule can look for code alone.

use std::ops::Range;

/// One file's text, divided. Offsets into `code` are offsets into the text.
#[derive(Debug, Clone)]
pub struct Masked {
    /// The text, with a space for each byte of a comment or a literal. A literal begins with a `"`
    /// still, so that it can be seen that there is one.
    pub code: String,
    /// The comments, in their order, as ranges of the text.
    pub comments: Vec<Range<usize>>,
}

/// One function of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its parameters, between the parentheses.
    pub parameters: &'a str,
    /// The number of its first line.
    pub line: usize,
    /// Its lines, from `fn` to the closing brace.
    pub lines: usize,
}

/// A chunk of source.
enum SourceChunk {
    Code,
    Comment,
    Literal,
}

impl Masked {
    /// Divides a text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut masked = Self {
            code: String::with_capacity(text.len()),
            comments: Vec::new(),
        };
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let (kind, length) = chunk(rest);
            let end = at + length.clamp(1, rest.len());
            let part = text.get(at..end).unwrap_or(rest);
            match kind {
                SourceChunk::Code => masked.code.push_str(part),
                SourceChunk::Comment => {
                    masked.comments.push(at..at + part.len());
                    masked.code.push_str(&blank(part));
                }
                SourceChunk::Literal => {
                    masked.code.push('"');
                    masked
                        .code
                        .push_str(blank(part).get(1..).unwrap_or_default());
                }
            }
            at += part.len();
        }
        masked
    }

    /// Returns the code with its inline test modules blanked.
    #[must_use]
    pub fn without_tests(&self) -> String {
        const MARK: &str = "#[cfg(test)]";
        let mut code = self.code.clone();
        let mut at = 0;
        while let Some(found) = code.get(at..).and_then(|rest| rest.find(MARK)) {
            at += found + MARK.len();
            let rest = code.get(at..).unwrap_or_default();
            let brace = rest.find('{');
            let is_inline = brace < rest.find(';') || !rest.contains(';');
            let Some(brace) = brace.filter(|_| is_inline) else {
                continue;
            };
            if rest.trim_start().starts_with("mod ") {
                let end = behind_bracket(&code, at + brace);
                let module = blank(code.get(at..end).unwrap_or_default());
                code.replace_range(at..end, &module);
            }
        }
        code
    }
}

/// Returns the kind and the length of the chunk with which a text begins.
fn chunk(rest: &str) -> (SourceChunk, usize) {
    if rest.starts_with("//") {
        return (SourceChunk::Comment, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (SourceChunk::Comment, block_comment(rest));
    }
    if let Some(behind) = rest.strip_prefix('"') {
        return (SourceChunk::Literal, 1 + quoted(behind));
    }
    if let Some(behind) = rest.strip_prefix('\'') {
        return match character(behind) {
            Some(length) => (SourceChunk::Literal, 1 + length),
            None => (SourceChunk::Code, 1),
        };
    }
    let word = rest.find(|c: char| !is_of_word(c)).unwrap_or(rest.len());
    if word == 0 {
        return (
            SourceChunk::Code,
            rest.chars().next().map_or(1, char::len_utf8),
        );
    }
    match raw(rest, word) {
        Some(length) => (SourceChunk::Literal, length),
        None => (SourceChunk::Code, word),
    }
}

/// Returns the length of a block comment, with those within it.
fn block_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(rest) = rest.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    at
}

/// Returns the length of a string behind its opening quote, the closing one included.
fn quoted(behind: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in behind.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    behind.len()
}

/// Returns the length of a character behind its opening quote; none for a lifetime.
fn character(behind: &str) -> Option<usize> {
    let first = behind.chars().next()?;
    if first == '\\' {
        let close = behind.get(2..)?.find('\'')?;
        return Some(2 + close + 1);
    }
    let length = first.len_utf8();
    let is_closed = first != '\'' && behind.get(length..)?.starts_with('\'');
    is_closed.then_some(length + 1)
}

/// Returns the length of a raw string whose prefix is the word with which the text begins.
fn raw(rest: &str, word: usize) -> Option<usize> {
    if !["r", "br", "cr"].contains(&rest.get(..word)?) {
        return None;
    }
    let behind = rest.get(word..)?;
    let hashes = behind.len() - behind.trim_start_matches('#').len();
    let inside = behind.get(hashes..)?.strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let length = inside
        .find(&close)
        .map_or(inside.len(), |at| at + close.len());
    Some(word + hashes + 1 + length)
}

fn blank(part: &str) -> String {
    part.bytes()
        .map(|byte| if byte == b'\n' { '\n' } else { ' ' })
        .collect()
}

/// Returns whether a character can stand in a name.
#[must_use]
pub fn is_of_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// Returns the number of the line at an offset.
#[must_use]
pub fn line_at(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

/// Returns the offsets of a word.
pub fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    code.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |at| {
            let before = code.get(..*at).unwrap_or_default();
            let behind = code.get(at + word.len()..).unwrap_or_default();
            !before.ends_with(is_of_word) && !behind.starts_with(is_of_word)
        })
}

/// Returns the offset behind the bracket that closes the one at an offset.
#[must_use]
pub fn behind_bracket(code: &str, at: usize) -> usize {
    let mut depth = 0_usize;
    for (number, byte) in code.bytes().enumerate().skip(at) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return number + 1;
                }
            }
            _ => {}
        }
    }
    code.len()
}

/// Returns the word with which a text begins, behind white space.
#[must_use]
pub fn first_word(text: &str) -> &str {
    let text = text.trim_start();
    let end = text.find(|c: char| !is_of_word(c)).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

/// Returns the parts of a list, divided at the commas that stand in no bracket.
#[must_use]
pub fn parts(list: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut depth = 0_i32;
    let mut start = 0;
    let mut before = ' ';
    for (at, c) in list.char_indices() {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            '>' if before != '-' && before != '=' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(list.get(start..at).unwrap_or_default());
                start = at + 1;
            }
            _ => {}
        }
        before = c;
    }
    parts.push(list.get(start..).unwrap_or_default());
    parts
        .into_iter()
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect()
}

/// Returns the functions of some code, in their order.
#[must_use]
pub fn functions(code: &str) -> Vec<Function<'_>> {
    words(code, "fn")
        .filter_map(|at| function(code, at))
        .collect()
}

/// Returns the function whose `fn` stands at an offset; none for the type of a function.
fn function(code: &str, at: usize) -> Option<Function<'_>> {
    let behind = code.get(at + "fn".len()..)?;
    let name = first_word(behind);
    if name.is_empty() {
        return None;
    }
    let mut position = code.len() - behind.trim_start().len() + name.len();
    let mut parameters = None;
    loop {
        match code.as_bytes().get(position)? {
            b'{' | b';' => break,
            b'(' | b'[' => {
                let end = behind_bracket(code, position);
                if parameters.is_none() && code.get(position..)?.starts_with('(') {
                    parameters = code.get(position + 1..end - 1);
                }
                position = end;
            }
            _ => position += 1,
        }
    }
    let end = if code.get(position..)?.starts_with('{') {
        behind_bracket(code, position)
    } else {
        position + 1
    };
    Some(Function {
        name,
        parameters: parameters?,
        line: line_at(code, at),
        lines: code.get(at..end)?.matches('\n').count() + 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_code_stays_where_it_is() {
        let text = "let a = \"x // y\"; // \"z\nlet b = 'c'; /* /* d */ e */ f::<'g>(r#\"h\"i\"#)";
        let masked = Masked::new(text);
        assert_eq!(masked.code.len(), text.len());
        for gone in ["x", "y", "z", "'c'", "d", " e ", "h\"i"] {
            assert!(!masked.code.contains(gone), "{gone}: {}", masked.code);
        }
        for left in ["let a =", "let b =", "f::<'g>("] {
            assert_eq!(masked.code.find(left), text.find(left), "{left}");
        }
        let comments: Vec<&str> = masked
            .comments
            .iter()
            .map(|range| &text[range.clone()])
            .collect();
        assert_eq!(comments, ["// \"z", "/* /* d */ e */"]);
    }

    #[test]
    fn an_inline_test_module_is_left_out_and_one_in_a_file_of_its_own_is_no_end() {
        let code = |text: &str| Masked::new(text).without_tests();
        assert!(!code("#[cfg(test)]\nmod tests {\n    fn a() {}\n}").contains("fn a"));
        assert!(code("#[cfg(test)]\nmod tests;\nfn a() {}").contains("fn a"));
        assert!(code("#[cfg(test)]\nmod tests {\n}\nfn a() {}").contains("fn a"));
    }

    #[test]
    fn a_function_is_counted_from_its_name_to_its_brace() {
        let code =
            "fn a(x: (u8, [u8; 2])) -> u8\nwhere\n{\n}\ntrait T { fn b(&self); }\ntype F = fn(u8);";
        let of = |name, parameters, line, lines| Function {
            name,
            parameters,
            line,
            lines,
        };
        assert_eq!(
            functions(code),
            [of("a", "x: (u8, [u8; 2])", 1, 4), of("b", "&self", 5, 1)]
        );
    }

    #[test]
    fn a_list_is_divided_at_its_own_commas_only() {
        assert_eq!(
            parts("a: (u8, u8), f: impl Fn(u8, u8) -> Vec<(u8, u8)>, "),
            ["a: (u8, u8)", "f: impl Fn(u8, u8) -> Vec<(u8, u8)>"]
        );
    }
}
