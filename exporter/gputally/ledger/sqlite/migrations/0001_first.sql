-- Times are µs since the epoch (UTC), quantities µGPU, big integers and money text. Columns named like another table, or that
-- end in _text, are numbers of its rows or of texts.

-- The cluster, the accounting start, the last evaluation, and sums of all rows.
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- Repeated texts, by number.
CREATE TABLE texts (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);

-- Every price that a segment, a wait or capacity refers to.
CREATE TABLE prices (
    id           INTEGER PRIMARY KEY,
    price_key    TEXT NOT NULL UNIQUE,
    currency     TEXT NOT NULL,
    per_gpu_hour TEXT NOT NULL,
    basis        TEXT NOT NULL,
    purchase     TEXT NOT NULL
);

-- The labels of segments; the last three are the exported, limited values, the others are the full names.
CREATE TABLE terms (
    id              INTEGER PRIMARY KEY,
    resource        TEXT NOT NULL,
    state           TEXT NOT NULL,
    tier            TEXT NOT NULL,
    tenant          TEXT NOT NULL,
    queue           TEXT NOT NULL,
    gpu_model       TEXT NOT NULL,
    pool            TEXT NOT NULL,
    label_tier      TEXT NOT NULL,
    label_tenant    TEXT NOT NULL,
    label_gpu_model TEXT NOT NULL,
    UNIQUE (tenant, tier, state, resource, queue, gpu_model, pool, label_tier, label_tenant, label_gpu_model)
);

-- What never changes of a pod. job_uid_text is NULL if no Job controls it.
CREATE TABLE pods (
    id              INTEGER PRIMARY KEY,
    uid             TEXT    NOT NULL UNIQUE,
    namespace_text  INTEGER NOT NULL,
    name            TEXT    NOT NULL,
    class_name_text INTEGER NOT NULL,
    priority        INTEGER,
    created_us      INTEGER NOT NULL,
    job_uid_text    INTEGER
);

-- Revisions of allocations, numbered from 1. recorded_us is NULL if it is the revision itself; segments is how many
-- segments the revision has, of which the first ones, as many as unchanged, are those of the revision before. Never
-- updated.
CREATE TABLE pod_revisions (
    pod           INTEGER NOT NULL,
    number        INTEGER NOT NULL,
    revision      INTEGER NOT NULL,
    recorded_us   INTEGER,
    node_text     INTEGER NOT NULL,
    node_uid_text INTEGER NOT NULL,
    job_kind_text INTEGER NOT NULL,
    job_text      INTEGER NOT NULL,
    scheduled_us  INTEGER,
    started_us    INTEGER,
    deletion_us   INTEGER,
    end_us        INTEGER,
    end_by_text   INTEGER,
    gap_from_us   INTEGER,
    gap_to_us     INTEGER,
    segments      INTEGER NOT NULL,
    outcome_text  INTEGER NOT NULL,
    phase_text    INTEGER,
    reason_text   INTEGER,
    exit_code     INTEGER,
    unchanged     INTEGER NOT NULL,
    PRIMARY KEY (pod, number)
) WITHOUT ROWID;

CREATE INDEX pod_revisions_gap ON pod_revisions (gap_to_us) WHERE gap_from_us IS NOT NULL;

-- A segment is current from the revision of its number on, until a later one has another at its place. Never updated.
CREATE TABLE pod_segments (
    pod      INTEGER NOT NULL,
    ordinal  INTEGER NOT NULL,
    number   INTEGER NOT NULL,
    start_us INTEGER NOT NULL,
    end_us   INTEGER,
    quantity INTEGER NOT NULL,
    terms    INTEGER NOT NULL,
    price    INTEGER,
    PRIMARY KEY (pod, ordinal, number)
) WITHOUT ROWID;

-- The days (UTC, since the epoch) of each pod's allocation, -1 while it lasts and for very long ones. A pod may have a row
-- too many, for a day of an earlier revision.
CREATE TABLE pod_days (day INTEGER NOT NULL, pod INTEGER NOT NULL, PRIMARY KEY (day, pod)) WITHOUT ROWID;

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

-- The highest progress that pods of each job have stated, in millionths of a unit, and when it was first observed.
CREATE TABLE job_progress (
    namespace_text INTEGER NOT NULL,
    job_kind_text  INTEGER NOT NULL,
    job_text       INTEGER NOT NULL,
    micro          INTEGER NOT NULL,
    unit           TEXT    NOT NULL,
    at_us          INTEGER NOT NULL,
    PRIMARY KEY (namespace_text, job_kind_text, job_text)
) WITHOUT ROWID;

