-- What is stored: never changed once it is there, except that a payload may be erased together with its salt.

CREATE TABLE meta (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The last event's position and hash: tells a missing tail from a short history.
CREATE TABLE head (
    id       INTEGER PRIMARY KEY CHECK (id = 1),
    position INTEGER NOT NULL,
    hash     BLOB    NOT NULL
) STRICT;
INSERT INTO head VALUES (1, 0, zeroblob(32));

CREATE TABLE events (
    position       INTEGER PRIMARY KEY,
    stream         TEXT    NOT NULL,
    version        INTEGER NOT NULL,
    id             TEXT    NOT NULL,
    kind           TEXT    NOT NULL,
    agent          TEXT,
    session        TEXT,
    run            TEXT,
    actor          TEXT    NOT NULL,
    causation      TEXT,
    correlation    TEXT,
    time           INTEGER NOT NULL,
    salt           BLOB,
    payload        BLOB,
    payload_digest BLOB    NOT NULL,
    hash           BLOB    NOT NULL,
    UNIQUE (stream, version)
) STRICT;
CREATE INDEX events_by_agent ON events (agent, position) WHERE agent IS NOT NULL;
CREATE INDEX events_by_session ON events (session, position) WHERE session IS NOT NULL;

CREATE TABLE blobs (
    digest BLOB NOT NULL PRIMARY KEY,
    bytes  BLOB NOT NULL
) STRICT;

CREATE TABLE idempotency (
    source  TEXT    NOT NULL,
    key     TEXT    NOT NULL,
    request BLOB    NOT NULL,
    reply   BLOB    NOT NULL,
    time    INTEGER NOT NULL,
    PRIMARY KEY (source, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_by_time ON idempotency (time);

CREATE TABLE snapshots (
    stream  TEXT    NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    format  INTEGER NOT NULL,
    state   BLOB    NOT NULL
) STRICT;

-- Projections: everything below follows from the events and can be dropped and folded again.

CREATE TABLE agents (
    id         TEXT    NOT NULL PRIMARY KEY,
    agent      TEXT    NOT NULL,
    path       TEXT    NOT NULL,
    parent     TEXT,
    slot       TEXT,
    version    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    active     INTEGER NOT NULL,
    sub_count  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX agents_by_path ON agents (path) WHERE active = 1;

CREATE TABLE sessions (
    id           TEXT    NOT NULL PRIMARY KEY,
    agent        TEXT    NOT NULL,
    session_type TEXT    NOT NULL,
    name         TEXT,
    head         BLOB,
    head_message INTEGER NOT NULL,
    revision     INTEGER NOT NULL,
    state        BLOB    NOT NULL,
    model        TEXT,
    status       TEXT    NOT NULL,
    open_run     TEXT,
    started_by   TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    last_snippet TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_agent ON sessions (agent, updated_at);
CREATE INDEX sessions_running ON sessions (id) WHERE open_run IS NOT NULL;

-- What an input says stands in the event at its position.
CREATE TABLE inputs (
    id       TEXT    NOT NULL PRIMARY KEY,
    session  TEXT    NOT NULL,
    position INTEGER NOT NULL,
    state    TEXT    NOT NULL,
    words    INTEGER NOT NULL,
    run      TEXT,
    due      INTEGER,
    died     INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX inputs_waiting ON inputs (session, position, due, words) WHERE state = 'waiting';
CREATE INDEX inputs_claimed ON inputs (run) WHERE state = 'claimed';
CREATE INDEX inputs_dead ON inputs (died) WHERE state = 'dead';

CREATE TABLE runs (
    id         TEXT    NOT NULL PRIMARY KEY,
    session    TEXT    NOT NULL,
    agent      TEXT    NOT NULL,
    turn       BLOB,
    outcome    TEXT,
    started_at INTEGER NOT NULL,
    ended_at   INTEGER
) STRICT, WITHOUT ROWID;

-- The outbox: what was started and has not settled.
CREATE TABLE operations (
    id      BLOB NOT NULL PRIMARY KEY,
    run     TEXT NOT NULL,
    session TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX operations_by_run ON operations (run);

CREATE TABLE turns (
    id            BLOB    NOT NULL PRIMARY KEY,
    parent        BLOB,
    jump          BLOB,
    jump_message  INTEGER,
    depth         INTEGER NOT NULL,
    run           TEXT    NOT NULL,
    first_message INTEGER NOT NULL,
    last_message  INTEGER NOT NULL,
    session_state BLOB    NOT NULL,
    node          TEXT    NOT NULL
) STRICT;

CREATE TABLE messages (
    run     TEXT    NOT NULL,
    id      INTEGER NOT NULL,
    role    TEXT    NOT NULL,
    message TEXT    NOT NULL,
    PRIMARY KEY (run, id)
) STRICT;

CREATE TABLE wakes (
    subject TEXT    NOT NULL,
    kind    TEXT    NOT NULL,
    session TEXT    NOT NULL,
    due     INTEGER NOT NULL,
    PRIMARY KEY (subject, kind)
) STRICT, WITHOUT ROWID;
CREATE INDEX wakes_by_due ON wakes (due, session);

-- One row for each message of a committed turn and each note that recall can find; the index holds their words only.
CREATE TABLE recall (
    id        INTEGER PRIMARY KEY,
    session   TEXT    NOT NULL,
    turn      BLOB,
    run       TEXT,
    message   INTEGER,
    note      TEXT,
    untrusted INTEGER NOT NULL,
    time      INTEGER NOT NULL
) STRICT;
CREATE VIRTUAL TABLE recall_index USING fts5 (agent, body, content = '', tokenize = 'unicode61 remove_diacritics 2');
