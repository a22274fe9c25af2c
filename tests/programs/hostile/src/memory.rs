//! Guests that take all there is: memory of their own, and what the host keeps for them.

use crate::CaseResult;
use crate::bindings::wasi::cli::{stderr::get_stderr, stdout::get_stdout};
use crate::bindings::wasi::clocks::monotonic_clock::subscribe_duration;
use crate::bindings::wasi::http::types::Fields;
use crate::bindings::wasi::random::{
    insecure::get_insecure_random_bytes, random::get_random_bytes,
};
use plugin::tool::wasi::logging::logging::{Level, log};
use plugin::tool::{Later, Part, Progress, done, note};
use serde_json::Value;
use std::arch::wasm32::{memory_grow, memory_size};
use std::hint::black_box;

const PAGE_BYTES: usize = 64 << 10;
const MEBIBYTE: usize = 1 << 20;
/// Text that forges lines, moves cursors and changes the direction of text.
const FORGERY: &str =
    "\r\n2026-01-01T00:00:00Z ERROR agent_host: all is lost\u{1b}[2J\u{202e}\u{2028}\u{0}";

pub fn a_memory_of_four_gibibytes_is_not_given(_: &Value) -> CaseResult {
    // Where the answer goes, while there is memory for it.
    let mut said = String::with_capacity(1_024);
    for step in [65_535, 4_096, 256, 16, 1] {
        while memory_grow::<0>(step) != usize::MAX {}
    }
    said += if memory_size::<0>() < 4_096 {
        "refused"
    } else {
        "given"
    };
    Ok(Progress::Done(vec![Part::Text(said)]))
}

pub fn an_allocation_without_end_runs_out_of_memory(_: &Value) -> CaseResult {
    let mut all = Vec::new();
    loop {
        all.push(vec![7_u8; MEBIBYTE]);
        black_box(&all);
    }
}

pub fn a_list_of_strings_without_end_does_not_cross_the_boundary(_: &Value) -> CaseResult {
    let entries = vec![(String::from("x"), Vec::new()); 300_000];
    done(format!("{}", Fields::from_list(&entries).is_ok()))
}

pub fn a_string_of_megabytes_does_not_cross_the_boundary(_: &Value) -> CaseResult {
    log(Level::Info, "flood", &"x".repeat(5 * MEBIBYTE));
    done("logged")
}

pub fn random_bytes_without_end_are_not_made(_: &Value) -> CaseResult {
    done(format!("{}", get_random_bytes(1 << 40).len()))
}

pub fn insecure_random_bytes_without_end_are_not_made_either(_: &Value) -> CaseResult {
    done(format!("{}", get_insecure_random_bytes(u64::MAX).len()))
}

pub fn a_flood_of_log_lines_is_cut(_: &Value) -> CaseResult {
    let line = format!("{FORGERY}{}", "x".repeat(1_000));
    for _ in 0..2_000 {
        log(Level::Error, FORGERY, &line);
    }
    done("logged")
}

pub fn a_flood_on_stdout_and_stderr_is_cut(_: &Value) -> CaseResult {
    let line = format!("{FORGERY}{}\n", "x".repeat(1_000));
    for _ in 0..1_000 {
        print!("{line}");
        eprint!("{line}");
    }
    done("printed")
}

pub fn zeroes_without_end_are_not_written(_: &Value) -> CaseResult {
    let stdout = get_stdout();
    let stderr = get_stderr();
    let allowed = stdout.check_write().unwrap_or(0);
    let blocking = stderr.blocking_write_zeroes_and_flush(1 << 40).is_ok();
    done(format!(
        "{allowed} {blocking} {}",
        stdout.write_zeroes(1 << 40).is_ok()
    ))
}

pub fn a_flood_of_notes_is_cut(_: &Value) -> CaseResult {
    for _ in 0..10_000 {
        note(FORGERY);
    }
    done("noted")
}

pub fn pollables_without_end_meet_the_limit_of_resources(_: &Value) -> CaseResult {
    let mut all = Vec::new();
    loop {
        all.push(subscribe_duration(1 << 60));
    }
}

pub fn fields_without_end_meet_the_limit_of_resources(_: &Value) -> CaseResult {
    let mut all = Vec::new();
    loop {
        all.push(Fields::new());
    }
}

pub fn a_hundred_thousand_headers_do_not_fit(_: &Value) -> CaseResult {
    let fields = Fields::new();
    for n in 0..100_000 {
        if fields.append(&format!("x-{n}"), b"v").is_err() {
            return done(format!("refused after {n}"));
        }
    }
    done("taken")
}

pub fn a_header_of_a_megabyte_does_not_fit(_: &Value) -> CaseResult {
    done(format!(
        "{:?}",
        Fields::new().append("x", &vec![b'v'; MEBIBYTE]).is_ok()
    ))
}

pub fn a_result_of_megabytes_does_not_cross_the_boundary(_: &Value) -> CaseResult {
    done("x".repeat(5 * MEBIBYTE))
}

pub fn a_result_of_a_million_parts_does_not_cross_the_boundary(_: &Value) -> CaseResult {
    Ok(Progress::Done(
        (0..300_000).map(|_| Part::Text(String::new())).collect(),
    ))
}

pub fn a_state_of_a_megabyte_is_refused(_: &Value) -> CaseResult {
    Ok(Progress::Later(Later {
        after_ms: 0,
        state: vec![0; MEBIBYTE],
    }))
}

/// Looks for what another guest left in memory, and leaves something there.
pub fn a_memory_holds_nothing_of_the_guest_before(_: &Value) -> CaseResult {
    const PAGES: usize = 32;
    let grown = memory_grow::<0>(PAGES) * PAGE_BYTES;
    // SAFETY: these pages were made just now, and nobody else knows of them.
    let fresh = unsafe { std::slice::from_raw_parts_mut(grown as *mut u8, PAGES * PAGE_BYTES) };
    let found = fresh.iter().position(|byte| *byte != 0);
    fresh.fill(0xa5);
    black_box(fresh);
    done(found.map_or_else(|| "clean".to_owned(), |at| format!("something at {at}")))
}
