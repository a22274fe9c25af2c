//! Tests of what a call sees of a bucket that it has written to.

use super::*;
use crate::access::grant::Access;

fn grant() -> BucketGrant {
    BucketGrant::new("b", Access::ReadWrite)
}

fn text(value: &str) -> Option<Vec<u8>> {
    Some(value.as_bytes().to_vec())
}

/// The writes of a call, with what it has spent and how large the bucket would be.
struct Call {
    overlay: Overlay,
    spent: Spent,
    grant: BucketGrant,
}

impl Call {
    fn new(grant: BucketGrant, keys: u64, bytes: u64) -> Self {
        Self {
            overlay: Overlay::over(BucketSize { keys, bytes }),
            spent: Spent::default(),
            grant,
        }
    }

    fn put(&mut self, key: &str, value: Option<Vec<u8>>, stored: Option<u64>) -> Result<(), Unfit> {
        self.overlay
            .put(key, value, stored, &self.grant, &mut self.spent)
    }

    fn sums(&self) -> (u64, u64, usize, usize) {
        (
            self.overlay.size.keys,
            self.overlay.size.bytes,
            self.spent.keys,
            self.spent.bytes,
        )
    }
}

#[test]
fn a_call_sees_what_it_has_written_and_the_sums_follow() {
    let mut call = Call::new(grant(), 1, 6);
    call.put("new", text("12"), None).unwrap();
    assert_eq!(call.sums(), (2, 11, 1, 5));
    call.put("new", text("1"), None).unwrap();
    assert_eq!(call.sums(), (2, 10, 1, 4));
    call.put("old", text("1"), Some(3)).unwrap();
    assert_eq!(call.sums(), (2, 8, 2, 8));
    call.put("old", None, Some(3)).unwrap();
    assert_eq!(call.sums(), (1, 4, 2, 7));
    call.put("new", None, None).unwrap();
    assert_eq!(
        call.sums(),
        (0, 0, 1, 3),
        "what was never stored leaves nothing to write"
    );
    call.put("never", None, None).unwrap();
    assert_eq!(call.sums(), (0, 0, 1, 3));
    assert_eq!(
        (call.overlay.get("old"), call.overlay.get("new")),
        (Some(None), None)
    );
    assert_eq!(
        call.overlay.into_entries(),
        [WrittenEntry {
            key: "old".to_owned(),
            value: WrittenValue::Deleted
        }]
    );
}

#[test]
fn what_meets_a_limit_changes_nothing() {
    let mut call = Call::new(
        BucketGrant {
            bytes_max: 8,
            keys_max: 2,
            ..grant()
        },
        1,
        4,
    );
    call.put("a", text("123"), None).unwrap();
    let before = call.sums();
    for (key, value, expected) in [
        ("", text(""), Unfit::EmptyKey),
        ("b", text(""), Unfit::QuotaKeys { max: 2 }),
        ("a", text("1234"), Unfit::QuotaBytes { max: 8 }),
        ("a", Some(vec![0; VALUE_BYTES_MAX + 1]), Unfit::LongValue),
    ] {
        assert_eq!(call.put(key, value, None), Err(expected), "{key}");
        assert_eq!(call.sums(), before);
    }
    assert_eq!(call.overlay.get("a"), Some(Some(&b"123"[..])));
}

#[test]
fn one_call_writes_so_many_bytes_and_keys_and_no_more() {
    let mut call = Call::new(
        BucketGrant {
            bytes_max: u64::MAX,
            ..grant()
        },
        0,
        0,
    );
    for n in 0..15 {
        call.put(&format!("{n:02}"), Some(vec![0; VALUE_BYTES_MAX]), None)
            .unwrap();
    }
    assert_eq!(
        call.put("15", Some(vec![0; VALUE_BYTES_MAX]), None),
        Err(Unfit::WrittenBytes)
    );
    call.put("00", text("small"), None).unwrap();
    call.put("15", Some(vec![0; VALUE_BYTES_MAX]), None)
        .unwrap();

    let mut call = Call::new(
        BucketGrant {
            keys_max: u32::MAX,
            ..grant()
        },
        0,
        0,
    );
    for n in 0..KEYS_WRITTEN_MAX {
        call.put(&n.to_string(), text(""), None).unwrap();
    }
    assert_eq!(call.put("more", text(""), None), Err(Unfit::WrittenKeys));
    assert_eq!(call.put("more", None, Some(1)), Err(Unfit::WrittenKeys));
    call.put("1", None, None).unwrap();
    call.put("more", text(""), None).unwrap();
}

#[test]
fn pages_of_stored_and_written_keys_leave_out_none_and_repeat_none() {
    let all: Vec<String> = (0..2_500).map(|n| format!("k{n:04}")).collect();
    let mut call = Call::new(grant(), 2_500, 0);
    for (key, value, stored) in [
        ("a", text(""), None),
        ("k0500", None, Some(0)),
        ("k0999x", text(""), None),
        ("k1500", text(""), Some(0)),
        ("z", text(""), None),
    ] {
        call.put(key, value, stored).unwrap();
    }
    let mut seen = Vec::new();
    let mut after = None::<String>;
    let mut pages = 0;
    loop {
        let from = all.partition_point(|key| after.as_ref().is_some_and(|after| key <= after));
        let stored = all[from..]
            .iter()
            .take(PAGE_KEYS_MAX + 1)
            .cloned()
            .collect();
        let page = call.overlay.page(after.as_deref(), stored);
        assert!(page.keys.len() <= PAGE_KEYS_MAX);
        pages += 1;
        seen.extend(page.keys);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let mut expected: Vec<String> = all.into_iter().filter(|key| key != "k0500").collect();
    expected.extend(["a", "k0999x", "z"].map(str::to_owned));
    expected.sort();
    assert_eq!((seen == expected, pages), (true, 3));
}

#[test]
fn a_page_whose_keys_are_all_deleted_is_empty_and_not_the_last() {
    let stored: Vec<String> = (0..=PAGE_KEYS_MAX).map(|n| format!("{n:04}")).collect();
    let mut call = Call::new(grant(), 5_000, 50_000);
    for key in &stored {
        call.put(key, None, Some(1)).unwrap();
    }
    let page = call.overlay.page(None, stored.clone());
    assert_eq!(
        page,
        Page {
            keys: Vec::new(),
            next: stored.last().cloned()
        }
    );
}