-- The row of another system from which an imported pod comes, as a hash.
CREATE TABLE imported (pod INTEGER PRIMARY KEY, digest INTEGER NOT NULL);

-- The time before the retention, by day. Sums of GPU-time (µs·µGPU) outgrow 64 bits, so they are stored as seconds and a
-- rest: the sum is seconds * 1000000 + microseconds, each added up on its own. Days (UTC) that have daily rows; the
-- accounting start and the edges of closed periods divide them.
CREATE TABLE rolled_periods (
    id       INTEGER PRIMARY KEY,
    start_us INTEGER NOT NULL UNIQUE,
    end_us   INTEGER NOT NULL
);

-- What ended pods with the same names, terms and price did in one period. pods is how many of them were allocated: 0 for
-- usage alone. bound of them were bound in the period, after wait_us since their creation, together. price is 0 without one.
CREATE TABLE daily_rows (
    period           INTEGER NOT NULL,
    namespace_text   INTEGER NOT NULL,
    job_kind_text    INTEGER NOT NULL,
    job_text         INTEGER NOT NULL,
    node_text        INTEGER NOT NULL,
    node_uid_text    INTEGER NOT NULL,
    outcome_text     INTEGER NOT NULL,
    job_outcome_text INTEGER NOT NULL,
    terms            INTEGER NOT NULL,
    price            INTEGER NOT NULL,
    pods             INTEGER NOT NULL,
    bound            INTEGER NOT NULL,
    wait_us          INTEGER NOT NULL,
    seconds               INTEGER NOT NULL,
    microseconds          INTEGER NOT NULL,
    measured_seconds      INTEGER NOT NULL,
    measured_microseconds INTEGER NOT NULL,
    used_seconds          INTEGER NOT NULL,
    used_microseconds     INTEGER NOT NULL,
    burst_seconds         INTEGER NOT NULL,
    burst_microseconds    INTEGER NOT NULL,
    energy                INTEGER NOT NULL,
    PRIMARY KEY (period, namespace_text, job_kind_text, job_text, node_text, node_uid_text, outcome_text,
                 job_outcome_text, terms, price)
) WITHOUT ROWID;

-- The part of a daily row that is lost, by basis.
CREATE TABLE daily_lost (
    period           INTEGER NOT NULL,
    namespace_text   INTEGER NOT NULL,
    job_kind_text    INTEGER NOT NULL,
    job_text         INTEGER NOT NULL,
    node_text        INTEGER NOT NULL,
    node_uid_text    INTEGER NOT NULL,
    outcome_text     INTEGER NOT NULL,
    job_outcome_text INTEGER NOT NULL,
    terms            INTEGER NOT NULL,
    price            INTEGER NOT NULL,
    basis            TEXT    NOT NULL,
    seconds               INTEGER NOT NULL,
    microseconds          INTEGER NOT NULL,
    measured_seconds      INTEGER NOT NULL,
    measured_microseconds INTEGER NOT NULL,
    used_seconds          INTEGER NOT NULL,
    used_microseconds     INTEGER NOT NULL,
    burst_seconds         INTEGER NOT NULL,
    burst_microseconds    INTEGER NOT NULL,
    PRIMARY KEY (period, namespace_text, job_kind_text, job_text, node_text, node_uid_text, outcome_text,
                 job_outcome_text, terms, price, basis)
) WITHOUT ROWID;

-- When the µGPU changed that these pods had on a node, so that its unallocated capacity stays exact.
CREATE TABLE node_steps (
    node_uid_text INTEGER NOT NULL,
    at_us         INTEGER NOT NULL,
    change        INTEGER NOT NULL,
    PRIMARY KEY (node_uid_text, at_us)
) WITHOUT ROWID;

-- The UIDs of these pods as hashes: a later revision of one must not count again.
CREATE TABLE rolled_pods (uid_hash INTEGER PRIMARY KEY);

-- What nodes offered, from when on.
CREATE TABLE capacity (
    node_uid      TEXT    NOT NULL,
    from_us       INTEGER NOT NULL,
    recorded_us   INTEGER NOT NULL,
    node          TEXT    NOT NULL,
    physical      INTEGER NOT NULL,
    covered       INTEGER NOT NULL,
    allocatable   INTEGER NOT NULL,
    ready         INTEGER NOT NULL,
    cordoned      INTEGER NOT NULL,
    gpu_model     TEXT    NOT NULL,
    pool          TEXT    NOT NULL,
    instance_type TEXT    NOT NULL,
    purchase      TEXT    NOT NULL,
    divided       INTEGER NOT NULL,
    price_labels  TEXT    NOT NULL,
    PRIMARY KEY (node_uid, from_us)
) WITHOUT ROWID;

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

