//! Checks of the issuers of tokens that a host trusts.

use super::finding::{Finding, error, warning};
use api::identity::{IssuerConfig, plain_again};
use domain::user::Scope;

/// Finds faulty issuers: entries that make no sense, that occur twice, or of which several have
/// plain users. Also warns of entries that are probably not meant: one that makes everybody an
/// administrator, and several that leave open how the user ids of each are derived.
pub(super) fn check(issuers: &[IssuerConfig], findings: &mut Vec<Finding>) {
    for (index, issuer) in issuers.iter().enumerate() {
        let section = format!("server.identity[{index}]");
        findings.extend(
            issuer
                .problems()
                .into_iter()
                .map(|problem| error(format!("{section}.{}", problem.key), problem.message)),
        );
        if let Some(first) = issuers
            .iter()
            .take(index)
            .position(|earlier| earlier.issuer == issuer.issuer)
        {
            findings.push(error(
                format!("{section}.issuer"),
                format!("server.identity[{first}] is the same issuer"),
            ));
        }
        if issuer.scopes_claim.is_none() && issuer.scopes.contains(&Scope::Admin) {
            let message = "every token of this issuer makes its user an administrator; name the claim that \
                 says which with `scopesClaim`";
            findings.push(warning(format!("{section}.scopes"), message));
        }
    }
    let again = plain_again(issuers).map(|(index, problem)| {
        error(
            format!("server.identity[{index}].{}", problem.key),
            problem.message,
        )
    });
    findings.extend(again);
    findings.extend(unsaid(issuers));
}

/// Warns if none of several issuers is set to have plain users. Then none has them, not even one
/// that was the only issuer before.
fn unsaid(issuers: &[IssuerConfig]) -> Option<Finding> {
    if issuers.len() < 2
        || issuers
            .iter()
            .any(|issuer| issuer.plain_users == Some(true))
    {
        return None;
    }
    let index = issuers
        .iter()
        .position(|issuer| issuer.plain_users.is_none())?;
    let message = "of several issuers none has plain users unless one says so, and users whose \
                   only issuer this was until now are other \
                   users from now on; set it to true to keep them, and to false where there are \
                   none to keep";
    Some(warning(
        format!("server.identity[{index}].plainUsers"),
        message,
    ))
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::config::{Finding, Severity};
    use serde_json::{Value, json};

    /// Returns the findings about an issuer with these entries besides the required ones.
    fn findings(more: &Value) -> Vec<Finding> {
        let mut issuer = json!({ "issuer": "https://id.example", "audience": ["agent-host"], "algorithms": ["RS256"] });
        issuer
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let mut findings = Vec::new();
        check(&[serde_json::from_value(issuer).unwrap()], &mut findings);
        findings
    }

    #[test]
    fn an_issuer_that_cannot_be_meant_is_told_with_its_key() {
        assert_eq!(findings(&json!({})), []);
        for (more, key) in [
            (json!({ "issuer": "" }), "issuer"),
            (json!({ "issuer": "http://id.example" }), "issuer"),
            (json!({ "issuer": "id.example" }), "issuer"),
            (json!({ "audience": [] }), "audience"),
            (json!({ "audience": ["a", ""] }), "audience"),
            (json!({ "algorithms": [] }), "algorithms"),
            (json!({ "jwksUrl": "http://id.example/keys" }), "jwksUrl"),
            (json!({ "jwksUrl": "file:///keys" }), "jwksUrl"),
            (json!({ "userClaim": "" }), "userClaim"),
            (json!({ "scopesClaim": "" }), "scopesClaim"),
            (json!({ "scopes": [] }), "scopes"),
            (json!({ "refreshS": 100, "hardExpiryS": 99 }), "hardExpiryS"),
        ] {
            let found = findings(&more);
            assert_eq!(
                found
                    .iter()
                    .map(|found| found.key.as_str())
                    .collect::<Vec<_>>(),
                [format!("server.identity[0].{key}")],
                "{more}"
            );
            assert!(
                found.iter().all(|found| found.severity == Severity::Error),
                "{more}"
            );
        }
        // The keys of this machine may come in the clear, and what a token has in `iss` need not be
        // a URL.
        assert_eq!(
            findings(&json!({ "issuer": "accounts", "jwksUrl": "http://127.0.0.1:1/keys" })),
            []
        );
    }

    #[test]
    fn what_makes_everybody_an_administrator_is_warned_of() {
        let found = findings(&json!({ "scopes": ["read", "admin"] }));
        assert_eq!(
            found
                .iter()
                .map(|found| (found.severity, found.key.as_str()))
                .collect::<Vec<_>>(),
            [(Severity::Warning, "server.identity[0].scopes")]
        );
        assert_eq!(
            findings(&json!({ "scopes": ["read", "admin"], "scopesClaim": "scope" })),
            []
        );
    }

    #[test]
    fn one_issuer_at_most_has_plain_users_and_of_several_it_is_said_which() {
        let several = |plain: &[Option<bool>]| {
            let issuer = |(n, plain): (usize, &Option<bool>)| {
                let issuer = json!({ "issuer": format!("https://{n}.example"), "audience": ["a"], "algorithms": ["RS256"], "plainUsers": plain });
                serde_json::from_value(issuer).unwrap()
            };
            let mut findings = Vec::new();
            check(
                &plain.iter().enumerate().map(issuer).collect::<Vec<_>>(),
                &mut findings,
            );
            findings
                .into_iter()
                .map(|found| (found.severity, found.key))
                .collect::<Vec<_>>()
        };
        let at = |severity, n: usize| (severity, format!("server.identity[{n}].plainUsers"));
        for fine in [
            &[None][..],
            &[Some(true)],
            &[Some(false)],
            &[Some(true), None],
            &[None, Some(true)],
            &[Some(false); 3],
        ] {
            assert_eq!(several(fine), [], "{fine:?}");
        }
        assert_eq!(several(&[Some(true), Some(true)]), [at(Severity::Error, 1)]);
        assert_eq!(
            several(&[Some(true), None, Some(true), Some(true)]),
            [at(Severity::Error, 2), at(Severity::Error, 3)]
        );
        assert_eq!(several(&[None, None]), [at(Severity::Warning, 0)]);
        assert_eq!(several(&[Some(false), None]), [at(Severity::Warning, 1)]);
    }

    #[test]
    fn no_symmetric_algorithm_and_no_none_can_be_chosen() {
        for wrong in ["HS256", "HS384", "HS512", "none", "ES512", "rs256", ""] {
            let issuer =
                json!({ "issuer": "https://id.example", "audience": ["a"], "algorithms": [wrong] });
            let refused =
                serde_json::from_value::<api::identity::IssuerConfig>(issuer).unwrap_err();
            assert!(
                refused.to_string().starts_with("unknown variant"),
                "{wrong}: {refused}"
            );
        }
    }
}
