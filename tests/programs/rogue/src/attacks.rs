//! Every attack of an agent, by the name of the test that proves what comes of it. As the list of
//! `hostile`, it is a macro that guest and tests include.

/// The attacks of the agent component `rogue`.
macro_rules! foreach_agent_attack {
    ($each:ident) => {
        $each! {
            authority {
                a_step_without_end_fails_the_turn_after_three_attempts
                a_step_that_takes_all_memory_fails_the_turn
                a_thousand_effects_are_refused
                a_memo_of_a_megabyte_is_refused
                a_hundred_thousand_operations_are_refused
                operations_of_the_same_key_are_refused
                a_key_that_is_too_long_is_refused
                a_key_of_no_length_is_refused
                a_reply_of_megabytes_is_refused
                words_without_end_stop_at_the_limit_of_steps
                notes_without_end_stop_at_the_limit_of_steps
                an_event_under_a_name_of_the_hosts_is_under_the_guests_own
                an_event_with_a_name_that_is_none_is_refused
                a_blob_that_was_never_shown_is_neither_read_nor_said
                a_message_of_another_thread_is_not_there
                a_call_that_no_model_made_is_refused
                a_model_is_offered_no_tool_that_the_agent_may_not_call
                nobody_answers_to_a_pattern
                a_question_that_no_client_could_show_is_refused
                a_turn_that_could_never_end_is_refused
            }
        }
    };
}