-- A node whose end no watch observed ceased to exist in [gone_us, gone_by_us]; NULL if its end was observed.
CREATE TABLE node_ends (
    node_uid   TEXT    PRIMARY KEY,
    node       TEXT    NOT NULL,
    gone_us    INTEGER NOT NULL,
    gone_by_us INTEGER
) WITHOUT ROWID;

-- Nodes that registered again, by machine and name, and which they were before: allocations on that are on this one, too.
CREATE TABLE reregistrations (node_uid TEXT PRIMARY KEY, continues TEXT NOT NULL) WITHOUT ROWID;

-- Pods that lost their GPUs before they had ended by themselves, one row for each. Preempted pods that never had their GPUs
-- are no disruption. budget_violated says whether a PodDisruptionBudget allowed no disruption when it was decided, NULL if
-- not known. job_preemption is the UID of the first pod of one preemption of a job, '' for other causes. exit_code is that
-- of the container that failed first; uses_retry says that the pod's Job counts it as failed.
--
-- preemptor_tier and the columns after it are NULL unless it is counted as a preemption. If a queue did it, the preemptor is
-- a workload: preemptor_uid is that of its Workload, preemptor_kind and preemptor_name are those of its job,
-- preemptor_quantity is what its pods request, and preemptor_pods are the UIDs of those on the node (JSON). queue_rule is
-- NULL for other preemptions, and '' for a rule that is not known. What permitted it is NULL if not known.
CREATE TABLE victims (
    victim_uid       TEXT    PRIMARY KEY,
    recorded_us      INTEGER NOT NULL,
    victim_namespace TEXT    NOT NULL,
    victim_name      TEXT    NOT NULL,
    victim_tier      TEXT    NOT NULL,
    victim_tenant    TEXT    NOT NULL,
    job_kind         TEXT    NOT NULL,
    job              TEXT    NOT NULL,
    node             TEXT    NOT NULL,
    node_uid         TEXT    NOT NULL,
    quantity         INTEGER NOT NULL,
    is_disruption    INTEGER NOT NULL,
    cause            TEXT    NOT NULL,
    is_certain       INTEGER NOT NULL,
    decided_us       INTEGER NOT NULL,
    requested_us     INTEGER,
    grace_us         INTEGER,
    stopped_us       INTEGER,
    released_us      INTEGER,
    reused_us        INTEGER,
    replaced_us      INTEGER,
    replacement_uid  TEXT    NOT NULL,
    budget_violated  INTEGER,
    job_preemption   TEXT    NOT NULL,
    exit_code        INTEGER,
    uses_retry       INTEGER NOT NULL,
    preemptor_tier   TEXT,
    preemptor_uid    TEXT,
    preemptor_namespace TEXT,
    preemptor_name   TEXT,
    is_inferred      INTEGER,
    victim_class     TEXT,
    victim_priority  INTEGER,
    preemptor_class  TEXT,
    preemptor_priority INTEGER,
    preemptor_may_preempt INTEGER,
    preemptor_tenant TEXT,
    preemptor_kind   TEXT,
    preemptor_quantity INTEGER,
    preemptor_pods   TEXT,
    queue_rule       TEXT
) WITHOUT ROWID;

CREATE INDEX victims_decided ON victims (decided_us);

CREATE INDEX victims_job_preemption ON victims (job_preemption) WHERE job_preemption != '';

-- Preemptions as counted.
CREATE VIEW preemptions AS
SELECT victim_uid, recorded_us, victim_namespace, victim_name, victim_tier, victim_tenant, preemptor_uid,
    preemptor_namespace, preemptor_name, preemptor_tier, node, quantity, decided_us, requested_us, released_us,
    is_inferred, victim_class, victim_priority, preemptor_class, preemptor_priority, preemptor_may_preempt,
    preemptor_tenant, preemptor_kind, preemptor_quantity, preemptor_pods, queue_rule
FROM victims WHERE preemptor_tier IS NOT NULL;

-- Pods that lost GPUs that they had, by cause.
CREATE VIEW disruptions AS
SELECT victim_uid, recorded_us, victim_namespace, victim_name, victim_tier, victim_tenant, job_kind, job, node,
    node_uid, quantity, cause, is_certain, decided_us, requested_us, grace_us, stopped_us, released_us, reused_us,
    replaced_us, replacement_uid, budget_violated, job_preemption, exit_code, uses_retry
