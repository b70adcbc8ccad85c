-- The highest progress that pods of each job have stated, in millionths of a unit, and when it was first observed.
CREATE TABLE job_progress (
    namespace_text INTEGER NOT NULL,
    job_kind_text  INTEGER NOT NULL,
    job_text       INTEGER NOT NULL,
    micro          INTEGER NOT NULL,
    unit           TEXT    NOT NULL,
    at_us          INTEGER NOT NULL,
    PRIMARY KEY (namespace_text, job_kind_text, job_text)
) WITHOUT ROWID;

CREATE VIEW progress AS
SELECT (SELECT text FROM texts WHERE id = namespace_text) AS namespace,
       (SELECT text FROM texts WHERE id = job_kind_text) AS job_kind,
       (SELECT text FROM texts WHERE id = job_text) AS job, micro, unit, at_us
FROM job_progress;
