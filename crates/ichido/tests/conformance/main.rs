//! The promise, as facts that hold on every engine. A store behaviour that is not here is not
//! promised. Each fact is a plain generic function; one macro lists them for each engine.
#![expect(clippy::unwrap_used, reason = "a test fails where its set-up fails")]

mod bodies;
mod desk;
mod engines;
mod failures;
mod handlers;
mod order;
mod outcomes;
mod repeats;
mod workers;

macro_rules! on_every_engine {
    ($($part:ident: $($fact:ident),+ $(,)?;)+) => {
        on_every_engine!(@engine postgres, crate::engines::OnPostgres, $($part: $($fact),+;)+);
        on_every_engine!(@engine sqlite, crate::engines::OnSqlite, $($part: $($fact),+;)+);
    };
    (@engine $name:ident, $engine:ty, $($part:ident: $($fact:ident),+;)+) => {
        mod $name {
            $($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $fact() {
                    crate::$part::$fact::<$engine>().await;
                }
            )+)+
        }
    };
}

on_every_engine! {
    outcomes:
        eight_deliveries_at_once_are_one_effect_and_seven_duplicates,
        an_event_whose_type_has_no_handler_is_stored_and_ignored,
        an_async_event_is_accepted_and_waits_as_fresh_work,
        a_type_left_to_a_worker_waits_in_its_queue,
        one_event_at_two_endpoints_takes_effect_at_each,
        a_forged_delivery_leaves_nothing_and_blocks_nothing,
        a_vouched_event_is_recorded_as_vouched_and_never_conflicts,
        an_exact_handler_runs_before_a_prefix_and_a_prefix_before_the_default,
        the_view_shows_one_row_an_event_with_what_became_of_it,
        duplicates_are_counted_soon_and_at_the_latest_when_it_closes,
        a_closed_inbox_refuses;
    failures:
        a_refused_event_leaves_nothing_and_its_second_delivery_is_processed,
        a_kept_event_is_accepted_and_waits_with_its_error,
        a_duplicate_of_a_kept_event_does_not_run_the_handler_again,
        a_handler_that_takes_too_long_is_kept_with_that_reason,
        a_message_leaves_no_trace_when_its_handler_fails,
        a_message_without_a_route_is_kept_for_a_human,
        the_audit_names_what_is_broken,
        a_flag_is_on_an_event_that_was_processed;
    handlers:
        a_handler_that_lacks_a_table_is_told_before_any_event_and_good_once_it_is_there,
        every_statement_that_is_refused_is_told_with_file_and_line,
        a_handler_that_makes_its_own_table_is_good,
        a_check_runs_no_handler,
        what_becomes_of_an_event_names_it_and_its_handler;
    bodies:
        odd_bodies_are_stored_byte_for_byte_and_acknowledged,
        a_delivery_without_a_usable_id_waits_for_a_human,
        a_retry_with_another_pending_webhooks_is_a_duplicate_and_no_conflict,
        the_same_id_with_another_amount_is_a_conflict_and_the_first_one_wins;
    repeats:
        a_replayed_body_under_a_fresh_unsigned_id_is_marked_and_told,
        a_replayed_body_is_refused_where_the_endpoint_says_so_and_a_retry_is_not,
        of_replays_at_once_one_is_stored,
        honest_neighbours_of_a_refused_replay_are_taken,
        a_body_that_came_without_its_id_is_known_under_any_other,
        two_endpoints_do_not_know_each_others_bodies,
        a_signed_id_is_no_business_of_repeated_bodies;
    workers:
        an_async_event_is_processed_by_a_worker_and_no_work_remains,
        a_running_worker_hears_of_an_event_that_its_process_stores,
        a_kept_event_is_processed_by_a_worker_once_its_handler_can,
        an_event_that_always_fails_needs_review_after_its_last_attempt,
        a_worker_whose_lease_ran_out_has_no_effect_beside_the_next_one,
        a_failed_handler_leaves_nothing_but_its_error,
        a_fault_says_when_its_event_comes_back_or_that_it_does_not,
        an_event_whose_lease_ran_out_is_claimed_alone_and_stops_at_its_limit,
        what_is_given_back_was_not_tried,
        a_type_without_a_handler_in_this_worker_goes_back_untried,
        lanes_are_claimed_in_the_order_asked_for,
        a_claimed_event_is_the_one_that_was_received;
    order:
        events_of_one_key_take_effect_in_the_order_of_their_receipts,
        a_follower_is_due_when_its_head_is_done_and_other_keys_do_not_wait,
        a_head_that_fails_keeps_its_place,
        a_head_in_review_blocks_its_key_where_the_endpoint_says_so,
        a_head_in_review_is_skipped_where_the_endpoint_says_so,
        a_head_whose_lease_ran_out_at_its_last_attempt_is_skipped,
        a_late_worker_does_not_let_the_next_of_its_key_come;
    desk:
        what_needs_review_is_listed_with_its_reason,
        a_requeued_event_gets_fresh_attempts_and_keeps_its_history,
        a_discarded_event_stays_with_the_reason,
        a_replay_is_a_new_run_that_somebody_asked_for,
        an_event_that_nobody_knows_is_not_replayed,
        a_flag_is_listed_until_it_is_closed,
        a_human_moves_the_line_that_an_event_in_review_blocked;
}
