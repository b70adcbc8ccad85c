-- Of a preemption by a queue, the preemptor is a workload: `preemptor_uid` is that of its Workload, `preemptor_kind` and
-- `preemptor_name` are those of its job, `preemptor_quantity` is what its pods request (µGPU), and `preemptor_pods` are the
-- UIDs of those on the node (JSON). `queue_rule` is NULL for other preemptions, and '' for a rule that is not known.
ALTER TABLE preemptions ADD COLUMN preemptor_tenant TEXT;
ALTER TABLE preemptions ADD COLUMN preemptor_kind TEXT;
ALTER TABLE preemptions ADD COLUMN preemptor_quantity INTEGER;
ALTER TABLE preemptions ADD COLUMN preemptor_pods TEXT;
ALTER TABLE preemptions ADD COLUMN queue_rule TEXT;
