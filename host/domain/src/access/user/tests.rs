//! Tests of the ids of users.

use super::{Naming, UserId};

#[test]
fn a_user_id_can_stand_in_a_path() {
    for good in ["local", "alice", "Bob.2", "carol@example.org", "0-a_b"] {
        assert!(good.parse::<UserId>().is_ok(), "{good}");
    }
    for bad in [
        "",
        "-a",
        ".hidden",
        "a/b",
        "a b",
        "agent",
        "system",
        "ä",
        "a\n",
        &"x".repeat(65),
    ] {
        assert!(bad.parse::<UserId>().is_err(), "{bad}");
    }
}

#[test]
fn a_claim_never_passes_for_the_hosts_own_user_or_for_an_id_that_was_made() {
    let user =
        |issuer: &str, claim: &str| UserId::of_claim(issuer, claim, Naming::Plain).to_string();
    for plain in ["alice", "00u1b2c3", "alice@example.org"] {
        assert_eq!(user("https://a.example", plain), plain);
    }
    for odd in [
        "local",
        "auth0|5f7c",
        "system",
        "",
        "oidc-0123",
        "a b",
        &"x".repeat(65),
    ] {
        let made = user("https://a.example", odd);
        assert!(
            made.starts_with("oidc-") && made.len() == 37 && made.parse::<UserId>().is_ok(),
            "{odd}: {made}"
        );
        assert_eq!(
            made,
            user("https://a.example", odd),
            "the same whenever it is made"
        );
        assert_ne!(made, user("https://b.example", odd), "{odd}");
        assert_ne!(
            made,
            user("https://b.example", &made),
            "nobody else says what was made"
        );
    }
}

#[test]
fn two_issuers_never_mean_the_same_user_by_one_claim_unless_one_of_them_is_plain() {
    let user = |issuer: &str, claim: &str| UserId::of_claim(issuer, claim, Naming::ByIssuer);
    for claim in ["alice", "local", "auth0|5f7c", "oidc-0123"] {
        let of_a = user("https://a.example", claim);
        let of_b = user("https://b.example", claim);
        assert!(of_a != of_b && of_a.as_str() != claim, "{claim}: {of_a}");
        assert_eq!(
            of_a,
            user("https://a.example", claim),
            "the same whenever it is made"
        );
        assert!(of_a.as_str().parse::<UserId>().is_ok(), "{of_a}");
        assert_ne!(
            of_a,
            UserId::of_claim("https://b.example", claim, Naming::Plain),
            "{claim}"
        );
    }
    // What is long or has separators in it cannot be shifted from one to the other.
    assert_ne!(
        user("https://a.example", "b|c"),
        user("https://a.example|b", "c")
    );
    // An odd claim is called the same by either rule.
    assert_eq!(
        user("https://a.example", "a b"),
        UserId::of_claim("https://a.example", "a b", Naming::Plain)
    );
}
