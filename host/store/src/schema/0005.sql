-- The ledger of the boundary, without the events around it.
CREATE INDEX events_of_ledger ON events (position) WHERE kind IN ('boundary.decided.v1', 'component.admitted.v1');
