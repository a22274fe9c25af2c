//! The syntax of variables: `{{`, a path from one of the few roots, `}}`.

use super::super::{SpecFault, TEMPLATE_VARIABLES_MAX};

/// The allowed continuation of a root.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Follows {
    /// Nothing: it is a value.
    Nothing,
    /// `.id`.
    Id,
    /// One name, if any.
    Name,
    /// Any path.
    Path,
}

const ROOTS: [(&str, Follows); 7] = [
    ("now", Follows::Nothing),
    ("path", Follows::Nothing),
    ("agent", Follows::Id),
    ("trigger", Follows::Id),
    ("headers", Follows::Name),
    ("query", Follows::Name),
    ("payload", Follows::Path),
];

/// The valid forms of variables, as a fix.
const FIX: &str = "write variables as `{{now}}`, `{{path}}`, `{{agent.id}}`, `{{trigger.id}}`, \
                   `{{headers.x}}`, `{{query.x}}` or `{{payload.a.b[0]}}`";
/// Characters of a variable that an error repeats.
const SHOWN_CHARS_MAX: usize = 64;
/// Digits of an index in a list.
const DIGITS_MAX: usize = 9;

/// Checks that a template's variables are valid, each from one of the roots.
pub(super) fn check(field: &str, template: &str) -> Result<(), SpecFault> {
    let mut rest = template;
    let mut count = 0;
    while let Some(at) = rest.find('{') {
        let found = rest.get(at..).unwrap_or_default();
        rest = match found.as_bytes().get(1) {
            Some(b'{') => {
                count += 1;
                after_variable(field, found)?
            }
            Some(sign @ (b'%' | b'#')) => {
                let message = format!("has `{{{}` in it, which is no variable", char::from(*sign));
                return Err(SpecFault::new(field, message, FIX));
            }
            _ => found.get(1..).unwrap_or_default(),
        };
    }
    if count > TEMPLATE_VARIABLES_MAX {
        let message = format!("has {count} variables");
        let fix = format!("write at most {TEMPLATE_VARIABLES_MAX}");
        return Err(SpecFault::new(field, message, fix));
    }
    Ok(())
}

/// The template after a variable at its beginning.
fn after_variable<'a>(field: &str, found: &'a str) -> Result<&'a str, SpecFault> {
    let mut scan = Scan(found.get(2..).unwrap_or_default());
    match scan.variable() {
        Ok(()) => Ok(scan.0),
        Err(why) => {
            let end = found.find("}}").map_or(found.len(), |end| end + 2);
            let shown = found.get(..end).unwrap_or(found);
            let shown: String = shown.chars().take(SHOWN_CHARS_MAX).collect();
            let message = format!("has `{}` in it: {why}", shown.escape_debug());
            Err(SpecFault::new(field, message, FIX))
        }
    }
}

/// The unread rest of a template.
struct Scan<'a>(&'a str);

impl<'a> Scan<'a> {
    fn variable(&mut self) -> Result<(), String> {
        self.space();
        let root = self.name().ok_or("it names no variable")?;
        let known = ROOTS.iter().find(|(name, _)| *name == root);
        let (_, follows) = known.ok_or_else(|| format!("there is no `{root}`"))?;
        let mut parts = 0;
        let mut is_id = false;
        while let Some(part) = self.part()? {
            parts += 1;
            is_id = part == Part::Name("id");
        }
        let fits = match follows {
            Follows::Nothing => parts == 0,
            Follows::Id => parts == 1 && is_id,
            Follows::Name => parts <= 1,
            Follows::Path => true,
        };
        if !fits {
            return Err(match follows {
                Follows::Nothing => format!("nothing can follow on `{root}`"),
                Follows::Id => format!("only `{root}.id` is there"),
                Follows::Name | Follows::Path => format!("one name can follow on `{root}`"),
            });
        }
        self.space();
        if self.take("}}") {
            return Ok(());
        }
        if self.0.starts_with('-') && !self.0.starts_with("-}}") {
            return Err(format!(
                "a name with `-` stands in brackets, such as `{root}[\"x-event\"]`, or with `_` \
                 for it"
            ));
        }
        Err("only a path can stand between `{{` and `}}`".to_owned())
    }

    /// The next part of a path: `.name`, `[0]` or `["name"]`.
    fn part(&mut self) -> Result<Option<Part<'a>>, String> {
        if self.take(".") {
            let name = self.name().ok_or("a name has to follow on `.`")?;
            return Ok(Some(Part::Name(name)));
        }
        if !self.take("[") {
            return Ok(None);
        }
        let part = if let Some(quote) = self.0.chars().next().filter(|sign| "\"'".contains(*sign)) {
            let quoted = self.0.get(1..).unwrap_or_default();
            let end = quoted.find(quote).ok_or("a quote is not closed")?;
            let name = quoted.get(..end).unwrap_or_default();
            if name.contains(['\\', '\n', '{', '}']) {
                return Err("a quoted name has no `\\`, no braces and no line's end".to_owned());
            }
            self.0 = quoted.get(end + 1..).unwrap_or_default();
            Part::Name(name)
        } else {
            let end = self.0.find(|sign: char| !sign.is_ascii_digit());
            let (digits, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
            if digits.is_empty() || digits.len() > DIGITS_MAX {
                return Err("a number or a quoted name has to follow on `[`".to_owned());
            }
            self.0 = rest;
            Part::Place
        };
        if self.take("]") {
            Ok(Some(part))
        } else {
            Err("`]` is missing".to_owned())
        }
    }

    /// A name: letters of ASCII, digits and `_`, without a digit at its beginning.
    fn name(&mut self) -> Option<&'a str> {
        let end = self
            .0
            .find(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_');
        let (name, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        let is_name = name.starts_with(|sign: char| sign.is_ascii_alphabetic() || sign == '_');
        is_name.then(|| {
            self.0 = rest;
            name
        })
    }

    fn take(&mut self, text: &str) -> bool {
        match self.0.strip_prefix(text) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    fn space(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t']);
    }
}

#[derive(PartialEq, Eq)]
enum Part<'a> {
    Name(&'a str),
    Place,
}
