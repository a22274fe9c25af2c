//! A probe that calls every function that a component may import. It writes one line for each: its
//! name, a tab, and the result.

mod files;
mod http;
mod keys;
mod streams;
mod surroundings;

use std::fmt::{Debug, Write};

/// The lines.
#[derive(Default)]
pub struct Rows(pub String);

impl Rows {
    /// Adds a function and its result.
    pub fn say(&mut self, function: &str, what: impl AsRef<str>) {
        let _ = writeln!(self.0, "{function}\t{}", what.as_ref());
    }
}

/// Calls one of the functions that do not return, when its name is given.
pub fn leave(function: &str) {
    match function {
        "wasi:cli/exit.exit" => wasip2::cli::exit::exit(Ok(())),
        "wasi:cli/exit.exit-with-code" => wasip2::cli::exit::exit_with_code(0),
        _ => {}
    }
}

/// Calls all the others. Requests go to `url`, `http://<authority>/`.
pub fn rows(url: &str) -> Rows {
    let mut rows = Rows::default();
    surroundings::probe(&mut rows);
    files::probe(&mut rows);
    http::probe(&mut rows, url);
    streams::probe(&mut rows);
    keys::probe(&mut rows);
    rows
}

/// Returns the word for an answer in which there may be nothing.
pub fn empty(is_empty: bool) -> &'static str {
    if is_empty { "nothing" } else { "answers" }
}

/// Returns the word for an answer that may be a refusal.
fn said<T, E: Debug>(result: &Result<T, E>) -> String {
    match result {
        Ok(_) => "answers".to_owned(),
        Err(error) => name(&format!("{error:?}")),
    }
}

/// The standard's name of an error, out of the two ways in which bindings show one: `ErrorCode {
/// .., name: "access", .. }` and `StreamError::Closed`.
fn name(shown: &str) -> String {
    if let Some((_, name)) = shown.split_once("name: \"") {
        return name.split('"').next().unwrap_or_default().to_owned();
    }
    let name = shown.split([' ', '(']).next().unwrap_or_default();
    let mut kebab = String::new();
    for letter in name.rsplit("::").next().unwrap_or_default().chars() {
        if letter.is_uppercase() && !kebab.is_empty() {
            kebab.push('-');
        }
        kebab.extend(letter.to_lowercase());
    }
    kebab
}

/// The word for a missing handle that a function needs.
const NO_HANDLE: &str = "no handle";

/// Returns the result of a function of a handle, if there is one.
fn with_handle<T>(handle: Option<&T>, call: impl FnOnce(&T) -> String) -> String {
    handle.map_or_else(|| NO_HANDLE.to_owned(), call)
}

mod bindings {
    wit_bindgen::generate!({
        inline: "
            package test:probe;
            world probe {
                import wasi:keyvalue/store@0.2.0-draft;
                import wasi:keyvalue/atomics@0.2.0-draft;
                import wasi:keyvalue/batch@0.2.0-draft;
                import wasi:logging/logging@0.1.0-draft;
                import agent-host:plugin/progress@0.2.0;
            }
        ",
        path: "../../../wit",
        world: "test:probe/probe",
        generate_all,
    });
}
