-- Who may do what with an agent: one row for each user and agent, the agents that it spawned included, because whoever is assigned to an
-- agent is to those below it what they are to it.

ALTER TABLE agents ADD COLUMN agent_type TEXT NOT NULL DEFAULT '';
ALTER TABLE agents ADD COLUMN root TEXT NOT NULL DEFAULT '';
CREATE INDEX agents_by_root ON agents (root);
DROP INDEX agents_by_owner;

CREATE TABLE access (
    user  TEXT NOT NULL,
    agent TEXT NOT NULL,
    role  TEXT NOT NULL,
    PRIMARY KEY (user, agent)
) STRICT, WITHOUT ROWID;
CREATE INDEX access_by_agent ON access (agent);

-- What structured sessions are about, and how they went.

ALTER TABLE sessions ADD COLUMN user_id TEXT NOT NULL DEFAULT 'local';
ALTER TABLE sessions ADD COLUMN conversation TEXT NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000';
ALTER TABLE sessions ADD COLUMN config BLOB;
ALTER TABLE sessions ADD COLUMN expires_at INTEGER;
ALTER TABLE sessions ADD COLUMN ended_at INTEGER;
ALTER TABLE sessions ADD COLUMN ended_reason TEXT;
ALTER TABLE sessions ADD COLUMN summary TEXT;
ALTER TABLE sessions ADD COLUMN items INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN interactions INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN partial_state TEXT;
CREATE INDEX sessions_ended ON sessions (agent, ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX sessions_of_user_ended ON sessions (agent, user_id, ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX sessions_by_user ON sessions (user_id, created_at);

-- What an item says stands in the event at its position.
CREATE TABLE items (
    session  TEXT    NOT NULL,
    sequence INTEGER NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (session, sequence)
) STRICT, WITHOUT ROWID;

-- Files that clients handed over: their bytes are blobs. Numbered, so that a step can say through which one it sees them.
CREATE TABLE files (
    session    TEXT    NOT NULL,
    sequence   INTEGER NOT NULL,
    digest     BLOB    NOT NULL,
    name       TEXT    NOT NULL,
    media_type TEXT    NOT NULL,
    bytes      INTEGER NOT NULL,
    user_id    TEXT    NOT NULL,
    time       INTEGER NOT NULL,
    PRIMARY KEY (session, sequence)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX files_by_content ON files (session, digest, name);

-- API keys: of the secret only its hash.

CREATE TABLE api_keys (
    id          TEXT    NOT NULL PRIMARY KEY,
    user        TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    scopes      TEXT    NOT NULL,
    hash        BLOB    NOT NULL,
    issued_by   TEXT    NOT NULL,
    issued_with TEXT,
    issued_at   INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    revoked_by  TEXT,
    revoked_at  INTEGER,
    reason      TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX api_keys_by_user ON api_keys (user, id);
