-- For which session's turn an operation waits: who waits for whom must never come round in a circle. Operations of before are folded again.

ALTER TABLE operations ADD COLUMN waits_for TEXT;
CREATE INDEX operations_waiting ON operations (session, waits_for) WHERE waits_for IS NOT NULL;

-- What was purged: of a session or an agent nothing but that it was there. And what a remembered request is about, so that it goes with that.

ALTER TABLE sessions ADD COLUMN purged INTEGER NOT NULL DEFAULT 0;
ALTER TABLE agents ADD COLUMN purged INTEGER NOT NULL DEFAULT 0;
ALTER TABLE idempotency ADD COLUMN about TEXT;
