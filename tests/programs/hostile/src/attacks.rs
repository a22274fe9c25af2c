//! Every attack of a tool, by the name of the test that proves its result.
//!
//! A file that includes this one gives a macro that takes the whole list: the guest makes a
//! dispatch of it, so that a name without an attack does not compile, and the tests make references
//! of it, so that an attack without a test does not compile either. The program `rogue` has the
//! list of agents.

/// The attacks of the tool component `hostile`, by family.
macro_rules! foreach_tool_attack {
    ($each:ident) => {
        $each! {
            cpu {
                a_loop_without_end_is_stopped_at_its_computing_time
                a_recursion_without_end_ends_at_the_end_of_its_own_stack
                a_sleep_without_end_is_left_when_the_time_of_the_call_is_over
                a_wait_for_input_that_never_comes_ends_at_once
                a_poll_of_what_is_never_ready_is_left_when_the_time_of_the_call_is_over
                a_guest_that_wakes_itself_for_ever_is_charged_for_all_of_it
                copies_of_all_its_memory_in_a_loop_are_stopped_like_any_loop
                a_poll_of_thousands_is_one_poll
                a_poll_of_nothing_is_the_guests_own_mistake
            }
            memory {
                a_memory_of_four_gibibytes_is_not_given
                an_allocation_without_end_runs_out_of_memory
                a_list_of_strings_without_end_does_not_cross_the_boundary
                a_string_of_megabytes_does_not_cross_the_boundary
                random_bytes_without_end_are_not_made
                insecure_random_bytes_without_end_are_not_made_either
                a_flood_of_log_lines_is_cut
                a_flood_on_stdout_and_stderr_is_cut
                zeroes_without_end_are_not_written
                a_flood_of_notes_is_cut
                pollables_without_end_meet_the_limit_of_resources
                fields_without_end_meet_the_limit_of_resources
                a_hundred_thousand_headers_do_not_fit
                a_header_of_a_megabyte_does_not_fit
                a_result_of_megabytes_does_not_cross_the_boundary
                a_result_of_a_million_parts_does_not_cross_the_boundary
                a_state_of_a_megabyte_is_refused
                a_memory_holds_nothing_of_the_guest_before
            }
            escape {
                a_result_that_is_no_text_is_refused
                a_handle_that_was_never_given_is_unknown
                a_handle_of_another_kind_is_refused
                a_handle_that_was_dropped_is_gone
                a_bucket_that_was_never_opened_lists_nothing
                an_exit_ends_the_guest_and_nothing_else
                a_panic_with_control_characters_is_told_without_them
                a_question_nested_without_end_is_refused
                a_question_with_a_schema_elsewhere_fetches_nothing
                a_clock_is_no_finer_than_a_millisecond
            }
            network {
                every_address_that_nobody_may_dial_is_refused_before_anything_is_dialled
                every_odd_spelling_of_an_address_is_refused
                whatever_differs_from_the_grant_is_refused
                headers_that_the_host_sets_are_refused_in_headers_and_trailers
                other_protocols_and_upgrades_are_refused
                names_are_looked_up_for_nobody
                a_server_without_end_is_cut_at_its_grant
                more_than_the_budget_does_not_leave
            }
            authority {
                nothing_of_the_host_is_in_the_environment
                no_socket_is_made
                no_bucket_opens_under_any_name
            }
        }
    };
}
