//! `reload`.

use crate::answer::Answer;
use crate::client::Client;
use crate::failure::Failure;
use crate::fields::{list, number, text};
use serde_json::{Value, json};

/// Runs the command.
pub(super) async fn run(client: &Client) -> Result<Answer, Failure> {
    let reloaded = client.post("/api/config/reload", &json!({})).await?;
    let lines = lines(&reloaded);
    Ok(Answer::new(reloaded, lines))
}

fn lines(reloaded: &Value) -> Vec<String> {
    let line = |what: &str, reported: &str| format!("{what:<10}  {reported}");
    let configuration = text(reloaded, "/configuration");
    let mut lines = vec![match configuration == text(reloaded, "/replaces") {
        true => line("unchanged", configuration),
        false => line("in force", configuration),
    }];
    let differences = list(reloaded, "/differences").iter();
    lines.extend(differences.map(|it| line(text(it, "/change"), text(it, "/key"))));
    let left_out = number(reloaded, "/left_out");
    lines.extend((left_out > 0).then(|| format!("and {left_out} more")));
    let definitions = number(reloaded, "/definitions_left_out");
    lines.extend((definitions > 0).then(|| {
        let what = format!("definitions of users that fit no template any more: {definitions}");
        line("left out", &what)
    }));
    let reported = |pointer| list(reloaded, pointer).iter().filter_map(Value::as_str);
    lines.extend(reported("/folders_opened").map(|it| line("opened anew", it)));
    lines.extend(reported("/left_behind").map(|it| line("warning", it)));
    lines.extend(reported("/needs_restart").map(|it| format!("after a restart only: {it}")));
    lines
}
