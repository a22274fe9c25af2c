//! Tests of the watch over timers: a session is woken whoever else stays due before it.

use super::host::{DUE_SESSIONS_MAX, Host, replies};
use crate::fresh;
use crate::journal::Context;
use crate::quarantine::{QuarantineCause, Quarantined};
use domain::account::Accounts;
use domain::authority::{Denies, Permissions};
use domain::event::{Event, InputAccepted, Source, Subject};
use domain::id::{SessionId, Stream};
use domain::message::{Draft, Role};
use domain::user::UserId;
use store::{Commit, Expected};

/// Stores a reminder that is due so many milliseconds from now, without notice to the host.
async fn remind(host: &Host, session: SessionId, in_ms: u64) {
    let time = host.broker.core.now();
    let accepted = InputAccepted {
        user_id: UserId::local(),
        message: Some(Draft::text(Role::User, "reminder", "now")),
        ..InputAccepted::of(
            session,
            fresh::input(),
            Source::Reminder {
                due: time.plus_ms(in_ms),
                depth: 0,
                spawn_depth: 0,
                hops: 0,
                denies: Denies::default(),
                permissions: Permissions::default(),
                accounts: Accounts::default(),
                deadline: None,
            },
            time,
        )
    };
    let context = Context {
        subject: Subject {
            session: Some(session),
            ..Subject::default()
        },
        ..Context::new("host", time)
    };
    let event = context.event(Event::InputAccepted(accepted));
    let commit = Commit::new().append(Stream::Session(session), Expected::Any, vec![event]);
    host.broker.core.store.commit(commit).await.unwrap();
}

#[tokio::test]
async fn sessions_in_quarantine_that_stay_due_keep_no_other_from_being_woken() {
    let host = Host::new().await;
    host.guest.steps([replies("on time")]);
    for _ in 0..=DUE_SESSIONS_MAX {
        let session = host.open().await;
        host.broker.core.quarantine.put(Quarantined {
            session,
            why: QuarantineCause::Skipped,
            reason: "a test".to_owned(),
            since: host.broker.core.now(),
        });
        remind(&host, session, 10).await;
    }
    remind(&host, host.session, 20).await;
    host.pass_ms(20);
    host.ended().await;
    assert_eq!(host.guest.news().len(), 1, "nobody else takes a step");
}

/// Nothing of a turn is stored before its first step has decided, so its reminder stays due.
#[tokio::test]
async fn busy_sessions_that_stay_due_keep_no_other_from_being_woken() {
    let host = Host::new().await;
    let blocked: Vec<_> = (0..DUE_SESSIONS_MAX)
        .map(|_| host.guest.blocked_step())
        .collect();
    host.guest.steps([replies("on time")]);
    for _ in 0..DUE_SESSIONS_MAX {
        remind(&host, host.open().await, 10).await;
    }
    host.pass_ms(10);
    host.stepped(DUE_SESSIONS_MAX).await;
    remind(&host, host.session, 10).await;
    host.pass_ms(10);
    host.ended().await;
    for step in blocked {
        step.send(replies("late")).unwrap();
    }
    host.undriven().await;
}
