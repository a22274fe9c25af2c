-- Layout 12.

-- The users of an agent, and what it remembers of each: one row for each user, in the order of their assignment, so that the agent's own row, which
-- every message reads and every event of the agent writes, does not grow with them. Agents are folded again.

CREATE TABLE agent_users (
    agent      TEXT    NOT NULL,
    user_id    TEXT    NOT NULL,
    place      INTEGER NOT NULL,
    assignment TEXT    NOT NULL,
    PRIMARY KEY (agent, user_id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX agent_users_in_order ON agent_users (agent, place);

CREATE TABLE agent_preferences (
    agent       TEXT NOT NULL,
    user_id     TEXT NOT NULL,
    preferences TEXT NOT NULL,
    PRIMARY KEY (agent, user_id)
) STRICT, WITHOUT ROWID;

-- `user` is a keyword of PostgreSQL, where it means the role of the database.

ALTER TABLE access RENAME COLUMN user TO user_id;
ALTER TABLE api_keys RENAME COLUMN user TO user_id;
ALTER TABLE connector_keys RENAME COLUMN user TO user_id;
ALTER TABLE inputs RENAME COLUMN user TO user_id;

-- The bytes that each user has brought: payloads of their events, content that came with them first, and replies remembered under their keys. No projection: they are counted in the
-- transactions that store and erase them, so that a limit on them is a look at one row.
CREATE TABLE user_storage (
    user_id TEXT    NOT NULL PRIMARY KEY,
    bytes   INTEGER NOT NULL
) STRICT;
INSERT INTO user_storage (user_id, bytes)
    SELECT substr(source, 6), sum(bytes) FROM (
        SELECT actor AS source, length(payload) AS bytes FROM events WHERE actor LIKE 'user:%' AND payload IS NOT NULL
        UNION ALL SELECT source, length(reply) FROM idempotency WHERE source LIKE 'user:%'
    ) GROUP BY substr(source, 6);
-- The user who brought content first; none for what is not a user's.
ALTER TABLE blobs ADD COLUMN brought_by TEXT;
-- The sessions that a user has opened lately, of which there is a limit. An imported one may say that it was created long ago.
ALTER TABLE sessions ADD COLUMN opened_at INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET opened_at = coalesce((SELECT time FROM events WHERE stream = 'session/' || sessions.id AND kind = 'session.opened.v1' LIMIT 1), created_at);
CREATE INDEX sessions_opened ON sessions (user_id, opened_at);

-- The ledger has what the operator read of what users say.
DROP INDEX events_of_ledger;
CREATE INDEX events_of_ledger ON events (position) WHERE kind IN ('boundary.decided.v1', 'component.admitted.v1', 'operator.read.v1');

-- Whether anything that the thread of a turn shows rests on content from outside, so that the next turn of it knows.
ALTER TABLE turns ADD COLUMN untrusted INTEGER NOT NULL DEFAULT 0;

-- A purge asks whether anybody still names a blob that something erased had named, finds what an agent's stream tells of a session, and forgets
-- the requests about what is purged, all without a look at everything. Requests that are about nothing say so from here on.

DROP INDEX blob_references_shown;
CREATE INDEX blob_references_by_digest ON blob_references (digest, shown);
CREATE INDEX idempotency_by_about ON idempotency (about) WHERE about IS NOT NULL;
CREATE INDEX idempotency_about_unknown ON idempotency (time) WHERE about IS NULL;
CREATE INDEX events_of_agents_about ON events (stream, coalesce(json_extract(CAST(payload AS TEXT), '$.session_id'), json_extract(CAST(payload AS TEXT), '$.session.session_id'), json_extract(CAST(payload AS TEXT), '$.session'))) WHERE payload IS NOT NULL AND kind IN ('agent.session.started.v1', 'agent.session.completed.v1', 'agent.session.terminated.v1', 'agent.session.imported.v1', 'agent.execution.suspended.v1', 'agent.execution.resumed.v1', 'agent.client.action.requested.v1', 'agent.client.response.received.v1', 'agent.client.action.withdrawn.v1', 'agent.note.remembered.v1');

-- Blobs that may be named by nobody: what was erased had named them, or nothing did when they came. The next purge looks, and deletes.
CREATE TABLE blobs_to_look_at (
    digest BLOB NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;
INSERT INTO blobs_to_look_at SELECT digest FROM blobs WHERE digest NOT IN (SELECT digest FROM blob_references) AND EXISTS (SELECT 1 FROM events);

-- What older versions deleted may stand in unused parts of the file, which is written anew when an operator says so.
INSERT INTO meta (name, value) SELECT 'leavings', 'of an older version' WHERE EXISTS (SELECT 1 FROM events);

-- That whoever worked on the store last ended as it was told to. Taken away before work begins, so that it is missing after a crash.
INSERT OR REPLACE INTO meta (name, value) VALUES ('ended', 'as told');

-- Whose words a row for full text has. They are indexed later, when the session may not be there yet or not any more.
ALTER TABLE recall ADD COLUMN agent TEXT;
