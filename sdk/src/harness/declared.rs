//! The capabilities that the tool of the present call declares: without them the host refuses the
//! call what it was granted.

use std::cell::RefCell;

thread_local! {
    /// None outside of calls, where everything may be tried.
    static DECLARED: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Puts back what was declared before, also when the call panics.
struct Before(Option<Vec<String>>);

impl Drop for Before {
    fn drop(&mut self) {
        DECLARED.set(self.0.take());
    }
}

/// Makes a call of a tool that declares these capabilities.
pub(super) fn declaring<T>(capabilities: Vec<String>, call: impl FnOnce() -> T) -> T {
    let _before = Before(DECLARED.replace(Some(capabilities)));
    call()
}

/// Panics in a call of a tool that declares none of these capabilities.
pub(super) fn require(capabilities: &[&str]) {
    let lacks = DECLARED.with_borrow(|declared| {
        declared.as_ref().is_some_and(|declared| {
            !declared
                .iter()
                .any(|capability| capabilities.contains(&capability.as_str()))
        })
    });
    if let Some(capability) = capabilities.first().filter(|_| lacks) {
        panic!(
            "the tool does not declare that it needs this, so the host refuses it whatever is \
             granted: add `.needs(\"{capability}\")`"
        );
    }
}
