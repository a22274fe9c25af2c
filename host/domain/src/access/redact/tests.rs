//! Secrets in every form, whole and in chunks.

use super::*;
use proptest::prelude::*;
use std::fmt::Write as _;

const SECRET: &str = "SK-CANARY-/9+a\"%\\z";

fn redactor() -> Redactor {
    Redactor::of(&Secret::parse(SECRET).unwrap())
}

fn percent(text: &str, plain: impl Fn(u8) -> bool) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if plain(byte) {
            out.push(byte.into());
        } else {
            write!(out, "%{byte:02x}").unwrap();
        }
    }
    out
}

fn hex(text: &str) -> String {
    text.bytes()
        .fold(String::new(), |out, byte| format!("{out}{byte:02X}"))
}

fn base64(bytes: &[u8], url: bool) -> String {
    let digits = if url {
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    } else {
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    };
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk
            .iter()
            .chain([&0, &0])
            .take(3)
            .fold(0_usize, |word, byte| word << 8 | usize::from(*byte));
        for at in 0..4 {
            out.push(if at > chunk.len() {
                '='
            } else {
                digits[word >> (18 - 6 * at) & 63].into()
            });
        }
    }
    out
}

/// Writes a text as HTML does, each character by what `escaped` says of it.
fn html(text: &str, escaped: impl Fn(char) -> Option<String>) -> String {
    text.chars()
        .map(|letter| escaped(letter).unwrap_or_else(|| letter.to_string()))
        .collect()
}

/// Writes a text as most template engines do.
fn entities(text: &str) -> String {
    html(text, |letter| {
        let name = match letter {
            '&' => "&amp;",
            '<' => "&lt;",
            '>' => "&gt;",
            '"' => "&quot;",
            '+' => "&#43;",
            '/' => "&#x2F;",
            '=' => "&equals;",
            _ => return None,
        };
        Some(name.to_owned())
    })
}

/// Writes a text with one layer of escapes.
fn escaped(kind: u8, text: &str) -> String {
    match kind {
        0 => percent(text, |_| false),
        1 => percent(text, |byte| byte.is_ascii_alphanumeric()),
        2 => html(text, |letter| Some(format!("&#{};", u32::from(letter)))),
        3 => html(text, |letter| {
            Some(format!("&#x{:04X};", u32::from(letter)))
        }),
        4 => text
            .bytes()
            .fold(String::new(), |out, byte| format!("{out}\\u{byte:04x}")),
        _ => text
            .bytes()
            .fold(String::new(), |out, byte| format!("{out}\\x{byte:02x}")),
    }
}

/// Every form in which a secret may come back, with text around it.
fn forms() -> Vec<String> {
    let json = serde_json::to_string(SECRET).unwrap();
    vec![
        SECRET.to_owned(),
        percent(SECRET, |byte| byte.is_ascii_alphanumeric()),
        percent(SECRET, |byte| byte != b'%'),
        percent(SECRET, |_| false),
        json.trim_matches('"').to_owned(),
        json.trim_matches('"').replace('/', "\\/"),
        escaped(4, SECRET),
        hex(SECRET),
        hex(SECRET).to_lowercase(),
        entities(SECRET),
        entities(&entities(SECRET)),
        serde_json::to_string(&entities(SECRET))
            .unwrap()
            .trim_matches('"')
            .replace('&', "\\u0026"),
        percent(
            &percent(SECRET, |byte| byte.is_ascii_alphanumeric()),
            |byte| byte.is_ascii_alphanumeric(),
        ),
        escaped(3, &escaped(4, &escaped(0, SECRET))),
        escaped(0, &hex(SECRET)),
    ]
}

/// Redacts a text that comes in chunks of some size.
fn in_chunks(text: &[u8], size: usize) -> Vec<u8> {
    let mut redaction = redactor().begin();
    let mut out: Vec<u8> = text
        .chunks(size)
        .flat_map(|part| redaction.push(part))
        .collect();
    out.append(&mut redaction.finish());
    out
}

#[test]
fn a_secret_is_taken_out_in_every_form_and_however_it_is_cut() {
    for form in forms() {
        for text in [
            form.clone(),
            format!("a {form} b SK-CANARY- {form}{form}"),
            format!("%{form}\\%4{form}"),
        ] {
            let expected = text.replace(&form, &"*".repeat(form.len()));
            assert_eq!(redactor().text(&text), expected);
            for size in 1..8 {
                assert_eq!(
                    in_chunks(text.as_bytes(), size),
                    expected.as_bytes(),
                    "{text} in {size}"
                );
            }
        }
    }
}

