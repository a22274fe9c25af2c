//! The requirements of tests on the machine. A missing one fails the tests that need it, unless a
//! variable says that this is known.

/// The variable that lets tests be skipped which need user and mount namespaces.
pub const WITHOUT_NAMESPACES: &str = "AGENT_HOST_TESTS_WITHOUT_NAMESPACES";
/// The variable that lets tests be skipped which need bash, curl and jq.
pub const WITHOUT_CURL: &str = "AGENT_HOST_TESTS_WITHOUT_CURL";

/// Returns a resource of the machine that a test needs; none when it is missing and the variable
/// says that this is known.
///
/// # Panics
/// When it does not have it and the variable is not `1`.
#[must_use]
pub fn needed<T>(found: Result<T, String>, unless: &str) -> Option<T> {
    let is_known = std::env::var_os(unless).is_some_and(|value| value == "1");
    taken(found, unless, is_known)
}

#[expect(
    clippy::print_stderr,
    reason = "whoever reads the results is to know what was not tested"
)]
fn taken<T>(found: Result<T, String>, unless: &str, is_known: bool) -> Option<T> {
    match found {
        Ok(it) => Some(it),
        Err(why) if is_known => {
            eprintln!("SKIPPED, because {unless}=1: {why}");
            None
        }
        Err(why) => panic!(
            "this machine cannot run this test: {why}. Set {unless}=1 to do without what it proves."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_skipped_only_when_that_is_known() {
        let missing = || Err::<(), _>("no namespaces".to_owned());
        assert_eq!(taken(Ok(1), "A_VARIABLE", false), Some(1));
        assert_eq!(taken(missing(), "A_VARIABLE", true), None);
        let said = std::panic::catch_unwind(|| taken(missing(), "A_VARIABLE", false)).unwrap_err();
        let said = said.downcast_ref::<String>().unwrap();
        assert!(
            said.contains("no namespaces") && said.contains("A_VARIABLE=1"),
            "{said}"
        );
    }
}
