-- The time before the retention, by day. Sums of GPU-time (µs·µGPU) outgrow 64 bits, so that they are stored as seconds
-- and a rest: the sum is seconds * 1000000 + microseconds, each added up on its own.

-- The days (UTC) that have daily rows; the day of the accounting start has two parts.
CREATE TABLE rolled_periods (
    id       INTEGER PRIMARY KEY,
    start_us INTEGER NOT NULL UNIQUE,
    end_us   INTEGER NOT NULL
);

-- What ended pods with the same names, terms and price did in one period. pods is how many of them were allocated: 0 for
-- usage alone. bound of them were bound in the period, after wait_us since their creation, together. outcome_text and job_outcome_text are 0 if unknown, price is 0 without one.
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

-- Where the µGPU change that these pods held on a node, so that its unallocated capacity stays exact.
CREATE TABLE node_steps (
    node_uid_text INTEGER NOT NULL,
    at_us         INTEGER NOT NULL,
    change        INTEGER NOT NULL,
    PRIMARY KEY (node_uid_text, at_us)
) WITHOUT ROWID;

-- The UIDs of these pods as hashes: a later revision of one must not count again.
CREATE TABLE rolled_pods (uid_hash INTEGER PRIMARY KEY);

CREATE VIEW daily_allocations AS
SELECT p.start_us, p.end_us,
       (SELECT text FROM texts WHERE id = d.namespace_text) AS namespace,
       (SELECT text FROM texts WHERE id = d.node_text) AS node,
       (SELECT text FROM texts WHERE id = d.node_uid_text) AS node_uid,
       (SELECT text FROM texts WHERE id = d.job_kind_text) AS job_kind,
       (SELECT text FROM texts WHERE id = d.job_text) AS job,
       ifnull((SELECT text FROM texts WHERE id = d.outcome_text), 'unknown') AS outcome,
       ifnull((SELECT text FROM texts WHERE id = d.job_outcome_text), 'unknown') AS job_outcome,
       t.resource, t.state, t.tier, t.tenant, t.queue, t.gpu_model, t.pool,
       c.price_key, c.currency, c.per_gpu_hour, c.basis, c.purchase,
       d.pods, d.bound, d.wait_us, d.seconds, d.microseconds, d.measured_seconds, d.measured_microseconds, d.used_seconds,
       d.used_microseconds, d.burst_seconds, d.burst_microseconds, d.energy
FROM rolled_periods p
JOIN daily_rows d ON d.period = p.id
JOIN terms t ON t.id = d.terms
LEFT JOIN prices c ON c.id = d.price;
