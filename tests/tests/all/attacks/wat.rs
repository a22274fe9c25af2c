//! A1 to A3 below Rust: core modules that break the rules between a component and its host, each a
//! file in `tests/programs/wat`.

use super::siege::{Case, brief, narrow};
use agent_host_tests::guests::root;
use std::collections::BTreeSet;

const TRAPPED: &str = "failed trapped: the tool crashed: ";
/// The text that makes a tool of a core module.
const TOOL: &str = include_str!("../../../programs/wat/tool.part");

/// The text of a component that offers a tool `attack`, made of the text of a core module
/// `$attack`.
pub(super) fn text_of(module: &str) -> String {
    let module = module.trim_start_matches(|c| c != '(');
    TOOL.replacen(
        "(core ATTACK)",
        &module.replacen("(module", "(core module", 1),
        1,
    )
}

/// The same as code.
pub(super) fn tool_of(module: &str) -> Vec<u8> {
    wat::parse_str(text_of(module)).unwrap_or_else(|error| panic!("{error}"))
}

/// One test for each file: its name, the answer to the caller, and the limits that the ledger
/// names.
macro_rules! attacks {
    ($($attack:ident: $reported:expr $(, $limit:literal)*;)*) => {
        /// The files.
        const FILES: &[&str] = &[$(stringify!($attack)),*];

        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $attack() {
                let code = include_str!(concat!(
                    "../../../programs/wat/",
                    stringify!($attack),
                    ".wat"
                ));
                let limits = if $reported.contains("out-of-cpu") { brief() } else { narrow() };
                Case::of(stringify!($attack), $reported)
                    .by(tool_of(code))
                    .under(limits)
                    $(.met($limit))*
                    .prove()
                    .await;
            }
        )*
    };
}

attacks! {
    a_table_grown_to_the_end_of_numbers_is_not_given: "parts survived", "memoryBytesMax";
    resources_made_without_end_meet_the_limit_of_handles: TRAPPED, "handles";
    a_handle_of_nothing_cannot_be_dropped: "failed trapped: the tool crashed: unknown handle index \
                                            4242";
    a_text_in_utf16_that_is_not_aligned_is_refused: TRAPPED;
    a_text_of_half_characters_is_refused: TRAPPED;
    a_text_of_either_encoding_that_is_too_long_is_refused: TRAPPED;
    a_text_beyond_the_end_of_memory_is_refused: TRAPPED;
    a_text_that_wraps_around_is_refused: TRAPPED;
    a_text_that_is_no_utf8_is_refused: TRAPPED;
    a_case_that_is_none_is_refused: TRAPPED;
    a_result_of_no_case_is_refused: TRAPPED;
    a_result_outside_of_memory_is_refused: TRAPPED;
    a_result_that_is_not_aligned_is_refused: TRAPPED;
    a_list_longer_than_memory_is_refused: TRAPPED;
    a_list_that_shows_one_text_many_times_does_not_cross_the_boundary: TRAPPED, "hostcallBytes";
    an_allocator_that_points_outside_is_stopped: TRAPPED;
    an_allocator_that_does_not_align_is_stopped: TRAPPED;
    an_allocator_without_end_is_stopped: "failed out-of-cpu", "cpuMsMax";
    an_allocator_that_calls_the_host_is_stopped: "failed trapped: the tool crashed: wasm trap: \
                                                  cannot leave component instance";
    a_call_of_no_function_traps: TRAPPED;
    a_store_beyond_the_end_of_memory_traps: "failed trapped: the tool crashed: wasm trap: out of \
                                             bounds memory access";
}

#[test]
fn every_file_of_core_modules_has_its_test() {
    let files = std::fs::read_dir(root().join("tests/programs/wat"))
        .unwrap()
        .flatten();
    let there: BTreeSet<String> = files
        .filter_map(|file| {
            file.file_name()
                .to_string_lossy()
                .strip_suffix(".wat")
                .map(str::to_owned)
        })
        .collect();
    assert_eq!(there, FILES.iter().map(|name| (*name).to_owned()).collect());
}
