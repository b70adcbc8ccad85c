-- The rest of what the states of unallocated GPUs and their prices depend on; NULL in rows of older schemas.
ALTER TABLE capacity ADD COLUMN divided INTEGER;
ALTER TABLE capacity ADD COLUMN price_labels TEXT;

-- What a GPU-hour of capacity costs from when on; price_key is NULL where no price rule matches.
CREATE TABLE capacity_prices (
    instance_type TEXT    NOT NULL,
    gpu_model     TEXT    NOT NULL,
    pool          TEXT    NOT NULL,
    purchase      TEXT    NOT NULL,
    price_labels  TEXT    NOT NULL,
    from_us       INTEGER NOT NULL,
    price_key     TEXT,
    PRIMARY KEY (instance_type, gpu_model, pool, purchase, price_labels, from_us)
) WITHOUT ROWID;

DROP VIEW current_segments;
DROP VIEW allocation_segments;

-- Those of each allocation's last revision, with whose they are and at what price. job_outcome is that of the pod without
-- a Job. end_us is NULL while one lasts;
-- until_us is its end, or else up to when all is accounted.
CREATE VIEW allocation_segments AS
SELECT p.uid AS pod_uid, r.revision, s.ordinal,
       (SELECT text FROM texts WHERE id = p.namespace_text) AS namespace, p.name,
       (SELECT text FROM texts WHERE id = r.node_text) AS node,
       (SELECT text FROM texts WHERE id = r.node_uid_text) AS node_uid,
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
SELECT s.pod_uid, s.revision, s.ordinal, a.namespace, a.name, a.node, a.node_uid, a.job_kind, a.job, 'unknown', 'unknown',
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
