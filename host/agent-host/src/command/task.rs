//! `task list`, `task show`, `task cancel` and `task stats`.

use crate::answer::{Answer, Row, lines};
use crate::cli::Task;
use crate::client::{Client, parameters, query, segment};
use crate::failure::Failure;
use serde_json::{Value, json};

/// The details of a task.
const DETAILS: [(&str, &str); 19] = [
    ("task", "{/task_id}"),
    ("state", "{/state}"),
    ("kind", "{/kind}"),
    ("target", "{/target}"),
    ("operation", "{/operation}"),
    ("parameters", "{/parameters}"),
    ("caller", "{/caller/agent_path}"),
    ("in session", "{/caller/session_id}"),
    ("for", "{/caller/user}"),
    ("done by", "{/performer/agent_id}"),
    ("in session", "{/performer/session_id}"),
    ("tokens", "{/tokens}"),
    ("calls", "{/calls}"),
    ("cost", "{/cost_micros}"),
    ("milliseconds", "{/duration_ms}"),
    ("handed over", "{/created_at}"),
    ("begun", "{/started_at}"),
    ("ended", "{/ended_at}"),
    ("deadline", "{/deadline}"),
];

/// Runs the command.
pub(super) async fn run(client: &Client, what: Task) -> Result<Answer, Failure> {
    Ok(match what {
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
            let path = format!("/api/tasks?limit={limit}{filter}");
            let listed = client.get(&path).await?;
            let more = "there may be more: --after {} with the same filters shows them";
            let more = lines(&listed, &[("/next_after", more)]);
            Answer::list(listed, "/tasks", row, "there are no such tasks").notice(more)
        }
        Task::Show { id } => {
            let path = format!("/api/tasks/{}", segment(&id));
            Answer::details(client.get(&path).await?, &DETAILS)
        }
        Task::Cancel { id, reason } => {
            let path = format!("/api/tasks/{}/cancel", segment(&id));
            let task = client.post(&path, &json!({ "reason": reason })).await?;
            Answer::filled(task, "{/task_id} is {/state}")
        }
        Task::Stats { from, to } => {
            let path = query("/api/tasks/stats", [("from", from), ("to", to)]);
            Answer::list(
                client.get(&path).await?,
                "/stats",
                sum_row,
                "there are no tasks",
            )
        }
    })
}

fn row(task: &Value) -> Row {
    let target = "{/target} {/operation}";
    let caller = "by {/caller/agent_path}";
    Row::of(
        task,
        &["{/task_id}", "{/state}", target, caller, "{/created_at}"],
        &[],
    )
}

fn sum_row(sum: &Value) -> Row {
    let cells = [
        "{/target} {/operation}",
        "tasks {/count}",
        "failures {/failures}",
        "p50 {/p50_ms} ms",
        "p95 {/p95_ms} ms",
        "tokens {/tokens}",
        "cost {/cost_micros}",
    ];
    Row::of(sum, &cells, &[])
}
