-- From whom an input is: what several users say never shares a turn. And whether the open run of a session takes in words at the boundary that
-- it waits at: what is accepted for one that does not wakes nobody. Inputs and runs of before are folded again.

ALTER TABLE inputs ADD COLUMN user TEXT NOT NULL DEFAULT 'local';
ALTER TABLE sessions ADD COLUMN hears INTEGER NOT NULL DEFAULT 0;
CREATE INDEX inputs_interrupting ON inputs (session) WHERE state = 'waiting' AND json_extract(waits_for, '$.kind') = 'interrupt';
