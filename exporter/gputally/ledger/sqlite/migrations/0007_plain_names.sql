-- Tables and columns get the names that the code and the documentation use.
ALTER TABLE usage_holders RENAME COLUMN holder TO assignment;
ALTER TABLE usage_hours RENAME COLUMN holder TO assignment;
ALTER TABLE usage_holders RENAME TO usage_assignments;
ALTER TABLE unheld_usage RENAME TO unallocated_usage;
DROP INDEX unheld_usage_open;
CREATE INDEX unallocated_usage_open ON unallocated_usage (start_us) WHERE open;
ALTER TABLE admitted RENAME TO known_values;
ALTER TABLE pod_revisions RENAME COLUMN blind_from_us TO gap_from_us;
ALTER TABLE pod_revisions RENAME COLUMN blind_to_us TO gap_to_us;
ALTER TABLE old_allocations RENAME COLUMN blind_from_us TO gap_from_us;
ALTER TABLE old_allocations RENAME COLUMN blind_to_us TO gap_to_us;
UPDATE meta SET key = 'accounting_start_us' WHERE key = 'opened_us';
UPDATE working
SET document = CAST(
    json_remove(json_set(CAST(document AS TEXT), '$.gap', json_extract(CAST(document AS TEXT), '$.blind')), '$.blind')
    AS BLOB)
WHERE json_type(CAST(document AS TEXT), '$.blind') IS NOT NULL;
UPDATE series SET family = 'unmatched' WHERE family = 'unresolved';
UPDATE series SET family = 'unallocated_energy' WHERE family = 'unheld_energy';
UPDATE series SET family = 'unobserved' WHERE family = 'blind';