FROM victims WHERE is_disruption;

-- The work that a disruption destroyed; GPU-time in µs·µGPU as text, since it outgrows 64 bits. costs and at_intervals are
-- JSON: [[currency, cost], ...] and [[µs between two checkpoints, GPU-time], ...].
CREATE TABLE lost_work (
    victim_uid       TEXT    PRIMARY KEY,
    recorded_us      INTEGER NOT NULL,
    gpu_time         TEXT    NOT NULL,
    costs            TEXT    NOT NULL,
    basis            TEXT    NOT NULL,
    checkpoint_us    INTEGER NOT NULL,
    members          INTEGER NOT NULL,
    stalled_gpu_time TEXT    NOT NULL,
    at_intervals     TEXT    NOT NULL,
    is_final         INTEGER NOT NULL
) WITHOUT ROWID;

-- The pods that lost work to the preemption of a victim, itself included, one row for each: what they did in
-- [from_us, to_us) is lost. basis says how the checkpoint at its start is known.
CREATE TABLE lost_pods (
    pod_uid    TEXT    PRIMARY KEY,
    victim_uid TEXT    NOT NULL,
    from_us    INTEGER NOT NULL,
    to_us      INTEGER NOT NULL,
    basis      TEXT    NOT NULL
) WITHOUT ROWID;

CREATE INDEX lost_pods_victim ON lost_pods (victim_uid);

-- Preemptions of jobs that a webhook gets, if one was configured at that time. result is NULL until that is done.
CREATE TABLE preemption_deliveries (
    job_preemption TEXT    PRIMARY KEY,
    queued_us      INTEGER NOT NULL,
    result         TEXT,
    finished_us    INTEGER
) WITHOUT ROWID;

CREATE INDEX preemption_deliveries_pending ON preemption_deliveries (job_preemption) WHERE result IS NULL;

-- What a PriorityClass said, from when to when; to_us is NULL while it lasts.
CREATE TABLE priority_classes (
    name              TEXT    NOT NULL,
    from_us           INTEGER NOT NULL,
    to_us             INTEGER,
    value             INTEGER NOT NULL,
    preemption_policy TEXT    NOT NULL,
    is_default        INTEGER NOT NULL,
    PRIMARY KEY (name, from_us)
) WITHOUT ROWID;

-- Why pods waited for GPUs, one row for each part of a wait without changes; to_us is NULL while it lasts. The occupying
-- tier and tenant are those of the pods that had what it waited for, '' if none had it; occupied is how much of quantity is
-- charged to them, NULL for all of it. highest_price_key is NULL if all nodes that the pod selects have price_key.
CREATE TABLE waits (
    pod_uid          TEXT    NOT NULL,
    from_us          INTEGER NOT NULL,
    to_us            INTEGER,
    namespace        TEXT    NOT NULL,
    name             TEXT    NOT NULL,
    tier             TEXT    NOT NULL,
    tenant           TEXT    NOT NULL,
    quantity         INTEGER NOT NULL,
    reason           TEXT    NOT NULL,
    cause            TEXT    NOT NULL,
    occupying_tier   TEXT    NOT NULL,
    occupying_tenant TEXT    NOT NULL,
    price_key        TEXT,
    occupied         INTEGER,
    highest_price_key TEXT,
    PRIMARY KEY (pod_uid, from_us)
) WITHOUT ROWID;

CREATE INDEX waits_from ON waits (from_us);

-- Workloads that lacked pods with GPUs, one row for each time without changes; to_us is NULL while it lasts. quantity is
-- that of one pod. is_at_least is 1 if the workload was not read: it lacked at least so many pods, as its refusal said.
CREATE TABLE uncreated_waits (
    namespace    TEXT    NOT NULL,
    workload_uid TEXT    NOT NULL,
    from_us      INTEGER NOT NULL,
    to_us        INTEGER,
    kind         TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    job_kind     TEXT    NOT NULL,
    job          TEXT    NOT NULL,
    tier         TEXT    NOT NULL,
    tenant       TEXT    NOT NULL,
    pods         INTEGER NOT NULL,
    quantity     INTEGER NOT NULL,
    reason       TEXT    NOT NULL,
    cause        TEXT    NOT NULL,
    price_key    TEXT,
    is_at_least  INTEGER NOT NULL,
    highest_price_key TEXT,
    PRIMARY KEY (namespace, workload_uid, from_us)
) WITHOUT ROWID;

