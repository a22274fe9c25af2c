-- The first input of a session, which says for whom an agent opened it, without a look at all inputs. And whatever a run handed over can be
-- found, also when it has been dealt with.

ALTER TABLE sessions ADD COLUMN first_input TEXT;

DROP INDEX inputs_handed_over_by_run;
CREATE INDEX inputs_handed_over_by_run ON inputs (by_run, state) WHERE by_run IS NOT NULL;

-- What is purged is found without a look at everything.

CREATE INDEX runs_by_session ON runs (session);
CREATE INDEX turns_by_session ON turns (session);
CREATE INDEX buckets_by_owner ON buckets (scope, of);
