//! `token show`.

use crate::config::Loaded;
use crate::failure::Failure;
use crate::invocation;
use crate::terminal::Terminal;
use crate::token;
use serde_json::json;

/// Prints the token.
pub(super) fn show(loaded: &Loaded, terminal: Terminal) -> Result<(), Failure> {
    let file = loaded.token_file();
    let token = token::read(&file).map_err(|failure| match failure.advice {
        Some(_) => failure,
        None => failure.advise(format!(
            "start the host once: {}",
            invocation::command(loaded, "serve")
        )),
    })?;
    terminal.result(&json!({ "token": token, "file": file }), || {
        vec![token.clone()]
    });
    Ok(())
}
