//! Tests of what stays behind: connections, permits, budgets, records.

use crate::fixture::{Answers, PATIENCE_MS, Server, World, grant, ok, say, wait_for_end};
use agent_host_egress::{ByteBudget, EgressError, GuestError, Limits};
use std::time::Duration;
use tokio::time::timeout;

fn stalling() -> Server {
    Server::script(|stream, _| {
        say(stream, "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf");
        wait_for_end(stream);
    })
}

#[tokio::test]
async fn whoever_stops_waiting_ends_the_connection() {
    let silent = Server::script(|stream, _| wait_for_end(stream));
    let world = World::new();
    let url = silent.url();
    let grants = [silent.grant()];
    assert!(
        timeout(Duration::from_millis(100), world.get(&url, &grants))
            .await
            .is_err()
    );
    silent.wait_for_open(0);
    let record = world.records().remove(0);
    assert_eq!((record.outcome, record.status), ("dropped", None));
    assert!(record.bytes_out > 0 && record.ms >= 90);
}

#[tokio::test]
async fn whoever_drops_a_body_ends_the_connection() {
    let server = stalling();
    let world = World::new();
    let response = world.get_from(&server).await;
    assert_eq!(world.records().len(), 0);
    server.wait_for_open(1);
    drop(response);
    server.wait_for_open(0);
    let record = world.records().remove(0);
    assert_eq!((record.outcome, record.status), ("dropped", Some(200)));
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd")
        .map(Iterator::count)
        .unwrap_or(0)
}

#[tokio::test]
async fn a_thousand_requests_leave_nothing_open() {
    let fine = Server::saying(ok("x"));
    let broken = Server::saying("nonsense");
    let world = World::new();
    let grants = [fine.grant(), broken.grant()];
    let good = fine.url();
    let bad = broken.url();
    let round = async |turn: usize| match turn % 4 {
        0 => assert!(world.read(&good, &grants).await.is_ok()),
        1 => assert!(world.read(&bad, &grants).await.is_err()),
        2 => drop(world.get(&good, &grants).await.unwrap()),
        _ => assert!(world.read("http://b.test/", &grants).await.is_err()),
    };
    for turn in 0..20 {
        round(turn).await;
    }
    fine.wait_for_open(0);
    broken.wait_for_open(0);
    let before = open_files();
    for turn in 0..1_000 {
        round(turn).await;
    }
    fine.wait_for_open(0);
    broken.wait_for_open(0);
    // Other tests open some meanwhile.
    let open = open_files();
    assert!(open < before + 100, "{open} open files, {before} before");
    assert_eq!(world.records().len(), 1_020);
}

#[tokio::test]
async fn a_component_fills_its_own_slots_and_not_those_of_others() {
    let server = stalling();
    let fine = Server::saying(ok("x"));
    let limits = Limits {
        in_flight_per_component_max: 2,
        in_flight_max: 3,
        queue_ms_max: 100,
        ..Limits::default()
    };
    let world = World::with(Answers::of(&[&["127.0.0.1"]]), limits);
    let grants = [server.grant(), fine.grant()];
    let url = server.url();
    let leased = [
        world.get(&url, &grants).await.unwrap(),
        world.get(&url, &grants).await.unwrap(),
    ];
    let error = world.get(&url, &grants).await.unwrap_err();
    assert_eq!((error.code(), error.seen()), ("busy", GuestError::Busy));
    let mut other = world.request(&fine.url());
    other.caller.component = "other".to_owned();
    let third = world.egress.send(other.clone(), &grants).await.unwrap();
    // The three of all are taken.
    other.caller.component = "third".to_owned();
    assert!(matches!(
        world.egress.send(other.clone(), &grants).await,
        Err(EgressError::Busy)
    ));
    drop(third);
    assert!(world.egress.send(other, &grants).await.is_ok());
    drop(leased);
    assert!(world.get(&url, &grants).await.is_ok());
}

#[tokio::test]
async fn a_lookup_that_nobody_waits_for_any_more_still_has_its_slot() {
    let limits = Limits {
        in_flight_per_component_max: 1,
        queue_ms_max: 50,
        resolve_ms_max: 50,
        ..Limits::default()
    };
    let world = World::with(Answers::never(), limits);
    let grants = [grant("a.test", 80)];
    assert_eq!(world.code("http://a.test/", &grants).await, "timed-out");
    assert_eq!(world.code("http://a.test/", &grants).await, "busy");
    assert_eq!(world.answers.asked(), 1);
}

#[tokio::test]
async fn a_budget_of_bytes_is_shared_and_ends_what_is_under_way() {
    let server = Server::saying(ok(&"x".repeat(100_000)));
    let world = World::new();
    let grants = [server.grant()];
    let mut request = world.request(&server.url());
    request.caller.budget = ByteBudget::of(150_000);
    let first = world.egress.send(request.clone(), &grants).await.unwrap();
    assert_eq!(first.body.read_all().await.unwrap().len(), 100_000);
    let second = world.egress.send(request.clone(), &grants).await.unwrap();
    assert!(matches!(
        second.body.read_all().await,
        Err(EgressError::BudgetSpent)
    ));
    let error = world
        .egress
        .send(request.clone(), &grants)
        .await
        .unwrap_err();
    assert_eq!(
        (error.code(), error.seen(), request.caller.budget.left()),
        ("budget-spent", GuestError::Denied, 0)
    );
    assert_eq!(server.heads().len(), 2);
    let outcomes: Vec<&str> = world
        .records()
        .iter()
        .map(|record| record.outcome)
        .collect();
    assert_eq!(outcomes, ["done", "budget-spent", "budget-spent"]);
}

#[tokio::test]
async fn a_request_can_be_sent_from_any_task() {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    let server = Server::saying(ok("x"));
    let world = World::new();
    let url = server.url();
    let grants = [server.grant()];
    let response = timeout(
        Duration::from_millis(PATIENCE_MS),
        is_send(world.get(&url, &grants)),
    )
    .await
    .unwrap()
    .unwrap();
    assert_eq!(is_send(response).body.read_all().await.unwrap(), "x");
}
