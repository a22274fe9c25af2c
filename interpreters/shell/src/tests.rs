//! Command lines, and what they print and end with.

use agent_host_shell::{
    Answered, COMMAND_CALLS_MAX, Command, CommandLine, Cut, Output, Tool, Wanted,
};
use serde_json::{Value, json};
use std::borrow::Cow;

/// The skills of an agent: a folder of the operator's, and the command of a component.
fn skills() -> CommandLine<'static> {
    let arguments = json!({
        "type": "object", "required": ["text"], "additionalProperties": false,
        "properties": {
            "text": { "type": "string" }, "count": { "type": "integer" },
            "pinned": { "type": "boolean" }, "tags": { "type": "array" },
            "title": { "type": ["string", "null"] },
            "size": { "anyOf": [{ "type": "string" }, { "type": "integer" }] },
            "state": { "enum": ["1", "true", "open"] },
        },
    });
    let files = [
        (
            "/skills/guide/SKILL.md",
            "---\nname: guide\ndescription: A guide.\n---\nBody\n",
        ),
        (
            "/skills/guide/references/data.json",
            r#"{"items":[{"name":"x","size":2},{"name":"y","size":10}]}"#,
        ),
        ("/skills/guide/references/lines.txt", "b\na\nb\n"),
        ("/skills/guide/scripts/run.sh", "rm -rf /\n"),
        ("/skills/notes/SKILL.md", "---\nname: notes\n---\n"),
        ("/skills/notes/notes-cli", "It calls: notes_add\n"),
    ];
    CommandLine {
        command: Cow::Borrowed(""),
        files: files.map(|(path, text)| (path.into(), text.into())).into(),
        commands: vec![Command {
            name: "notes-cli".to_owned(),
            path: "/skills/notes/notes-cli".to_owned(),
            skill: "notes".into(),
            description: "The tools of `notes`.".into(),
            tools: vec![Tool {
                name: "notes_add".into(),
                description: "Adds a note.".into(),
                arguments: Cow::<Value>::Owned(arguments),
            }],
        }],
        answered: Cow::Borrowed(&[]),
        cut: None,
    }
}

fn run(command: &str, skills: &CommandLine<'_>, answered: &[Answered]) -> Result<Output, Wanted> {
    crate::run(&CommandLine {
        command: command.into(),
        answered: answered.into(),
        ..skills.clone()
    })
}

fn output(command: &str) -> Output {
    match run(command, &skills(), &[]) {
        Ok(output) => output,
        Err(wanted) => panic!("{command} needs {wanted:?}"),
    }
}

