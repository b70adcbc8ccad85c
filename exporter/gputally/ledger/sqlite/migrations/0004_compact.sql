-- Allocations and their segments take less room: texts once, and of each revision only what differs from the one before.
-- The rows of earlier schemas stay where they are, so that an upgrade takes as long with few as with many; only what is
-- still kept up to date moves. The views below show both as one, under the names they always had.

DROP VIEW current_segments;
ALTER TABLE allocations RENAME TO old_allocations;
ALTER TABLE segments RENAME TO old_segments;
ALTER TABLE prices RENAME TO old_prices;

CREATE TABLE texts (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);

CREATE TABLE prices (
    id           INTEGER PRIMARY KEY,
    price_key    TEXT NOT NULL UNIQUE,
    currency     TEXT NOT NULL,
    per_gpu_hour TEXT NOT NULL,
    basis        TEXT NOT NULL,
    purchase     TEXT NOT NULL
);

-- Under what a segment stands; the last three are the exported names, bounded, where the others are full.
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

-- What never changes of a pod. Columns named like another table, or ending in _text, are its numbers.
CREATE TABLE pods (
    id              INTEGER PRIMARY KEY,
    uid             TEXT    NOT NULL UNIQUE,
    namespace_text  INTEGER NOT NULL,
    name            TEXT    NOT NULL,
    class_name_text INTEGER NOT NULL,
    priority        INTEGER,
    created_us      INTEGER NOT NULL
);

-- Revisions of allocations, numbered from 1. recorded_us is NULL where it is the revision itself; segments is how many
-- it has. Never updated.
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
    blind_from_us INTEGER,
    blind_to_us   INTEGER,
    segments      INTEGER NOT NULL,
    PRIMARY KEY (pod, number)
) WITHOUT ROWID;

-- A segment stands from the revision of its number on, until a later one has another at its place. Never updated.
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

-- Of a long history in the working state, what its document does not hold.
CREATE TABLE histories (
    kind    TEXT    NOT NULL,
    uid     TEXT    NOT NULL,
    ordinal INTEGER NOT NULL,
    entry   BLOB    NOT NULL,
    PRIMARY KEY (kind, uid, ordinal)
) WITHOUT ROWID;

INSERT INTO prices (price_key, currency, per_gpu_hour, basis, purchase)
SELECT price_key, currency, per_gpu_hour, basis, purchase FROM old_prices;
DROP TABLE old_prices;

-- The allocations that are still kept up to date.
CREATE TEMP TABLE moved AS
SELECT a.* FROM (SELECT DISTINCT uid FROM working WHERE kind IN ('pod', 'departed')) w
JOIN old_allocations a
  ON a.pod_uid = w.uid AND a.revision = (SELECT max(revision) FROM old_allocations WHERE pod_uid = w.uid);
CREATE TEMP TABLE moved_segments AS
SELECT s.*, row_number() OVER (PARTITION BY s.pod_uid ORDER BY s.start_us, s.ordinal) - 1 AS place
FROM moved m JOIN old_segments s ON s.pod_uid = m.pod_uid AND s.revision = m.revision;

INSERT OR IGNORE INTO texts (text)
SELECT namespace FROM moved UNION SELECT class_name FROM moved UNION SELECT node FROM moved
UNION SELECT node_uid FROM moved UNION SELECT job_kind FROM moved UNION SELECT job FROM moved
UNION SELECT end_by FROM moved WHERE end_by NOTNULL;

INSERT INTO pods (uid, namespace_text, name, class_name_text, priority, created_us)
SELECT pod_uid, (SELECT id FROM texts WHERE text = namespace), name, (SELECT id FROM texts WHERE text = class_name),
       priority, created_us
FROM moved ORDER BY created_us;

INSERT INTO pod_revisions
SELECT p.id, 1, m.revision, m.recorded_us,
       (SELECT id FROM texts WHERE text = m.node), (SELECT id FROM texts WHERE text = m.node_uid),
       (SELECT id FROM texts WHERE text = m.job_kind), (SELECT id FROM texts WHERE text = m.job),
       m.scheduled_us, m.started_us, m.deletion_us, m.end_us, (SELECT id FROM texts WHERE text = m.end_by),
       m.blind_from_us, m.blind_to_us, (SELECT count(*) FROM moved_segments s WHERE s.pod_uid = m.pod_uid)
FROM moved m JOIN pods p ON p.uid = m.pod_uid;

INSERT OR IGNORE INTO terms
    (resource, state, tier, tenant, queue, gpu_model, pool, label_tier, label_tenant, label_gpu_model)
SELECT DISTINCT resource, state, tier, tenant, queue, gpu_model, pool, label_tier, label_tenant, label_gpu_model
FROM moved_segments;

INSERT INTO pod_segments
SELECT p.id, s.place, 1, s.start_us, s.end_us, s.quantity, t.id, (SELECT id FROM prices WHERE price_key = s.price_key)
FROM moved_segments s
JOIN pods p ON p.uid = s.pod_uid
JOIN terms t USING (tenant, tier, state, resource, queue, gpu_model, pool, label_tier, label_tenant, label_gpu_model);

DELETE FROM old_segments WHERE (pod_uid, revision) IN (SELECT pod_uid, revision FROM moved);
DELETE FROM old_allocations WHERE (pod_uid, revision) IN (SELECT pod_uid, revision FROM moved);
DROP TABLE moved;
DROP TABLE moved_segments;

INSERT INTO histories
SELECT w.kind, w.uid, e.key, CAST(e.value AS BLOB)
FROM working w, json_each(CAST(w.document AS TEXT), '$.terms') e
WHERE w.kind IN ('pod', 'departed') AND e.key >= 8;

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
       (SELECT text FROM texts WHERE id = r.end_by_text) AS end_by, r.blind_from_us, r.blind_to_us
FROM pods p JOIN pod_revisions r ON r.pod = p.id
UNION ALL
SELECT * FROM old_allocations;

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
JOIN terms t ON t.id = s.terms
UNION ALL
SELECT * FROM old_segments;

-- Those of each allocation's last revision, with whose they are and at what price. end_us is NULL while one lasts;
-- until_us is its end, or else up to when all is accounted.
CREATE VIEW allocation_segments AS
SELECT p.uid AS pod_uid, r.revision, s.ordinal,
       (SELECT text FROM texts WHERE id = p.namespace_text) AS namespace, p.name,
       (SELECT text FROM texts WHERE id = r.node_text) AS node,
       (SELECT text FROM texts WHERE id = r.job_kind_text) AS job_kind,
       (SELECT text FROM texts WHERE id = r.job_text) AS job,
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
SELECT s.pod_uid, s.revision, s.ordinal, a.namespace, a.name, a.node, a.job_kind, a.job, s.resource, s.start_us,
       s.end_us, ifnull(s.end_us, s.start_us), s.state, s.quantity, s.tier, s.tenant, s.queue, s.gpu_model, s.pool,
       s.price_key, c.currency, c.per_gpu_hour, c.basis, c.purchase, s.label_tier, s.label_tenant, s.label_gpu_model
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
