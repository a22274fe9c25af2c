//! Symbols of source code, found line by line without a parser: what a line declares at its
//! beginning.
//!
//! It is a reading aid. A declaration that begins in the middle of a line, or that a macro makes,
//! is not found.

use serde::{Deserialize, Serialize};

/// Bytes of a name.
const NAME_BYTES_MAX: usize = 80;

/// A declared name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Symbol {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) line: u64,
}

/// A comment or text that is still open at the end of a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Open {
    #[default]
    Nothing,
    /// A comment of several lines.
    Comment,
    /// A text of several lines in Python, by its quotes.
    SingleQuotes,
    DoubleQuotes,
}

/// Reads a line. Returns the symbol that it declares, and changes what is open at its end.
pub(crate) fn symbol_of(language: Language, line: &str, open: &mut Open) -> Option<Symbol> {
    let started_in = *open;
    *open = after(language, line, *open);
    if started_in != Open::Nothing {
        return None;
    }
    let found = match language {
        Language::Rust => rust(line),
        Language::Python => python(line),
        Language::JavaScript | Language::TypeScript => script(line),
        Language::Go => go(line),
        Language::Java => java(line),
        Language::C | Language::Cpp => c(line),
        _ => None,
    };
    let (kind, name) = found?;
    Some(Symbol {
        kind: kind.to_owned(),
        name: name
            .get(..name.floor_char_boundary(NAME_BYTES_MAX))
            .unwrap_or_default()
            .to_owned(),
        line: 0,
    })
}

/// Returns what is open after a line. Quotes of one line do not count, except that they hide
/// comments.
fn after(language: Language, line: &str, open: Open) -> Open {
    let mut open = open;
    let mut rest = line;
    loop {
        let (at, next, width) = match (language, open) {
            (Language::Python, Open::SingleQuotes) => (rest.find("'''"), Open::Nothing, 3),
            (Language::Python, Open::DoubleQuotes | Open::Comment) => {
                (rest.find("\"\"\""), Open::Nothing, 3)
            }
            (Language::Python, Open::Nothing) => {
                let code = rest.split('#').next().unwrap_or_default();
                let double = code.find("\"\"\"");
                match code.find("'''") {
                    Some(single) if double.is_none_or(|double| single < double) => {
                        (Some(single), Open::SingleQuotes, 3)
                    }
                    _ => (double, Open::DoubleQuotes, 3),
                }
            }
            (_, Open::Nothing) => (comment_start(rest), Open::Comment, 2),
            (_, Open::Comment | Open::SingleQuotes | Open::DoubleQuotes) => {
                (rest.find("*/"), Open::Nothing, 2)
            }
        };
        let Some(after) = at.and_then(|at| rest.get(at + width..)) else {
            return open;
        };
        open = next;
        rest = after;
    }
}

/// The place of `/*` outside of quotes and of a comment to the line's end.
fn comment_start(line: &str) -> Option<usize> {
    let mut quote = None;
    let mut escaped = false;
    let mut last = ' ';
    for (at, letter) in line.char_indices() {
        if escaped {
            escaped = false;
        } else if letter == '\\' {
            escaped = true;
        } else if quote == Some(letter) {
            quote = None;
        } else if quote.is_none() {
            match letter {
                '"' | '`' => quote = Some(letter),
                '/' if last == '/' => return None,
                '*' if last == '/' => return Some(at - 1),
                _ => {}
            }
        }
        last = letter;
    }
    None
}

/// Takes the words that may stand before a declaration.
fn without<'a>(line: &'a str, modifiers: &[&str]) -> &'a str {
    let mut rest = line.trim_start();
    while let Some(after) = modifiers.iter().find_map(|word| after_word(rest, word)) {
        rest = after;
    }
    rest
}

/// The text after a word and the space behind it.
fn after_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let after = text.strip_prefix(word)?;
    after
        .starts_with(char::is_whitespace)
        .then(|| after.trim_start())
}

/// The name at the beginning of some text.
fn name(text: &str) -> Option<&str> {
    let end = text
        .find(|letter: char| !letter.is_alphanumeric() && letter != '_' && letter != '$')
        .unwrap_or(text.len());
    let name = text.get(..end)?;
    let first = name.chars().next()?;
    (!first.is_numeric()).then_some(name)
}

