-- Layout 13.

-- A message that is accepted changes few pages. A session has a number, the position of the event that its row begins with: what waits is
-- found by that, in an index a tenth as large as one by the session's id. Inputs lie in the order of their acceptance. Both are folded again.

ALTER TABLE sessions ADD COLUMN number INTEGER;
CREATE UNIQUE INDEX sessions_by_number ON sessions (number);

DROP TABLE inputs;
CREATE TABLE inputs (
    position       INTEGER PRIMARY KEY,
    id             TEXT    NOT NULL UNIQUE,
    session        TEXT    NOT NULL,
    session_number INTEGER,
    state          TEXT    NOT NULL,
    words          INTEGER NOT NULL,
    run            TEXT,
    due            INTEGER,
    died           INTEGER,
    by_run         TEXT,
    tree           TEXT,
    waits_for      TEXT,
    priority       TEXT    NOT NULL,
    arrived        INTEGER NOT NULL,
    user_id        TEXT    NOT NULL
) STRICT;
CREATE INDEX inputs_waiting ON inputs (session_number, position, due) WHERE state = 'waiting';
CREATE INDEX inputs_claimed ON inputs (run) WHERE state = 'claimed';
CREATE INDEX inputs_dead ON inputs (died) WHERE state = 'dead';
CREATE INDEX inputs_interrupting ON inputs (session) WHERE state = 'waiting' AND json_extract(waits_for, '$.kind') = 'interrupt';
CREATE INDEX inputs_handed_over_by_run ON inputs (by_run, state) WHERE by_run IS NOT NULL;
CREATE INDEX inputs_handed_over_in_tree ON inputs (tree) WHERE tree IS NOT NULL AND state IN ('waiting', 'claimed');

-- What stands in a session's own stream is found by the index of streams, and in no other one.

DROP INDEX events_by_session;
CREATE INDEX events_by_session ON events (session, position) WHERE session IS NOT NULL AND stream <> 'session/' || session;

-- A start looks up each component as it was admitted last, and passes over no other line of the ledger.

CREATE INDEX events_of_admissions ON events (json_extract(CAST(payload AS TEXT), '$.component')) WHERE kind = 'component.admitted.v1';
