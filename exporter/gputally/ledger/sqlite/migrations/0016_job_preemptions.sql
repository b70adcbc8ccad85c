-- What belongs to one preemption of a job: the UID of the first of its pods, '' for other causes. Pods of before are one
-- each. `exit_code` is that of the container that failed first; `uses_retry` says that the pod's Job counts it as failed.
ALTER TABLE disruptions ADD COLUMN job_preemption TEXT NOT NULL DEFAULT '';
ALTER TABLE disruptions ADD COLUMN exit_code INTEGER;
ALTER TABLE disruptions ADD COLUMN uses_retry INTEGER NOT NULL DEFAULT 0;
UPDATE disruptions SET job_preemption = victim_uid WHERE cause = 'preemption';
CREATE INDEX disruptions_job_preemption ON disruptions (job_preemption) WHERE job_preemption != '';

-- What permitted it; NULL if not known, as in rows of before.
ALTER TABLE preemptions ADD COLUMN victim_class TEXT;
ALTER TABLE preemptions ADD COLUMN victim_priority INTEGER;
ALTER TABLE preemptions ADD COLUMN preemptor_class TEXT;
ALTER TABLE preemptions ADD COLUMN preemptor_priority INTEGER;
ALTER TABLE preemptions ADD COLUMN preemptor_may_preempt INTEGER;

-- Preemptions of jobs that a webhook gets, if one was configured at that time. `result` is NULL until that is done.
CREATE TABLE preemption_deliveries (
    job_preemption TEXT    PRIMARY KEY,
    queued_us      INTEGER NOT NULL,
    result         TEXT,
    finished_us    INTEGER
) WITHOUT ROWID;
CREATE INDEX preemption_deliveries_pending ON preemption_deliveries (job_preemption) WHERE result IS NULL;
