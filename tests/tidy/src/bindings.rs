//! The rule on tuples: none stands for several bindings, and none hides how many parameters a
//! function has.

use crate::masked::{Masked, behind_bracket, functions, line_at, parts, words};
use crate::tree::TextFile;

/// Values that a function takes beside `self`, each element of a tuple counted.
pub const VALUES_MAX: usize = 4;

/// Returns the parallel bindings and the tuple parameters of one Rust file that are refused.
#[must_use]
pub fn check(file: &TextFile) -> Vec<String> {
    let code = Masked::new(&file.text).without_tests();
    let parallel = words(&code, "let")
        .filter(|at| is_parallel(&code, *at).unwrap_or(false))
        .map(|at| (line_at(&code, at), "one binding a line".to_owned()));
    let dodging = functions(&code).into_iter().filter_map(|function| {
        let values = values(function.parameters)?;
        let what = format!(
            "`{}` takes {values} values, some in a tuple, {VALUES_MAX} at most: name them in a \
             struct",
            function.name
        );
        (values > VALUES_MAX).then_some((function.line, what))
    });
    parallel
        .chain(dodging)
        .map(|(line, what)| format!("{}: line {line}: {what}", file.path))
        .collect()
}

/// Returns whether a `let` binds the elements of a tuple that is written down right there.
fn is_parallel(code: &str, at: usize) -> Option<bool> {
    let pattern = at + "let".len();
    let open = pattern + code.get(pattern..)?.find(|c: char| !c.is_whitespace())?;
    if !code.get(open..)?.starts_with('(') {
        return Some(false);
    }
    let behind = behind_bracket(code, open);
    let value = behind + code.get(behind..)?.find('=')? + 1;
    let has_type = code.get(behind..value)?.trim_start().starts_with(':');
    if !has_type && code.get(behind..value)?.trim() != "=" {
        return Some(false);
    }
    let open = value + code.get(value..)?.find(|c: char| !c.is_whitespace())?;
    if !code.get(open..)?.starts_with('(') {
        return Some(false);
    }
    let end = behind_bracket(code, open);
    let is_tuple = parts(code.get(open + 1..end - 1)?).len() > 1;
    Some(is_tuple && code.get(end..)?.trim_start().starts_with(';'))
}

/// Returns the number of values of a parameter list with a tuple in it; none without one.
fn values(parameters: &str) -> Option<usize> {
    let sizes: Vec<usize> = parts(parameters)
        .into_iter()
        .filter(|parameter| !is_self(parameter))
        .map(size)
        .collect();
    let has_tuple = sizes.iter().any(|size| *size > 1);
    has_tuple.then(|| sizes.iter().sum())
}

fn is_self(parameter: &str) -> bool {
    let name = parameter.split(':').next().unwrap_or_default();
    name.split(|c: char| !c.is_alphanumeric() && c != '_')
        .any(|word| word == "self")
}

/// Returns the number of values of one parameter: of a tuple, or of a reference to one, its
/// elements.
fn size(parameter: &str) -> usize {
    let (pattern, of_type) = if parameter.starts_with('(') {
        (parameter, "")
    } else {
        ("", parameter.split_once(':').map_or("", |(_, of)| of))
    };
    let of_type = of_type.trim().trim_start_matches('&');
    let tuple = if pattern.is_empty() { of_type } else { pattern };
    if !tuple.starts_with('(') {
        return 1;
    }
    let inside = tuple.get(1..behind_bracket(tuple, 0) - 1);
    inside.map_or(1, |inside| parts(inside).len().max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parallel_binding_is_found_and_a_tuple_that_is_taken_apart_is_not() {
        for (text, expected) in [
            ("let (a, b) = (1, 2);", 1),
            ("let (mut a, b): (u8, u8) =\n    (f(1, 2),\n    \")\");", 1),
            ("let (a, b) = f(1, 2);", 0),
            ("let (a, b) = (f(1, 2));", 0),
            ("let (a, b) = (f)(1, 2);", 0),
            ("let (Some(a), Some(b)) = (x, y) else { return };", 0),
            ("if let (Some(a), Some(b)) = (x, y) {}", 0),
            ("(a, b) = (b, a);", 0),
            ("let a = (1, 2);", 0),
            ("// let (a, b) = (1, 2);", 0),
            ("#[cfg(test)]\nmod tests { let (a, b) = (1, 2); }", 0),
        ] {
            let found = check(&TextFile::new("host/a.rs", text)).len();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn a_tuple_counts_as_many_values_as_it_has() {
        for (text, expected) in [
            ("fn f(&self, a: u8, (b, c): (u8, u8), d: u8) {}", 0),
            ("fn f(&self, a: u8, (b, c): (u8, u8), d: u8, e: u8) {}", 1),
            ("fn f(a: &(u8, u8), b: (u8, u8), c: u8) {}", 1),
            ("fn f(a: u8, b: u8, c: u8, d: u8, e: u8) {}", 0),
            ("fn f(a: u8, b: u8, c: u8, d: &(dyn Any + Send)) {}", 0),
            ("fn f(a: u8, b: u8, c: u8, d: Vec<(u8, u8)>) {}", 0),
        ] {
            let found = check(&TextFile::new("host/a.rs", text)).len();
            assert_eq!(found, expected, "{text}");
        }
    }
}
