-- Whether a PodDisruptionBudget allowed no disruption when it was decided; NULL where that is not known.
ALTER TABLE disruptions ADD COLUMN budget_violated INTEGER;

-- What a PriorityClass said, from when to when (µs); to_us is NULL while it lasts.
CREATE TABLE priority_classes (
    name              TEXT    NOT NULL,
    from_us           INTEGER NOT NULL,
    to_us             INTEGER,
    value             INTEGER NOT NULL,
    preemption_policy TEXT    NOT NULL,
    is_default        INTEGER NOT NULL,
    PRIMARY KEY (name, from_us)
) WITHOUT ROWID;
