//! Tests of the form of a key and of who may issue which.

use super::*;

const NOW: Timestamp = Timestamp(1_700_000_000_000);

fn key() -> ApiKey {
    ApiKey::new(
        KeyId::of([0, 1, 25, 26, 31, 32, 255, 7, 8, 9, 10, 11]),
        [0xab; KEY_SECRET_BYTES],
    )
}

#[test]
fn a_key_reads_what_it_writes_and_nothing_else() {
    let text = key().expose();
    assert_eq!(text, format!("ahk_abz27a7hijkl_{}", "ab".repeat(32)));
    assert_eq!(ApiKey::parse(&text), Some(key()));
    for wrong in [
        String::new(),
        "ahk_".to_owned(),
        "ahk_abz27a7hijkl_".to_owned(),
        text.to_uppercase(),
        text.replace("ahk_", "key_"),
        text.replace("abz27a7hijkl", "abz27a7hijk"),
        text.replace("abz27a7hijkl", "abz27a7hijk1"),
        text.replace("_ab", "_AB"),
        format!("{text}0"),
        format!("{text} "),
        text.trim_end_matches('b').to_owned(),
    ] {
        assert_eq!(ApiKey::parse(&wrong), None, "{wrong}");
    }
}

#[test]
fn nothing_prints_the_secret_of_a_key() {
    let printed = format!(
        "{:?} {:#?} {:?}",
        key(),
        key(),
        key().expose().parse::<KeyId>().unwrap_err().to_string()
    );
    assert!(
        printed.contains("abz27a7hijkl") && !printed.contains("abab"),
        "{printed}"
    );
    assert_eq!(key().hash(), Digest::of(&[0xab; 32]));
}

fn issuer(scopes: &[Scope]) -> Issuer {
    Issuer {
        user: "alice".parse().unwrap(),
        scopes: scopes.iter().copied().collect(),
        key: None,
    }
}

fn asked(scopes: &[Scope]) -> NewKey {
    let user = "alice".parse().unwrap();
    let scopes = scopes.iter().copied().collect();
    NewKey {
        user,
        name: "laptop".to_owned(),
        scopes,
        lifetime_s: Some(KEY_LIFETIME_S.1),
    }
}

/// The code and the field of the refusal.
fn refused(issuer: &Issuer, asked: &NewKey) -> Option<(&'static str, String)> {
    may_issue(issuer, asked, NOW)
        .err()
        .map(|refusal| (refusal.code.as_str(), refusal.field.unwrap()))
}

#[test]
fn a_key_is_never_good_for_more_than_what_issued_it() {
    let all = Scope::ALL;
    let sets = |bits: usize| -> Vec<Scope> {
        (0..4)
            .filter(|bit| bits & (1 << bit) != 0)
            .map(|bit| all[bit])
            .collect()
    };
    for (has, wants) in (0..16).flat_map(|has| (1..16).map(move |wants| (has, wants))) {
        let refused = refused(&issuer(&sets(has)), &asked(&sets(wants)));
        let expected = (wants & !has != 0).then(|| ("SCOPE_MISSING", "/scopes".to_owned()));
        assert_eq!(refused, expected, "{has:04b} issues {wants:04b}");
    }
}

#[test]
fn only_an_administrator_issues_keys_for_others() {
    let other = NewKey {
        user: "bob".parse().unwrap(),
        ..asked(&[Scope::Read])
    };
    let user = || Some(("SCOPE_MISSING", "/user".to_owned()));
    assert_eq!(
        refused(&issuer(&[Scope::Read, Scope::Write, Scope::Keys]), &other),
        user()
    );
    assert_eq!(refused(&issuer(&[Scope::Read, Scope::Admin]), &other), None);
    let more = NewKey {
        scopes: [Scope::Write].into(),
        ..other
    };
    assert_eq!(
        refused(&issuer(&[Scope::Read, Scope::Admin]), &more),
        Some(("SCOPE_MISSING", "/scopes".to_owned()))
    );
}

#[test]
fn what_is_wrong_with_a_key_that_is_asked_for_is_told_with_its_field() {
    let by = issuer(&Scope::ALL);
    let fine = asked(&[Scope::Read]);
    let wrong = |field: &str| Some(("INVALID", field.to_owned()));
    let (least, _, most) = KEY_LIFETIME_S;
    assert_eq!(
        refused(
            &by,
            &NewKey {
                scopes: BTreeSet::new(),
                ..fine.clone()
            }
        ),
        wrong("/scopes")
    );
    assert_eq!(
        refused(
            &by,
            &NewKey {
                name: "x".repeat(101),
                ..fine.clone()
            }
        ),
        wrong("/name")
    );
    assert_eq!(
        refused(
            &by,
            &NewKey {
                name: "a\nb".to_owned(),
                ..fine.clone()
            }
        ),
        wrong("/name")
    );
    for (lifetime_s, expected) in [
        (0, wrong("/expires_in_s")),
        (least - 1, wrong("/expires_in_s")),
        (least, None),
        (most, None),
    ] {
        assert_eq!(
            refused(
                &by,
                &NewKey {
                    lifetime_s: Some(lifetime_s),
                    ..fine.clone()
                }
            ),
            expected,
            "{lifetime_s}"
        );
    }
    assert_eq!(
        refused(
            &by,
            &NewKey {
                lifetime_s: Some(u64::MAX),
                ..fine
            }
        ),
        wrong("/expires_in_s")
    );
}

#[test]
fn a_key_that_is_issued_with_a_key_does_not_outlast_it() {
    let fine = asked(&[Scope::Read]);
    let with = |ends| Issuer {
        key: Some((key().id().clone(), ends)),
        ..issuer(&Scope::ALL)
    };
    let by = issuer(&Scope::ALL);
    assert_eq!(refused(&with(fine.expires_at(&by, NOW)), &fine), None);
    let earlier = Timestamp(fine.expires_at(&by, NOW).0 - 1);
    assert_eq!(
        refused(&with(earlier), &fine),
        Some(("INVALID", "/expires_in_s".to_owned()))
    );
    // Whoever does not say how long gets as long as there is.
    let unsaid = NewKey {
        lifetime_s: None,
        ..fine
    };
    assert_eq!(
        (
            refused(&with(earlier), &unsaid),
            unsaid.expires_at(&with(earlier), NOW)
        ),
        (None, earlier)
    );
    let days = NOW.plus_ms(KEY_LIFETIME_S.1 * 1_000);
    assert_eq!(
        (
            unsaid.expires_at(&by, NOW),
            unsaid.expires_at(&with(days.plus_ms(1)), NOW)
        ),
        (days, days)
    );
}

#[test]
fn a_key_ends_with_its_time_or_before() {
    assert_eq!(ended(Timestamp(10), None, Timestamp(9)), None);
    assert_eq!(
        ended(Timestamp(10), None, Timestamp(10)),
        Some(Ended::Expired)
    );
    assert_eq!(
        ended(Timestamp(10), Some(Timestamp(5)), Timestamp(6)),
        Some(Ended::Revoked)
    );
    assert_eq!(
        ended(Timestamp(10), Some(Timestamp(5)), Timestamp(11)),
        Some(Ended::Revoked)
    );
}
