//! Lines that try to take time or memory without end: each ends soon after it is told to, and
//! holds no more than so much.

#![expect(
    clippy::unwrap_used,
    reason = "these are tests: what is not there fails them"
)]
#![expect(
    unsafe_code,
    reason = "an allocator that counts is unsafe to implement, and hands all on to the system's"
)]

use agent_host_shell::{LineOutcome, Output, STACK_BYTES, run};
use domain::definition::Definition;
use domain::skill::{SkillFolder, SkillSet, skills_of};
use serde_json::json;
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Bytes that a line may hold.
const ALLOCATED_MAX: usize = 256 << 20;
/// Bytes at which the test gives up, before the machine does.
const GIVEN_MAX: usize = 2 << 30;
/// The time after which a line is told to stop.
const REPORTED_AFTER: Duration = Duration::from_secs(2);
/// The time in which each has ended, on a busy machine and without optimisation.
const ENDED_AFTER: Duration = Duration::from_secs(12);

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: what is given and taken back is the system allocator's, with the same layout.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let allocated = ALLOCATED.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(allocated, Ordering::Relaxed);
        if allocated > GIVEN_MAX {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, given: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: it was given by `alloc` with this layout.
        unsafe { System.dealloc(given, layout) }
    }
}

fn skills() -> SkillSet {
    let definition: Definition = serde_json::from_value(json!({
        "agentId": "a", "displayName": "A", "toolExposure": "skills",
    }))
    .unwrap();
    let items: Vec<_> = (0..3_000)
        .map(|n| json!({ "name": format!("n{n}") }))
        .collect();
    let lines: String = (0..3_000)
        .map(|n| format!("line {n} of a text\n"))
        .collect();
    let files = [
        (
            "SKILL.md",
            "---\nname: big\ndescription: Big.\n---\nBody\n".to_owned(),
        ),
        ("items.json", json!(items).to_string()),
        ("lines.txt", lines),
        ("many.txt", "a\n".repeat(100_000)),
        ("long.txt", "ab".repeat(100_000)),
        ("same.txt", "a".repeat(200_000)),
        ("maps.json", format!("[{}0]", "{\"\":0},".repeat(30_000))),
    ];
    let files = files.map(|(path, text)| (path.to_owned(), text));
    let folder = SkillFolder::read("big", files.into()).unwrap();
    skills_of(&definition, BTreeMap::new(), &[folder])
}

/// Carries a line out on half of the stack that it may need, and checks what it takes.
fn bounded(line: &str) -> Output {
    let shown: String = line.chars().take(120).collect();
    let command = line.to_owned();
    let skills = skills();
    let before = ALLOCATED.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let (done, outcome) = mpsc::channel();
    let began = Instant::now();
    std::thread::Builder::new()
        .stack_size(STACK_BYTES / 2)
        .spawn(move || {
            let stopped = Box::new(move || began.elapsed() > REPORTED_AFTER);
            let _ = done.send(run(&command, &skills, &[], stopped));
        })
        .unwrap();
    let outcome = outcome.recv_timeout(ENDED_AFTER);
    let allocated = MOST.load(Ordering::Relaxed).saturating_sub(before);
    assert!(
        allocated < ALLOCATED_MAX,
        "{shown}: it held {allocated} bytes"
    );
    match outcome {
        Ok(LineOutcome::Done(output)) => output,
        Ok(LineOutcome::Call(wanted)) => panic!("{shown}: {wanted:?}"),
        Err(error) => panic!("{shown}: it has not ended: {error}"),
    }
}

fn doubled(name: &str, text: &str, times: usize) -> String {
    format!(
        "{name}='{text}'{}; ",
        format!("; {name}=${name}${name}").repeat(times)
    )
}

