//! What can be wrong with the issuers of tokens that a host is to trust.

use super::check::{Finding, error, warning};
use super::ranges;
use api::identity::IssuerConfig;
use domain::user::Scope;

/// Entries that make no sense, that stand twice, and one that makes everybody an administrator.
pub(super) fn check(issuers: &[IssuerConfig], findings: &mut Vec<Finding>) {
    for (index, issuer) in issuers.iter().enumerate() {
        let section = format!("server.identity[{index}]");
        findings.extend(ranges::check(&section, issuer));
        findings.extend(issuer.problems().into_iter().map(|problem| error(format!("{section}.{}", problem.key), problem.message)));
        if let Some(first) = issuers.iter().take(index).position(|earlier| earlier.issuer == issuer.issuer) {
            findings.push(error(format!("{section}.issuer"), format!("server.identity[{first}] is the same issuer")));
        }
        if issuer.scopes_claim.is_none() && issuer.scopes.contains(&Scope::Admin) {
            let message = "every token of this issuer makes its user an administrator; name the claim that says which with `scopesClaim`";
            findings.push(warning(format!("{section}.scopes"), message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::config::{Finding, Severity};
    use serde_json::{Value, json};

    /// What is found about an issuer that says this beside what every one has to say.
    fn findings(more: &Value) -> Vec<Finding> {
        let mut issuer = json!({ "issuer": "https://id.example", "audience": ["agent-host"], "algorithms": ["RS256"] });
        issuer.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
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
            (json!({ "leewayS": 301 }), "leewayS"),
            (json!({ "refreshS": 0 }), "refreshS"),
            (json!({ "hardExpiryS": 604_801 }), "hardExpiryS"),
            (json!({ "refreshS": 100, "hardExpiryS": 99 }), "hardExpiryS"),
        ] {
            let found = findings(&more);
            assert_eq!(found.iter().map(|found| found.key.as_str()).collect::<Vec<_>>(), [format!("server.identity[0].{key}")], "{more}");
            assert!(found.iter().all(|found| found.severity == Severity::Error), "{more}");
        }
        // The keys of this machine may come in the clear, and what a token has in `iss` need not be a URL.
        assert_eq!(findings(&json!({ "issuer": "accounts", "jwksUrl": "http://127.0.0.1:1/keys" })), []);
    }

    #[test]
    fn what_makes_everybody_an_administrator_is_warned_of() {
        let found = findings(&json!({ "scopes": ["read", "admin"] }));
        assert_eq!(
            found.iter().map(|found| (found.severity, found.key.as_str())).collect::<Vec<_>>(),
            [(Severity::Warning, "server.identity[0].scopes")]
        );
        assert_eq!(findings(&json!({ "scopes": ["read", "admin"], "scopesClaim": "scope" })), []);
    }

    #[test]
    fn no_symmetric_algorithm_and_no_none_can_be_chosen() {
        for wrong in ["HS256", "HS384", "HS512", "none", "ES512", "rs256", ""] {
            let issuer = json!({ "issuer": "https://id.example", "audience": ["a"], "algorithms": [wrong] });
            let refused = serde_json::from_value::<api::identity::IssuerConfig>(issuer).unwrap_err();
            assert!(refused.to_string().starts_with("unknown variant"), "{wrong}: {refused}");
        }
    }
}
