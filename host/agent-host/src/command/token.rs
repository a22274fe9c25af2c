//! `token show`.

use crate::config::Loaded;
use crate::failure::Failure;
use crate::terminal::Terminal;
use crate::token;
use serde_json::json;

/// Prints the token.
pub(super) fn show(loaded: &Loaded, terminal: Terminal) -> Result<(), Failure> {
    let file = loaded.token_file();
    let token = token::read(&file).map_err(|failure| match failure.advice {
        Some(_) => failure,
        None => failure.advise(format!("start the host once: agent-host serve --config {}", loaded.file.display())),
    })?;
    terminal.result(&json!({ "token": token, "file": file }), || vec![token.clone()]);
    Ok(())
}
