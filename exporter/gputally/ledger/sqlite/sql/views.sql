-- A revision of an allocation, with how its pod ended; the highest revision of a pod is what is known now.
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
       (SELECT text FROM texts WHERE id = r.outcome_text) AS outcome,
       ifnull((SELECT text FROM texts WHERE id = r.phase_text), '') AS phase,
       ifnull((SELECT text FROM texts WHERE id = r.reason_text), '') AS reason, r.exit_code
FROM pods p JOIN pod_revisions r ON r.pod = p.id;

-- A segment of a revision.
CREATE VIEW segments AS
SELECT p.uid AS pod_uid, r.revision, s.ordinal, t.resource, s.start_us, s.end_us, t.state, s.quantity, t.tier, t.tenant,
       t.queue, t.gpu_model, t.pool, (SELECT price_key FROM prices WHERE id = s.price) AS price_key, t.label_tier,
       t.label_tenant, t.label_gpu_model
FROM pods p
JOIN pod_revisions r ON r.pod = p.id
JOIN pod_segments s
  ON s.pod = p.id AND s.ordinal < r.segments
 AND s.number = (SELECT max(number) FROM pod_segments WHERE pod = s.pod AND ordinal = s.ordinal AND number <= r.number)
JOIN terms t ON t.id = s.terms;

-- A segment of an allocation's last revision, with pod, node, job and price. `job_outcome` is that of the pod without a
-- Job. `end_us` is NULL while one lasts; `until_us` is its end, or else the time up to which everything is accounted.
CREATE VIEW allocation_segments AS
SELECT p.uid AS pod_uid, r.revision, s.ordinal,
       (SELECT text FROM texts WHERE id = p.namespace_text) AS namespace, p.name,
       (SELECT text FROM texts WHERE id = r.node_text) AS node,
       (SELECT text FROM texts WHERE id = r.node_uid_text) AS node_uid,
       (SELECT text FROM texts WHERE id = r.job_kind_text) AS job_kind,
       (SELECT text FROM texts WHERE id = r.job_text) AS job,
       (SELECT text FROM texts WHERE id = r.outcome_text) AS outcome,
       (SELECT text FROM texts WHERE id = ifnull(
           (SELECT outcome_text FROM job_outcomes WHERE job_uid_text = p.job_uid_text), r.outcome_text
       )) AS job_outcome,
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
LEFT JOIN prices c ON c.id = s.price;

-- The same with the columns of `segments` alone.
CREATE VIEW current_segments AS
SELECT pod_uid, revision, ordinal, resource, start_us, end_us, state, quantity, tier, tenant, queue, gpu_model, pool,
       price_key, label_tier, label_tenant, label_gpu_model
FROM allocation_segments;

-- The rows of `daily_rows` with names.
CREATE VIEW daily_allocations AS
SELECT p.start_us, p.end_us,
       (SELECT text FROM texts WHERE id = d.namespace_text) AS namespace,
       (SELECT text FROM texts WHERE id = d.node_text) AS node,
       (SELECT text FROM texts WHERE id = d.node_uid_text) AS node_uid,
       (SELECT text FROM texts WHERE id = d.job_kind_text) AS job_kind,
       (SELECT text FROM texts WHERE id = d.job_text) AS job,
       (SELECT text FROM texts WHERE id = d.outcome_text) AS outcome,
       (SELECT text FROM texts WHERE id = d.job_outcome_text) AS job_outcome,
       t.resource, t.state, t.tier, t.tenant, t.queue, t.gpu_model, t.pool,
       c.price_key, c.currency, c.per_gpu_hour, c.basis, c.purchase,
       d.pods, d.bound, d.wait_us, d.seconds, d.microseconds, d.measured_seconds, d.measured_microseconds, d.used_seconds,
       d.used_microseconds, d.burst_seconds, d.burst_microseconds, d.energy
FROM rolled_periods p
JOIN daily_rows d ON d.period = p.id
JOIN terms t ON t.id = d.terms
LEFT JOIN prices c ON c.id = d.price;

-- A Job of batch/v1 whose pods request GPUs, and how it ended.
CREATE VIEW jobs AS
SELECT (SELECT text FROM texts WHERE id = job_uid_text) AS uid,
       (SELECT text FROM texts WHERE id = namespace_text) AS namespace, name,
       (SELECT text FROM texts WHERE id = outcome_text) AS outcome,
       (SELECT text FROM texts WHERE id = reason_text) AS reason, created_us, ended_us
FROM job_outcomes;

-- The highest progress that pods of a job have stated.
CREATE VIEW progress AS
SELECT (SELECT text FROM texts WHERE id = namespace_text) AS namespace,
       (SELECT text FROM texts WHERE id = job_kind_text) AS job_kind,
       (SELECT text FROM texts WHERE id = job_text) AS job, micro, unit, at_us
FROM job_progress;

-- What a pod did in an hour: memory in byte·seconds, the rest as in `usage_hours`.
CREATE VIEW usage_by_pod AS
SELECT h.pod_uid, h.namespace, h.pod, h.node, u.start_us, min(u.from_us) AS from_us, max(u.to_us) AS to_us,
       sum(u.measured) AS measured, sum(u.used) AS used, sum(u.burst) AS burst,
       sum(CAST(u.memory AS REAL)) / 1e6 AS memory, sum(u.energy) AS energy
FROM usage_hours u JOIN usage_assignments h ON h.assignment = u.assignment
GROUP BY h.pod_uid, h.namespace, h.pod, h.node, u.start_us;

-- A preemption as counted.
CREATE VIEW preemptions AS
SELECT victim_uid, recorded_us, victim_namespace, victim_name, victim_tier, victim_tenant, preemptor_uid,
    preemptor_namespace, preemptor_name, preemptor_tier, node, quantity, decided_us, requested_us, released_us,
    is_inferred, victim_class, victim_priority, preemptor_class, preemptor_priority, preemptor_may_preempt,
    preemptor_tenant, preemptor_kind, preemptor_quantity, preemptor_pods, queue_rule
FROM victims WHERE preemptor_tier IS NOT NULL;

-- A pod that lost GPUs that it had, by cause.
CREATE VIEW disruptions AS
SELECT victim_uid, recorded_us, victim_namespace, victim_name, victim_tier, victim_tenant, job_kind, job, node,
    node_uid, quantity, cause, is_certain, decided_us, requested_us, grace_us, stopped_us, released_us, reused_us,
    replaced_us, replacement_uid, budget_violated, job_preemption, exit_code, uses_retry
FROM victims WHERE is_disruption;
