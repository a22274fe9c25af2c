-- What tools keep in buckets: one row for each bucket in each scope, and one for each of its keys.

CREATE TABLE buckets (
    id        INTEGER NOT NULL PRIMARY KEY,
    component TEXT NOT NULL,
    bucket    TEXT NOT NULL,
    scope     TEXT NOT NULL,
    of        TEXT NOT NULL,
    keys      INTEGER NOT NULL DEFAULT 0,
    bytes     INTEGER NOT NULL DEFAULT 0,
    UNIQUE (component, bucket, scope, of)
) STRICT;

CREATE TABLE bucket_entries (
    bucket INTEGER NOT NULL,
    key    TEXT NOT NULL,
    value  BLOB NOT NULL,
    PRIMARY KEY (bucket, key)
) STRICT;
