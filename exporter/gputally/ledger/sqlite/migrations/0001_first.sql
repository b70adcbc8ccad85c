-- Times are µs since the epoch (UTC), quantities µGPU, big integers and money text.

CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- One row per revision of an allocation; the highest revision is what is known now. Never updated.
CREATE TABLE allocations (
    pod_uid      TEXT    NOT NULL,
    revision     INTEGER NOT NULL,
    recorded_us  INTEGER NOT NULL,
    namespace    TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    node         TEXT    NOT NULL,
    node_uid     TEXT    NOT NULL,
    class_name   TEXT    NOT NULL,
    priority     INTEGER,
    job_kind     TEXT    NOT NULL,
    job          TEXT    NOT NULL,
    created_us   INTEGER NOT NULL,
    scheduled_us INTEGER,
    started_us   INTEGER,
    deletion_us  INTEGER,
    end_us       INTEGER,
    end_by       TEXT,
    blind_from_us INTEGER,
    blind_to_us  INTEGER,
    PRIMARY KEY (pod_uid, revision)
) WITHOUT ROWID;

-- The segments of each revision, all of them: a later revision replaces an earlier one whole. Never updated.
CREATE TABLE segments (
    pod_uid   TEXT    NOT NULL,
    revision  INTEGER NOT NULL,
    ordinal   INTEGER NOT NULL,
    resource  TEXT    NOT NULL,
    start_us  INTEGER NOT NULL,
    end_us    INTEGER,
    state     TEXT    NOT NULL,
    quantity  INTEGER NOT NULL,
    tier      TEXT    NOT NULL,
    tenant    TEXT    NOT NULL,
    queue     TEXT    NOT NULL,
    gpu_model TEXT    NOT NULL,
    pool      TEXT    NOT NULL,
    price_key TEXT,
    label_tier      TEXT NOT NULL,
    label_tenant    TEXT NOT NULL,
    label_gpu_model TEXT NOT NULL,
    PRIMARY KEY (pod_uid, revision, ordinal)
) WITHOUT ROWID;

CREATE INDEX segments_by_start ON segments (start_us);

CREATE VIEW current_segments AS
SELECT s.* FROM segments s
WHERE s.revision = (SELECT max(a.revision) FROM allocations a WHERE a.pod_uid = s.pod_uid);

-- Every price a segment refers to, as it was rated.
CREATE TABLE prices (
    price_key    TEXT PRIMARY KEY,
    currency     TEXT NOT NULL,
    per_gpu_hour TEXT NOT NULL,
    basis        TEXT NOT NULL,
    purchase     TEXT NOT NULL
) WITHOUT ROWID;

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
    PRIMARY KEY (node_uid, from_us)
) WITHOUT ROWID;

CREATE TABLE node_ends (node_uid TEXT PRIMARY KEY, node TEXT NOT NULL, gone_us INTEGER NOT NULL) WITHOUT ROWID;

-- Preemptions as counted; a later record of a victim replaces the earlier one.
CREATE TABLE preemptions (
    victim_uid       TEXT    NOT NULL,
    recorded_us      INTEGER NOT NULL,
    victim_namespace TEXT    NOT NULL,
    victim_name      TEXT    NOT NULL,
    victim_tier      TEXT    NOT NULL,
    victim_tenant    TEXT    NOT NULL,
    preemptor_uid    TEXT,
    preemptor_namespace TEXT,
    preemptor_name   TEXT,
    preemptor_tier   TEXT    NOT NULL,
    node             TEXT    NOT NULL,
    quantity         INTEGER NOT NULL,
    decided_us       INTEGER NOT NULL,
    requested_us     INTEGER,
    released_us      INTEGER,
    PRIMARY KEY (victim_uid, recorded_us)
) WITHOUT ROWID;

-- When a watch had lost its place and everything was listed anew: what ended unseen ended in there.
CREATE TABLE interruptions (
    kind    TEXT    NOT NULL,
    from_us INTEGER NOT NULL,
    to_us   INTEGER NOT NULL,
    PRIMARY KEY (kind, from_us)
) WITHOUT ROWID;

-- Published counters: value at t = max(floor, a + b·t).
CREATE TABLE series (
    family     TEXT NOT NULL,
    labels     TEXT NOT NULL,
    created_us INTEGER NOT NULL,
    a          TEXT NOT NULL,
    b          TEXT NOT NULL,
    floor      TEXT NOT NULL,
    floor_us   INTEGER NOT NULL,
    exposed_us INTEGER,
    PRIMARY KEY (family, labels)
) WITHOUT ROWID;

CREATE TABLE admitted (label TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (label, value)) WITHOUT ROWID;

-- Working state to resume from: what existed at the last write, as JSON, and where each watch was, under which rules.
CREATE TABLE working (kind TEXT NOT NULL, uid TEXT NOT NULL, document BLOB NOT NULL, PRIMARY KEY (kind, uid)) WITHOUT ROWID;
CREATE TABLE watches (kind TEXT PRIMARY KEY, version TEXT NOT NULL, at_us INTEGER NOT NULL, rules TEXT NOT NULL) WITHOUT ROWID;
