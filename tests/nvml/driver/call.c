#define _GNU_SOURCE
#include "call.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct world *world;
static bool broken; /* the script; then the last good one is in force, but none may begin with it */
static struct stat seen; /* all zero: no file */
static bool looked;

struct world *the_world(void) {
    return world;
}

static int64_t clock_us(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t elapsed_us(const struct call *call) {
    return clock_us(CLOCK_MONOTONIC) - call->since_us;
}

static bool changed(const struct stat *now) {
    return now->st_ino != seen.st_ino || now->st_size != seen.st_size || now->st_mtim.tv_sec != seen.st_mtim.tv_sec ||
           now->st_mtim.tv_nsec != seen.st_mtim.tv_nsec;
}

static void refresh(struct call *call) {
    const char *path = getenv("GPUTALLY_NVML_SCRIPT");
    struct stat now = {0};
    if (path)
        stat(path, &now);
    if (!looked || changed(&now)) {
        struct world *fresh = world_read(path);
        broken = !fresh;
        if (fresh) {
            world_free(world);
            world = fresh;
        }
        seen = now;
        looked = true;
    }
    call->now_us = clock_us(CLOCK_REALTIME);
}

/* `nvmlDeviceGetCount` stands for its versions too. */
static bool names(const struct rule *rule, const char *function) {
    size_t length = strlen(rule->function);
    if (!strcmp(rule->function, "*"))
        return true;
    return !strncmp(rule->function, function, length) && (!function[length] || !strncmp(function + length, "_v", 2));
}

/* What the rules answer to this call, if it is not to go on. */
nvmlReturn_t admitted(const struct call *call, const struct rules *rules) {
    for (size_t i = 0; i < rules->count; i++) {
        const struct rule *rule = &rules->all[i];
        if (!names(rule, call->function) || call->now_us < rule->from_us || call->now_us >= rule->until_us)
            continue;
        if (rule->code)
            return rule->code;
        if (elapsed_us(call) < rule->hang_us)
            return (nvmlReturn_t)HANGS;
    }
    return NVML_SUCCESS;
}

static nvmlReturn_t admitted_to_driver(const struct call *call, enum subject subject) {
    if (!world || (broken && subject == INITIALISATION))
        return NVML_ERROR_UNKNOWN;
    if (subject != INITIALISATION && !initialised(world, call->now_us))
        return NVML_ERROR_UNINITIALIZED;
    nvmlReturn_t code = admitted(call, &world->rules);
    if (!code && reached(world->mismatch_us, call->now_us))
        code = NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    return code;
}

static nvmlReturn_t admitted_to_device(struct call *call, enum subject subject, nvmlDevice_t device) {
    if (!handle_known(device))
        return NVML_ERROR_INVALID_ARGUMENT;
    call->gpu = gpu_of(world, device, &call->mig);
    if (!call->gpu) /* a GPU fell off the bus; an instance was destroyed */
        return handle_is_mig(device) ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_GPU_IS_LOST;
    nvmlReturn_t code = admitted(call, call->mig ? &call->mig->rules : &call->gpu->rules);
    if (code)
        return code;
    if (reached(call->gpu->lost_us, call->now_us))
        return NVML_ERROR_GPU_IS_LOST;
    if (subject == WHOLE_GPU && call->mig)
        return NVML_ERROR_NOT_SUPPORTED;
    return subject == MIG_DEVICE && !call->mig ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

nvmlReturn_t enter(struct call *call, const char *function, enum subject subject, nvmlDevice_t device) {
    *call = (struct call){.function = function, .since_us = clock_us(CLOCK_MONOTONIC)};
    pthread_mutex_lock(&lock);
    refresh(call);
    for (;;) {
        nvmlReturn_t code = admitted_to_driver(call, subject);
        if (!code && subject >= DEVICE)
            code = admitted_to_device(call, subject, device);
        if (code != (nvmlReturn_t)HANGS)
            return code; /* the scope that holds the call ends it, refused or not */
        pause_call(call, LOOK_US);
    }
}

void leave(struct call *call) {
    (void)call;
    pthread_mutex_unlock(&lock);
}

void pause_call(struct call *call, int64_t us) {
    struct timespec span = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    pthread_mutex_unlock(&lock);
    nanosleep(&span, NULL);
    pthread_mutex_lock(&lock);
    refresh(call);
}

nvmlReturn_t copied(const char *from, char *into, unsigned int room) {
    if (strlen(from) >= room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(into, from);
    return NVML_SUCCESS;
}
