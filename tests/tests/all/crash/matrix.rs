//! The matrix of the crash points at which the process is to die, by conversation.

use super::conversation::Conversation;

/// A crash point, and the passages of it at which the process is to die.
pub(super) type Point = (&'static str, &'static [u32]);
/// Conversations, and the crash points at which the process is to die in them.
pub(super) type Matrix = &'static [(Conversation, &'static [Point])];
/// The crash points for one agent with its users and its tools.
pub(super) const MATRIX: Matrix = &[
    (
        Conversation::Work,
        &[
            ("store.commit.begin", &[1, 2, 3, 5, 8, 13]),
            ("store.commit.inserted", &[1, 2, 3, 4, 6, 9, 14]),
            ("store.commit.committed", &[1, 2, 3, 4, 7, 10, 15]),
            ("broker.accept.before", &[1, 2, 3]),
            ("broker.accept.after", &[1, 2, 3]),
            ("broker.step.before", &[1, 2, 5]),
            ("broker.step.after", &[1, 2, 5]),
            ("broker.commit.before", &[1, 2, 4]),
            ("broker.commit.after", &[1, 2, 4]),
            ("broker.started.after", &[1, 2, 3]),
            ("broker.perform.before", &[1, 2, 3, 6]),
            ("broker.perform.after", &[1, 2, 3, 6]),
            ("broker.settle.before", &[1, 2, 3, 4]),
            ("broker.settle.after", &[1, 2, 3, 4]),
            ("broker.timer.due", &[1, 2]),
            ("broker.timer.fired", &[1, 2]),
            ("api.answered", &[1, 3, 4]),
            ("api.stream.pushed", &[1, 7, 20]),
            ("store.open.created", &[1]),
            ("store.open.migrated", &[1]),
            ("store.open.marked", &[1]),
            ("store.migrate", &[1, 2]),
            ("runtime.cache.write", &[1, 2]),
            ("store.checkpoint", &[1, 2]),
        ],
    ),
    (
        Conversation::People,
        &[
            ("store.commit.inserted", &[3, 5, 6, 7, 8, 9, 10, 12, 14, 16]),
            ("store.commit.committed", &[4, 5, 6, 7, 8, 9, 11, 13, 15]),
            ("broker.step.after", &[1, 2, 3, 4]),
            ("broker.commit.before", &[1, 2, 3, 4, 5]),
            ("broker.commit.after", &[1, 2, 3, 4, 5]),
            ("broker.started.after", &[1]),
            ("broker.perform.before", &[1, 2, 3]),
            ("broker.perform.after", &[1, 2]),
            ("broker.settle.before", &[1, 2, 3, 4]),
            ("broker.settle.after", &[1, 2, 3, 4]),
            ("broker.end.before", &[1]),
            ("broker.end.after", &[1]),
            ("broker.timer.due", &[1]),
            ("api.answered", &[6, 10]),
        ],
    ),
    (
        Conversation::Ends,
        &[
            (
                "store.commit.inserted",
                &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
            ),
            (
                "store.commit.committed",
                &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
            ),
            ("broker.step.after", &[1, 3, 5, 7]),
            ("broker.commit.after", &[1, 2, 3, 4]),
            ("broker.settle.before", &[1, 2, 3]),
            ("broker.settle.after", &[1, 2, 3]),
            ("broker.end.before", &[1, 2, 3]),
            ("broker.end.after", &[1, 2, 3]),
            ("broker.requeue.before", &[1]),
            ("broker.requeue.after", &[1]),
            ("api.answered", &[3, 5]),
        ],
    ),
    (
        Conversation::Repairs,
        &[
            ("store.commit.inserted", &[4, 5, 6]),
            ("store.commit.committed", &[4, 5, 6]),
            ("broker.attempt.before", &[1, 2]),
            ("broker.attempt.after", &[1, 2]),
            ("broker.perform.before", &[1]),
            ("broker.perform.after", &[1]),
        ],
    ),
    (
        Conversation::Begins,
        &[
            ("store.commit.inserted", &[1, 2, 3, 4, 5, 6, 7]),
            ("store.commit.committed", &[1, 2, 3, 4, 5, 6, 7]),
            ("broker.accept.before", &[1, 2, 3]),
            ("broker.accept.after", &[1, 2, 3]),
            ("api.answered", &[1, 2]),
        ],
    ),
    (Conversation::Backup, &[("store.backup", &[1])]),
    (
        Conversation::Rebuild,
        &[
            ("store.rebuild.folded", &[1]),
            ("store.rebuild.compared", &[1]),
            ("store.rebuild.replaced", &[1]),
            ("store.rebuild.committed", &[1]),
        ],
    ),
    (Conversation::Long, &[("store.snapshot", &[1])]),
];
/// The crash points for agents with each other: every commit of their talk, and every place between
/// two of them.
pub(super) const AMONG_AGENTS: Matrix = &[
    (
        Conversation::Exchanges,
        &[
            (
                "store.commit.inserted",
                &[3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14],
            ),
            (
                "store.commit.committed",
                &[3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14],
            ),
            ("broker.step.before", &[2, 3, 4, 5, 6]),
            ("broker.step.after", &[1, 2, 3, 4, 5, 6, 7]),
            ("broker.commit.before", &[1, 2, 3, 4, 5, 6, 7]),
            ("broker.commit.after", &[1, 2, 3, 4, 5, 6, 7]),
            ("broker.timer.due", &[1, 2]),
            ("broker.timer.fired", &[1, 2]),
        ],
    ),
    (
        Conversation::Graves,
        &[
            (
                "store.commit.inserted",
                &[3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13],
            ),
            (
                "store.commit.committed",
                &[3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13],
            ),
            ("broker.step.after", &[1, 2, 3, 4, 5, 6]),
            ("broker.commit.before", &[1, 2, 3, 4]),
            ("broker.commit.after", &[1, 2, 3, 4]),
            ("broker.end.before", &[1, 2]),
            ("broker.end.after", &[1, 2]),
        ],
    ),
];
