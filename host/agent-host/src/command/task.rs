//! `task list`, `task show`, `task cancel` and `task stats`.

use crate::cli::Task;
use crate::client::{Client, parameters, segment};
use crate::config::Loaded;
use crate::failure::Failure;
use crate::fields::{list, number, text};
use crate::terminal::Terminal;
use serde_json::{Value, json};

/// Runs the command.
pub(super) async fn run(loaded: &Loaded, what: Task, terminal: Terminal) -> Result<(), Failure> {
    let client = Client::new(loaded)?;
    match what {
        Task::List {
            session,
            agent,
            state,
            after,
            limit,
        } => {
            let filter = parameters([
                ("session", session),
                ("agent", agent),
                ("state", state),
                ("after", after),
            ]);
            let listed = client
                .get(&format!("/api/tasks?limit={limit}{filter}"))
                .await?;
            let tasks = list(&listed, "/tasks");
            terminal.result(&listed, || tasks.iter().map(line).collect());
            match listed.get("next_after").and_then(Value::as_str) {
                Some(next) => terminal.notice(&format!(
                    "there may be more: --after {next} with the same filters shows them"
                )),
                None if tasks.is_empty() => terminal.notice("there are no such tasks"),
                None => {}
            }
        }
        Task::Show { id } => {
            let task = client.get(&format!("/api/tasks/{}", segment(&id))).await?;
            terminal.result(&task, || task_lines(&task));
        }
        Task::Cancel { id, reason } => {
            let path = format!("/api/tasks/{}/cancel", segment(&id));
            let task = client.post(&path, &json!({ "reason": reason })).await?;
            terminal.result(&task, || vec![format!("{id} is {}", text(&task, "/state"))]);
        }
        Task::Stats { from, to } => {
            let filter = parameters([("from", from), ("to", to)]);
            // What is behind the first parameter begins with `&`.
            let path = match filter.strip_prefix('&') {
                Some(filter) => format!("/api/tasks/stats?{filter}"),
                None => "/api/tasks/stats".to_owned(),
            };
            let stats = client.get(&path).await?;
            let sums = list(&stats, "/stats");
            terminal.result(&stats, || sums.iter().map(sum_line).collect());
            if sums.is_empty() {
                terminal.notice("there are no tasks");
            }
        }
    }
    Ok(())
}

fn line(task: &Value) -> String {
    format!(
        "{}  {:<9}  {} {}  by {}  {}",
        text(task, "/task_id"),
        text(task, "/state"),
        text(task, "/target"),
        text(task, "/operation"),
        text(task, "/caller/agent_path"),
        text(task, "/created_at"),
    )
}

/// Returns all details of a task, a line each, without those that do not apply.
fn task_lines(task: &Value) -> Vec<String> {
    let lines = [
        ("task", "/task_id"),
        ("state", "/state"),
        ("kind", "/kind"),
        ("target", "/target"),
        ("operation", "/operation"),
        ("parameters", "/parameters"),
        ("caller", "/caller/agent_path"),
        ("in session", "/caller/session_id"),
        ("for", "/caller/user"),
        ("done by", "/performer/agent_id"),
        ("in session", "/performer/session_id"),
        ("tokens", "/tokens"),
        ("calls", "/calls"),
        ("cost", "/cost_micros"),
        ("milliseconds", "/duration_ms"),
        ("handed over", "/created_at"),
        ("begun", "/started_at"),
        ("ended", "/ended_at"),
        ("deadline", "/deadline"),
    ];
    let lines = lines.into_iter().filter_map(|(name, pointer)| {
        let value = task.pointer(pointer).filter(|value| !value.is_null())?;
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        Some(format!("{name:<14}{text}"))
    });
    lines.collect()
}

fn sum_line(sum: &Value) -> String {
    format!(
        "{} {}  tasks {}  failures {}  p50 {} ms  p95 {} ms  tokens {}  cost {}",
        text(sum, "/target"),
        text(sum, "/operation"),
        number(sum, "/count"),
        number(sum, "/failures"),
        number(sum, "/p50_ms"),
        number(sum, "/p95_ms"),
        number(sum, "/tokens"),
        number(sum, "/cost_micros"),
    )
}
