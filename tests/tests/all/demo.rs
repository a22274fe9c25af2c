//! The demo as a newcomer has it: its configuration, its script, its components and its site. It
//! asks nobody outside of this machine.

use agent_host_demo_site::Site;
use agent_host_tests::guests::root;
use agent_host_tests::process::{DEMO_COMPONENTS, Folder, Host, tells};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, TcpListener};

/// The port of the site in the demo's configuration.
const PORT: &str = "7779";
/// The fact that the demo is told.
const FACT: &str = "my sister is called Ada";

/// A demo whose site has a port of its own, so that several may run.
struct Demo {
    folder: Folder,
    host: Host,
    port: u16,
}

/// A listener on any free port, with the port.
fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

impl Demo {
    /// The demo with its site, as `./x demo` starts the two. The site goes with the test's process.
    async fn with_site() -> Self {
        let (listener, port) = listener();
        let site = Site::read(&root().join("examples/demo/site")).unwrap();
        std::thread::spawn(move || site.serve(&listener));
        Self::at(port).await
    }

    /// The demo with nobody where its site would be.
    async fn without_site() -> Self {
        let (listener, port) = listener();
        drop(listener);
        Self::at(port).await
    }

    async fn at(port: u16) -> Self {
        let folder = Folder::demo();
        let config = std::fs::read_to_string(folder.config_file()).unwrap();
        assert_eq!(config.matches(PORT).count(), 2, "its address and its grant");
        let config = config.replace(PORT, &port.to_string());
        std::fs::write(folder.config_file(), config).unwrap();
        folder.warm(&DEMO_COMPONENTS).await;
        let host = folder
            .start_with(&["--listen", "127.0.0.1:0"], None)
            .await
            .unwrap();
        Self { folder, host, port }
    }

    /// Says something, and returns the reply.
    async fn say(&self, session: &str, words: &str) -> String {
        let path = format!("{session}/messages?wait_s=60");
        let said = self
            .host
            .post(&path, &json!({ "content": words }))
            .gives(200)
            .await;
        let reply = said.body["reply"]["text"].as_str();
        reply.unwrap_or_else(|| panic!("{said:?}")).to_owned()
    }

    /// Waits until the agent of a chat has a note with this text.
    async fn until_noted(&self, session: &str, text: &str) {
        let agent = session.split("/sessions/").next().unwrap_or_default();
        let has_it = |seen: &Value| seen["notes"].to_string().contains(text);
        self.host.until(&format!("{agent}/memory"), has_it).await;
    }

    async fn stop(self) {
        assert!(self.host.stop().await.success(), "{}", self.folder.log());
    }
}

