BEGIN TRANSACTION;
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
    divided       INTEGER NOT NULL,
    price_labels  TEXT    NOT NULL,
    PRIMARY KEY (node_uid, from_us)
) WITHOUT ROWID;
INSERT INTO "capacity" VALUES('node-1',1000000000,2000000000,'n1',8000000,8000000,7000000,1,0,'H100','a','p5','spot',0,'{"zone":"z1"}');
CREATE TABLE capacity_prices (
    instance_type TEXT    NOT NULL,
    gpu_model     TEXT    NOT NULL,
    pool          TEXT    NOT NULL,
    purchase      TEXT    NOT NULL,
    price_labels  TEXT    NOT NULL,
    from_us       INTEGER NOT NULL,
    price_key     TEXT,
    PRIMARY KEY (instance_type, gpu_model, pool, purchase, price_labels, from_us)
) WITHOUT ROWID;
INSERT INTO "capacity_prices" VALUES('p5','H100','a','spot','{"zone":"z1"}',1000000000,'0123456789ab/h100@0:spot');
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
INSERT INTO "closed_lines" VALUES(1,0,1,'red','a tier of its own','q','NVIDIA-H100-80GB-HBM3','a','nvidia.com/gpu','running','0123456789ab/h100@0:spot','CHF','1.2345678901','gpu','spot','170800000000000000');
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
INSERT INTO "closed_periods" VALUES(1,'1970-01-01',1000000000,86400000000,'UTC','cluster-1',1,172800000000,'1.2.3','0123456789abcdef','','15008547e428e8d7df07ff6ed9192a5c923417b221ba77775eac48cc5f465432');
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
CREATE TABLE daily_rows (
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
    pods             INTEGER NOT NULL,
    bound            INTEGER NOT NULL,
    wait_us          INTEGER NOT NULL,
    seconds               INTEGER NOT NULL,
    microseconds          INTEGER NOT NULL,
    measured_seconds      INTEGER NOT NULL,
    measured_microseconds INTEGER NOT NULL,
    used_seconds          INTEGER NOT NULL,
    used_microseconds     INTEGER NOT NULL,
    burst_seconds         INTEGER NOT NULL,
    burst_microseconds    INTEGER NOT NULL,
    energy                INTEGER NOT NULL,
    PRIMARY KEY (period, namespace_text, job_kind_text, job_text, node_text, node_uid_text, outcome_text,
                 job_outcome_text, terms, price)
) WITHOUT ROWID;
CREATE TABLE histories (
    kind    TEXT    NOT NULL,
    uid     TEXT    NOT NULL,
    ordinal INTEGER NOT NULL,
    entry   BLOB    NOT NULL,
    PRIMARY KEY (kind, uid, ordinal)
) WITHOUT ROWID;
INSERT INTO "histories" VALUES('pod','live',8,X'7B2266726F6D5F7573223A382C2274696572223A226C6F77222C2274656E616E74223A22726564222C226770755F6D6F64656C223A2248313030222C22706F6F6C223A2261222C226173736574223A7B22696E7374616E63655F74797065223A227035222C226770755F6D6F64656C223A2248313030222C22706F6F6C223A2261222C227075726368617365223A2273706F74222C226C6162656C73223A5B5B227A6F6E65222C227A31225D5D7D2C227175616E746974696573223A5B5B226E76696469612E636F6D2F677075222C313030303030305D5D7D');
INSERT INTO "histories" VALUES('pod','live',9,X'7B2266726F6D5F7573223A392C2274696572223A226C6F77222C2274656E616E74223A22726564222C226770755F6D6F64656C223A2248313030222C22706F6F6C223A2261222C226173736574223A7B22696E7374616E63655F74797065223A227035222C226770755F6D6F64656C223A2248313030222C22706F6F6C223A2261222C227075726368617365223A2273706F74222C226C6162656C73223A5B5B227A6F6E65222C227A31225D5D7D2C227175616E746974696573223A5B5B226E76696469612E636F6D2F677075222C313030303030305D5D7D');
INSERT INTO "histories" VALUES('pod','live',10,X'7B2266726F6D5F7573223A31302C2274696572223A226C6F77222C2274656E616E74223A22726564222C226770755F6D6F64656C223A2248313030222C22706F6F6C223A2261222C226173736574223A7B22696E7374616E63655F74797065223A227035222C226770755F6D6F64656C223A2248313030222C22706F6F6C223A2261222C227075726368617365223A2273706F74222C226C6162656C73223A5B5B227A6F6E65222C227A31225D5D7D2C227175616E746974696573223A5B5B226E76696469612E636F6D2F677075222C313030303030305D5D7D');
INSERT INTO "histories" VALUES('pod','live',11,X'7B2266726F6D5F7573223A31312C2274696572223A226C6F77222C2274656E616E74223A22726564222C226770755F6D6F64656C223A2248313030222C22706F6F6C223A2261222C226173736574223A7B22696E7374616E63655F74797065223A227035222C226770755F6D6F64656C223A2248313030222C22706F6F6C223A2261222C227075726368617365223A2273706F74222C226C6162656C73223A5B5B227A6F6E65222C227A31225D5D7D2C227175616E746974696573223A5B5B226E76696469612E636F6D2F677075222C313030303030305D5D7D');
CREATE TABLE imported (pod INTEGER PRIMARY KEY, digest INTEGER NOT NULL);
CREATE TABLE interruptions (
    kind    TEXT    NOT NULL,
    from_us INTEGER NOT NULL,
    to_us   INTEGER NOT NULL,
    PRIMARY KEY (kind, from_us)
) WITHOUT ROWID;
INSERT INTO "interruptions" VALUES('pods',1300000000,1400000000);
CREATE TABLE job_outcomes (
    job_uid_text   INTEGER PRIMARY KEY,
    namespace_text INTEGER NOT NULL,
    name           TEXT    NOT NULL,
    created_us     INTEGER NOT NULL,
    outcome_text   INTEGER NOT NULL,
    reason_text    INTEGER NOT NULL,
    ended_us       INTEGER
);
INSERT INTO "job_outcomes" VALUES(1,2,'train',1,3,4,NULL);
CREATE TABLE job_progress (
    namespace_text INTEGER NOT NULL,
    job_kind_text  INTEGER NOT NULL,
    job_text       INTEGER NOT NULL,
    micro          INTEGER NOT NULL,
    unit           TEXT    NOT NULL,
    at_us          INTEGER NOT NULL,
    PRIMARY KEY (namespace_text, job_kind_text, job_text)
) WITHOUT ROWID;
INSERT INTO "job_progress" VALUES(2,5,6,3000000,'epochs',1800000000);
CREATE TABLE known_values (
    label      TEXT    NOT NULL,
    value      TEXT    NOT NULL,
    grew_us    INTEGER NOT NULL,
    evicted_us INTEGER,
    PRIMARY KEY (label, value)
) WITHOUT ROWID;
INSERT INTO "known_values" VALUES('tenant','red',1900000000,NULL);
CREATE TABLE lost_pods (
    pod_uid    TEXT    PRIMARY KEY,
    victim_uid TEXT    NOT NULL,
    from_us    INTEGER NOT NULL,
    to_us      INTEGER NOT NULL,
    basis      TEXT    NOT NULL
) WITHOUT ROWID;
INSERT INTO "lost_pods" VALUES('a','a',5,9,'start');
INSERT INTO "lost_pods" VALUES('b','a',6,9,'annotation');
CREATE TABLE lost_work (
    victim_uid       TEXT    PRIMARY KEY,
    recorded_us      INTEGER NOT NULL,
    gpu_time         TEXT    NOT NULL,
    costs            TEXT    NOT NULL,
    basis            TEXT    NOT NULL,
    checkpoint_us    INTEGER NOT NULL,
    members          INTEGER NOT NULL,
    stalled_gpu_time TEXT    NOT NULL,
    at_intervals     TEXT    NOT NULL,
    is_final         INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO "lost_work" VALUES('a',172800000000,'300000000000000000000','[["EUR","7000000000000000000000000000000"]]','start',1400000000,8,'10000000000000000000','[[600000000,"1"],[1800000000,"2"],[3600000000,"3"]]',1);
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "meta" VALUES('accounting_start_us','1000000000');
INSERT INTO "meta" VALUES('at_us','172800000000');
INSERT INTO "meta" VALUES('balance_allocated_a','84405000000000000');
INSERT INTO "meta" VALUES('balance_allocated_b','1000000');
INSERT INTO "meta" VALUES('balance_cost_a','104203702763890500000000000000');
INSERT INTO "meta" VALUES('balance_cost_b','1234567890100000000');
INSERT INTO "meta" VALUES('balance_disruption_lost_a','300000000000000000000');
INSERT INTO "meta" VALUES('balance_disruption_lost_b','0');
INSERT INTO "meta" VALUES('balance_disruption_lost_cost_a','7000000000000000000000000000000');
INSERT INTO "meta" VALUES('balance_disruption_lost_cost_b','0');
INSERT INTO "meta" VALUES('balance_pending_a','100000000000000');
INSERT INTO "meta" VALUES('balance_pending_b','0');
INSERT INTO "meta" VALUES('balance_pending_cost_a','123456789010000000000000000');
INSERT INTO "meta" VALUES('balance_pending_cost_b','0');
INSERT INTO "meta" VALUES('balance_uncreated_a','-9600000000000000');
INSERT INTO "meta" VALUES('balance_uncreated_b','8000000');
INSERT INTO "meta" VALUES('balance_uncreated_cost_a','-4800000000000000000000000000');
INSERT INTO "meta" VALUES('balance_uncreated_cost_b','4000000000000000000');
INSERT INTO "meta" VALUES('cluster','cluster-1');
INSERT INTO "meta" VALUES('evaluated_us','172800000000');
INSERT INTO "meta" VALUES('waits_from_us','1000000000');
CREATE TABLE node_ends (
    node_uid   TEXT    PRIMARY KEY,
    node       TEXT    NOT NULL,
    gone_us    INTEGER NOT NULL,
    gone_by_us INTEGER
) WITHOUT ROWID;
CREATE TABLE node_steps (
    node_uid_text INTEGER NOT NULL,
    at_us         INTEGER NOT NULL,
    change        INTEGER NOT NULL,
    PRIMARY KEY (node_uid_text, at_us)
) WITHOUT ROWID;
CREATE TABLE page_sums (page INTEGER NOT NULL, day INTEGER NOT NULL, sums BLOB NOT NULL, PRIMARY KEY (page, day));
CREATE TABLE pod_days (day INTEGER NOT NULL, pod INTEGER NOT NULL, PRIMARY KEY (day, pod)) WITHOUT ROWID;
INSERT INTO "pod_days" VALUES(-1,2);
INSERT INTO "pod_days" VALUES(0,1);
INSERT INTO "pod_days" VALUES(0,3);
INSERT INTO "pod_days" VALUES(1,1);
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
    gap_from_us   INTEGER,
    gap_to_us     INTEGER,
    segments      INTEGER NOT NULL,
    outcome_text  INTEGER NOT NULL,
    phase_text    INTEGER,
    reason_text   INTEGER,
    exit_code     INTEGER,
    unchanged     INTEGER NOT NULL,
    PRIMARY KEY (pod, number)
) WITHOUT ROWID;
INSERT INTO "pod_revisions" VALUES(1,1,1,2000000000,8,9,5,6,2,3,NULL,NULL,NULL,NULL,NULL,3,10,11,12,137,0);
INSERT INTO "pod_revisions" VALUES(1,2,2,172800000000,8,9,5,6,2,3,NULL,86405000000,NULL,NULL,NULL,2,15,11,12,137,1);
INSERT INTO "pod_revisions" VALUES(2,1,1,2000000000,8,9,5,6,2,3,NULL,NULL,NULL,NULL,NULL,2,10,11,12,137,0);
INSERT INTO "pod_revisions" VALUES(3,1,1,2000000000,8,9,5,6,2,3,4,6,13,6,9,1,14,11,12,137,0);
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
INSERT INTO "pod_segments" VALUES(1,0,1,1000000000,1010000000,1000000,1,1);
INSERT INTO "pod_segments" VALUES(1,1,1,1010000000,NULL,1000000,1,1);
INSERT INTO "pod_segments" VALUES(1,1,2,1010000000,86405000000,1000000,1,1);
INSERT INTO "pod_segments" VALUES(1,2,1,1500000000,1600000000,1000000,1,NULL);
INSERT INTO "pod_segments" VALUES(2,0,1,1100000000,1110000000,1000000,1,1);
INSERT INTO "pod_segments" VALUES(2,1,1,1110000000,NULL,1000000,1,1);
INSERT INTO "pod_segments" VALUES(3,0,1,1200000000,1300000000,1000000,1,1);
CREATE TABLE pods (
    id              INTEGER PRIMARY KEY,
    uid             TEXT    NOT NULL UNIQUE,
    namespace_text  INTEGER NOT NULL,
    name            TEXT    NOT NULL,
    class_name_text INTEGER NOT NULL,
    priority        INTEGER,
    created_us      INTEGER NOT NULL,
    job_uid_text    INTEGER
);
INSERT INTO "pods" VALUES(1,'a',2,'pod-a',7,-5,1,1);
INSERT INTO "pods" VALUES(2,'live',2,'pod-live',7,-5,1,1);
INSERT INTO "pods" VALUES(3,'gap',2,'pod-gap',7,-5,1,1);
CREATE TABLE preemption_deliveries (
    job_preemption TEXT    PRIMARY KEY,
    queued_us      INTEGER NOT NULL,
    result         TEXT,
    finished_us    INTEGER
) WITHOUT ROWID;
CREATE TABLE prices (
    id           INTEGER PRIMARY KEY,
    price_key    TEXT NOT NULL UNIQUE,
    currency     TEXT NOT NULL,
    per_gpu_hour TEXT NOT NULL,
    basis        TEXT NOT NULL,
    purchase     TEXT NOT NULL
);
INSERT INTO "prices" VALUES(1,'0123456789ab/h100@0:spot','CHF','1.2345678901','gpu','spot');
INSERT INTO "prices" VALUES(2,'cheap','CHF','0.5','gpu','on-demand');
CREATE TABLE priority_classes (
    name              TEXT    NOT NULL,
    from_us           INTEGER NOT NULL,
    to_us             INTEGER,
    value             INTEGER NOT NULL,
    preemption_policy TEXT    NOT NULL,
    is_default        INTEGER NOT NULL,
    PRIMARY KEY (name, from_us)
) WITHOUT ROWID;
INSERT INTO "priority_classes" VALUES('low',7,NULL,-100,'Never',1);
CREATE TABLE reregistrations (node_uid TEXT PRIMARY KEY, continues TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE rolled_periods (
    id       INTEGER PRIMARY KEY,
    start_us INTEGER NOT NULL UNIQUE,
    end_us   INTEGER NOT NULL
);
CREATE TABLE rolled_pods (uid_hash INTEGER PRIMARY KEY);
CREATE TABLE series (
    family     TEXT NOT NULL,
    labels     TEXT NOT NULL,
    created_us INTEGER NOT NULL,
    a          TEXT NOT NULL,
    b          TEXT NOT NULL,
    floor      TEXT NOT NULL,
    floor_us   INTEGER NOT NULL,
    shown_us   INTEGER,
    PRIMARY KEY (family, labels)
) WITHOUT ROWID;
INSERT INTO "series" VALUES('allocated','["low", "red", "H100", "running"]',1000000000,'10000000000000000000000000','7','0',0,0);
CREATE TABLE summed_pages (page INTEGER PRIMARY KEY, left_out TEXT NOT NULL);
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
INSERT INTO "terms" VALUES(1,'nvidia.com/gpu','running','a tier of its own','red','q','NVIDIA-H100-80GB-HBM3','a','other','red','H100');
CREATE TABLE texts (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
INSERT INTO "texts" VALUES(1,'job-1');
INSERT INTO "texts" VALUES(2,'ml');
INSERT INTO "texts" VALUES(3,'succeeded');
INSERT INTO "texts" VALUES(4,'');
INSERT INTO "texts" VALUES(5,'Job');
INSERT INTO "texts" VALUES(6,'train');
INSERT INTO "texts" VALUES(7,'low');
INSERT INTO "texts" VALUES(8,'n1');
INSERT INTO "texts" VALUES(9,'node-1');
INSERT INTO "texts" VALUES(10,'running');
INSERT INTO "texts" VALUES(11,'Failed');
INSERT INTO "texts" VALUES(12,'Error');
INSERT INTO "texts" VALUES(13,'vanished');
INSERT INTO "texts" VALUES(14,'preempted');
INSERT INTO "texts" VALUES(15,'failed');
CREATE TABLE unallocated_usage (
    epoch        TEXT    NOT NULL,
    gpu          TEXT    NOT NULL,
    start_us     INTEGER NOT NULL,
    node         TEXT    NOT NULL,
    unattributed INTEGER NOT NULL,
    energy       INTEGER NOT NULL,
    open         INTEGER NOT NULL,
    PRIMARY KEY (epoch, gpu, start_us)
) WITHOUT ROWID;
INSERT INTO "unallocated_usage" VALUES('e1','GPU-0',0,'n1',5,6,1);
CREATE TABLE uncreated_waits (
    namespace    TEXT    NOT NULL,
    workload_uid TEXT    NOT NULL,
    from_us      INTEGER NOT NULL,
    to_us        INTEGER,
    kind         TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    job_kind     TEXT    NOT NULL,
    job          TEXT    NOT NULL,
    tier         TEXT    NOT NULL,
    tenant       TEXT    NOT NULL,
    pods         INTEGER NOT NULL,
    quantity     INTEGER NOT NULL,
    reason       TEXT    NOT NULL,
    cause        TEXT    NOT NULL,
    price_key    TEXT,
    is_at_least  INTEGER NOT NULL,
    highest_price_key TEXT,
    PRIMARY KEY (namespace, workload_uid, from_us)
) WITHOUT ROWID;
INSERT INTO "uncreated_waits" VALUES('ml','job-1',1200000000,NULL,'Job','train','Job','train','low','red',4,2000000,'quota','quota','cheap',0,NULL);
CREATE TABLE usage_assignments (
    assignment INTEGER PRIMARY KEY,
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
INSERT INTO "usage_assignments" VALUES(1,'e1','MIG-7','ml','pod-a','main',1000000000,'n1','GPU-0','nvidia.com/gpu',142857,1020000000,NULL,NULL,0,'a');
CREATE TABLE usage_hours (
    assignment INTEGER NOT NULL,
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
    PRIMARY KEY (assignment, start_us)
) WITHOUT ROWID;
INSERT INTO "usage_hours" VALUES(1,0,1100000000,1200000000,100000000000000,50000000000000,0,'288000000000000000000',20000000,9,1);
CREATE TABLE victims (
    victim_uid       TEXT    PRIMARY KEY,
    recorded_us      INTEGER NOT NULL,
    victim_namespace TEXT    NOT NULL,
    victim_name      TEXT    NOT NULL,
    victim_tier      TEXT    NOT NULL,
    victim_tenant    TEXT    NOT NULL,
    job_kind         TEXT    NOT NULL,
    job              TEXT    NOT NULL,
    node             TEXT    NOT NULL,
    node_uid         TEXT    NOT NULL,
    quantity         INTEGER NOT NULL,
    is_disruption    INTEGER NOT NULL,
    cause            TEXT    NOT NULL,
    is_certain       INTEGER NOT NULL,
    decided_us       INTEGER NOT NULL,
    requested_us     INTEGER,
    grace_us         INTEGER,
    stopped_us       INTEGER,
    released_us      INTEGER,
    reused_us        INTEGER,
    replaced_us      INTEGER,
    replacement_uid  TEXT    NOT NULL,
    budget_violated  INTEGER,
    job_preemption   TEXT    NOT NULL,
    exit_code        INTEGER,
    uses_retry       INTEGER NOT NULL,
    preemptor_tier   TEXT,
    preemptor_uid    TEXT,
    preemptor_namespace TEXT,
    preemptor_name   TEXT,
    is_inferred      INTEGER,
    victim_class     TEXT,
    victim_priority  INTEGER,
    preemptor_class  TEXT,
    preemptor_priority INTEGER,
    preemptor_may_preempt INTEGER,
    preemptor_tenant TEXT,
    preemptor_kind   TEXT,
    preemptor_quantity INTEGER,
    preemptor_pods   TEXT,
    queue_rule       TEXT
) WITHOUT ROWID;
INSERT INTO "victims" VALUES('a',172800000000,'ml','pod-a','low','red','Job','train','n1','uid-n1',1000000,1,'preemption',1,1500000000,8,30000000,9,9,NULL,NULL,'',0,'',NULL,0,'high','b','ml','pod-b',0,'',NULL,NULL,NULL,NULL,'blue',NULL,NULL,NULL,NULL);
INSERT INTO "victims" VALUES('b',172800000000,'ml','pod-a','low','red','Job','train','n1','uid-n1',1000000,0,'preemption',1,1500000000,8,NULL,NULL,NULL,NULL,NULL,'',NULL,'',NULL,0,'high','wl','serve','llm',0,'',NULL,NULL,NULL,NULL,'blue','RayJob',3000000,'["b", "c"]','InCohortReclamation');
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
    occupied         INTEGER,
    highest_price_key TEXT,
    PRIMARY KEY (pod_uid, from_us)
) WITHOUT ROWID;
INSERT INTO "waits" VALUES('w',1700000000,1800000000,'ml','pod-w','low','red',1000000,'capacity','idle_allocation','high','blue','0123456789ab/h100@0:spot',NULL,NULL);
CREATE TABLE watches (kind TEXT PRIMARY KEY, version TEXT NOT NULL, at_us INTEGER NOT NULL, rules TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "watches" VALUES('pods','17',1990000000,'digest');
CREATE TABLE working (kind TEXT NOT NULL, uid TEXT NOT NULL, document BLOB NOT NULL, PRIMARY KEY (kind, uid)) WITHOUT ROWID;
INSERT INTO "working" VALUES('departed','a',X'7B22756964223A2261222C226E616D657370616365223A226D6C222C226E616D65223A22706F642D61222C22756E697473223A5B5B226E76696469612E636F6D2F677075222C315D5D2C22636C6173735F6E616D65223A226C6F77222C227072696F72697479223A2D352C226C6162656C73223A5B5B227465616D222C22726564225D5D2C226F776E6572223A7B226B696E64223A224A6F62222C226E616D65223A22747261696E222C22756964223A226A6F622D31222C2261706956657273696F6E223A2262617463682F7631222C22636F6E74726F6C6C6572223A747275657D2C22637265617465645F7573223A312C226E6F6465223A226E31222C226E6F64655F756964223A226E6F64652D31222C227363686564756C65645F7573223A322C22737461727465645F7573223A332C22656E645F7573223A38363430353030303030302C22726573756C74223A7B227068617365223A224661696C6564222C22726561736F6E223A224572726F72222C22657869745F636F6465223A3133377D2C226A6F625F6B696E64223A224A6F62222C226A6F62223A22747261696E222C227465726D73223A5B7B2266726F6D5F7573223A322C2274696572223A226C6F77222C2274656E616E74223A22726564222C226770755F6D6F64656C223A2248313030222C22706F6F6C223A2261222C226173736574223A7B22696E7374616E63655F74797065223A227035222C226770755F6D6F64656C223A2248313030222C22706F6F6C223A2261222C227075726368617365223A2273706F74222C226C6162656C73223A5B5B227A6F6E65222C227A31225D5D7D2C227175616E746974696573223A5B5B226E76696469612E636F6D2F677075222C313030303030305D5D7D5D2C227265766973696F6E223A327D');
INSERT INTO "working" VALUES('node','node-1',X'7B22756964223A226E6F64652D31222C226E616D65223A226E31222C22637265617465645F7573223A352C22676F6E655F7573223A6E756C6C2C22676F6E655F62795F7573223A6E756C6C2C226D616368696E65223A22222C22636F6E74696E756573223A22222C226661637473223A5B5B352C7B22706879736963616C223A383030303030302C22636F7665726564223A383030303030302C2264697669646564223A66616C73652C22616C6C6F63617461626C65223A373030303030302C227265616479223A747275652C22636F72646F6E6564223A66616C73652C226770755F6D6F64656C223A2248313030222C22706F6F6C223A2261222C226173736574223A7B22696E7374616E63655F74797065223A227035222C226770755F6D6F64656C223A2248313030222C22706F6F6C223A2261222C227075726368617365223A2273706F74222C226C6162656C73223A5B5B227A6F6E65222C227A31225D5D7D2C2270757263686173655F636F6E666C696374223A66616C73652C226C6162656C73223A5B5B226E76696469612E636F6D2F6770752E6D656D6F7279222C223831393230225D2C5B226E76696469612E636F6D2F6770752E7265706C69636173222C2232225D5D2C22756E697473223A5B5D2C226F666665726564223A6E756C6C2C2267707573223A302C226B6570745F6F66666572223A5B5D2C22636F6E666C696374223A6E756C6C2C2273686172696E67223A6E756C6C7D5D5D2C22756E7265616479223A5B5D2C226C6F7374223A5B5D2C226C6F6F6B65645F6174223A5B5D7D');
INSERT INTO "working" VALUES('pod','live',X'7B22756964223A226C697665222C226E616D657370616365223A226D6C222C226E616D65223A22706F642D6C697665222C22756E697473223A5B5B226E76696469612E636F6D2F677075222C315D5D2C22636C6173735F6E616D65223A226C6F77222C227072696F72697479223A2D352C226C6162656C73223A5B5B227465616D222C22726564225D5D2C226F776E6572223A7B226B696E64223A224A6F62222C226E616D65223A22747261696E222C22756964223A226A6F622D31222C2261706956657273696F6E223A2262617463682F7631222C22636F6E74726F6C6C6572223A747275657D2C22637265617465645F7573223A312C226E6F6465223A226E31222C226E6F64655F756964223A226E6F64652D31222C227363686564756C65645F7573223A322C22737461727465645F7573223A332C22726573756C74223A7B227068617365223A224661696C6564222C22726561736F6E223A224572726F72222C22657869745F636F6465223A3133377D2C226A6F625F6B696E64223A224A6F62222C226A6F62223A22747261696E222C227465726D73223A5B7B2266726F6D5F7573223A302C2274696572223A226C6F77222C2274656E616E74223A22726564222C226770755F6D6F64656C223A2248313030222C22706F6F6C223A2261222C226173736574223A7B22696E7374616E63655F74797065223A227035222C226770755F6D6F64656C223A2248313030222C22706F6F6C223A2261222C227075726368617365223A2273706F74222C226C6162656C73223A5B5B227A6F6E65222C227A31225D5D7D2C227175616E746974696573223A5B5B226E76696469612E636F6D2F677075222C313030303030305D5D7D2C7B2266726F6D5F7573223A312C2274696572223A226C6F77222C2274656E616E74223A22726564222C226770755F6D6F64656C223A2248313030222C22706F6F6C223A2261222C226173736574223A7B22696E7374616E63655F74797065223A227035222C226770755F6D6F64656C223A2248313030222C22706F6F6C223A2261222C227075726368617365223A2273706F74222C226C6162656C73223A5B5B227A6F6E65222C227A31225D5D7D2C227175616E746974696573223A5B5B226E76696469612E636F6D2F677075222C313030303030305D5D7D2C7B2266726F6D5F7573223A322C2274696572223A226C6F77222C2274656E616E74223A22726564222C226770755F6D6F64656C223A2248313030222C22706F6F6C223A2261222C226173736574223A7B22696E7374616E63655F74797065223A227035222C226770755F6D6F64656C223A2248313030222C22706F6F6C223A2261222C227075726368617365223A2273706F74222C226C6162656C73223A5B5B227A6F6E65222C227A31225D5D7D2C227175616E746974696573223A5B5B226E76696469612E636F6D2F677075222C313030303030305D5D7D2C7B2266726F6D5F7573223A332C2274696572223A226C6F77222C2274656E616E74223A22726564222C226770755F6D6F64656C223A2248313030222C22706F6F6C223A2261222C226173736574223A7B22696E7374616E63655F74797065223A227035222C226770755F6D6F64656C223A2248313030222C22706F6F6C223A2261222C227075726368617365223A2273706F74222C226C6162656C73223A5B5B227A6F6E65222C227A31225D5D7D2C227175616E746974696573223A5B5B226E76696469612E636F6D2F677075222C313030303030305D5D7D2C7B2266726F6D5F7573223A342C2274696572223A226C6F77222C2274656E616E74223A22726564222C226770755F6D6F64656C223A2248313030222C22706F6F6C223A2261222C226173736574223A7B22696E7374616E63655F74797065223A227035222C226770755F6D6F64656C223A2248313030222C22706F6F6C223A2261222C227075726368617365223A2273706F74222C226C6162656C73223A5B5B227A6F6E65222C227A31225D5D7D2C227175616E746974696573223A5B5B226E76696469612E636F6D2F677075222C313030303030305D5D7D2C7B2266726F6D5F7573223A352C2274696572223A226C6F77222C2274656E616E74223A22726564222C226770755F6D6F64656C223A2248313030222C22706F6F6C223A2261222C226173736574223A7B22696E7374616E63655F74797065223A227035222C226770755F6D6F64656C223A2248313030222C22706F6F6C223A2261222C227075726368617365223A2273706F74222C226C6162656C73223A5B5B227A6F6E65222C227A31225D5D7D2C227175616E746974696573223A5B5B226E76696469612E636F6D2F677075222C313030303030305D5D7D2C7B2266726F6D5F7573223A362C2274696572223A226C6F77222C2274656E616E74223A22726564222C226770755F6D6F64656C223A2248313030222C22706F6F6C223A2261222C226173736574223A7B22696E7374616E63655F74797065223A227035222C226770755F6D6F64656C223A2248313030222C22706F6F6C223A2261222C227075726368617365223A2273706F74222C226C6162656C73223A5B5B227A6F6E65222C227A31225D5D7D2C227175616E746974696573223A5B5B226E76696469612E636F6D2F677075222C313030303030305D5D7D2C7B2266726F6D5F7573223A372C2274696572223A226C6F77222C2274656E616E74223A22726564222C226770755F6D6F64656C223A2248313030222C22706F6F6C223A2261222C226173736574223A7B22696E7374616E63655F74797065223A227035222C226770755F6D6F64656C223A2248313030222C22706F6F6C223A2261222C227075726368617365223A2273706F74222C226C6162656C73223A5B5B227A6F6E65222C227A31225D5D7D2C227175616E746974696573223A5B5B226E76696469612E636F6D2F677075222C313030303030305D5D7D5D2C227265766973696F6E223A317D');
CREATE INDEX page_sums_day ON page_sums (day);
CREATE INDEX pod_revisions_gap ON pod_revisions (gap_to_us) WHERE gap_from_us IS NOT NULL;
CREATE INDEX victims_decided ON victims (decided_us);
CREATE INDEX victims_job_preemption ON victims (job_preemption) WHERE job_preemption != '';
CREATE VIEW preemptions AS
SELECT victim_uid, recorded_us, victim_namespace, victim_name, victim_tier, victim_tenant, preemptor_uid,
    preemptor_namespace, preemptor_name, preemptor_tier, node, quantity, decided_us, requested_us, released_us,
    is_inferred, victim_class, victim_priority, preemptor_class, preemptor_priority, preemptor_may_preempt,
    preemptor_tenant, preemptor_kind, preemptor_quantity, preemptor_pods, queue_rule
FROM victims WHERE preemptor_tier IS NOT NULL;
CREATE VIEW disruptions AS
SELECT victim_uid, recorded_us, victim_namespace, victim_name, victim_tier, victim_tenant, job_kind, job, node,
    node_uid, quantity, cause, is_certain, decided_us, requested_us, grace_us, stopped_us, released_us, reused_us,
    replaced_us, replacement_uid, budget_violated, job_preemption, exit_code, uses_retry
FROM victims WHERE is_disruption;
CREATE INDEX lost_pods_victim ON lost_pods (victim_uid);
CREATE INDEX preemption_deliveries_pending ON preemption_deliveries (job_preemption) WHERE result IS NULL;
CREATE INDEX waits_from ON waits (from_us);
CREATE INDEX uncreated_waits_from ON uncreated_waits (from_us);
CREATE INDEX usage_assignments_pod ON usage_assignments (pod_uid);
CREATE INDEX usage_assignments_ahead ON usage_assignments (assignment)
WHERE ahead_us NOT BETWEEN -3600000000 AND 3600000000;
CREATE INDEX usage_hours_start ON usage_hours (start_us);
CREATE INDEX usage_hours_open ON usage_hours (assignment) WHERE open;
CREATE INDEX unallocated_usage_open ON unallocated_usage (start_us) WHERE open;
CREATE VIEW allocations AS
SELECT p.uid AS pod_uid, r.revision, ifnull(r.recorded_us, r.revision) AS recorded_us,
       (SELECT text FROM texts WHERE id = p.namespace_text) AS namespace, p.name,
       (SELECT text FROM texts WHERE id = r.node_text) AS node,
       (SELECT text FROM texts WHERE id = r.node_uid_text) AS node_uid,
       (SELECT text FROM texts WHERE id = p.class_name_text) AS class_name, p.priority,
       (SELECT text FROM texts WHERE id = r.job_kind_text) AS job_kind,
       (SELECT text FROM texts WHERE id = r.job_text) AS job,
       p.created_us, r.scheduled_us, r.started_us, r.deletion_us, r.end_us,
       (SELECT text FROM texts WHERE id = r.end_by_text) AS end_by, r.gap_from_us, r.gap_to_us,
       (SELECT text FROM texts WHERE id = r.outcome_text) AS outcome,
       ifnull((SELECT text FROM texts WHERE id = r.phase_text), '') AS phase,
       ifnull((SELECT text FROM texts WHERE id = r.reason_text), '') AS reason, r.exit_code
FROM pods p JOIN pod_revisions r ON r.pod = p.id;
CREATE VIEW segments AS
SELECT p.uid AS pod_uid, r.revision, s.ordinal, t.resource, s.start_us, s.end_us, t.state, s.quantity, t.tier, t.tenant,
       t.queue, t.gpu_model, t.pool, (SELECT price_key FROM prices WHERE id = s.price) AS price_key, t.label_tier,
       t.label_tenant, t.label_gpu_model
FROM pods p
JOIN pod_revisions r ON r.pod = p.id
JOIN pod_segments s
  ON s.pod = p.id AND s.ordinal < r.segments
 AND s.number = (SELECT max(number) FROM pod_segments WHERE pod = s.pod AND ordinal = s.ordinal AND number <= r.number)
JOIN terms t ON t.id = s.terms;
CREATE VIEW allocation_segments AS
SELECT p.uid AS pod_uid, r.revision, s.ordinal,
       (SELECT text FROM texts WHERE id = p.namespace_text) AS namespace, p.name,
       (SELECT text FROM texts WHERE id = r.node_text) AS node,
       (SELECT text FROM texts WHERE id = r.node_uid_text) AS node_uid,
       (SELECT text FROM texts WHERE id = r.job_kind_text) AS job_kind,
       (SELECT text FROM texts WHERE id = r.job_text) AS job,
       (SELECT text FROM texts WHERE id = r.outcome_text) AS outcome,
       (SELECT text FROM texts WHERE id = ifnull(
           (SELECT outcome_text FROM job_outcomes WHERE job_uid_text = p.job_uid_text), r.outcome_text
       )) AS job_outcome,
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
LEFT JOIN prices c ON c.id = s.price;
CREATE VIEW current_segments AS
SELECT pod_uid, revision, ordinal, resource, start_us, end_us, state, quantity, tier, tenant, queue, gpu_model, pool,
       price_key, label_tier, label_tenant, label_gpu_model
FROM allocation_segments;
CREATE VIEW daily_allocations AS
SELECT p.start_us, p.end_us,
       (SELECT text FROM texts WHERE id = d.namespace_text) AS namespace,
       (SELECT text FROM texts WHERE id = d.node_text) AS node,
       (SELECT text FROM texts WHERE id = d.node_uid_text) AS node_uid,
       (SELECT text FROM texts WHERE id = d.job_kind_text) AS job_kind,
       (SELECT text FROM texts WHERE id = d.job_text) AS job,
       (SELECT text FROM texts WHERE id = d.outcome_text) AS outcome,
       (SELECT text FROM texts WHERE id = d.job_outcome_text) AS job_outcome,
       t.resource, t.state, t.tier, t.tenant, t.queue, t.gpu_model, t.pool,
       c.price_key, c.currency, c.per_gpu_hour, c.basis, c.purchase,
       d.pods, d.bound, d.wait_us, d.seconds, d.microseconds, d.measured_seconds, d.measured_microseconds, d.used_seconds,
       d.used_microseconds, d.burst_seconds, d.burst_microseconds, d.energy
FROM rolled_periods p
JOIN daily_rows d ON d.period = p.id
JOIN terms t ON t.id = d.terms
LEFT JOIN prices c ON c.id = d.price;
CREATE VIEW jobs AS
SELECT (SELECT text FROM texts WHERE id = job_uid_text) AS uid,
       (SELECT text FROM texts WHERE id = namespace_text) AS namespace, name,
       (SELECT text FROM texts WHERE id = outcome_text) AS outcome,
       (SELECT text FROM texts WHERE id = reason_text) AS reason, created_us, ended_us
FROM job_outcomes;
CREATE VIEW progress AS
SELECT (SELECT text FROM texts WHERE id = namespace_text) AS namespace,
       (SELECT text FROM texts WHERE id = job_kind_text) AS job_kind,
       (SELECT text FROM texts WHERE id = job_text) AS job, micro, unit, at_us
FROM job_progress;
CREATE VIEW usage_by_pod AS
SELECT h.pod_uid, h.namespace, h.pod, h.node, u.start_us, min(u.from_us) AS from_us, max(u.to_us) AS to_us,
       sum(u.measured) AS measured, sum(u.used) AS used, sum(u.burst) AS burst,
       sum(CAST(u.memory AS REAL)) / 1e6 AS memory, sum(u.energy) AS energy
FROM usage_hours u JOIN usage_assignments h ON h.assignment = u.assignment
GROUP BY h.pod_uid, h.namespace, h.pod, h.node, u.start_us;
COMMIT;
