-- A node whose end nobody saw ceased to exist in [gone_us, gone_by_us]; NULL where its end was seen.
ALTER TABLE node_ends ADD COLUMN gone_by_us INTEGER;

-- Nodes that registered anew, by machine and name, and which they were before: the allocations on that go on here.
CREATE TABLE reregistrations (node_uid TEXT PRIMARY KEY, continues TEXT NOT NULL) WITHOUT ROWID;
