-- Which session began another, by handing its agent work, and whose agents are whose.

CREATE TABLE spawned (
    session    TEXT NOT NULL PRIMARY KEY,
    by_session TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX spawned_by_session ON spawned (by_session);
CREATE INDEX agents_by_owner ON agents (agent ->> '$.owner_user_id', id);
