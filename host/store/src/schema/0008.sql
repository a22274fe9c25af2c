-- Sessions as labels: whether they are pinned, what is noted of them, as whom they are led, from which turn they were forked, what they say of
-- their queue, and what was dropped from it that no turn has told of. One that was deleted has the status `deleted`.

ALTER TABLE sessions ADD COLUMN pinned_at INTEGER;
ALTER TABLE sessions ADD COLUMN attributes TEXT;
ALTER TABLE sessions ADD COLUMN persona TEXT;
ALTER TABLE sessions ADD COLUMN base BLOB;
ALTER TABLE sessions ADD COLUMN queue TEXT;
ALTER TABLE sessions ADD COLUMN overflow TEXT;
CREATE INDEX sessions_by_persona ON sessions (persona, user_id) WHERE persona IS NOT NULL;
CREATE INDEX sessions_by_head ON sessions (head) WHERE head IS NOT NULL;
CREATE INDEX turns_by_parent ON turns (parent) WHERE parent IS NOT NULL;

-- What the rules of the queue need to know of an input that waits. One that was cancelled or dropped has a state that says so.

ALTER TABLE inputs ADD COLUMN waits_for TEXT;
ALTER TABLE inputs ADD COLUMN priority TEXT NOT NULL DEFAULT 'normal';
ALTER TABLE inputs ADD COLUMN arrived INTEGER NOT NULL DEFAULT 0;

-- What sort of address an agent has, as it was when it was made.

ALTER TABLE agents ADD COLUMN kind TEXT;
CREATE INDEX agents_by_parent ON agents (parent) WHERE parent IS NOT NULL;

-- What services call the users.

CREATE TABLE connector_keys (
    key      TEXT    NOT NULL PRIMARY KEY,
    user     TEXT    NOT NULL,
    bound_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX connector_keys_by_user ON connector_keys (user, key);

-- To which tree a turn belongs, named by its first turn; which session it was committed or imported in; and when it was committed.

ALTER TABLE turns ADD COLUMN root BLOB;
ALTER TABLE turns ADD COLUMN session TEXT;
ALTER TABLE turns ADD COLUMN time INTEGER NOT NULL DEFAULT 0;
CREATE INDEX turns_by_root ON turns (root, depth, id);
