//! Tests that the machine cannot run: skipped when that is known, and failed otherwise.

use agent_host_tests::process::tells;
use agent_host_tests::skip::found_or_known;

#[test]
fn what_is_missing_is_skipped_only_when_that_is_known() {
    let missing = || Err::<(), _>("no namespaces".to_owned());
    assert_eq!(found_or_known(Ok(1), "A_VARIABLE", false), Some(1));
    assert_eq!(found_or_known(missing(), "A_VARIABLE", true), None);
    let said =
        std::panic::catch_unwind(|| found_or_known(missing(), "A_VARIABLE", false)).unwrap_err();
    let said = said.downcast_ref::<String>().unwrap();
    tells(&said, &["no namespaces", "A_VARIABLE=1"]);
}
