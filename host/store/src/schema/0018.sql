-- Layout 18.

-- Triggers, with what follows from their occasions.

CREATE TABLE triggers (
    id              TEXT    NOT NULL PRIMARY KEY,
    name            TEXT    NOT NULL UNIQUE,
    kind            TEXT    NOT NULL,
    spec            TEXT    NOT NULL,
    origin          TEXT    NOT NULL,
    user_id         TEXT,
    agent           TEXT,
    enabled         INTEGER NOT NULL,
    paused          TEXT,
    next_due        INTEGER,
    due_position    INTEGER NOT NULL,
    state_format    INTEGER,
    state           BLOB,
    state_position  INTEGER,
    failures        INTEGER NOT NULL DEFAULT 0,
    schedule_errors INTEGER NOT NULL DEFAULT 0,
    open_until      INTEGER,
    defined_at      INTEGER NOT NULL,
    removed_at      INTEGER
) STRICT;
CREATE INDEX triggers_due ON triggers (next_due, name) WHERE next_due IS NOT NULL AND enabled = 1 AND paused IS NULL;
CREATE INDEX triggers_by_name ON triggers (name) WHERE removed_at IS NULL;
CREATE INDEX triggers_by_kind ON triggers (kind, name) WHERE removed_at IS NULL;
CREATE INDEX triggers_by_user ON triggers (user_id, name) WHERE user_id IS NOT NULL AND removed_at IS NULL;
CREATE INDEX triggers_by_agent ON triggers (agent, name) WHERE agent IS NOT NULL AND removed_at IS NULL;
CREATE INDEX triggers_held_up ON triggers (open_until) WHERE open_until IS NOT NULL;

-- The agents that made triggers, also of those that are gone: the purge of an agent takes them along.

