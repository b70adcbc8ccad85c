-- How each pod and job ended. outcome_text is NULL in revisions of earlier versions, job_uid_text if no Job controls the
-- pod.
ALTER TABLE pod_revisions ADD COLUMN outcome_text INTEGER;
ALTER TABLE pod_revisions ADD COLUMN phase_text INTEGER;
ALTER TABLE pod_revisions ADD COLUMN reason_text INTEGER;
ALTER TABLE pod_revisions ADD COLUMN exit_code INTEGER;
ALTER TABLE pods ADD COLUMN job_uid_text INTEGER;

-- Jobs of batch/v1 as last observed.
CREATE TABLE job_outcomes (
    job_uid_text   INTEGER PRIMARY KEY,
    namespace_text INTEGER NOT NULL,
    name           TEXT    NOT NULL,
    created_us     INTEGER NOT NULL,
    outcome_text   INTEGER NOT NULL,
    reason_text    INTEGER NOT NULL,
    ended_us       INTEGER
);

-- The row of another system from which an imported pod comes, as a hash.
CREATE TABLE imported (pod INTEGER PRIMARY KEY, digest INTEGER NOT NULL);

CREATE VIEW jobs AS
SELECT (SELECT text FROM texts WHERE id = job_uid_text) AS uid,
       (SELECT text FROM texts WHERE id = namespace_text) AS namespace, name,
       (SELECT text FROM texts WHERE id = outcome_text) AS outcome,
       (SELECT text FROM texts WHERE id = reason_text) AS reason, created_us, ended_us
FROM job_outcomes;

DROP VIEW allocations;
DROP VIEW current_segments;
DROP VIEW allocation_segments;

-- One row per revision of an allocation; the highest revision is what is known now.
CREATE VIEW allocations AS
SELECT p.uid AS pod_uid, r.revision, ifnull(r.recorded_us, r.revision) AS recorded_us,
       (SELECT text FROM texts WHERE id = p.namespace_text) AS namespace, p.name,
       (SELECT text FROM texts WHERE id = r.node_text) AS node,
       (SELECT text FROM texts WHERE id = r.node_uid_text) AS node_uid,
       (SELECT text FROM texts WHERE id = p.class_name_text) AS class_name, p.priority,
       (SELECT text FROM texts WHERE id = r.job_kind_text) AS job_kind,
       (SELECT text FROM texts WHERE id = r.job_text) AS job,
       p.created_us, r.scheduled_us, r.started_us, r.deletion_us, r.end_us,
       (SELECT text FROM texts WHERE id = r.end_by_text) AS end_by, r.gap_from_us, r.gap_to_us,
       ifnull((SELECT text FROM texts WHERE id = r.outcome_text), 'unknown') AS outcome,
       ifnull((SELECT text FROM texts WHERE id = r.phase_text), '') AS phase,
       ifnull((SELECT text FROM texts WHERE id = r.reason_text), '') AS reason, r.exit_code
FROM pods p JOIN pod_revisions r ON r.pod = p.id
UNION ALL
SELECT *, 'unknown', '', '', NULL FROM old_allocations;

-- Those of each allocation's last revision, with whose they are and at what price. job_outcome is that of the pod without
-- a Job. end_us is NULL while one lasts;
-- until_us is its end, or else up to when all is accounted.
CREATE VIEW allocation_segments AS
SELECT p.uid AS pod_uid, r.revision, s.ordinal,
       (SELECT text FROM texts WHERE id = p.namespace_text) AS namespace, p.name,
       (SELECT text FROM texts WHERE id = r.node_text) AS node,
       (SELECT text FROM texts WHERE id = r.job_kind_text) AS job_kind,
       (SELECT text FROM texts WHERE id = r.job_text) AS job,
       ifnull((SELECT text FROM texts WHERE id = r.outcome_text), 'unknown') AS outcome,
       ifnull((SELECT text FROM texts WHERE id = ifnull(
           (SELECT outcome_text FROM job_outcomes WHERE job_uid_text = p.job_uid_text), r.outcome_text
       )), 'unknown') AS job_outcome,
       t.resource, s.start_us, s.end_us, ifnull(s.end_us, max(s.start_us, (
           SELECT max(CAST(value AS INTEGER)) FROM meta WHERE key IN ('at_us', 'evaluated_us')
       ))) AS until_us,
       t.state, s.quantity, t.tier, t.tenant, t.queue, t.gpu_model, t.pool,
       c.price_key, c.currency, c.per_gpu_hour, c.basis, c.purchase, t.label_tier, t.label_tenant, t.label_gpu_model
FROM pods p
JOIN pod_revisions r ON r.pod = p.id AND r.number = (SELECT max(number) FROM pod_revisions WHERE pod = p.id)
JOIN pod_segments s
  ON s.pod = p.id AND s.ordinal < r.segments
 AND s.number = (SELECT max(number) FROM pod_segments WHERE pod = s.pod AND ordinal = s.ordinal)
JOIN terms t ON t.id = s.terms
LEFT JOIN prices c ON c.id = s.price
UNION ALL
SELECT s.pod_uid, s.revision, s.ordinal, a.namespace, a.name, a.node, a.job_kind, a.job, 'unknown', 'unknown',
       s.resource, s.start_us, s.end_us, ifnull(s.end_us, s.start_us), s.state, s.quantity, s.tier, s.tenant, s.queue, s.gpu_model,
       s.pool, s.price_key, c.currency, c.per_gpu_hour, c.basis, c.purchase, s.label_tier, s.label_tenant,
       s.label_gpu_model
FROM old_allocations a
JOIN old_segments s ON s.pod_uid = a.pod_uid AND s.revision = a.revision
LEFT JOIN prices c ON c.price_key = s.price_key
WHERE a.revision = (SELECT max(revision) FROM old_allocations WHERE pod_uid = a.pod_uid)
  AND NOT EXISTS (SELECT 1 FROM pods WHERE uid = a.pod_uid);

-- The same with the columns of `segments` alone.
CREATE VIEW current_segments AS
SELECT pod_uid, revision, ordinal, resource, start_us, end_us, state, quantity, tier, tenant, queue, gpu_model, pool,
       price_key, label_tier, label_tenant, label_gpu_model
FROM allocation_segments;
