-- 1 for the wait of a workload whose object was not read: it lacked at least `pods` pods, as its refusal said.
ALTER TABLE uncreated_waits ADD COLUMN is_at_least INTEGER NOT NULL DEFAULT 0;
