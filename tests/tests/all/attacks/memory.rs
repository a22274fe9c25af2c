//! A2: guests that take all there is, of their own memory and of the host's.

use super::siege::narrow;
use domain::grant::GuestLimits;

const TRAPPED: &str = "failed trapped: the tool crashed: ";

fn roomy() -> GuestLimits {
    GuestLimits {
        memory_bytes_max: 64 << 20,
        ..narrow()
    }
}

cases! {
    #[test]
    fn a_memory_of_four_gibibytes_is_not_given("parts refused").met("memoryBytesMax");
    #[test]
    fn an_allocation_without_end_runs_out_of_memory("failed out-of-memory").met("memoryBytesMax");
    #[test]
    fn a_list_of_strings_without_end_does_not_cross_the_boundary(TRAPPED)
        .under(roomy()).met("hostcallBytes");
    #[test]
    fn a_string_of_megabytes_does_not_cross_the_boundary(TRAPPED)
        .under(roomy()).met("hostcallBytes");
    #[test]
    fn random_bytes_without_end_are_not_made(
        "failed trapped: the tool crashed: 1099511627776 random bytes asked for at once"
    )
        .met("randomBytes");
    #[test]
    fn insecure_random_bytes_without_end_are_not_made_either(TRAPPED).met("randomBytes");
    #[test]
    fn a_flood_of_log_lines_is_cut("parts logged").under(roomy()).met("logBytesMax");
    #[test]
    fn a_flood_on_stdout_and_stderr_is_cut("parts printed").under(roomy()).met("logBytesMax");
    #[test]
    fn zeroes_without_end_are_not_written(TRAPPED);
    #[test]
    fn a_flood_of_notes_is_cut("parts noted").under(roomy()).met("notesPerSecond");
    #[test]
    fn pollables_without_end_meet_the_limit_of_resources(TRAPPED).met("resources");
    #[test]
    fn fields_without_end_meet_the_limit_of_resources(TRAPPED).met("resources");
    #[test]
    fn a_hundred_thousand_headers_do_not_fit(TRAPPED).met("httpFieldsBytes");
    #[test]
    fn a_header_of_a_megabyte_does_not_fit(TRAPPED).met("httpFieldsBytes");
    #[test]
    fn a_result_of_megabytes_does_not_cross_the_boundary(TRAPPED)
        .under(roomy()).met("hostcallBytes");
    #[test]
    fn a_result_of_a_million_parts_does_not_cross_the_boundary(TRAPPED)
        .under(roomy()).met("hostcallBytes");
    #[test]
    fn a_state_of_a_megabyte_is_refused(
        "failed tool-failed: the tool returned what is not acceptable: `later.state` is \
         1048576 bytes long"
    )
        .breaks_the_contract("`later.state`");
    #[test]
    fn a_memory_holds_nothing_of_the_guest_before("parts clean");
}