#[test]
fn in_base64_all_is_taken_out_that_the_secret_alone_decides() {
    for url in [false, true] {
        for before in ["", "a", "ab", "Bearer ", "user:", "some words: "] {
            let text = base64(format!("{before}{SECRET}, and more").as_bytes(), url);
            for size in [1, 3, 1_000] {
                let left = String::from_utf8(in_chunks(text.as_bytes(), size)).unwrap();
                assert_eq!(left.len(), text.len());
                assert!(
                    left.matches('*').count() >= SECRET.len() * 8 / 6 - 1,
                    "{before}: {text} {left}"
                );
            }
        }
    }
    // As a form of HTML sends it.
    let text = percent(&base64(SECRET.as_bytes(), false), |byte| {
        byte.is_ascii_alphanumeric()
    });
    assert!(
        redactor().text(&text).starts_with("********************"),
        "{text}"
    );
}

#[test]
fn only_what_may_become_a_secret_is_held_back() {
    let mut redaction = redactor().begin();
    assert_eq!(redaction.push(b"hello SK-CAN"), b"hello ");
    assert_eq!(redaction.push(b"DLE"), b"SK-CANDLE");
    assert_eq!(
        redaction.push(SECRET.as_bytes()),
        "*".repeat(SECRET.len()).as_bytes()
    );
    assert_eq!(redaction.push(b"x%"), b"x");
    assert_eq!(redaction.finish(), b"%");
}

#[test]
fn texts_without_secrets_stay_as_they_are() {
    for text in ["", "hello", "SK-CANARY", "äöü %zz \\u00", "c2Vjc"] {
        assert!(
            matches!(redactor().text(text), Cow::Borrowed(same) if same == text),
            "{text}"
        );
    }
    assert_eq!(Redactor::default().text(SECRET), SECRET);
}

#[test]
fn values_are_redacted_with_the_names_of_their_fields() {
    let mut value =
        serde_json::json!({ "a": [SECRET, 1, null], SECRET: { "b": format!("x{SECRET}") } });
    redactor().value(&mut value);
    let mask = "*".repeat(SECRET.len());
    assert_eq!(
        value,
        serde_json::json!({ "a": [mask, 1, null], mask.clone(): { "b": format!("x{mask}") } })
    );
}

#[test]
fn several_secrets_are_taken_out_together() {
    let both = Redactor::all([
        &Redactor::of(&Secret::parse("12345678").unwrap()),
        &Redactor::of(&Secret::parse("56789abc").unwrap()),
    ]);
    assert_eq!(both.text("x123456789abcx 5678"), "x************x 5678");
}

#[test]
fn a_fourth_layer_of_escapes_is_not_undone() {
    let text = (0..4).fold(SECRET.to_owned(), |text, _| percent(&text, |_| false));
    assert_eq!(redactor().text(&text), text);
}

proptest! {
    #[test]
    fn up_to_three_layers_of_any_escapes_are_undone_and_nothing_around_them_is_touched(
        layers in proptest::collection::vec(0..6_u8, 0..=3), before in "[ -~]{0,6}", size in 1..40_usize,
    ) {
        let form = layers.iter().fold(SECRET.to_owned(), |text, kind| escaped(*kind, &text));
        let text = format!("{before} {form} and more");
        let whole = redactor().text(&text).into_owned();
        prop_assert_eq!(&whole, &format!("{before} {} and more", "*".repeat(form.len())));
        prop_assert_eq!(in_chunks(text.as_bytes(), size), whole.into_bytes());
    }

    #[test]
    fn chunks_make_no_difference(words in proptest::collection::vec(prop_oneof![
        Just(SECRET.to_owned()), Just("SK-".to_owned()), Just("%5".to_owned()), Just("\\u00".to_owned()), Just("\\".to_owned()),
        Just("&".to_owned()), Just("&#3".to_owned()), Just("&amp;".to_owned()), Just("%25".to_owned()), Just(entities(&entities(SECRET))),
        Just(hex(SECRET)), Just(base64(SECRET.as_bytes(), false)), "[ -~]{0,4}", Just("ä".to_owned()),
    ], 0..12), size in 1..40_usize) {
        let text = words.concat();
        let whole = redactor().text(&text).into_owned();
        prop_assert_eq!(whole.len(), text.len());
        prop_assert!(!whole.contains(SECRET));
        prop_assert_eq!(in_chunks(text.as_bytes(), size), whole.into_bytes());
    }
}
