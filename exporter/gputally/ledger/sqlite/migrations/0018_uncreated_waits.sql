-- Workloads that lacked pods with GPUs, one row for each time without changes. Times are µs; `to_us` is NULL while it lasts.
-- `quantity` is that of one pod. Apart from `waits`, whose sum is the pending GPU-time of pods.
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
    PRIMARY KEY (namespace, workload_uid, from_us)
) WITHOUT ROWID;
CREATE INDEX uncreated_waits_from ON uncreated_waits (from_us);
