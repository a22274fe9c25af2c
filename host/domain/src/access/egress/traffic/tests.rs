//! Tests of the record of a call's traffic.

use super::*;

fn hop(host: &str, path: &str, verdict: &str) -> Hop {
    Hop {
        method: Method::Get,
        scheme: Some(Scheme::Https),
        host: Some(host.to_owned()),
        port: Some(443),
        path: Some(path.to_owned()),
        status: None,
        verdict: verdict.to_owned(),
        bytes_in: 1,
        bytes_out: 2,
        ms: 3,
        times: 1,
    }
}

#[test]
fn a_request_after_any_number_of_decoys_is_on_record() {
    let mut traffic = Traffic::default();
    assert!(traffic.is_empty());
    (0..HOPS_RECORDED_MAX).for_each(|_| traffic.add(hop("decoy", "/", "not-granted")));
    (0..1_000).for_each(|n| traffic.add(hop("decoy", &format!("/{n}"), "not-granted")));
    traffic.add(Hop {
        status: Some(200),
        ..hop("target", "/secret", "done")
    });
    traffic.add(Hop {
        status: Some(200),
        ..hop("target", "/secret", "done")
    });
    assert_eq!(
        (traffic.hops.len(), traffic.is_full()),
        (HOPS_RECORDED_MAX + 2, false)
    );
    let [decoys, target] = &traffic.hops[HOPS_RECORDED_MAX..] else {
        panic!("{traffic:?}")
    };
    assert_eq!(
        (decoys.times, decoys.bytes_out, decoys.ms, &decoys.path),
        (1_000, 2_000, 3_000, &None)
    );
    assert_eq!(
        (target.times, target.status, target.path.as_deref()),
        (2, Some(200), Some("/secret"))
    );
}

#[test]
fn a_record_that_is_full_says_so_and_loses_nothing() {
    let mut traffic = Traffic::default();
    (0..HOP_KINDS_MAX).for_each(|n| traffic.add(hop(&format!("h{n}"), &"/x".repeat(400), "done")));
    assert!(traffic.is_full());
    assert!(
        traffic
            .hops
            .iter()
            .skip(HOPS_RECORDED_MAX)
            .all(|hop| hop.path.is_none())
    );
    traffic.add(hop("one-more", "/", "done"));
    assert_eq!(
        traffic.hops.last().unwrap().host.as_deref(),
        Some("one-more")
    );
}
