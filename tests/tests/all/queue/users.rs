//! Several users in one session: each turn acts for one of them.

use agent_host_tests::{Setup, World};
use broker::By;
use broker::{PostMessage, Target};
use domain::event::Event;
use domain::id::{InputId, SessionId};
use domain::role::AgentRole;
use domain::user::UserId;
use serde_json::json;

/// A mentee of the local user's agent, in a session of their own. Until its question is answered,
/// the agent hears messages in it or does not.
struct Lesson {
    world: World,
    mentee: UserId,
    agent: Target,
    session: SessionId,
}

impl Lesson {
    async fn begins(hear: bool) -> Self {
        let world = World::new(Setup::default()).await;
        let own = world.open("puppet").await;
        let agent = Target::Agent(world.store().session(own).await.unwrap().unwrap().agent);
        let mentee: UserId = "mona".parse().unwrap();
        world
            .broker
            .agents()
            .assign(
                By::from(&UserId::local()),
                &agent,
                mentee.clone(),
                AgentRole::Mentee,
            )
            .await
            .unwrap();
        let opened = broker::NewSession::of(agent.clone(), mentee.clone());
        let session = world.broker.sessions().open(opened).await.unwrap().row.id;
        let lesson = Self {
            world,
            mentee,
            agent,
            session,
        };
        let mut steps = vec![json!({
            "start": [{ "key": "q", "client": "confirmation" }], "hear": hear, "until": "all",
        })];
        if hear {
            // What it hears is one step, after which it waits on.
            steps.push(json!({ "until": "all" }));
        }
        let steps = json!({ "steps": steps });
        lesson.says(&lesson.mentee, &steps.to_string()).await;
        lesson.world.question("puppet", session).await;
        lesson
    }

    async fn says(&self, user: &UserId, text: &str) -> InputId {
        let message = PostMessage {
            target: self.agent.clone(),
            user: user.clone(),
            ..self.world.message("puppet", self.session, text, None)
        };
        self.world
            .broker
            .messages()
            .post(message)
            .await
            .unwrap()
            .input
    }

    async fn ends(&self) {
        let (call, _) = self.world.question("puppet", self.session).await;
        self.world
            .answer("puppet", call, json!({ "confirmed": true }))
            .await
            .unwrap();
        self.world.idle(self.session).await;
    }

    /// Returns the user and the first inputs of each turn but the first, and the inputs that joined
    /// a turn that was open.
    async fn turns(&self) -> (Vec<(UserId, Vec<InputId>)>, Vec<InputId>) {
        let mut turns = Vec::new();
        let mut joined = Vec::new();
        for event in self.world.events().await {
            match event {
                Event::RunStarted(started) => turns.push((started.user_id, started.claimed)),
                Event::RunStepped(stepped) => joined.extend(stepped.claimed),
                _ => {}
            }
        }
        turns.remove(0);
        (turns, joined)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_user_says_meanwhile_has_a_turn_of_its_own_with_their_own_rights() {
    for hears in [true, false] {
        let lesson = Lesson::begins(hears).await;
        let mentee = &lesson.mentee;
        let primary = UserId::local();
        let first = lesson.says(mentee, "one").await;
        let others = [
            lesson.says(&primary, "two").await,
            lesson.says(&primary, "three").await,
        ];
        let last = lesson.says(mentee, "four").await;
        lesson.ends().await;
        let (turns, joined) = lesson.turns().await;
        // At the latest when the turn would end.
        assert_eq!(joined, [first, last], "{hears}");
        assert_eq!(turns, [(primary, others.to_vec())], "{hears}");
    }
}
