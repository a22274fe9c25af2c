//! Earlier messages, as the patterns of rules look at them.

use super::*;

#[tokio::test]
async fn a_rule_can_look_at_what_the_user_said_before_the_newest_first() {
    let rules = r#"
[[rule]]
when = { user = 'what (?P<what>\w+)', said = 'I like (?P<thing>\w+)' }
reply.text = "${what}: ${thing}, $1"

[[rule]]
reply.text = "nothing was said"
"#;
    let user = |id: u64, words: &str| message(id, Role::User, words);
    for (messages, expected) in [
        (
            vec![
                user(1, "I like tea"),
                user(2, "I like milk"),
                message(3, Role::Assistant, "I like gin"),
                user(4, "what drink?"),
            ],
            "drink: milk, drink",
        ),
        (vec![user(1, "what? I like tea")], "nothing was said"),
        // A notice of the host's is put before models as the user's words are.
        (
            vec![
                user(1, "hello"),
                message(2, Role::Notice, "They said: I like tea."),
                user(3, "what drink?"),
            ],
            "drink: tea, drink",
        ),
        (
            vec![
                message(1, Role::Assistant, "I like gin"),
                user(2, "what drink?"),
            ],
            "nothing was said",
        ),
    ] {
        assert_eq!(text(asked(rules, messages).await.0), expected);
    }
}

/// The last message is a question; what was said before is looked at for what it asks about.
const ABOUT: &str = r#"
[[rule]]
when = { user = 'what is my (?P<thing>[^?]+)', said = '(?i)my ${thing} is (?P<what>.+)' }
reply.text = "${thing}: ${what}"

[[rule]]
when = { user = '^(?P<what>\w+) or (?P<else>\w+)?', said = '^${what} and ${2}$' }
reply.text = "both"

[[rule]]
reply.text = "nothing was said"
"#;

#[tokio::test]
async fn a_rule_looks_for_what_the_last_message_is_about_letter_by_letter() {
    let user = |id: u64, words: &str| message(id, Role::User, words);
    for (said, asked_for, expected) in [
        (
            ["my dog is Rex", "my cat is Tom"],
            "what is my dog?",
            "dog: Rex",
        ),
        (
            ["my dog is Rex", "My dog is Max"],
            "what is my dog?",
            "dog: Max",
        ),
        (
            ["my dog is Rex", "hello"],
            "what is my bird?",
            "nothing was said",
        ),
        (
            ["my dog is Rex", "hello"],
            "what is my d.g?",
            "nothing was said",
        ),
        (
            ["my a+b is three", "my aab is four"],
            "what is my a+b?",
            "a+b: three",
        ),
        (["tea and milk", "hello"], "tea or milk", "both"),
        // A group that caught nothing stands for nothing.
        (["tea and ", "hello"], "tea or ", "nothing was said"),
    ] {
        let [first, second] = said;
        let messages = vec![user(1, first), user(2, second), user(3, asked_for)];
        assert_eq!(
            text(asked(ABOUT, messages).await.0),
            expected,
            "{asked_for}"
        );
    }
}

#[test]
fn a_word_that_no_group_catches_is_a_mistake_in_the_rule_file() {
    let problem = |when: &str| {
        let rules = format!("[[rule]]\nreply.text = 'a'\n[[rule]]\n{when}\nreply.text = 'b'");
        Rules::parse(&rules).map(|_| ()).unwrap_err()
    };
    for (when, reported) in [
        (
            "when = { user = '(?P<a>x)', said = '${b}' }",
            "rule 2: `${b}` in `when.said` is no group of `when.user`",
        ),
        ("when.said = 'my ${a}'", "`${a}` in `when.said`"),
        ("when = { user = '(x)', said = '${2}' }", "`${2}`"),
        ("when = { user = '(x)', said = '${1' }", "a `${` has no `}`"),
        ("when = { user = '(x)', said = '(${1}' }", "unclosed group"),
    ] {
        let problem = problem(when);
        assert!(problem.contains(reported), "{when}: {problem}");
    }
}