/// Lines of `jq` alone.
fn filters() -> Vec<String> {
    let mut all: Vec<String> = [
        ".[range(99999):range(99999)]",
        "[.[range(99999):range(99999)]?]|length",
        r#""\(range(1000)|"")\(range(1000)|"")\(range(1000)|"")""#,
        "[(range(20000))[range(20000)]?]|length",
        "[(range(99999))[range(99999)]?]|length",
        "[range(99999)|{a:.}]|length",
        "[range(99999)]|map({a:1,b:2})|group_by(.a)|length",
        "[range(9999)|tostring]|. as $x|map($x)|length",
        "[limit(3;range(99999)|range(99999))]",
        "[range(9000)]|contains([range(9000)])",
        "[range(9000)]-[range(9000)]|length",
        "[range(99999)|tojson]|add|[.,.,.]|map(tojson|tojson|tojson|tojson)",
        "[range(99999)|tostring]|join(\"\")|split(\"\")|length",
        "[range(5000)|. as $n|\"x\"|test(\"x{\\($n%200)}[a-z]{50}\")]|length",
        "[range(99999)|\"b\"]|join(\"\")|gsub(\"b[^z]*z|b\";\"\")",
        "[range(99999)]|sort_by([.,.,.,.])|length",
        "range(99999)|range(99999)|empty",
        "[range(99999)]|[..]|[..]|[..]|length",
    ]
    .map(str::to_owned)
    .into();
    let levels = 60;
    all.push(format!(
        "[range(9999)]|{}.{}",
        "[".repeat(levels),
        "]".repeat(levels)
    ));
    all.push("[.,.,.,.]|".repeat(20) + "length");
    all.push("1+".repeat(1_000) + "1");
    all.push("0".to_owned() + &"-".repeat(2_000) + "1");
    all.push("0".to_owned() + &"-".repeat(250) + "1");
    all.push("try ".repeat(500) + "1");
    all.push("try ".repeat(250) + "1");
    all.push("1|".repeat(1_000) + "1");
    all.push("1 as $a|".repeat(250) + "1");
    all.push("[".repeat(2_000));
    all
}

#[test]
fn a_line_that_takes_time_or_memory_without_end_is_ended() {
    let braces = "{a,".repeat(60) + " " + &"}".repeat(60);
    let dots = ". ".repeat(4_000);
    let inputs = "- ".repeat(4_000);
    let search = "grep -cE '[ab]*a[ab]{1000}c' big/long.txt; ".repeat(20);
    let path = doubled("P", "././././", 17);
    let short_path = doubled("P", "././././", 8);
    let text = doubled("X", "a b c d ", 16);
    let within = "$(echo ".repeat(4) + &"a ".repeat(7_000) + &")".repeat(4);
    let mut lines = vec![
        format!("echo {braces}"),
        format!("echo {braces}").replace(' ', "("),
        search,
        format!("{path} grep -oH . \"$P\"big/many.txt"),
        format!("{short_path} grep -oH . \"$P\"big/many.txt"),
        format!(
            "{short_path} grep -cH . {}",
            "\"$P\"big/long.txt ".repeat(400)
        ),
        format!("ls -R {dots}"),
        format!("ls -l {dots}"),
        format!("grep -r zzz {dots}"),
        format!("grep -rl a {dots}"),
        format!("cat big/many.txt | sort -n {inputs}"),
        format!("cat big/many.txt | wc {inputs}"),
        format!("cat big/many.txt | cat {inputs}"),
        format!("{text} echo $X$X$X$X | wc"),
        format!("{text} echo \"$X\" | grep \"$X\""),
        format!("{text} X=$X$X; X=$X$X; X=$X$X; echo $X"),
        format!("{text} jq -n --arg x \"$X\" '[$x,$x,$x]|map(split(\" \"))|length'"),
        "grep -oE 'a[^z]*z|a' big/same.txt | wc -l".to_owned(),
        "grep -oE '(a|b|ab)*bc|a' big/long.txt | wc -l".to_owned(),
        "jq '[.,.,.,.,.,.,.,.]|map(map(.))|length' big/maps.json".to_owned(),
        format!("jq -s length {}", "big/maps.json ".repeat(500)),
        format!("echo {within}"),
        "echo a; ".repeat(63) + "echo a",
        "(".repeat(5) + "echo a" + &")".repeat(5),
    ];
    lines.extend(
        filters()
            .into_iter()
            .map(|filter| format!("jq -n '{filter}'")),
    );
    for line in lines {
        let output = bounded(&line);
        assert!(
            output.out.len() <= 2 << 20,
            "{} bytes of output",
            output.out.len()
        );
        assert!(output.shown().len() <= 3 * agent_host_shell::OUTPUT_BYTES_MAX);
    }
    // Lines of an ordinary size have room.
    for (line, expected) in [
        (
            "cat -n big/lines.txt | tail -n 1",
            "  3000\tline 2999 of a text\n",
        ),
        ("jq -r '.[].name' big/items.json | wc -l", "3000\n"),
        (
            "jq '[.[]|select(.name|test(\"^n1\"))]|length' big/items.json",
            "1111\n",
        ),
        ("grep -c of big/lines.txt", "3000\n"),
        ("sort -r big/lines.txt | head -n 1", "line 999 of a text\n"),
    ] {
        let output = bounded(line);
        assert_eq!(
            (output.out.as_str(), output.exit),
            (expected, 0),
            "{line}: {}",
            output.err
        );
    }
}