CREATE TABLE trigger_makers (
    agent TEXT NOT NULL,
    id    TEXT NOT NULL,
    name  TEXT NOT NULL,
    PRIMARY KEY (agent, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX trigger_makers_by_trigger ON trigger_makers (id);

-- Occasions of triggers, and those that were passed over, which have no id. What they say stands in the events at the positions that a row names.
-- Of each trigger the oldest one that is open is the first: the others wait for it.

CREATE TABLE occasions (
    position     INTEGER PRIMARY KEY,
    id           TEXT    UNIQUE,
    trigger_name TEXT    NOT NULL,
    state        TEXT    NOT NULL,
    is_first     INTEGER NOT NULL DEFAULT 0,
    attempts     INTEGER NOT NULL DEFAULT 0,
    next_try     INTEGER NOT NULL,
    fired        INTEGER,
    fired_at     INTEGER,
    messages     INTEGER NOT NULL DEFAULT 0,
    posted       INTEGER,
    failed       INTEGER,
    stuck        INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX occasions_by_trigger ON occasions (trigger_name);
CREATE INDEX occasions_open ON occasions (trigger_name) WHERE state IN ('waiting', 'fired');
CREATE INDEX occasions_due ON occasions (next_try) WHERE is_first = 1;
CREATE INDEX occasions_fired ON occasions (trigger_name, fired_at) WHERE fired_at IS NOT NULL;

-- The sessions that took a message of an occasion.

CREATE TABLE occasion_sessions (
    session  TEXT NOT NULL,
    occasion TEXT NOT NULL,
    PRIMARY KEY (session, occasion)
) STRICT, WITHOUT ROWID;
CREATE INDEX occasion_sessions_by_occasion ON occasion_sessions (occasion);

-- How far connectors have come.

CREATE TABLE connectors (
    id              TEXT    NOT NULL PRIMARY KEY,
    name            TEXT    NOT NULL,
    cursor          TEXT,
    cursor_position INTEGER,
    trouble         TEXT,
    troubled_at     INTEGER
) STRICT, WITHOUT ROWID;

-- What arrived from people outside: each by the event that has it, and its place there. Rows stay as long as the events say it: only the look for
-- what has arrived before stops after some days. Of each chat the oldest one that is open is the first.

CREATE TABLE arrivals (
    position   INTEGER NOT NULL,
    place      INTEGER NOT NULL,
    id         TEXT    NOT NULL UNIQUE,
    connector  TEXT    NOT NULL,
    chat       TEXT    NOT NULL,
    message    TEXT    NOT NULL,
    received   INTEGER NOT NULL,
    is_first   INTEGER NOT NULL DEFAULT 0,
    outcome    TEXT,
    settled_at INTEGER,
    session    TEXT,
    PRIMARY KEY (position, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX arrivals_open ON arrivals (connector, received, position, place) WHERE outcome IS NULL;
CREATE INDEX arrivals_open_in_chats ON arrivals (connector, chat, received, position, place) WHERE outcome IS NULL;
CREATE INDEX arrivals_first ON arrivals (received) WHERE is_first = 1;
CREATE INDEX arrivals_first_in_chats ON arrivals (connector, chat) WHERE is_first = 1;
CREATE INDEX arrivals_by_message ON arrivals (connector, message, received);
CREATE INDEX arrivals_by_time ON arrivals (connector, received);
CREATE INDEX arrivals_by_session ON arrivals (session) WHERE session IS NOT NULL;

-- The outbox to people outside, in the order in which things were said. What they say stands in the event at the position. Of each chat the oldest
-- one that is open is the first: the others wait for it.

CREATE TABLE deliveries (
    position    INTEGER PRIMARY KEY,
    id          BLOB    NOT NULL UNIQUE,
    connector   TEXT    NOT NULL,
    chat        TEXT    NOT NULL,
    session     TEXT,
    run         TEXT,
    operation   BLOB,
    state       TEXT    NOT NULL,
    is_first    INTEGER NOT NULL DEFAULT 0,
    attempts    INTEGER NOT NULL DEFAULT 0,
    piece       INTEGER NOT NULL DEFAULT 0,
    next_try    INTEGER NOT NULL,
    service_ids TEXT    NOT NULL,
    reason      TEXT,
    queued_at   INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    last        INTEGER NOT NULL
) STRICT;
CREATE INDEX deliveries_by_connector ON deliveries (connector);
CREATE INDEX deliveries_by_state ON deliveries (connector, state);
CREATE INDEX deliveries_by_chat ON deliveries (connector, chat);
CREATE INDEX deliveries_open ON deliveries (connector, chat) WHERE state IN ('queued', 'started', 'failed');
CREATE INDEX deliveries_due ON deliveries (next_try) WHERE is_first = 1 AND state IN ('queued', 'failed');
CREATE INDEX deliveries_started ON deliveries (connector, chat) WHERE state = 'started';
CREATE INDEX deliveries_in_flight ON deliveries (state) WHERE state = 'started';
CREATE INDEX deliveries_by_session ON deliveries (session) WHERE session IS NOT NULL;
CREATE INDEX deliveries_by_run ON deliveries (run) WHERE run IS NOT NULL;
CREATE INDEX deliveries_of_questions ON deliveries (connector, chat) WHERE operation IS NOT NULL;
CREATE INDEX deliveries_by_operation ON deliveries (operation) WHERE operation IS NOT NULL;

-- Pairing codes that were offered and are not settled.

CREATE TABLE pairings (
    key        TEXT    NOT NULL PRIMARY KEY,
    connector  TEXT    NOT NULL,
    name       TEXT,
    chat       TEXT    NOT NULL,
    code       TEXT    NOT NULL,
    offered_at INTEGER NOT NULL,
    expires    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX pairings_by_code ON pairings (code);
CREATE INDEX pairings_by_connector ON pairings (connector, expires);
CREATE INDEX pairings_by_time ON pairings (expires);

-- The trigger and occasion that an input comes of, and the chat that it came from.
ALTER TABLE inputs ADD COLUMN trigger_name TEXT;
ALTER TABLE inputs ADD COLUMN occasion TEXT;
ALTER TABLE inputs ADD COLUMN connector TEXT;
ALTER TABLE inputs ADD COLUMN chat TEXT;
CREATE INDEX inputs_of_triggers ON inputs (trigger_name, arrived) WHERE trigger_name IS NOT NULL;
CREATE INDEX inputs_of_triggers_open ON inputs (arrived) WHERE trigger_name IS NOT NULL AND state IN ('waiting', 'claimed');
CREATE INDEX inputs_of_occasions ON inputs (session, occasion) WHERE occasion IS NOT NULL;
CREATE INDEX inputs_from_chats ON inputs (session) WHERE connector IS NOT NULL;