CREATE INDEX uncreated_waits_from ON uncreated_waits (from_us);

-- Observation gaps: a watch had lost its place and all objects were listed again.
CREATE TABLE interruptions (
    kind    TEXT    NOT NULL,
    from_us INTEGER NOT NULL,
    to_us   INTEGER NOT NULL,
    PRIMARY KEY (kind, from_us)
) WITHOUT ROWID;

-- Which container had which device of a node, in each life (epoch) of the node's agent. Times here and in the hours are by
-- the clock of the node, which was ahead of ours by ahead_us. pod_uid is NULL until the pod is known, '' if the API server
-- had no such pod.
CREATE TABLE usage_assignments (
    assignment INTEGER PRIMARY KEY,
    epoch      TEXT    NOT NULL,
    device     TEXT    NOT NULL,
    namespace  TEXT    NOT NULL,
    pod        TEXT    NOT NULL,
    container  TEXT    NOT NULL,
    since_us   INTEGER NOT NULL,
    node       TEXT    NOT NULL,
    gpu        TEXT    NOT NULL,
    resource   TEXT    NOT NULL,
    share      INTEGER NOT NULL,
    seen_us    INTEGER NOT NULL,
    after_us   INTEGER,
    until_us   INTEGER,
    ahead_us   INTEGER NOT NULL,
    pod_uid    TEXT,
    UNIQUE (epoch, device, namespace, pod, container, since_us)
);

CREATE INDEX usage_assignments_pod ON usage_assignments (pod_uid);

CREATE INDEX usage_assignments_ahead ON usage_assignments (assignment)
WHERE ahead_us NOT BETWEEN -3600000000 AND 3600000000;

-- What each did in each hour, as last reported. GPU-time is in µs·µGPU, memory in byte·µs, energy in mJ. While open, the
-- agent may still report it.
CREATE TABLE usage_hours (
    assignment INTEGER NOT NULL,
    start_us   INTEGER NOT NULL,
    from_us    INTEGER NOT NULL,
    to_us      INTEGER NOT NULL,
    measured   INTEGER NOT NULL,
    used       INTEGER NOT NULL,
    burst      INTEGER NOT NULL,
    memory     TEXT    NOT NULL,
    memory_us  INTEGER NOT NULL,
    energy     INTEGER NOT NULL,
    open       INTEGER NOT NULL,
    PRIMARY KEY (assignment, start_us)
) WITHOUT ROWID;

CREATE INDEX usage_hours_start ON usage_hours (start_us);

CREATE INDEX usage_hours_open ON usage_hours (assignment) WHERE open;

-- What each GPU did outside any allocation: use (µs·µGPU) and energy (mJ).
CREATE TABLE unallocated_usage (
    epoch        TEXT    NOT NULL,
    gpu          TEXT    NOT NULL,
    start_us     INTEGER NOT NULL,
    node         TEXT    NOT NULL,
    unattributed INTEGER NOT NULL,
    energy       INTEGER NOT NULL,
    open         INTEGER NOT NULL,
    PRIMARY KEY (epoch, gpu, start_us)
) WITHOUT ROWID;

CREATE INDEX unallocated_usage_open ON unallocated_usage (start_us) WHERE open;

-- Closed periods. Their hashes cover all columns but hash, in this order: docs/closing.md.
CREATE TABLE closed_periods (
    number       INTEGER PRIMARY KEY,
    name         TEXT    NOT NULL,
    start_us     INTEGER NOT NULL,
    end_us       INTEGER NOT NULL,
    zone         TEXT    NOT NULL,
    cluster      TEXT    NOT NULL,
    closed_us    INTEGER NOT NULL,
    accounted_us INTEGER NOT NULL,
    version      TEXT    NOT NULL,
    price_book   TEXT    NOT NULL,
    previous     TEXT    NOT NULL,
    hash         TEXT    NOT NULL
);

-- Their lines. of_period is the number of the period whose GPU-time it is: another one is corrected. Without a price, the
-- columns from price_key to purchase are empty. gpu_time is an integer as text, since it outgrows 64 bits.
CREATE TABLE closed_lines (
    period       INTEGER NOT NULL,
    ordinal      INTEGER NOT NULL,
    of_period    INTEGER NOT NULL,
    tenant       TEXT    NOT NULL,
    tier         TEXT    NOT NULL,
    queue        TEXT    NOT NULL,
    gpu_model    TEXT    NOT NULL,
    pool         TEXT    NOT NULL,
    resource     TEXT    NOT NULL,
    state        TEXT    NOT NULL,
    price_key    TEXT    NOT NULL,
    currency     TEXT    NOT NULL,
    per_gpu_hour TEXT    NOT NULL,
    basis        TEXT    NOT NULL,
    purchase     TEXT    NOT NULL,
    gpu_time     TEXT    NOT NULL,
    PRIMARY KEY (period, ordinal)
) WITHOUT ROWID;

