-- Why pods waited for GPUs, one row for each part of a wait without changes. Times are µs; `to_us` is NULL while it lasts.
-- The occupying tier and tenant are those of the pods that held what it waited for, '' where none did.
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
    PRIMARY KEY (pod_uid, from_us)
) WITHOUT ROWID;
CREATE INDEX waits_from ON waits (from_us);
