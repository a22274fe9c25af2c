-- Layout 14.

-- What settled work has used, by the UTC day on which it settled, the session, the user for whom it was done, and the model (empty for tools and
-- where no model is known). Where session, user and agent are empty, the sums are of what was purged. All runs and operations are folded again.

CREATE TABLE usage (
    day               INTEGER NOT NULL,
    session           TEXT    NOT NULL,
    user_id           TEXT    NOT NULL,
    model             TEXT    NOT NULL,
    agent             TEXT    NOT NULL,
    model_calls       INTEGER NOT NULL,
    attempts          INTEGER NOT NULL,
    unpriced_attempts INTEGER NOT NULL,
    input_tokens      INTEGER NOT NULL,
    output_tokens     INTEGER NOT NULL,
    cached_tokens     INTEGER NOT NULL,
    cost_micros       INTEGER NOT NULL,
    tool_calls        INTEGER NOT NULL,
    active_ms         INTEGER NOT NULL,
    PRIMARY KEY (day, session, user_id, model)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_by_user ON usage (user_id, day);

-- The user for whom a run works, and what an operation counts as when it settles.
ALTER TABLE runs ADD COLUMN user_id TEXT;
ALTER TABLE operations ADD COLUMN model TEXT;
ALTER TABLE operations ADD COLUMN counts TEXT NOT NULL DEFAULT 'time';
