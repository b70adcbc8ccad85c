-- Who held which device of a node, in each life (epoch) of the node's agent. Times here and below are by the node's own
-- clock, which was ahead of ours by ahead_us. pod_uid is NULL as long as it is not decided whose it is, '' for no pod
-- the API told of.
CREATE TABLE usage_holders (
    holder     INTEGER PRIMARY KEY,
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

CREATE INDEX usage_holders_by_pod ON usage_holders (pod_uid);

-- What each did in each hour, as last told. GPU-time is in µs·µGPU, memory in byte·µs, energy in mJ. The agent may still
-- tell of it while open.
CREATE TABLE usage_hours (
    holder     INTEGER NOT NULL,
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
    PRIMARY KEY (holder, start_us)
) WITHOUT ROWID;

CREATE INDEX usage_hours_by_start ON usage_hours (start_us);
CREATE INDEX usage_hours_open ON usage_hours (holder) WHERE open;

-- By pod and hour: memory in byte·seconds, the rest as above.
CREATE VIEW usage_by_pod AS
SELECT h.pod_uid, h.namespace, h.pod, h.node, u.start_us, min(u.from_us) AS from_us, max(u.to_us) AS to_us,
       sum(u.measured) AS measured, sum(u.used) AS used, sum(u.burst) AS burst,
       sum(CAST(u.memory AS REAL)) / 1e6 AS memory, sum(u.energy) AS energy
FROM usage_hours u JOIN usage_holders h ON h.holder = u.holder
GROUP BY h.pod_uid, h.namespace, h.pod, h.node, u.start_us;

-- What nobody held of each GPU: use without an allocation (µs·µGPU) and energy (mJ).
CREATE TABLE unheld_usage (
    epoch        TEXT    NOT NULL,
    gpu          TEXT    NOT NULL,
    start_us     INTEGER NOT NULL,
    node         TEXT    NOT NULL,
    unattributed INTEGER NOT NULL,
    energy       INTEGER NOT NULL,
    open         INTEGER NOT NULL,
    PRIMARY KEY (epoch, gpu, start_us)
) WITHOUT ROWID;

CREATE INDEX unheld_usage_open ON unheld_usage (start_us) WHERE open;
