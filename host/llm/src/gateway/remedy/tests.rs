//! Tests of the way out to a provider.

use super::*;

/// Checks the endpoint and the grant that follow from a base URL.
fn check(base: &str, endpoint: &str, path: &str, private: &[&str]) {
    let read = ProviderUrl::parse(base).unwrap();
    let grant = read.grant(&[]).unwrap();
    let ranges: Vec<AddressRange> = private
        .iter()
        .map(|text| AddressRange::parse(text).unwrap())
        .collect();
    assert_eq!(
        (read.permit("x").as_str(), grant.path.to_string().as_str()),
        (endpoint, path),
        "{base}"
    );
    assert_eq!(
        (grant.private_addresses, grant.redirects),
        (ranges, 0),
        "{base}"
    );
    assert_eq!(
        (grant.schemes, grant.ports),
        (vec![read.0.scheme()], Some(vec![read.0.port()]))
    );
}

#[test]
fn what_may_be_sent_follows_from_the_base_url() {
    for (base, endpoint, path, private) in [
        (
            "https://api.openai.com/v1",
            "https://api.openai.com/v1/x",
            "/v1/**",
            vec![],
        ),
        (
            "https://api.anthropic.com",
            "https://api.anthropic.com/x",
            "/**",
            vec![],
        ),
        (
            "http://127.0.0.1:8080/v1/",
            "http://127.0.0.1:8080/v1/x",
            "/v1/**",
            vec!["127.0.0.1"],
        ),
        (
            "http://10.1.2.3/",
            "http://10.1.2.3/x",
            "/**",
            vec!["10.1.2.3"],
        ),
        (
            "http://[fd00::1]:1",
            "http://[fd00::1]:1/x",
            "/**",
            vec!["fd00::1"],
        ),
        (
            "http://LOCALHOST:1",
            "http://localhost:1/x",
            "/**",
            vec!["127.0.0.0/8", "::1"],
        ),
        (
            "http://model.internal",
            "http://model.internal/x",
            "/**",
            vec![],
        ),
        // Whoever means it names it in `privateAddresses`.
        (
            "http://169.254.169.254",
            "http://169.254.169.254/x",
            "/**",
            vec![],
        ),
    ] {
        check(base, endpoint, path, &private);
    }
}
