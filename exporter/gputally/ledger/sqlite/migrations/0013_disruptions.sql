-- Pods that lost their GPUs before they had ended by themselves, by cause, one row for each. Times are µs.
CREATE TABLE disruptions (
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
    cause            TEXT    NOT NULL,
    is_certain       INTEGER NOT NULL,
    decided_us       INTEGER NOT NULL,
    requested_us     INTEGER,
    grace_us         INTEGER,
    stopped_us       INTEGER,
    released_us      INTEGER,
    reused_us        INTEGER,
    replaced_us      INTEGER,
    replacement_uid  TEXT    NOT NULL
) WITHOUT ROWID;
CREATE INDEX disruptions_decided ON disruptions (decided_us);

ALTER TABLE preemptions ADD COLUMN is_inferred INTEGER NOT NULL DEFAULT 0;

-- The work that a preemption destroyed; GPU-time in µs·µGPU as text, since it outgrows 64 bits. `costs` and
-- `at_intervals` are JSON: [[currency, cost], ...] and [[µs between two checkpoints, GPU-time], ...].
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