-- Published counters: value at t = max(floor, a + b·t). From shown_us on the value is published, until then only its floor;
-- NULL while a label of it is evicted.
CREATE TABLE series (
    family     TEXT NOT NULL,
    labels     TEXT NOT NULL,
    created_us INTEGER NOT NULL,
    a          TEXT NOT NULL,
    b          TEXT NOT NULL,
    floor      TEXT NOT NULL,
    floor_us   INTEGER NOT NULL,
    shown_us   INTEGER,
    PRIMARY KEY (family, labels)
) WITHOUT ROWID;

-- Exported label values: when anything of a value last grew, and since when its series are not exported any more.
CREATE TABLE known_values (
    label      TEXT    NOT NULL,
    value      TEXT    NOT NULL,
    grew_us    INTEGER NOT NULL,
    evicted_us INTEGER,
    PRIMARY KEY (label, value)
) WITHOUT ROWID;

-- The state to resume from: what existed at the last write, as JSON.
CREATE TABLE working (kind TEXT NOT NULL, uid TEXT NOT NULL, document BLOB NOT NULL, PRIMARY KEY (kind, uid)) WITHOUT ROWID;

-- Of a long history in the working state, what its document leaves out.
CREATE TABLE histories (
    kind    TEXT    NOT NULL,
    uid     TEXT    NOT NULL,
    ordinal INTEGER NOT NULL,
    entry   BLOB    NOT NULL,
    PRIMARY KEY (kind, uid, ordinal)
) WITHOUT ROWID;

-- Where each watch was, and under which rules.
CREATE TABLE watches (kind TEXT PRIMARY KEY, version TEXT NOT NULL, at_us INTEGER NOT NULL, rules TEXT NOT NULL) WITHOUT ROWID;

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
       (SELECT text FROM texts WHERE id = r.outcome_text) AS outcome,
       ifnull((SELECT text FROM texts WHERE id = r.phase_text), '') AS phase,
       ifnull((SELECT text FROM texts WHERE id = r.reason_text), '') AS reason, r.exit_code
FROM pods p JOIN pod_revisions r ON r.pod = p.id;

-- All segments of each revision.
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

-- Those of each allocation's last revision, with pod, node, job and price. job_outcome is that of the pod without a Job.
-- end_us is NULL while one lasts; until_us is its end, or else the time up to which everything is accounted.
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

-- The same with the columns of segments alone.
CREATE VIEW current_segments AS
SELECT pod_uid, revision, ordinal, resource, start_us, end_us, state, quantity, tier, tenant, queue, gpu_model, pool,
       price_key, label_tier, label_tenant, label_gpu_model
FROM allocation_segments;

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

CREATE VIEW jobs AS
SELECT (SELECT text FROM texts WHERE id = job_uid_text) AS uid,
       (SELECT text FROM texts WHERE id = namespace_text) AS namespace, name,
       (SELECT text FROM texts WHERE id = outcome_text) AS outcome,
       (SELECT text FROM texts WHERE id = reason_text) AS reason, created_us, ended_us
FROM job_outcomes;

CREATE VIEW progress AS
SELECT (SELECT text FROM texts WHERE id = namespace_text) AS namespace,
       (SELECT text FROM texts WHERE id = job_kind_text) AS job_kind,
       (SELECT text FROM texts WHERE id = job_text) AS job, micro, unit, at_us
FROM job_progress;

-- By pod and hour: memory in byte·seconds, the rest as in usage_hours.
CREATE VIEW usage_by_pod AS
SELECT h.pod_uid, h.namespace, h.pod, h.node, u.start_us, min(u.from_us) AS from_us, max(u.to_us) AS to_us,
       sum(u.measured) AS measured, sum(u.used) AS used, sum(u.burst) AS burst,
       sum(CAST(u.memory AS REAL)) / 1e6 AS memory, sum(u.energy) AS energy
FROM usage_hours u JOIN usage_assignments h ON h.assignment = u.assignment
GROUP BY h.pod_uid, h.namespace, h.pod, h.node, u.start_us;
