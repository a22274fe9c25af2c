//! Command lines, and what they print and end with.

mod attacks;
mod commands;
mod limits;

use crate::{Answered, LineOutcome, Output, Wanted};
use domain::definition::Definition;
use domain::skill::{SkillFolder, SkillSet, skills_of};
use domain::tool::ToolDefinition;
use serde_json::json;
use std::collections::BTreeMap;

fn skills() -> SkillSet {
    let definition: Definition = serde_json::from_value(json!({
        "agentId": "a", "displayName": "A", "toolExposure": "skills",
    }))
    .unwrap();
    let tool: ToolDefinition = serde_json::from_value(json!({
        "name": "notes_add", "description": "Adds a note.", "effect": "idempotent",
        "arguments": { "type": "object", "required": ["text"], "additionalProperties": false,
            "properties": {
                "text": { "type": "string" }, "count": { "type": "integer" },
                "pinned": { "type": "boolean" }, "tags": { "type": "array" },
                "title": { "type": ["string", "null"] },
                "size": { "anyOf": [{ "type": "string" }, { "type": "integer" }] },
                "state": { "enum": ["1", "true", "open"] },
            } },
    }))
    .unwrap();
    let files = BTreeMap::from([
        (
            "SKILL.md".to_owned(),
            "---\nname: guide\ndescription: A guide.\n---\nBody\n".to_owned(),
        ),
        (
            "references/data.json".to_owned(),
            r#"{"items":[{"name":"x","size":2},{"name":"y","size":10}]}"#.to_owned(),
        ),
        ("references/lines.txt".to_owned(), "b\na\nb\n".to_owned()),
        ("scripts/run.sh".to_owned(), "rm -rf /\n".to_owned()),
    ]);
    let folder = SkillFolder::read("guide", files).unwrap();
    let components = BTreeMap::from([("notes".to_owned(), vec![tool])]);
    skills_of(&definition, components, &[folder])
}

fn run(command: &str, skills: &SkillSet, answered: &[Answered]) -> LineOutcome {
    crate::run(command, skills, answered, Box::new(|| false))
}

fn output(command: &str) -> Output {
    match run(command, &skills(), &[]) {
        LineOutcome::Done(output) => output,
        LineOutcome::Call(wanted) => panic!("{command} needs {wanted:?}"),
    }
}

fn wanted(command: &str) -> Wanted {
    match run(command, &skills(), &[]) {
        LineOutcome::Call(wanted) => wanted,
        LineOutcome::Done(output) => panic!("{command} gives {output:?}"),
    }
}

fn check(command: &str, expected: &str) {
    let output = output(command);
    assert_eq!(output.out, expected, "{command}: {output:?}");
    assert_eq!(output.exit, 0, "{command}: {output:?}");
}

#[test]
fn commands_read_files_and_pipes() {
    check("cat guide/references/data.json | wc -c", "56\n");
    check("ls /skills", "guide/\nnotes/\n");
    check("ls guide", "SKILL.md\nreferences/\nscripts/\n");
    check("ls notes", "SKILL.md\nnotes-cli\n");
    check(
        "tail -n 3 /skills/guide/references/lines.txt | sort | uniq -c",
        "      1 a\n      2 b\n",
    );
    check("tail -2 guide/references/lines.txt | sort -ru", "b\na\n");
    check("head -n 1 guide/SKILL.md", "---\n");
    check("grep -n desc guide/SKILL.md", "3:description: A guide.\n");
    check("grep -rl 'rm -rf' guide", "/skills/guide/scripts/run.sh\n");
    check("wc -l < guide/references/lines.txt", "3\n");
    check("echo -n a; echo b c", "ab c\n");
    check("cat guide/references/lines.txt | grep -c '^b$'", "2\n");
    check(r"echo 'a|b' | grep 'a\|x'", "a|b\n");
}

#[test]
fn lists_variables_and_substitution_are_those_of_a_shell() {
    check("false-x 2>/dev/null || echo no", "no\n");
    check("echo a && echo b", "a\nb\n");
    check("nothing 2>/dev/null && echo a || echo b", "b\n");
    check("nothing 2>/dev/null || true", "");
    check(
        "false || echo a; false; echo $?; true && echo b",
        "a\n1\nb\n",
    );
    check("X=1; echo $X \"$X 2\" '$X'", "1 1 2 $X\n");
    check("X=$(echo 'a  b'); echo $X; echo \"$X\"", "a b\na  b\n");
    check(
        "echo \"$(cat guide/references/data.json | jq -r '.items[0].name')\"",
        "x\n",
    );
    check("(echo a; echo b) | wc -l", "2\n");
    check("! grep zzz guide/SKILL.md", "");
    check("nothing 2>/dev/null; echo $?", "127\n");
    check("nothing 2>&1 | grep -c 'command not found'", "1\n");
    check("echo ''", "\n");
    check("echo a\necho b", "a\nb\n");
}

#[test]
fn what_is_not_there_ends_with_127_and_what_is() {
    for command in [
        "ls2",
        "python x.py",
        "/bin/sh -c x",
        "curl http://x",
        "./guide/scripts/run.sh",
    ] {
        let output = output(command);
        assert_eq!(output.exit, 127, "{command}");
        assert!(output.err.contains("no system shell"), "{}", output.err);
        assert!(output.err.contains("notes-cli"), "{}", output.err);
    }
}

