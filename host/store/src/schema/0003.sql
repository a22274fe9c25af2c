-- Work that one agent handed to another counts against the run and the tree of agents that handed it over until it has ended. A tree is
-- named by its topmost agent.

ALTER TABLE inputs ADD COLUMN by_run TEXT;
ALTER TABLE inputs ADD COLUMN tree TEXT;
CREATE INDEX inputs_handed_over_by_run ON inputs (by_run) WHERE by_run IS NOT NULL AND state IN ('waiting', 'claimed');
CREATE INDEX inputs_handed_over_in_tree ON inputs (tree) WHERE tree IS NOT NULL AND state IN ('waiting', 'claimed');
