-- Layout 15.

-- The bytes that each API key has brought, counted like those of users (`user_storage`), and a number for each key. No projection either. What is
-- stored names by it the key that it came with; none for what came with no key, or before this layout, which counts for no key.

CREATE TABLE key_storage (
    number INTEGER PRIMARY KEY,
    key_id TEXT    NOT NULL UNIQUE,
    bytes  INTEGER NOT NULL
) STRICT;
ALTER TABLE events ADD COLUMN brought_with INTEGER;
ALTER TABLE blobs ADD COLUMN brought_with INTEGER;
ALTER TABLE idempotency ADD COLUMN brought_with INTEGER;

-- The last run before the present one that took an input in and left a turn: what that did may be done again. It stays when the input is requeued.
-- All inputs are folded again.

ALTER TABLE inputs ADD COLUMN begun_run TEXT;