/// The declaration of one of these kinds, whose word is followed by a name.
fn declared<'a>(text: &'a str, kinds: &[(&str, &'static str)]) -> Option<(&'static str, &'a str)> {
    kinds.iter().find_map(|(word, kind)| {
        let name = name(after_word(text, word)?)?;
        Some((*kind, name))
    })
}

type Found<'a> = Option<(&'static str, &'a str)>;

fn rust(line: &str) -> Found<'_> {
    let mut rest = line.trim_start();
    if let Some(after) = rest.strip_prefix("pub(") {
        rest = after.split_once(')')?.1.trim_start();
    }
    let rest = without(
        rest,
        &["pub", "default", "async", "unsafe", "extern", "\"C\""],
    );
    // `const fn` is a function, `const NAME` is none.
    let rest = match after_word(rest, "const") {
        Some(after)
            if ["fn", "unsafe", "async"]
                .iter()
                .any(|word| after_word(after, word).is_some()) =>
        {
            without(after, &["async", "unsafe"])
        }
        _ => rest,
    };
    if let Some(after) = rest.strip_prefix("macro_rules!") {
        return Some(("macro", name(after.trim_start())?));
    }
    if rest.starts_with("impl ") || rest.starts_with("impl<") {
        let head = rest.trim_end().trim_end_matches('{').trim_end();
        return Some(("impl", head));
    }
    declared(
        rest,
        &[
            ("fn", "function"),
            ("struct", "struct"),
            ("enum", "enum"),
            ("union", "union"),
            ("trait", "trait"),
            ("mod", "module"),
            ("type", "type"),
            ("const", "constant"),
            ("static", "constant"),
        ],
    )
}

fn python(line: &str) -> Found<'_> {
    let is_inner = line.starts_with(char::is_whitespace);
    let rest = without(line, &["async"]);
    let (kind, name) = declared(rest, &[("def", "function"), ("class", "class")])?;
    Some((
        if is_inner && kind == "function" {
            "method"
        } else {
            kind
        },
        name,
    ))
}

fn script(line: &str) -> Found<'_> {
    let rest = without(line, &["export", "default", "declare", "abstract", "async"]);
    let function = rest
        .strip_prefix("function")
        .filter(|after| after.starts_with([' ', '*']));
    if let Some(after) = function {
        return Some(("function", name(after.trim_start_matches([' ', '*']))?));
    }
    let kinds = [
        ("class", "class"),
        ("interface", "interface"),
        ("enum", "enum"),
        ("type", "type"),
        ("namespace", "module"),
    ];
    if let Some(found) = declared(rest, &kinds) {
        return Some(found);
    }
    // Only at the outermost level: a function's variables are many.
    if line.starts_with(char::is_whitespace) {
        return None;
    }
    let (_, name) = declared(
        rest,
        &[
            ("const", "constant"),
            ("let", "variable"),
            ("var", "variable"),
        ],
    )?;
    let is_function =
        rest.contains("=>") || rest.contains("= function") || rest.contains("= async");
    Some((if is_function { "function" } else { "constant" }, name))
}

fn go(line: &str) -> Found<'_> {
    if let Some(after) = after_word(line, "func") {
        return match after.strip_prefix('(') {
            Some(receiver) => {
                let (_, after) = receiver.split_once(')')?;
                Some(("method", name(after.trim_start())?))
            }
            None => Some(("function", name(after)?)),
        };
    }
    declared(
        line,
        &[("type", "type"), ("const", "constant"), ("var", "variable")],
    )
}

const JAVA_MODIFIERS: [&str; 12] = [
    "public",
    "protected",
    "private",
    "static",
    "final",
    "abstract",
    "sealed",
    "non-sealed",
    "default",
    "synchronized",
    "native",
    "strictfp",
];

fn java(line: &str) -> Found<'_> {
    let trimmed = line.trim_start();
    let rest = without(trimmed, &JAVA_MODIFIERS);
    let kinds = [
        ("class", "class"),
        ("interface", "interface"),
        ("@interface", "interface"),
        ("enum", "enum"),
        ("record", "record"),
    ];
    if let Some(found) = declared(rest, &kinds) {
        return Some(found);
    }
    // A method has a modifier before its type here; one without it looks like a call.
    let has_modifier = rest.len() < trimmed.len();
    let (head, _) = rest.split_once('(')?;
    let is_declared = has_modifier && !head.contains(['=', '.', ';']);
    let name = head.trim_end().rsplit([' ', '>', ']']).next()?;
    (is_declared && self::name(name) == Some(name)).then_some(("method", name))
}

fn c(line: &str) -> Found<'_> {
    if let Some(after) = line.strip_prefix("#define ") {
        return Some(("macro", name(after.trim_start())?));
    }
    let rest = without(
        line,
        &[
            "static",
            "inline",
            "extern",
            "typedef",
            "constexpr",
            "virtual",
        ],
    );
    if rest.trim_end().ends_with('{') || !rest.contains(['(', ';']) {
        let kinds = [
            ("struct", "struct"),
            ("enum class", "enum"),
            ("enum", "enum"),
            ("union", "union"),
            ("class", "class"),
            ("namespace", "module"),
        ];
        if let Some(found) = declared(rest, &kinds).filter(|_| !rest.contains('(')) {
            return Some(found);
        }
    }
    // A function's head begins its line, and is no declaration and no call.
    let is_head = line.starts_with(|letter: char| letter.is_alphabetic() || letter == '_');
    let (head, tail) = rest.split_once('(')?;
    if !is_head || tail.trim_end().ends_with(';') || head.contains('=') {
        return None;
    }
    let (before, name) = head
        .trim_end()
        .rsplit_once(|letter: char| letter.is_whitespace() || letter == '*' || letter == '&')?;
    let is_keyword = ["return", "else", "case", "goto", "delete", "throw"].contains(&before.trim());
    let plain = name.rsplit("::").next()?;
    (!is_keyword && self::name(plain) == Some(plain)).then_some(("function", name))
}

