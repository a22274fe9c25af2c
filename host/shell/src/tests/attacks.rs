//! Lines that try to reach something else: by quoting, substitution, redirection, paths and size.

use super::{output, run, skills, wanted};
use crate::LineOutcome;

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
    let before = skills();
    let _ = run("echo a > /dev/null", &before, &[]);
    assert_eq!(before, skills());
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
    let multiplied = format!("echo 1 | jq '{}'", "[.,.,.,.]|".repeat(3) + "length");
    assert_eq!(output(&multiplied).exit, 0);
    let multiplied = format!(
        "echo '[1,1]' | jq '{}'",
        "[.[],.[],.[]]|".repeat(14) + "length"
    );
    assert_eq!(output(&multiplied).exit, 125);
    for filter in [
        "def f: f; f",
        "[range(1000000000)]",
        "reduce .[] as $x (0; .)",
        "repeat(1)",
        "env",
        "input",
        "import \"a\" as a; 1",
        "$ENV",
        "now",
        ".a = 1",
    ] {
        let command = format!("echo '[1]' | jq '{filter}'");
        assert_ne!(output(&command).exit, 0, "{command}");
    }
    // Each call is answered, and still no line makes calls without end.
    let many = "notes-cli add --text a;".repeat(40) + "echo end";
    let mut answered = Vec::new();
    loop {
        match run(&many, &skills(), &answered) {
            LineOutcome::Call(wanted) => answered.push(crate::Answered {
                tool: wanted.tool,
                arguments: wanted.arguments,
                text: String::new(),
                failed: false,
            }),
            LineOutcome::Done(output) => {
                assert_eq!(output.exit, 125);
                break;
            }
        }
    }
    assert_eq!(answered.len(), domain::skill::COMMAND_CALLS_MAX);
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
            LineOutcome::Done(output) => {
                carried_out += usize::from(output.exit != 2);
                assert!(output.out.len() < 1 << 20, "{line}");
            }
            LineOutcome::Call(wanted) => {
                carried_out += 1;
                assert_eq!(wanted.tool, "notes_add", "{line}");
            }
        }
    }
    assert!(carried_out > 200, "{carried_out} of them were carried out");
}