/// Checks that a claim in a report has the number of the source with this title and address.
fn check_cited(report: &str, claim: &str, source: &str) {
    let number = report
        .split(&format!("{claim} ["))
        .nth(1)
        .and_then(|rest| rest.split(']').next())
        .unwrap_or_else(|| panic!("`{claim}` has no number: {report}"));
    assert!(
        report.contains(&format!("[{number}] {source}")),
        "[{number}] is not {source}: {report}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_researches_runs_a_program_and_lists_both_as_tasks() {
    let demo = Demo::with_site().await;
    let session = demo.host.open("assistant").await;
    let report = demo.say(&session, "research the tides").await;
    let at = |title: &str, name: &str| format!("{title} – http://127.0.0.1:{}/{name}", demo.port);
    for (claim, source) in [
        (
            "The Moon pulls at the sea, and makes most of the tides.",
            at("The Moon", "moon"),
        ),
        (
            "A coast has high tide twice a day, because the Earth turns below two bulges of the sea.",
            at("Tides", "tides"),
        ),
        (
            "When Sun and Moon pull along the same line, tides are highest: these are the springs.",
            at("Springs and neaps", "springs"),
        ),
    ] {
        check_cited(&report, claim, &source);
    }
    tells(&report, &["[no source]"]);
    assert!(!report.contains("bread"), "{report}");
    assert!(!report.contains("could not be planned"), "{report}");
    for (words, value) in [
        ("run: 6*7", "The program's value is 42."),
        (
            "compute [1, 2, 3].map(n => n * n).join('-')",
            "The program's value is 1-4-9.",
        ),
        (
            "run: new Map([[1, 2]])",
            "The program's value is Map(1) { 1 => 2 }.",
        ),
        ("run: null", "The program's value is null."),
        (
            "run: let a = 1;",
            "The program has run to its end. It has no value, and printed nothing.",
        ),
    ] {
        assert_eq!(demo.say(&session, words).await, value);
    }
    let printed = demo.say(&session, "run: console.log('hello')").await;
    tells(&printed, &["hello"]);
    let thrown = demo.say(&session, "run: nobody()").await;
    tells(&thrown, &["nobody is not defined"]);
    let diff = "--- a/a.rs\n+++ b/a.rs\n@@ -1 +1 @@\n-a\n+b\n";
    for (words, reported) in [
        (
            "generate: a sum".to_owned(),
            "The code is written. A model would have written the program. The script only names it.",
        ),
        (
            format!("review: {diff}"),
            "The change is reviewed. A model would have read the change. The script cannot.",
        ),
    ] {
        assert_eq!(demo.say(&session, &words).await, reported);
    }
    let listed = demo.folder.succeeds(&["task", "list", "--json"]).await;
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let mut tasks: Vec<String> = listed["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|task| task["kind"] == "delegate")
        .map(|task| {
            let text = |name: &str| task[name].as_str().unwrap_or_default().to_owned();
            [text("target"), text("operation"), text("state")].join(" ")
        })
        .collect();
    tasks.sort();
    let ran = "coder execute_code COMPLETED";
    let others = [
        "coder generate_code COMPLETED",
        "coder review_code COMPLETED",
        "researcher deep_research COMPLETED",
    ];
    assert_eq!(tasks, [[ran; 7].as_slice(), &others].concat());
    demo.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_components_of_the_demo_are_in_order() {
    let folder = Folder::demo();
    folder.warm(&DEMO_COMPONENTS).await;
    let checked = folder.succeeds(&["component", "check"]).await;
    let reported = String::from_utf8(checked.stdout).unwrap();
    tells(&reported, &["not granted: secrets.use"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demos_memory_agent_keeps_a_fact_for_the_next_chat() {
    let demo = Demo::without_site().await;
    let session = demo.host.open("assistant").await;
    let asked = "what is my sister called?";
    let before = demo.say(&session, asked).await;
    assert!(before.starts_with("I know nothing"), "{before}");
    demo.say(&session, &format!("remember that {FACT}")).await;
    demo.until_noted(&session, FACT).await;
    let next = demo.host.open("assistant").await;
    let reported = demo.say(&next, asked).await;
    assert_eq!(
        reported,
        format!("From an earlier chat: You said that {FACT}.")
    );
    demo.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demos_assistant_knows_what_was_told_in_its_chat_and_the_newest_of_it() {
    let demo = Demo::without_site().await;
    let config = std::fs::read_to_string(demo.folder.config_file()).unwrap();
    assert!(config.contains("idleS = 5 "), "the seconds that it tells");
    let other = demo.host.open("assistant").await;
    demo.say(&other, &format!("remember that {FACT}")).await;
    demo.until_noted(&other, FACT).await;

    let session = demo.host.open("assistant").await;
    let asked = "what is my dog called?";
    let facts = [
        "my dog is called Rex",
        "my dog is called Max",
        "my dog's name is Ed",
    ];
    for fact in facts {
        let kept = demo.say(&session, &format!("Remember that {fact}.")).await;
        tells(&kept, &["for this chat", "quiet for five seconds"]);
        let reported = demo.say(&session, asked).await;
        assert_eq!(reported, format!("You said it in this chat: {fact}."));
    }
    // What nobody told is not answered with something else.
    for unknown in ["what is my cat called?", "what is my dog's favourite food?"] {
        let reported = demo.say(&session, unknown).await;
        assert!(
            reported.starts_with("I know nothing about your"),
            "{reported}"
        );
        tells(&reported, &["quiet for five seconds"]);
    }

    let newest = facts[2];
    demo.until_noted(&session, newest).await;
    let next = demo.host.open("assistant").await;
    for (question, fact) in [
        (asked, newest),
        ("what's my dog's name?", newest),
        ("what is my sister called?", FACT),
    ] {
        let reported = demo.say(&next, question).await;
        assert_eq!(
            reported,
            format!("From an earlier chat: You said that {fact}.")
        );
    }
    let reported = demo.say(&next, "what is my cat called?").await;
    assert!(
        reported.starts_with("I know nothing about your cat"),
        "{reported}"
    );
    demo.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_says_where_a_program_failed_and_what_may_help() {
    let demo = Demo::without_site().await;
    let session = demo.host.open("assistant").await;
    for (words, parts) in [
        (
            "run: let a = 1;\nnobody()",
            [
                "failed in line 2",
                "ReferenceError: nobody is not defined",
                "",
            ],
        ),
        (
            "run: fetch('https://a.test')",
            [
                "failed in line 1",
                "fetch is not defined",
                "A program has no network here.",
            ],
        ),
        (
            "run: while(true){}",
            ["timed-out", "the program was stopped", "with a `timeout`"],
        ),
        (
            "run: await new Promise(() => {})",
            ["(failed)", "awaits a promise that nothing resolves", ""],
        ),
    ] {
        let reported = demo.say(&session, words).await;
        for part in parts {
            assert!(reported.contains(part), "`{part}` is not in: {reported}");
        }
        assert!(!reported.contains("{result"), "{reported}");
    }
    demo.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_research_that_finds_no_page_names_all_pages_that_the_demo_has() {
    let demo = Demo::with_site().await;
    let session = demo.host.open("assistant").await;
    let reported = demo.say(&session, "research the history of Rome").await;
    let begin = "There is no page on the history of Rome. The demo's web has";
    assert!(reported.starts_with(begin), "{reported}");
    let pages = std::fs::read_dir(root().join("examples/demo/site")).unwrap();
    for page in pages {
        let html = std::fs::read_to_string(page.unwrap().path()).unwrap();
        let title = html.split("<title>").nth(1).unwrap();
        let title = title.split("</title>").next().unwrap().to_lowercase();
        assert!(
            reported.to_lowercase().contains(&title),
            "{title}: {reported}"
        );
    }
    demo.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_research_of_the_demo_says_what_failed_when_its_site_is_away() {
    let demo = Demo::without_site().await;
    let session = demo.host.open("assistant").await;
    let reported = demo.say(&session, "research the tides").await;
    assert!(
        reported.starts_with("That could not be done:") && reported.contains("A search failed"),
        "{reported}"
    );
    assert_eq!(
        reported.matches("cannot be reached").count(),
        1,
        "{reported}"
    );
    assert_eq!(
        demo.say(&session, "run: 6*7").await,
        "The program's value is 42."
    );
    demo.stop().await;
}
