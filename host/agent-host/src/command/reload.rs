//! `reload`.

use crate::client::Client;
use crate::config::Loaded;
use crate::failure::Failure;
use crate::fields::{list, number, text};
use crate::terminal::Terminal;
use serde_json::{Value, json};

/// Runs the command.
pub(super) async fn run(loaded: &Loaded, terminal: Terminal) -> Result<(), Failure> {
    let client = Client::new(loaded)?;
    let reloaded = client.post("/api/config/reload", &json!({})).await?;
    terminal.result(&reloaded, || lines(&reloaded));
    Ok(())
}

fn lines(reloaded: &Value) -> Vec<String> {
    let mut lines = vec![match text(reloaded, "/configuration") {
        same if same == text(reloaded, "/replaces") => format!("unchanged   {same}"),
        other => format!("in force    {other}"),
    }];
    lines.extend(list(reloaded, "/differences").iter().map(|difference| {
        format!(
            "{:<10}  {}",
            text(difference, "/change"),
            text(difference, "/key")
        )
    }));
    let left_out = number(reloaded, "/left_out");
    if left_out > 0 {
        lines.push(format!("and {left_out} more"));
    }
    let definitions = number(reloaded, "/definitions_left_out");
    if definitions > 0 {
        lines.push(format!(
            "left out    definitions of users that fit no template any more: {definitions}"
        ));
    }
    for (pointer, what) in [
        ("/folders_opened", "opened anew"),
        ("/left_behind", "warning"),
    ] {
        let told = list(reloaded, pointer).iter().filter_map(Value::as_str);
        lines.extend(told.map(|told| format!("{what:<10}  {told}")));
    }
    let restart = list(reloaded, "/needs_restart");
    lines.extend(restart.iter().map(|key| {
        let key = key.as_str().unwrap_or_default();
        format!("after a restart only: {key}")
    }));
    lines
}
