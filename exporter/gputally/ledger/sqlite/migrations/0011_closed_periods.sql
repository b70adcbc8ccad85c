-- Closed periods. Their hashes cover all columns but `hash`, in this order: docs/closing.md.
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

-- Their lines. `of_period` is the number of the period whose GPU-time it is: another one is corrected. Without a price, the
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
