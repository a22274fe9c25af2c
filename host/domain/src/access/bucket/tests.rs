//! Tests of the keys, values and counters of a bucket.

use super::*;
use crate::access::grant::Access;

#[test]
fn a_key_has_1_to_256_bytes() {
    let exact = "é".repeat(KEY_BYTES_MAX / 2);
    let over = "x".repeat(KEY_BYTES_MAX + 1);
    for (key, expected) in [
        ("", Err(Unfit::EmptyKey)),
        ("a", Ok(())),
        (&exact, Ok(())),
        (&over, Err(Unfit::LongKey)),
    ] {
        assert_eq!(check_key(key), expected, "{} bytes", key.len());
    }
    assert_eq!(check_batch(vec!["a"; BATCH_KEYS_MAX].into_iter()), Ok(()));
    assert_eq!(
        check_batch(vec!["a"; BATCH_KEYS_MAX + 1].into_iter()),
        Err(Unfit::BatchKeys)
    );
    assert_eq!(check_batch(["a", ""].into_iter()), Err(Unfit::EmptyKey));
}

#[test]
fn a_counter_is_a_decimal_number_and_never_wraps() {
    let most = u64::MAX.to_string();
    for (value, delta, expected) in [
        (None, 3, Ok(3)),
        (Some("39"), 3, Ok(42)),
        (Some("007"), 1, Ok(8)),
        (Some(most.as_str()), 0, Ok(u64::MAX)),
        (Some(most.as_str()), 1, Err(Unfit::Overflow)),
        (Some("18446744073709551616"), 0, Err(Unfit::NoNumber)),
        (Some(""), 1, Err(Unfit::NoNumber)),
        (Some("+1"), 1, Err(Unfit::NoNumber)),
        (Some("-1"), 1, Err(Unfit::NoNumber)),
        (Some("1 "), 1, Err(Unfit::NoNumber)),
        (Some("one"), 1, Err(Unfit::NoNumber)),
    ] {
        assert_eq!(
            counted(value.map(str::as_bytes), delta),
            expected,
            "{value:?} + {delta}"
        );
    }
}

#[test]
fn a_full_bucket_may_shrink_and_not_grow() {
    let grant = BucketGrant {
        bytes_max: 10,
        keys_max: 2,
        ..BucketGrant::new("b", Access::ReadWrite)
    };
    let size = |keys, bytes| BucketSize { keys, bytes };
    for (from, to, expected) in [
        (size(0, 0), size(2, 10), Ok(())),
        (size(2, 10), size(2, 11), Err(Unfit::QuotaBytes { max: 10 })),
        (size(2, 2), size(3, 3), Err(Unfit::QuotaKeys { max: 2 })),
        (size(9, 90), size(8, 80), Ok(())),
        (size(9, 90), size(9, 90), Ok(())),
        (size(9, 90), size(8, 91), Err(Unfit::QuotaBytes { max: 10 })),
    ] {
        assert_eq!(grant.may_grow(from, to), expected, "{from:?} to {to:?}");
    }
}

#[test]
fn values_are_kept_as_text_where_they_are_text() {
    for (value, written) in [
        (Some(&b"plain\n"[..]), r#"{"text":"plain\n"}"#),
        (Some(b""), r#"{"text":""}"#),
        (Some(b"\0"), r#"{"hex":"00"}"#),
        (Some(b"\xff\x00"), r#"{"hex":"ff00"}"#),
        (None, r#""deleted""#),
    ] {
        let of = WrittenValue::of(value.map(<[u8]>::to_vec));
        assert_eq!(of.bytes(), value);
        assert_eq!(serde_json::to_string(&of).unwrap(), written);
        assert_eq!(serde_json::from_str::<WrittenValue>(written).unwrap(), of);
    }
}
