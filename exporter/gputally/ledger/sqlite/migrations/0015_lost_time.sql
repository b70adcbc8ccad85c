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