fn wanted(command: &str) -> Wanted {
    match run(command, &skills(), &[]) {
        Err(wanted) => wanted,
        Ok(output) => panic!("{command} gives {output:?}"),
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
    check(
        "jq -nr '[\"a\\\"b\",null,true,1.5]|@csv'",
        "\"a\"\"b\",,true,1.5\n",
    );
    check("jq -nr '[\"a\\tb\\n\\\\\",2]|@tsv'", "a\\tb\\n\\\\\t2\n");
    assert_eq!(output("jq -n '[[1]]|@csv'").exit, 5);
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
    let Err(second) = run(line, &skills(), std::slice::from_ref(&one)) else {
        panic!("a second call");
    };
    assert_eq!(second.arguments, "{\"text\":\"b\"}");
    let two = answered(&second, "no room", true);
    let Ok(output) = run(line, &skills(), &[one.clone(), two]) else {
        panic!("an end");
    };
    assert_eq!(output.out, "7\nfailed\n");
    assert_eq!(output.err, "no room\n");
    // A result of another call is not taken for this one's.
    let other = Answered {
        arguments: "{}".to_owned(),
        ..one
    };
    let Ok(output) = run(line, &skills(), &[other]) else {
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

fn refused(command: &str) -> String {
    let output = output(command);
    assert_ne!(output.exit, 0, "{command}: {output:?}");
    assert_eq!(output.out, "", "{command}: {output:?}");
    output.err
}

#[test]
fn what_the_parser_would_misread_is_refused_first() {
    for command in [
        "echo ${x:-y}",
        "echo \"${HOME}\"",
        "echo $((1+1))",
        "echo \"$((1+1))\"",
        "echo $[1+1]",
        "echo `ls`",
        "echo \"`ls`\"",
        "echo $'a\\nb'",
        "echo $\"a\"",
        "echo $1 $@",
        "echo $$",
        "cat *.md",
        "cat guide/?KILL.md",
        "cat guide/[S]KILL.md",
        "echo \\'a",
        "echo a\\\\b",
        "echo \"a\\\\\"",
        "echo \"\\(\"",
        "echo a # b",
        "echo {a,b}",
        "echo {1..3}",
        "cat ~/x",
        "cat <<EOF\nx\nEOF",
        "cat <(echo a)",
        "echo a |& cat",
        "echo 'a",
        "echo \"a",
        "echo $(echo a",
        "echo a)",
        "echo a\u{0}b",
        "echo a\rb",
        "echo {a",
        "echo {}",
        "jq .a|{b}",
        "echo a\u{a0}b",
        "echo a\u{3000}b",
        "echo $X\u{a0}b",
        "echo $(echo a\u{2003}b)",
        "echo ~5",
        "echo 'a'~/x",
        "echo \"~5\"",
        "echo \"$(echo a)~\"",
        "echo a >/dev/null 2>&1",
        "cat <guide/SKILL.md 2>&1",
        "echo a 2>&1 >/dev/null | cat",
    ] {
        assert_eq!(output(command).exit, 2, "{command}");
        refused(command);
    }
}

#[test]
fn what_is_refused_first_is_told_with_a_remedy_and_fine_in_quotes() {
    for (command, remedy) in [
        ("echo {a,b}", "quote it"),
        ("echo a\u{a0}b", "quote it"),
        ("echo ~5", "quote the ~ with '…'"),
        ("echo \"~5\"", "use '…' instead"),
        ("echo a >/dev/null 2>&1", "(command 2>&1) >/dev/null"),
    ] {
        let err = refused(command);
        assert!(err.contains(remedy), "{command}: {err}");
    }
    for (command, expected) in [
        ("echo '{a,b}' \"{1..3}\"", "{a,b} {1..3}\n"),
        ("echo 'a\u{a0}b' \"c\u{3000}d\"", "a\u{a0}b c\u{3000}d\n"),
        ("X='a\u{a0}b'; echo $X", "a\u{a0}b\n"),
        ("echo '~5' a~b \"(a)~\" --x=~y", "~5 a~b (a)~ --x=~y\n"),
        ("(echo a; nothing 2>&1) >/dev/null", ""),
        (
            "(nothing 2>&1) >/dev/null; echo a 2>&1 | cat >/dev/null; echo b",
            "b\n",
        ),
        ("echo $(echo a >/dev/null; echo b) 2>&1", "b\n"),
    ] {
        assert_eq!(output(command).out, expected, "{command}");
    }
    // A blank that is none to other shells divides no arguments.
    let command = "X='a\u{a0}--pinned'; notes-cli add --text $X";
    assert_eq!(wanted(command).arguments, "{\"text\":\"a\u{a0}--pinned\"}");
}

#[test]
fn nothing_is_written_and_nothing_runs_in_the_background() {
    for command in [
        "echo a > x",
        "echo a >> /skills/guide/SKILL.md",
        "echo a >| x",
        "echo a > /dev/null/x",
        "echo a > '/dev/null2'",
        "X=/etc/passwd; echo a > $X",
        "echo a > $(echo x)",
        "echo a &> x",
        "echo a >& x",
        "echo a 3> x",
        "echo a 2> x",
        "cat <> x",
        "cat 0<&1",
        "echo a &",
        "echo a & echo b",
        "(echo a; echo b) > x",
        "notes-cli add --text a > x",
    ] {
        refused(command);
    }
}

#[test]
fn paths_lead_to_skills_alone() {
    for path in [
        "/etc/passwd",
        "../../etc/passwd",
        "/skills/../etc/passwd",
        "guide/../../etc/passwd",
        "/proc/self/environ",
        "/dev/stdin",
        "/skills/guide/SKILL.md/../../../etc/passwd",
        "file:///etc/passwd",
        "//etc//passwd",
        "/skills/guide/%2e%2e/%2e%2e/etc/passwd",
    ] {
        for command in ["cat", "head", "tail", "wc", "sort", "ls", "grep x", "jq ."] {
            let err = refused(&format!("{command} {path}"));
            assert!(err.contains("No such file"), "{command} {path}: {err}");
        }
        refused(&format!("cat < {path}"));
    }
    assert_eq!(output("cat /skills/guide/../guide/./SKILL.md").exit, 0);
}

#[test]
fn quotes_and_substitution_make_no_commands() {
    for (command, text) in [
        (
            "notes-cli add --text 'a; cat /etc/passwd'",
            "a; cat /etc/passwd",
        ),
        (
            "notes-cli add --text 'a && echo b | cat > x'",
            "a && echo b | cat > x",
        ),
        (
            "notes-cli add --text '$(cat x) `ls` ${x}'",
            "$(cat x) `ls` ${x}",
        ),
        ("notes-cli add --text \"\\$(cat x)\"", "$(cat x)"),
        ("X='$(cat x)'; notes-cli add --text \"$X\"", "$(cat x)"),
        (
            "X='a\" --pinned'; notes-cli add --text \"$X\"",
            "a\" --pinned",
        ),
        (
            "notes-cli add --text \"$(echo '; notes-cli add')\"",
            "; notes-cli add",
        ),
        ("notes-cli add --text '*'", "*"),
    ] {
        let expected = serde_json::json!({ "text": text }).to_string();
        assert_eq!(wanted(command).arguments, expected, "{command}");
    }
    // The words of a text are arguments, and never commands.
    assert_eq!(
        output("X='cat guide/SKILL.md'; $X | head -n 1").out,
        "---\n"
    );
    assert_eq!(output("X='echo a; echo b'; $X").out, "a; echo b\n");
    assert_eq!(output("X='notes-cli|cat'; $X").exit, 127);
}

#[test]
fn programs_and_other_tools_are_out_of_reach() {
    for command in [
        "bash -c ls",
        "sh guide/scripts/run.sh",
        "exec ls",
        "eval ls",
        "source guide/scripts/run.sh",
        ". guide/scripts/run.sh",
        "env",
        "export X=1",
        "cd /",
        "/skills/guide/scripts/run.sh",
        "/usr/bin/cat x",
        "notes_add --text a",
        "guide-cli add",
        "other-cli add",
        "../notes-cli add --text a",
    ] {
        assert_eq!(output(command).exit, 127, "{command}");
    }
    assert_ne!(output("for x in a; do echo $x; done").exit, 0);
    assert_ne!(output("PATH=/bin ls").exit, 0);
}

#[test]
fn a_line_is_bounded_in_depth_size_and_calls() {
    let deep = format!("{}echo a{}", "(".repeat(2_000), ")".repeat(2_000));
    let nested = format!("{}echo a{}", "$(".repeat(2_000), ")".repeat(2_000));
    let long = "echo a && ".repeat(1_000) + "echo a";
    let large = format!("echo {}", "a".repeat(20_000));
    for command in [&deep, &nested, &long, &large] {
        refused(command);
    }
    let doubled = format!("X=aaaaaaaaaaaaaaaa{}; echo $X", "; X=$X$X$X$X".repeat(30));
    assert_eq!(output(&doubled).exit, 125);
    for filter in ["env", "input", "import \"a\" as a; 1", "$ENV", "now"] {
        let command = format!("echo '[1]' | jq '{filter}'");
        assert_eq!(output(&command).exit, 3, "{command}");
    }
    // Each call is answered, and still no line makes calls without end.
    let many = "notes-cli add --text a;".repeat(40) + "echo end";
    let mut answered = Vec::new();
    loop {
        match run(&many, &skills(), &answered) {
            Err(wanted) => answered.push(Answered {
                tool: wanted.tool,
                arguments: wanted.arguments,
                text: String::new(),
                failed: false,
            }),
            Ok(output) => {
                assert_eq!(output.exit, 125);
                break;
            }
        }
    }
    assert_eq!(answered.len(), COMMAND_CALLS_MAX);
}

/// Lines of random chunks, the same ones each time: each ends, and none makes more than it may.
#[test]
fn lines_of_random_pieces_end_without_a_panic() {
    let chunks = [
        "echo ",
        "a",
        " ",
        " b",
        "'",
        "\"",
        "$X",
        "$(",
        ")",
        "(",
        " | ",
        " && ",
        " || ",
        "; ",
        "\n",
        "{",
        "}",
        ",",
        "<",
        ">",
        " 2>&1",
        " >/dev/null",
        "~",
        "*",
        "\\",
        "\u{a0}",
        "é",
        "X=",
        "=",
        "cat guide/SKILL.md",
        "grep -o a ",
        "jq ",
        "'.[]'",
        "'[range(9)]'",
        "head -n1 ",
        "#",
        "! ",
        "$?",
        "$",
        "&",
        "sort -k2 ",
        "notes-cli add --text ",
        "-h ",
        "--json ",
        "'{}' ",
    ];
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let skills = skills();
    let mut carried_out = 0;
    for _ in 0..20_000 {
        let length = 1 + next(12);
        let line: String = (0..length).map(|_| chunks[next(chunks.len())]).collect();
        match run(&line, &skills, &[]) {
            Ok(output) => {
                carried_out += usize::from(output.exit != 2);
                assert!(output.out.len() < 1 << 20, "{line}");
            }
            Err(wanted) => {
                carried_out += 1;
                assert_eq!(wanted.tool, "notes_add", "{line}");
            }
        }
    }
    assert!(carried_out > 200, "{carried_out} of them were carried out");
}

const LINES: &str = "X=$(echo a 10; echo b 9; echo c 100; echo d 9)";

fn err(command: &str) -> String {
    let output = output(command);
    assert_eq!(output.exit, 2, "{command}: {output:?}");
    output.err
}

#[test]
fn head_and_tail_read_one_number_and_refuse_what_they_would_misread() {
    check(&format!("{LINES}; echo \"$X\" | head -n1"), "a 10\n");
    check(&format!("{LINES}; echo \"$X\" | tail -n +4"), "d 9\n");
    check("echo abcdef | head -c 3", "abc");
    check("echo abcdef | tail -c3", "ef\n");
    for command in [
        "echo a | head -c 5 -n 2",
        "echo a | head -n 1 -n 2",
        "echo a | head -cn5",
        "echo a | head -ccc5",
        "echo a | tail -n ++1",
        "echo a | head -n",
        "echo a | head -q",
    ] {
        err(command);
    }
}

#[test]
fn echo_takes_n_as_other_shells_do_and_refuses_what_it_would_print() {
    check("echo -n -n a", "a");
    check("echo -nn a b", "a b");
    check("echo -n", "");
    check("echo a -n", "a -n\n");
    check("echo -x --n - -5", "-x --n - -5\n");
    for command in ["echo -e 'a\\tb'", "echo -ne x", "echo -n -e x", "echo -E x"] {
        assert!(err(command).contains("options are: -n"), "{command}");
    }
}

#[test]
fn wc_of_several_files_ends_with_their_total() {
    check(
        "wc -l guide/references/lines.txt guide/scripts/run.sh",
        "3 guide/references/lines.txt\n1 guide/scripts/run.sh\n4 total\n",
    );
    check(
        "wc guide/references/lines.txt",
        "3 3 6 guide/references/lines.txt\n",
    );
    check("echo abc | wc -c - -", "4\n4\n8 total\n");
}

#[test]
fn lines_are_sorted_by_fields() {
    let sorted = |options: &str, expected: &str| {
        check(&format!("{LINES}; echo \"$X\" | sort {options}"), expected);
    };
    sorted("-k2n", "b 9\nd 9\na 10\nc 100\n");
    sorted("-k 2,2 -n -r", "c 100\na 10\nd 9\nb 9\n");
    sorted("-nu -k2", "b 9\na 10\nc 100\n");
    check(
        "Y=$(echo 'x:2'; echo 'y:1'); echo \"$Y\" | sort -t : -k 2",
        "y:1\nx:2\n",
    );
    for command in [
        "sort -k",
        "sort -k 0",
        "sort -k 1.2",
        "sort -k1 -k2",
        "sort -t ab",
    ] {
        err(&format!("echo a | {command}"));
    }
}

#[test]
fn grep_shows_lines_around_and_takes_several_patterns() {
    let text = "X=$(echo a; echo b; echo c; echo d; echo e; echo f; echo g)";
    let found = |options: &str, expected: &str| {
        check(&format!("{text}; echo \"$X\" | grep {options}"), expected);
    };
    found("-A1 b", "b\nc\n");
    found("-B 1 b", "a\nb\n");
    found("-n -C1 -e b -e c", "1-a\n2:b\n3:c\n4-d\n");
    found("-A1 -e a -e f", "a\nb\n--\nf\ng\n");
    found("-e a -e 'f'", "a\nf\n");
    found("-c -E 'a|g'", "2\n");
    // A bracket in a class is itself, and a first `]` does not end it.
    check("echo 'a[b' | grep -c '[[]'", "1\n");
    check("echo 'a]b' | grep -o '[]|]'", "]\n");
    check("echo 'a|b' | grep -oE '[^]ab]'", "|\n");
    check("echo ab1 | grep -o '[[:alpha:]]*'", "ab\n");
    check("echo aaa | grep -o a | wc -l", "3\n");
    let silent = output("grep -s x nothing");
    assert_eq!((silent.err.as_str(), silent.exit), ("", 2));
    assert_eq!(output("ls -h").exit, 2);
    check(
        "ls -l guide/references",
        "-r--r--r--       56 data.json\n-r--r--r--        6 lines.txt\n",
    );
}

#[test]
fn jq_replaces_texts_and_finds_their_place() {
    check("jq -n '\"a-b-c\"|sub(\"-\";\"+\")'", "\"a+b-c\"\n");
    check("jq -n '\"a-b-c\"|gsub(\"-\";\"\")'", "\"abc\"\n");
    check("jq -n '\"abc\"|gsub(\"x*\";\"-\")'", "\"-a-b-c-\"\n");
    check("jq -n '\"abc\"|index(\"c\")'", "2\n");
    check("jq -nc '[[1,2,3][0,5]?, [1,2,3][1:]]'", "[1,null,[2,3]]\n");
    check("jq -nc '[1,\"a\"]|[.[]|.[0]?]'", "[]\n");
    check("jq -nc '[null|.[:3]?]'", "[]\n");
    check("jq -nc '[1,2,3]|.[(length/2|floor):]'", "[2,3]\n");
    check(
        "jq -nc '[3,1,2]|[sort,min,max,(unique|length)]'",
        "[[1,2,3],1,3,3]\n",
    );
}

#[test]
fn jq_refuses_unknown_names_before_anything_is_carried_out() {
    for (filter, reported) in [
        ("nofunc?", "no function nofunc/0"),
        ("1|sub(\"a\")? // \"none\"", "no function sub/1"),
        ("[]|map(nope(.))", "no function nope/1"),
        ("try $nope catch .", "no variable $nope"),
        ("(1 as $x|$x), $x?", "no variable $x"),
        ("[]|map({$nope})", "no variable $nope"),
        ("[]|.[$nope:]", "no variable $nope"),
        ("\"\\(nofunc)\"?", "no function nofunc/0"),
        ("if true then 1 else nofunc end", "no function nofunc/0"),
        ("[1", "the filter cannot be read"),
        ("1 +", "the filter cannot be read"),
    ] {
        let output = output(&format!("jq -n '{filter}'"));
        assert_eq!((output.out.as_str(), output.exit), ("", 3), "{filter}");
        assert!(output.err.contains(reported), "{filter}: {}", output.err);
    }
    check(
        "jq -nc --arg a 1 '[2 as $b|$a,$b,(3 as $b|$b),$b]'",
        "[\"1\",2,3,2]\n",
    );
    check(
        "jq -nc '\"k\" as $x|{$x},{$x:1}'",
        "{\"x\":\"k\"}\n{\"k\":1}\n",
    );
}

#[test]
fn jq_defines_folds_and_assigns() {
    for (filter, expected) in [
        ("def twice(f): f|f; 3|twice(.*2)", "12"),
        ("reduce range(4) as $n (0; .+$n)", "6"),
        ("[foreach range(3) as $n (0; .+$n)]", "[0,1,3]"),
        ("{a:1}|.a |= .+1|.b = 3|del(.a)", "{\"b\":3}"),
        ("[paths]|length", "0"),
        ("{a:{b:1}}|getpath([\"a\",\"b\"])", "1"),
        ("[1,[2]]|. as [$a,[$b]]|$a+$b", "3"),
        ("first(range(1000000000))", "0"),
        ("[limit(2; repeat(1))]", "[1,1]"),
        ("\"a\"|@base64", "\"YQ==\""),
        ("0|todate", "\"1970-01-01T00:00:00Z\""),
        ("[10/2, 1/3*3, nan, infinite]", "[5,1,null,null]"),
        ("[1,null,\"a\"]|join(\"-\")", "\"1--a\""),
        ("[]|join(\",\")", "\"\""),
        (
            "[{name:\"a\",v:1},{k:\"b\",value:null}]|from_entries",
            "{\"a\":1,\"b\":null}",
        ),
        ("{a:1}|with_entries(.value+=1)", "{\"a\":2}"),
    ] {
        check(&format!("jq -nc '{filter}'"), &format!("{expected}\n"));
    }
    assert_eq!(output("jq -n '1, halt_error(3)'").exit, 3);
}

#[test]
fn a_flag_takes_a_text_where_its_schema_wants_one() {
    for (flags, arguments) in [
        ("--title 42", r#"{"title":"42"}"#),
        ("--title true", r#"{"title":"true"}"#),
        ("--title 0123", r#"{"title":"0123"}"#),
        ("--title null", r#"{"title":"null"}"#),
        ("--size 42", r#"{"size":42}"#),
        ("--size 4x", r#"{"size":"4x"}"#),
        ("--size true", r#"{"size":"true"}"#),
        ("--state 1", r#"{"state":"1"}"#),
        ("--state true", r#"{"state":"true"}"#),
        ("--json '{\"title\":null}'", r#"{"title":null}"#),
    ] {
        let command = format!("notes-cli add {flags}");
        assert_eq!(wanted(&command).arguments, arguments, "{command}");
    }
}

#[test]
fn help_is_asked_for_where_a_flag_may_stand_and_is_a_value_elsewhere() {
    for value in ["-h", "--help"] {
        let command = format!("notes-cli add --text {value}");
        let expected = format!(r#"{{"text":"{value}"}}"#);
        assert_eq!(wanted(&command).arguments, expected);
        let help = output(&format!("notes-cli add {value}"));
        assert!(help.out.contains("Adds a note."), "{help:?}");
        let help = output(&format!("notes-cli add --text a {value}"));
        assert!(help.out.contains("Adds a note."), "{help:?}");
    }
}

#[test]
fn an_argument_is_given_once_whether_by_a_flag_or_in_json() {
    for flags in [
        "--text a --json '{\"text\":\"b\"}'",
        "--json '{\"text\":\"b\"}' --text a",
        "--json '{\"text\":\"b\"}' --json '{\"text\":\"c\"}'",
    ] {
        assert!(
            err(&format!("notes-cli add {flags}")).contains("given twice"),
            "{flags}"
        );
    }
    let both = wanted("notes-cli add --text a --json '{\"count\":1}'");
    assert_eq!(both.arguments, r#"{"text":"a","count":1}"#);
}

/// Doubles a text until it is too long for a command.
const TOO_LONG: &str = "X=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; X=$X$X$X$X$X$X$X$X$X$X$X$X$X$X$X$X; \
                        X=$X$X$X$X$X$X$X$X$X$X$X$X$X$X$X$X; X=$X$X$X$X$X$X$X$X$X$X$X$X$X$X$X$X; \
                        echo $X$X$X$X$X$X$X$X$X$X$X$X$X$X$X$X";

/// Answers the one call of a line.
fn answered(line: &str, text: &str) -> Output {
    let first = wanted(line);
    let one = Answered {
        tool: first.tool,
        arguments: first.arguments,
        text: text.to_owned(),
        failed: false,
    };
    match run(line, &skills(), &[one]) {
        Ok(output) => output,
        Err(wanted) => panic!("{line} needs {wanted:?}"),
    }
}

#[test]
fn a_line_that_meets_a_limit_keeps_what_it_printed_and_names_its_calls() {
    let cut = output(&format!(
        "echo first; nothing; (echo second; {TOO_LONG}); echo third"
    ));
    assert_eq!(cut.out, "first\nsecond\n");
    assert_eq!(cut.exit, 125);
    assert!(cut.err.contains("command not found"), "{}", cut.err);
    assert!(!cut.err.contains("stand"), "{}", cut.err);
    let cut = answered(&format!("notes-cli add --text a; {TOO_LONG}"), "{\"id\":7}");
    assert_eq!(cut.out, "{\"id\":7}\n");
    assert!(
        cut.err.contains("the call that it made stands"),
        "{}",
        cut.err
    );
}

#[test]
fn a_line_that_is_to_end_before_a_command_keeps_what_was_printed_before() {
    let line = "echo first; (echo second; nothing; notes-cli add --text a); echo third";
    for (after, out) in [(0, ""), (1, "first\n"), (3, "first\nsecond\n")] {
        let why = "it takes too long".to_owned();
        let cut = crate::run(&CommandLine {
            command: line.into(),
            cut: Some(Cut { after, why }),
            ..skills()
        });
        let cut = cut.unwrap();
        assert_eq!((cut.out.as_str(), cut.exit), (out, 125));
        assert_eq!(cut.err.contains("not found"), after == 3, "{}", cut.err);
        assert!(cut.err.ends_with("it takes too long\n"), "{}", cut.err);
    }
}

#[test]
fn a_command_has_so_many_arguments() {
    let words = "a ".repeat(4_000);
    assert_eq!(
        output(&format!("X='{words}'; echo $X | wc -w")).out,
        "4000\n"
    );
    let most = output(&format!("X='{words}'; echo $X $X"));
    assert_eq!(most.exit, 125);
    assert!(
        most.err.contains("more than 4096 arguments"),
        "{}",
        most.err
    );
}
