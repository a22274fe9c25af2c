-- From whom an input is: what several users say never shares a turn. And whether the open run of a session takes in words at the boundary that
-- it waits at: what is accepted for one that does not wakes nobody. Inputs and runs of before are folded again.

ALTER TABLE inputs ADD COLUMN user TEXT NOT NULL DEFAULT 'local';
ALTER TABLE sessions ADD COLUMN hears INTEGER NOT NULL DEFAULT 0;
CREATE INDEX inputs_interrupting ON inputs (session) WHERE state = 'waiting' AND json_extract(waits_for, '$.kind') = 'interrupt';

-- What a run draws on with all that came of the same message (the address of its account below those above it; none where a message began
-- it), and what it has drawn: tokens and money used or reserved for open calls of models, and calls. Of an operation what is reserved for it.

ALTER TABLE runs ADD COLUMN accounts TEXT;
ALTER TABLE runs ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN calls INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN cost_micros INTEGER NOT NULL DEFAULT 0;
CREATE INDEX runs_by_account ON runs (accounts) WHERE accounts IS NOT NULL;

ALTER TABLE operations ADD COLUMN reserved_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE operations ADD COLUMN reserved_micros INTEGER NOT NULL DEFAULT 0;
