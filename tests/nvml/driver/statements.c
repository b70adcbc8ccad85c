/* What each statement of a script does. */
#include "statements.h"
#include <string.h>

static int64_t instant(struct script *script) {
    return script->world->origin_us + number(&script->line);
}

static int64_t *at(void *object, size_t offset) {
    return (int64_t *)((char *)object + offset);
}

static void begin_gpu(struct script *script) {
    struct world *world = script->world;
    world->gpus = grown(world->gpus, world->gpu_count, sizeof *world->gpus);
    struct gpu *gpu = script->gpu = &world->gpus[world->gpu_count++];
    for (size_t i = offsetof(struct gpu, minor); i <= offsetof(struct gpu, lost_us); i += sizeof(int64_t))
        *at(gpu, i) = ABSENT;
    for (size_t i = 0; i < sizeof gpu->shares / sizeof *gpu->shares; i++)
        gpu->shares[i] = 100;
    text(&script->line, gpu->uuid, sizeof gpu->uuid);
    script->load = &gpu->load;
    script->rules = &gpu->rules;
    script->over_full = false;
}

static void begin_mig(struct script *script) {
    struct gpu *gpu = script->gpu;
    gpu->migs = grown(gpu->migs, gpu->mig_count, sizeof *gpu->migs);
    struct mig *mig = &gpu->migs[gpu->mig_count++];
    text(&script->line, mig->uuid, sizeof mig->uuid);
    text(&script->line, mig->profile, sizeof mig->profile);
    for (size_t i = offsetof(struct mig, index); i <= offsetof(struct mig, used); i += sizeof(int64_t))
        *at(mig, i) = number(&script->line);
    if (mig->gi_slices < 1)
        script->line.problem = "a GPU instance has slices";
    script->load = &mig->load;
    script->rules = &mig->rules;
    script->over_full = false;
}

static void begin_process(struct script *script) {
    struct gpu *gpu = script->gpu;
    gpu->processes = grown(gpu->processes, gpu->process_count, sizeof *gpu->processes);
    struct process *process = &gpu->processes[gpu->process_count++];
    for (size_t i = offsetof(struct process, pid); i <= offsetof(struct process, ci); i += sizeof(int64_t))
        *at(process, i) = number(&script->line);
    process->from_us = more(&script->line) ? instant(script) : INT64_MIN;
    process->until_us = more(&script->line) ? instant(script) : INT64_MAX;
    script->load = &process->load;
    script->rules = NULL;
    script->over_full = true;
}

static void add_load(struct script *script) {
    struct curve *curve = script->load;
    curve->points = grown(curve->points, curve->count, sizeof *curve->points);
    struct point *point = &curve->points[curve->count++];
    point->at_us = instant(script);
    point->value = thousandths(&script->line);
    if (point->value > 100000 && !script->over_full)
        script->line.problem = "more than 100 percent";
    if (curve->count > 1 && point->at_us <= point[-1].at_us)
        script->line.problem = "not later than the point before it";
}

static struct rule *add_rule(struct script *script) {
    struct rules *rules = script->rules ? script->rules : &script->world->rules;
    if (script->gpu && !script->rules)
        script->line.problem = "a process has no calls of its own";
    rules->all = grown(rules->all, rules->count, sizeof *rules->all);
    struct rule *rule = &rules->all[rules->count++];
    text(&script->line, rule->function, sizeof rule->function);
    return rule;
}

static void bound(struct script *script, struct rule *rule) {
    rule->from_us = more(&script->line) ? instant(script) : INT64_MIN;
    rule->until_us = more(&script->line) ? instant(script) : INT64_MAX;
}

static void add_error(struct script *script) {
    struct rule *rule = add_rule(script);
    rule->code = (nvmlReturn_t)number(&script->line);
    if (!rule->code)
        script->line.problem = "0 is no error";
    bound(script, rule);
}

static void add_hang(struct script *script) {
    struct rule *rule = add_rule(script);
    const bool forever = more(&script->line) && !strncmp(script->line.rest, "forever", 7);
    if (forever)
        word(&script->line);
    rule->hang_us = forever ? INT64_MAX : thousandths(&script->line) * 1000;
    bound(script, rule);
}

static void add_xid(struct script *script) {
    struct gpu *gpu = script->gpu;
    gpu->xids = grown(gpu->xids, gpu->xid_count, sizeof *gpu->xids);
    struct xid *xid = &gpu->xids[gpu->xid_count++];
    xid->at_us = instant(script);
    xid->code = number(&script->line);
    xid->gi = more(&script->line) ? number(&script->line) : NO_INSTANCE;
    xid->ci = more(&script->line) ? number(&script->line) : NO_INSTANCE;
    if (gpu->xid_count > 1 && xid->at_us < xid[-1].at_us)
        script->line.problem = "before the XID above it";
}