#[test]
fn jq_selects_and_makes_values() {
    for (filter, expected) in [
        (".items | length", "2\n"),
        (".items[] | .name", "\"x\"\n\"y\"\n"),
        (".items | map(.size) | add", "12\n"),
        (".items[] | select(.size > 5) | .name", "\"y\"\n"),
        ("[.items[] | {name, big: (.size > 5)}] | .[1].big", "true\n"),
        (".items | sort_by(-.size) | first.name", "\"y\"\n"),
        (".missing // \"none\"", "\"none\"\n"),
        (".items[0].name as $n | \"\\($n)!\"", "\"x!\"\n"),
        (".items[1:] | length", "1\n"),
        ("[.items[].name] | join(\",\")", "\"x,y\"\n"),
        ("if .items then 1 else 2 end", "1\n"),
        ("[.. | numbers] | max", "10\n"),
        (".items | group_by(.size > 5) | map(length)", "[1,1]\n"),
        (".items[].nope?.deep?", "null\nnull\n"),
        ("to_entries | map(.key)", "[\"items\"]\n"),
        ("try error(\"x\") catch .", "\"x\"\n"),
    ] {
        check(
            &format!("jq -c '{filter}' guide/references/data.json"),
            expected,
        );
    }
    check("jq -n --arg a b '$a' -r", "b\n");
    check("echo '1 2' | jq -s add", "3\n");
    check(
        "jq -r '.items[] | [.name, .size] | @csv' guide/references/data.json",
        "\"x\",2\n\"y\",10\n",
    );
}

#[test]
fn a_command_of_a_skill_is_one_call_of_its_tool() {
    for (command, arguments) in [
        ("notes-cli notes_add --text 'a b'", json!({ "text": "a b" })),
        (
            "notes-cli add --text=x --count 3 --pinned",
            json!({ "text": "x", "count": 3, "pinned": true }),
        ),
        (
            "/skills/notes/notes-cli add --json '{\"text\":\"x\"}'",
            json!({ "text": "x" }),
        ),
        (
            "echo '{\"text\":\"x\"}' | notes/notes-cli add --json -",
            json!({ "text": "x" }),
        ),
        (
            "notes-cli add --text 1 --tags '[1]'",
            json!({ "text": "1", "tags": [1] }),
        ),
        (
            "X='; rm -rf /'; notes-cli add --text \"$X\"",
            json!({ "text": "; rm -rf /" }),
        ),
    ] {
        let wanted = wanted(command);
        assert_eq!(wanted.tool, "notes_add", "{command}");
        assert_eq!(wanted.arguments, arguments.to_string(), "{command}");
    }
}

#[test]
fn a_command_that_is_used_wrongly_makes_no_call() {
    for (command, expected) in [
        ("notes-cli remove", "there is no tool remove"),
        ("notes-cli add x", "is no flag"),
        ("notes-cli add --nope 1", "there is no flag --nope"),
        ("notes-cli add --text a --text b", "given twice"),
        ("notes-cli add --count x", "takes JSON"),
        ("notes-cli add --json '[]'", "takes an object"),
        ("notes-cli add --text", "has no value"),
    ] {
        let output = output(command);
        assert_eq!(output.exit, 2, "{command}");
        assert!(output.err.contains(expected), "{command}: {}", output.err);
    }
    let help = output("notes-cli --help");
    assert!(help.out.contains("notes_add: Adds a note."), "{}", help.out);
    let help = output("notes-cli add --help");
    assert!(
        help.out.contains("`--text` (string, required)"),
        "{}",
        help.out
    );
}

#[test]
fn a_line_goes_on_with_the_results_of_its_calls() {
    let line = "notes-cli add --text a | jq .id && notes-cli add --text b || echo failed";
    let first = wanted(line);
    let answered = |wanted: &Wanted, text: &str, failed| Answered {
        tool: wanted.tool.clone(),
        arguments: wanted.arguments.clone(),
        text: text.to_owned(),
        failed,
    };
    let one = answered(&first, "{\"id\":7}", false);
    let LineOutcome::Call(second) = run(line, &skills(), std::slice::from_ref(&one)) else {
        panic!("a second call");
    };
    assert_eq!(second.arguments, "{\"text\":\"b\"}");
    let two = answered(&second, "no room", true);
    let LineOutcome::Done(output) = run(line, &skills(), &[one.clone(), two]) else {
        panic!("an end");
    };
    assert_eq!(output.out, "7\nfailed\n");
    assert_eq!(output.err, "no room\n");
    // A result of another call is not taken for this one's.
    let other = Answered {
        arguments: "{}".to_owned(),
        ..one
    };
    let LineOutcome::Done(output) = run(line, &skills(), &[other]) else {
        panic!("an end");
    };
    assert_eq!(output.exit, 125);
    assert!(output.err.contains("the skills changed"));
}

#[test]
fn a_line_shows_output_errors_and_exit_code() {
    let shown = output("echo a; cat nothing").shown();
    assert_eq!(
        shown,
        "a\n[stderr]\ncat: nothing: No such file or directory\n[exit code 1]"
    );
    assert_eq!(output("echo a").shown(), "a\n");
}
