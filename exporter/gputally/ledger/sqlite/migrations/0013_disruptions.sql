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