static void add_throttle(struct script *script) {
    struct gpu *gpu = script->gpu;
    gpu->throttles = grown(gpu->throttles, gpu->throttle_count, sizeof *gpu->throttles);
    struct throttle *throttle = &gpu->throttles[gpu->throttle_count++];
    throttle->field = number(&script->line);
    throttle->from_us = instant(script);
    throttle->until_us = more(&script->line) ? instant(script) : INT64_MAX;
}

static void add_reset(struct script *script) {
    struct gpu *gpu = script->gpu;
    gpu->resets_us = grown(gpu->resets_us, gpu->reset_count, sizeof *gpu->resets_us);
    gpu->resets_us[gpu->reset_count++] = instant(script);
}

static void set_share(struct script *script) {
    int64_t metric = number(&script->line);
    if (metric < 0 || metric > 10)
        script->line.problem = "metrics are 1, 2, 3, 5 and 10";
    else
        script->gpu->shares[metric] = number(&script->line);
}

static const struct act {
    const char *keyword;
    void (*act)(struct script *script);
    bool of_gpu;
} ACTS[] = {
    {"gpu", begin_gpu, false},        {"mig", begin_mig, true},         {"process", begin_process, true},
    {"load", add_load, true},         {"error", add_error, false},      {"hang", add_hang, false},
    {"xid", add_xid, true},           {"throttle", add_throttle, true}, {"reset", add_reset, true},
    {"share", set_share, true},
};

static const struct value {
    const char *keyword;
    size_t offset;
    enum { WORDS, NUMBER, INSTANT } type;
    size_t count;
} GPU_VALUES[] = {
    {"name", offsetof(struct gpu, name), WORDS, 1},
    {"pci", offsetof(struct gpu, pci), WORDS, 1},
    {"minor", offsetof(struct gpu, minor), NUMBER, 1},
    {"architecture", offsetof(struct gpu, architecture), NUMBER, 1},
    {"gpm", offsetof(struct gpu, gpm), NUMBER, 1},
    {"samples", offsetof(struct gpu, samples), NUMBER, 1},
    {"temperature", offsetof(struct gpu, temperature), NUMBER, 1},
    {"reasons", offsetof(struct gpu, reasons), NUMBER, 1},
    {"power_limit", offsetof(struct gpu, power_limit), NUMBER, 1},
    {"power_scopes", offsetof(struct gpu, power_scopes), NUMBER, 1},
    {"memory", offsetof(struct gpu, memory), NUMBER, 3},
    {"power", offsetof(struct gpu, power), NUMBER, 2},
    {"clocks", offsetof(struct gpu, clocks), NUMBER, 4},
    {"ecc", offsetof(struct gpu, ecc), NUMBER, 4},
    {"remapped", offsetof(struct gpu, remapped), NUMBER, 4},
    {"mig_mode", offsetof(struct gpu, mig_mode), NUMBER, 2},
    {"energy_since", offsetof(struct gpu, energy_since_us), INSTANT, 1},
    {"lost", offsetof(struct gpu, lost_us), INSTANT, 1},
}, WORLD_VALUES[] = {
    {"driver", offsetof(struct world, driver), WORDS, 1},
    {"nvml", offsetof(struct world, nvml), WORDS, 1},
    {"cuda", offsetof(struct world, cuda), NUMBER, 1},
    {"origin", offsetof(struct world, origin_us), NUMBER, 1},
    {"init_error", offsetof(struct world, init_error), NUMBER, 1},
    {"mismatch", offsetof(struct world, mismatch_us), INSTANT, 1},
    {"uninitialised", offsetof(struct world, uninitialised_us), INSTANT, 1},
};

#define LENGTH(array) (sizeof(array) / sizeof *(array))

static void set(struct script *script, const struct value *value, void *of) {
    if (value->type == WORDS) {
        remainder_of(&script->line, (char *)of + value->offset, TEXT);
        return;
    }
    for (size_t i = 0; i < value->count; i++)
        at(of, value->offset)[i] = value->type == INSTANT ? instant(script) : number(&script->line);
}

static bool set_value(struct script *script, const char *keyword) {
    for (size_t i = 0; i < LENGTH(WORLD_VALUES); i++)
        if (!strcmp(keyword, WORLD_VALUES[i].keyword))
            return set(script, &WORLD_VALUES[i], script->world), true;
    for (size_t i = 0; script->gpu && i < LENGTH(GPU_VALUES); i++)
        if (!strcmp(keyword, GPU_VALUES[i].keyword))
            return set(script, &GPU_VALUES[i], script->gpu), true;
    return false;
}

void statement(struct script *script, const char *keyword) {
    if (script->world->origin_us == ABSENT && strcmp(keyword, "origin")) {
        script->line.problem = "the origin comes first";
        return;
    }
    for (size_t i = 0; i < LENGTH(ACTS); i++)
        if (!strcmp(keyword, ACTS[i].keyword) && (script->gpu || !ACTS[i].of_gpu)) {
            ACTS[i].act(script);
            return;
        }
    if (!set_value(script, keyword))
        script->line.problem = script->gpu ? "unknown" : "unknown before a gpu";
}
