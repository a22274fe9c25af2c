//! Guests that do not stop: computing, recursing, sleeping, polling.

use crate::CaseResult;
use crate::bindings::wasi::cli::{stdin::get_stdin, stdout::get_stdout};
use crate::bindings::wasi::clocks::monotonic_clock::{now, subscribe_duration, subscribe_instant};
use crate::bindings::wasi::io::poll::{Pollable, poll};
use plugin::tool::done;
use serde_json::Value;
use std::hint::black_box;

pub fn a_loop_without_end_is_stopped_at_its_computing_time(_: &Value) -> CaseResult {
    loop {
        black_box(0);
    }
}

pub fn a_recursion_without_end_ends_at_the_end_of_its_own_stack(arguments: &Value) -> CaseResult {
    done(deeper(arguments["depth"].as_u64().unwrap_or(u64::MAX)).to_string())
}

#[inline(never)]
fn deeper(depth: u64) -> u64 {
    if depth == 0 {
        0
    } else {
        deeper(depth - 1).wrapping_mul(depth) ^ depth
    }
}

pub fn a_sleep_without_end_is_left_when_the_time_of_the_call_is_over(_: &Value) -> CaseResult {
    subscribe_duration(1 << 60).block();
    done("awake")
}

pub fn a_wait_for_input_that_never_comes_ends_at_once(_: &Value) -> CaseResult {
    let input = get_stdin();
    input.subscribe().block();
    done(format!("{:?}", input.blocking_read(u64::MAX).is_err()))
}

pub fn a_poll_of_what_is_never_ready_is_left_when_the_time_of_the_call_is_over(
    _: &Value,
) -> CaseResult {
    let never: Vec<Pollable> = (0..200)
        .map(|n| {
            if n % 2 == 0 {
                subscribe_duration(u64::MAX)
            } else {
                subscribe_instant(u64::MAX)
            }
        })
        .collect();
    done(format!("{:?}", poll(&never.iter().collect::<Vec<_>>())))
}

pub fn a_guest_that_wakes_itself_for_ever_is_charged_for_all_of_it(_: &Value) -> CaseResult {
    let stdout = get_stdout();
    let ready = stdout.subscribe();
    loop {
        ready.block();
        poll(&[&ready, &subscribe_duration(0)]);
    }
}

pub fn copies_of_all_its_memory_in_a_loop_are_stopped_like_any_loop(
    arguments: &Value,
) -> CaseResult {
    let half = arguments["bytes"].as_u64().unwrap_or(1 << 20) as usize / 2;
    let mut all = vec![1_u8; 2 * half];
    loop {
        all.copy_within(..half, half);
        all.fill(2);
        black_box(&all);
    }
}

pub fn a_poll_of_thousands_is_one_poll(_: &Value) -> CaseResult {
    let ready = subscribe_instant(now());
    let never = subscribe_duration(u64::MAX);
    let mut many = vec![&never; 5_000];
    many[4_999] = &ready;
    done(format!("{:?}", poll(&many)))
}

pub fn a_poll_of_nothing_is_the_guests_own_mistake(_: &Value) -> CaseResult {
    done(format!("{:?}", poll(&[])))
}
