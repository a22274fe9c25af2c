//! The shares of users and keys, by a clock that stands.

use super::*;
use domain::key::KEY_ID_CHARS;
use domain::time::Timestamp;

#[tokio::test(start_paused = true)]
async fn so_many_at_once_and_then_as_many_as_time_brings() {
    let interval = Duration::from_millis(100);
    let burst = Duration::from_secs(2);
    let mut rate = Rate::default();
    let taken = |rate: &mut Rate| {
        (0..100)
            .filter(|_| rate.take(Instant::now(), interval, burst).is_ok())
            .count()
    };
    assert_eq!(taken(&mut rate), 20);
    tokio::time::advance(Duration::from_millis(350)).await;
    assert_eq!(taken(&mut rate), 3);
    assert!(
        rate.take(Instant::now(), interval, burst)
            .is_err_and(|wait| wait <= interval)
    );
    tokio::time::advance(Duration::from_secs(3_600)).await;
    assert!(rate.is_idle(Instant::now()));
    assert_eq!(taken(&mut rate), 20);
    rate.give_back(interval);
    assert_eq!(taken(&mut rate), 1);
    // One in a while is let happen whatever the burst is.
    assert!(
        Rate::default()
            .take(Instant::now(), Duration::from_secs(60), burst)
            .is_ok()
    );
}

/// A user's caller with a key of this letter.
fn with_key(letter: &str) -> Caller {
    Caller {
        credential: Credential::Key {
            id: letter.repeat(KEY_ID_CHARS).parse().unwrap(),
            expires_at: Timestamp(u64::MAX),
        },
        ..Caller::local()
    }
}

#[tokio::test(start_paused = true)]
async fn what_one_key_is_refused_leaves_its_users_other_keys_their_requests() {
    let limits = Limits {
        user_requests_per_second_max: 10,
        key_requests_per_second_max: 4,
        ..Limits::default()
    };
    let quotas = Quotas::default();
    let [greedy, other] = ["a", "b"].map(with_key);
    let admitted = |caller: &Caller| {
        (0..100)
            .filter(|_| quotas.request(caller, &limits).is_ok())
            .count()
    };
    assert_eq!(admitted(&greedy), 8, "two seconds' worth of the key's");
    let refused = quotas.request(&greedy, &limits).unwrap_err();
    assert_eq!(refused.code.as_str(), "KEY_REQUEST_LIMIT");
    let reported = refused.detail.as_str();
    assert!(
        reported.contains("(server.limits.keyRequestsPerSecondMax)"),
        "{reported}"
    );
    assert_eq!(admitted(&other), 8);
    let third = with_key("c");
    assert_eq!(admitted(&third), 4, "the rest of the user's");
    let refused = quotas.request(&third, &limits).unwrap_err();
    assert_eq!(refused.code.as_str(), "USER_REQUEST_LIMIT");
    let reported = refused.detail.as_str();
    assert!(
        reported.contains("(server.limits.userRequestsPerSecondMax)"),
        "{reported}"
    );
}

#[tokio::test(start_paused = true)]
async fn who_has_nothing_is_looked_for_once_a_second_and_not_at_every_request() {
    let limits = Limits::default();
    let quotas = Quotas::default();
    let add_idle = || {
        for number in 0..=HOLDERS_KEPT {
            let user = format!("user{number}").parse().unwrap();
            quotas
                .lock()
                .of
                .insert(Holder::User(user), Share::default());
        }
    };
    let remembered = || {
        quotas.request(&with_key("a"), &limits).unwrap();
        quotas.lock().of.len()
    };
    add_idle();
    assert_eq!(remembered(), 2, "the user and the key");
    add_idle();
    assert_eq!(remembered(), HOLDERS_KEPT + 3);
    tokio::time::advance(Duration::from_millis(SWEEP_MS)).await;
    assert_eq!(remembered(), 2);
    let _wait = quotas.wait(&with_key("b"), &limits).unwrap();
    add_idle();
    tokio::time::advance(Duration::from_millis(SWEEP_MS)).await;
    assert_eq!(remembered(), 3, "and the key that waits for a reply");
}
