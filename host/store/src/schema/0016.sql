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

-- The id under which a note is forgotten, and where it comes from, as JSON; null for messages. All events are folded again.
ALTER TABLE recall ADD COLUMN note_id TEXT;
ALTER TABLE recall ADD COLUMN details TEXT;
-- The user of the session of a note, by whom notes are counted.
ALTER TABLE recall ADD COLUMN user_id TEXT;
CREATE INDEX recall_by_note ON recall (note_id) WHERE note_id IS NOT NULL;
CREATE INDEX recall_notes ON recall (agent) WHERE note_id IS NOT NULL;
CREATE INDEX recall_notes_of_user ON recall (agent, user_id) WHERE note_id IS NOT NULL;

-- The words of notes once more, on their own: who looks for notes reads no word of a message, however often it was said.
CREATE VIRTUAL TABLE notes_index USING fts5 (agent, body, content = '', tokenize = 'unicode61 remove_diacritics 2');

-- How far the memory agent of a session's agent has read it, and the session in which that agent reads. What is due is in wakes.
CREATE TABLE readings (
    session         TEXT    NOT NULL PRIMARY KEY,
    reader          TEXT    NOT NULL,
    agent           TEXT    NOT NULL,
    through         BLOB    NOT NULL,
    through_message INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX readings_by_reader ON readings (reader);

-- The pieces that were handed over, by the input that carries each, so that a note names the end of the piece that it was taken from.
CREATE TABLE reading_pieces (
    input   TEXT NOT NULL PRIMARY KEY,
    session TEXT NOT NULL,
    through BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX reading_pieces_by_session ON reading_pieces (session);
