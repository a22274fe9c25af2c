//! Options of commands, and what the arguments of a skill's command mean.

use super::{check, output, wanted};

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
        ("try @base64 catch .", "no function @base64/0"),
        ("\"\\(nofunc)\"?", "no function nofunc/0"),
        ("try (.a = 1) catch .", "an assignment is not read here"),
        (
            "reduce .[] as $x (0; .+$x)? // 1",
            "reduce is not read here",
        ),
        ("def f: 1; 2", "def is not read here"),
        ("[]|map(. as [$a]|$a)", "a pattern after `as`"),
        ("if true then 1 else nofunc end", "no function nofunc/0"),
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
