-- Layout 17.

-- The definitions that users made, each with what its user said of it, as JSON.
CREATE TABLE made_definitions (
    id       TEXT    NOT NULL PRIMARY KEY,
    user_id  TEXT    NOT NULL,
    template TEXT    NOT NULL,
    own      TEXT    NOT NULL,
    made_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX made_definitions_by_user ON made_definitions (user_id, id);
