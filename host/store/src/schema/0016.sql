-- Layout 16.

-- Work that agents handed to each other, from the commit that hands it over until its run is purged. What became of its input and of the turn
-- that took that up stands with these. All runs are folded again.

CREATE TABLE tasks (
    id          BLOB    NOT NULL PRIMARY KEY,
    run         TEXT    NOT NULL,
    session     TEXT    NOT NULL,
    agent       TEXT    NOT NULL,
    user_id     TEXT    NOT NULL,
    kind        TEXT    NOT NULL,
    target      TEXT,
    operation   TEXT,
    parameters  TEXT,
    to_agent    TEXT    NOT NULL,
    to_session  TEXT    NOT NULL,
    input       TEXT    NOT NULL,
    detached    INTEGER NOT NULL,
    held        INTEGER NOT NULL,
    deadline    INTEGER,
    created_at  INTEGER NOT NULL,
    state       TEXT,
    ended_at    INTEGER,
    tokens      INTEGER,
    calls       INTEGER,
    cost_micros INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX tasks_by_time ON tasks (created_at, id);
CREATE INDEX tasks_by_session ON tasks (session, created_at, id);
CREATE INDEX tasks_by_agent ON tasks (agent, created_at, id);
CREATE INDEX tasks_by_doer ON tasks (to_agent, created_at, id);
CREATE INDEX tasks_by_run ON tasks (run);
CREATE INDEX tasks_by_input ON tasks (input);
CREATE INDEX tasks_under_way ON tasks (id) WHERE state IS NULL AND kind = 'delegate';

-- How urgent an input is that waits until the limits on dispatches leave room for it; 0 for all others. And whether an operation waits for a
-- person.
ALTER TABLE inputs ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
CREATE INDEX inputs_held ON inputs (tree) WHERE tree IS NOT NULL AND state = 'waiting' AND held > 0;
ALTER TABLE operations ADD COLUMN asks INTEGER NOT NULL DEFAULT 0;
