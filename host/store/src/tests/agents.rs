//! Agents and their users: the row that every message reads, and what stands beside it.

use super::sample::{NOON, Sample, ada, agent};
use crate::sql::Columns;
use domain::event::{Event, PreferencesUpdated, RoleChanged, UserAssigned, UserUnassigned};
use domain::id::Stream;
use domain::role::AgentRole;
use domain::user::UserId;

/// Bytes of an agent's row, and rows of its users beside it.
async fn sizes(sample: &Sample) -> (i64, i64, i64) {
    let of = |sql: &crate::sql::Sql<'_>, text: &'static str| {
        sql.row(text, [agent(1)], |row| row.get::<i64>(0))
    };
    sample
        .read(move |sql| {
            let bytes = of(sql, "SELECT length(agent) FROM agents WHERE id = ?1")?;
            let users = of(sql, "SELECT count(*) FROM agent_users WHERE agent = ?1")?;
            let remembered = of(
                sql,
                "SELECT count(*) FROM agent_preferences WHERE agent = ?1",
            )?;
            Ok((bytes.unwrap(), users.unwrap(), remembered.unwrap()))
        })
        .await
        .unwrap()
}

fn learned(user: &str, words: &str) -> Event {
    let preferences = serde_json::json!({ "learned": words });
    Event::PreferencesUpdated(PreferencesUpdated {
        untrusted: false,
        updated_at: NOON,
        user_id: Some(user.parse().unwrap()),
        agent: agent(1),
        preferences,
    })
}

#[tokio::test]
async fn an_agents_row_does_not_grow_with_its_users() {
    let sample = Sample::begun().await;
    let stream = Stream::Agent(agent(1));
    sample.append(stream, [learned("ada", "tea")]).await;
    let (alone, ..) = sizes(&sample).await;
    for n in 0..100 {
        let user_id = format!("user{n}").parse().unwrap();
        let assigned = UserAssigned {
            agent: agent(1),
            user_id,
            role: AgentRole::Mentee,
            assigned_by: ada(),
            assigned_at: NOON,
        };
        sample
            .append(
                stream,
                [
                    Event::UserAssigned(assigned),
                    learned(&format!("user{n}"), &"x".repeat(4_096)),
                ],
            )
            .await;
    }
    assert_eq!(sizes(&sample).await, (alone, 101, 101));
    // What a message reads has none of them; who wants them all has them, in their order.
    let store = &sample.store;
    let row = store.agent(agent(1)).await.unwrap().unwrap().agent;
    assert!(row.assignments.is_empty() && row.user_preferences.is_empty());
    let whole = store
        .agent_with_users(agent(1))
        .await
        .unwrap()
        .unwrap()
        .agent;
    let users: Vec<&str> = whole
        .assignments
        .iter()
        .map(|assignment| assignment.user_id.as_str())
        .collect();
    assert_eq!(
        (users.len(), &users[..3], whole.user_preferences.len()),
        (101, &["ada", "user0", "user1"][..], 101)
    );
    assert_eq!(
        store
            .remembered_of(agent(1), &ada())
            .await
            .unwrap()
            .unwrap()["learned"],
        "tea"
    );
    // What happens to one of them leaves the others alone.
    let (user1, unassigned_at): (UserId, _) = ("user1".parse().unwrap(), NOON);
    let changed = RoleChanged {
        agent: agent(1),
        user_id: user1.clone(),
        role: AgentRole::Shared,
        changed_by: ada(),
        changed_at: NOON,
    };
    sample.append(stream, [Event::RoleChanged(changed)]).await;
    let gone = UserUnassigned {
        agent: agent(1),
        user_id: "user0".parse().unwrap(),
        unassigned_by: ada(),
        unassigned_at,
    };
    sample.append(stream, [Event::UserUnassigned(gone)]).await;
    let whole = store
        .agent_with_users(agent(1))
        .await
        .unwrap()
        .unwrap()
        .agent;
    assert_eq!(
        (
            whole.role_of(&user1),
            whole.assignments.len(),
            whole.user_preferences.len()
        ),
        (Some(AgentRole::Shared), 100, 100)
    );
    let rebuilt = store.rebuild().await.unwrap();
    assert!(rebuilt.replaced.is_empty(), "{:?}", rebuilt.replaced);
}
