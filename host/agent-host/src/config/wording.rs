//! Words for the parser's messages about types, as operators write values and not as Rust names
//! them.

/// Returns a message about a value of a wrong type in the words of the configuration; any other
/// message as it is.
pub(super) fn reword(message: &str) -> String {
    let parts = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "))
        .and_then(|rest| rest.rsplit_once(", expected "));
    match parts {
        Some((found, expected)) => format!("{} is not {}", value(found), kind(expected)),
        None => message.to_owned(),
    }
}

/// Returns a value that was found, such as `integer 7` between backticks, as it is written.
fn value(found: &str) -> String {
    match found {
        "map" => "a table".to_owned(),
        "sequence" => "a list".to_owned(),
        "null" | "unit value" | "Option value" => "nothing".to_owned(),
        _ => match found.split_once([' ', '`']) {
            // A text comes with its quotes.
            Some(("string", text)) => format!("the text {text}"),
            Some(("integer" | "boolean", value)) => value.to_owned(),
            Some(("floating", rest)) => rest.trim_start_matches("point ").to_owned(),
            Some(_) | None => found.to_owned(),
        },
    }
}

/// Returns a type that was expected in the words of the configuration.
fn kind(expected: &str) -> String {
    let named = match expected {
        "a sequence" => "a list",
        "a map" | "map" => "a table",
        "a string" | "a character" | "path string" | "str" => "a text in quotes",
        "a boolean" => "`true` or `false`",
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" | "u128" => "a whole number from 0 on",
        "i8" | "i16" | "i32" | "i64" | "isize" | "i128" => "a whole number",
        "f32" | "f64" => "a number",
        _ if expected.starts_with("struct ") => "a table",
        _ if expected.starts_with("enum ") => "one of its values",
        _ if expected.starts_with("a nonzero ") => "a whole number from 1 on",
        _ => expected,
    };
    named.to_owned()
}

#[cfg(test)]
mod tests {
    use super::reword;

    #[test]
    fn no_message_about_a_type_has_a_name_of_rust() {
        for (message, expected) in [
            (
                "invalid value: integer `-1`, expected u32",
                "`-1` is not a whole number from 0 to 4294967295",
            ),
            (
                "invalid type: integer `7`, expected a string",
                "`7` is not a text in quotes",
            ),
            (
                "invalid type: map, expected a sequence",
                "a table is not a list",
            ),
            (
                "invalid type: string \"5\", expected u64",
                "the text \"5\" is not a whole number from 0 on",
            ),
            (
                "invalid type: floating point `1.5`, expected u64",
                "`1.5` is not a whole number from 0 on",
            ),
            (
                "invalid type: boolean `true`, expected struct GuestLimits",
                "`true` is not a table",
            ),
            (
                "invalid value: string \"x\", expected 64 hexadecimal digits",
                "the text \"x\" is not 64 hexadecimal digits",
            ),
            (
                "unclosed table, expected `]`",
                "unclosed table, expected `]`",
            ),
        ] {
            assert_eq!(reword(message), expected);
        }
    }
}