/// A language whose symbols are found, or that is only counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Language {
    Rust,
    Python,
    JavaScript,
    TypeScript,
    Go,
    Java,
    C,
    Cpp,
    Shell,
    Sql,
    Html,
    Css,
    Markdown,
    Data,
}

impl Language {
    /// The language of a file; none if its name says nothing.
    pub(crate) fn from_path(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let (_, ending) = name.rsplit_once('.')?;
        Some(match ending.to_ascii_lowercase().as_str() {
            "rs" => Self::Rust,
            "py" | "pyi" => Self::Python,
            "js" | "mjs" | "cjs" | "jsx" => Self::JavaScript,
            "ts" | "mts" | "cts" | "tsx" => Self::TypeScript,
            "go" => Self::Go,
            "java" => Self::Java,
            "c" | "h" => Self::C,
            "cc" | "cpp" | "cxx" | "hh" | "hpp" | "hxx" => Self::Cpp,
            "sh" | "bash" => Self::Shell,
            "sql" => Self::Sql,
            "html" | "htm" => Self::Html,
            "css" => Self::Css,
            "md" => Self::Markdown,
            "json" | "toml" | "yaml" | "yml" | "xml" => Self::Data,
            _ => return None,
        })
    }

    /// Returns true if its files are read first, because they have symbols.
    pub(crate) fn has_symbols(self) -> bool {
        matches!(
            self,
            Self::Rust
                | Self::Python
                | Self::JavaScript
                | Self::TypeScript
                | Self::Go
                | Self::Java
                | Self::C
                | Self::Cpp
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Language;
    use super::{Open, symbol_of};

    fn found(language: Language, text: &str) -> String {
        let mut open = Open::Nothing;
        let found: Vec<String> = text
            .lines()
            .filter_map(|line| symbol_of(language, line, &mut open))
            .map(|symbol| format!("{} {}", symbol.kind, symbol.name))
            .collect();
        found.join(", ")
    }

    #[test]
    fn symbols_are_found_in_every_language() {
        for (language, text, expected) in [
            (
                Language::Rust,
                concat!(
                    "pub(crate) struct A;\n/* fn no() */\nimpl<T> B for A {\n",
                    "    pub const fn f() {}\n    // fn no()\n}\npub const N: u8 = 1;\n",
                    "macro_rules! m {\nasync fn g() {\n/*\nfn no() {}\n*/ \nmod x;",
                ),
                concat!(
                    "struct A, impl impl<T> B for A, function f, constant N, macro m, function g, ",
                    "module x",
                ),
            ),
            (
                Language::Python,
                concat!(
                    "class A(B):\n    \"\"\"Text.\n    def no(self):\n    \"\"\"\n",
                    "    async def f(self):\ndef g(): # '''\ndef h():\nx = 1",
                ),
                "class A, method f, function g, function h",
            ),
            (
                Language::TypeScript,
                concat!(
                    "export default class A {\n  f() {}\n}\nexport async function g() {}\n",
                    "const h = (x) => x;\nexport interface I {}\nconst N = 1; // class no\n",
                    "function* gen() {}\n  const inner = 1",
                ),
                "class A, function g, function h, interface I, constant N, function gen",
            ),
            (
                Language::Go,
                concat!(
                    "package a\nfunc (s *S) M() {}\nfunc F[T any](x T) {}\ntype S struct {\n",
                    "\treturn f()",
                ),
                "method M, function F, type S",
            ),
            (
                Language::Java,
                concat!(
                    "public final class A {\n    private static <T> List<T> f(int x) {\n",
                    "        foo.bar(1);\n    public int x = g(2);\nenum E { X }",
                ),
                "class A, method f, enum E",
            ),
            (
                Language::C,
                concat!(
                    "#define N 1\nstruct s {\n    int x;\n};\nstatic int *f(int x)\n{\n",
                    "    return g(x);\n}\nint g(int);\nvoid h(void) {",
                ),
                "macro N, struct s, function f, function h",
            ),
            (Language::Markdown, "# fn no()", ""),
        ] {
            assert_eq!(found(language, text), expected, "{language:?}");
        }
    }
}
