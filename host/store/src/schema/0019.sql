-- Layout 19.

-- What was reserved for attempts at models of which no usage was reported, apart from what was delivered. All runs and operations are folded again.

ALTER TABLE usage ADD COLUMN reserved_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN reserved_cost_micros INTEGER NOT NULL DEFAULT 0;

-- Providers of models that are in trouble, while that lasts.

CREATE TABLE provider_troubles (
    provider    TEXT    NOT NULL PRIMARY KEY,
    trouble     TEXT    NOT NULL,
    troubled_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
