//! Judgements about a note: whether it is known already, and whether it looks like a secret.

/// Words that stand beside secrets.
const BESIDE_SECRETS: [&str; 14] = [
    "password",
    "passwort",
    "passphrase",
    "passcode",
    "api key",
    "api-key",
    "apikey",
    "secret key",
    "private key",
    "access token",
    "bearer ",
    "-----begin",
    "credit card number",
    "cvv",
];
/// Verbs in the form with which a request to an assistant begins.
const REQUESTS: &[&str] = &[
    "add",
    "analyse",
    "analyze",
    "calculate",
    "check",
    "compare",
    "create",
    "delete",
    "describe",
    "explain",
    "fetch",
    "find",
    "generate",
    "give",
    "list",
    "look",
    "make",
    "open",
    "read",
    "remember",
    "remind",
    "remove",
    "rename",
    "research",
    "run",
    "say",
    "search",
    "send",
    "show",
    "summarise",
    "summarize",
    "tell",
    "translate",
    "update",
    "use",
    "write",
    "erkläre",
    "erstelle",
    "fasse",
    "finde",
    "gib",
    "lies",
    "lösche",
    "merke",
    "schreib",
    "schreibe",
    "zeige",
];
/// Characters from which on a word of letters and digits is taken for a key.
const KEY_CHARS_MIN: usize = 20;
/// Digits in a row, with spaces or hyphens between them, from which on they are taken for the
/// number of a card or an account.
const DIGITS_MIN: usize = 13;
/// Signs around words that say nothing.
const PUNCTUATION: &[char] = &[
    '.', ',', ';', ':', '!', '?', '…', '"', '\'', '(', ')', '“', '”', '„', '‘', '’', '«', '»',
];

/// Returns whether a text asks for something instead of telling it: a question, or a request that
/// begins with its verb.
pub(crate) fn is_asked(text: &str) -> bool {
    let closing = ['"', '\'', ')', '”', '’', '»', ' '];
    if text.trim_end_matches(closing).ends_with(['?', '？', '؟']) {
        return true;
    }
    let first = text.split_whitespace().next().unwrap_or_default();
    let first = first.trim_end_matches(',').to_lowercase();
    ["please", "bitte"].contains(&first.as_str()) || REQUESTS.contains(&first.as_str())
}

/// Returns whether a text looks like it holds a secret. It would rather leave out a note that holds
/// none.
pub(crate) fn seems_secret(text: &str) -> bool {
    let lower = text.to_lowercase();
    BESIDE_SECRETS.iter().any(|word| lower.contains(word))
        || text.split_whitespace().any(is_key)
        || has_long_number(text)
}

fn is_key(word: &str) -> bool {
    let word = word.trim_matches(|letter: char| !letter.is_alphanumeric());
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "_-+=".contains(letter);
    word.len() >= KEY_CHARS_MIN
        && word.chars().all(allowed)
        && word.chars().any(|letter| letter.is_ascii_digit())
        && word.chars().any(|letter| letter.is_ascii_alphabetic())
}

fn has_long_number(text: &str) -> bool {
    let mut digits = 0;
    for letter in text.chars() {
        match letter {
            '0'..='9' => digits += 1,
            ' ' | '-' => {}
            _ => digits = 0,
        }
        if digits >= DIGITS_MIN {
            return true;
        }
    }
    false
}

/// Returns whether a note says the same as another one: the same words in the same order. A single
/// word that is added, left out or moved may turn a note into its opposite.
pub(crate) fn is_known(note: &str, other: &str) -> bool {
    let mut note = words(note).peekable();
    note.peek().is_some() && note.eq(words(other))
}

/// Returns the words of a text, without its punctuation and in small letters. Other signs are kept:
/// `C` is not `C++`, and 5 is not -5.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split_whitespace()
        .map(|word| word.trim_matches(PUNCTUATION).to_lowercase())
        .filter(|word| !word.is_empty())
}
