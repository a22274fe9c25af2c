//! Events that can never be stored, whenever it is tried: the turn that they belong to ends with a
//! reason, and the session goes on.

use agent_host_tests::process::{
    CONTRADICTS_ON, Folder, Host, MISREADS_ON, Session, UNSTORABLE, puppet, puppets,
};
use serde_json::{Value, json};

/// The scripted model's reply, which no event may have in it.
const WORDS: &str = "hello from the model";

/// Returns the ends of a session's turns, and everything that its events say.
async fn ends(host: &Host, session: &Session) -> (Vec<Value>, String) {
    let events = host.events(&format!("&session={}", session.id())).await;
    (
        host.story(session, "run.ended.v1").await,
        json!(events).to_string(),
    )
}

/// A folder for hosts with an agent that does what it is told.
async fn folder() -> Folder {
    let folder = Folder::new(puppets(&json!([puppet()])));
    folder.warm(&["puppet"]).await;
    folder
}

/// A turn that has failed on a host that cannot store something of it, and the next one, which has
/// replied.
struct FailedTurn {
    host: Host,
    session: Session,
    /// Number of times that the turn was tried again.
    tried: usize,
    /// The ends of both turns.
    ended: Vec<Value>,
    /// Everything that the session's events say.
    reported: String,
}

impl FailedTurn {
    /// Has a turn ask a model, and the next one reply.
    async fn begin(folder: &Folder, variable: &str, refused: &str) -> Self {
        let tries = || {
            folder
                .log()
                .matches("a session cannot go on just now; trying again")
                .count()
        };
        let before = tries();
        let host = folder
            .start_in(&[], Some((variable, refused)))
            .await
            .unwrap();
        let session = host.open("puppet").await;
        let asks =
            json!({ "steps": [{ "start": [{ "key": "m", "model": "" }] }, { "reply": "never" }] });
        host.say(&session, &asks.to_string()).await;
        host.rest(&session).await;
        let tried = tries() - before;
        let replies = json!([{ "reply": "it goes on" }]);
        host.play(&session, &replies).await;
        let seen = host.rest(&session).await;
        assert!(
            seen["messages"].to_string().contains("it goes on"),
            "{variable}: {seen}"
        );
        let (ended, reported) = ends(&host, &session).await;
        let [failed, replied] = &ended[..] else {
            panic!("{variable}: {ended:?}")
        };
        assert_eq!(
            (&failed["end"], &failed["code"], &replied["end"]),
            (&json!("failed"), &json!("not-storable"), &json!("replied"))
        );
        Self {
            host,
            session,
            tried,
            ended,
            reported,
        }
    }

    /// Asserts what the reason of the failure says.
    fn assert_reason(&self, says: &str) {
        let failed = &self.ended[0];
        assert!(
            failed["reason"].as_str().unwrap().contains(says),
            "{failed}"
        );
    }

    async fn stop(self, folder: &Folder) {
        assert!(self.host.stop().await.success(), "{}", folder.log());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_of_which_something_can_never_be_stored_ends_and_the_session_goes_on() {
    let folder = folder().await;
    let turn = FailedTurn::begin(&folder, UNSTORABLE, WORDS).await;
    turn.assert_reason("can never be stored");
    // The call of the model is on record with what it cost, once, and without what it said.
    assert!(!turn.reported.contains(WORDS), "{}", turn.reported);
    assert_eq!(
        folder
            .log()
            .matches("a turn ends because something of it can never be stored")
            .count(),
        1,
        "{}",
        folder.log()
    );
    turn.host.kill().await;
    let host = folder.serve().await;
    host.rest(&turn.session).await;
    assert_eq!(ends(&host, &turn.session).await.0, turn.ended);
    folder.over(host).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_whose_commit_is_refused_five_times_in_a_row_ends_and_the_session_goes_on() {
    let folder = folder().await;
    for (variable, cause) in [
        (CONTRADICTS_ON, "it contradicts what is stored"),
        (MISREADS_ON, "something stored that cannot be read"),
    ] {
        let turn = FailedTurn::begin(&folder, variable, WORDS).await;
        assert_eq!(turn.tried, 5, "{variable}: {}", folder.log());
        turn.assert_reason(cause);
        assert!(
            !turn.reported.contains(WORDS),
            "{variable}: {}",
            turn.reported
        );
        turn.stop(&folder).await;
    }
    folder.verified().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_of_which_no_further_attempt_can_be_stored_ends_and_the_session_goes_on() {
    let folder = folder().await;
    let breaks_off = "[[rule]]\nreply = { text = \"half of\", fail = \"cut-short\" }\n";
    std::fs::write(folder.path().join("script.toml"), breaks_off).unwrap();
    for (variable, inspections) in [(UNSTORABLE, 1), (CONTRADICTS_ON, 5), (MISREADS_ON, 5)] {
        // Only a further attempt says what its operation draws from then on.
        let turn = FailedTurn::begin(&folder, variable, "\"drawn\":").await;
        assert_eq!(turn.tried, inspections, "{variable}: {}", folder.log());
        turn.assert_reason("can never be stored");
        assert!(
            !turn.reported.contains("operation.attempted.v1"),
            "{variable}: {}",
            turn.reported
        );
        turn.stop(&folder).await;
    }
    folder.verified().await;
}
