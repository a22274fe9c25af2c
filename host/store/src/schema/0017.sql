-- Layout 17.

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
