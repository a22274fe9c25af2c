-- Which streams name which blobs. Rows of one stream lie together, so that a step writes in one place; only what a thread shows is looked
-- up by digest.

CREATE TABLE blob_references (
    stream TEXT    NOT NULL,
    digest BLOB    NOT NULL,
    shown  INTEGER NOT NULL,
    PRIMARY KEY (stream, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX blob_references_shown ON blob_references (digest) WHERE shown = 1;
