/* XIDs: a set is told, once, of each that comes to pass while it is registered. */
#include "call.h"
#include <stdlib.h>
#include <string.h>

enum { SUPPORTED = EVENT_SINGLE_BIT_ECC | EVENT_DOUBLE_BIT_ECC | EVENT_XID };

struct registration {
    char uuid[TEXT];
    unsigned long long types;
    int64_t told_us;  /* all XIDs before this instant are settled, */
    size_t told_then; /* and so many of those at it */
};

struct nvmlEventSet_st {
    struct registration *all;
    size_t count;
    struct nvmlEventSet_st *next;
};

static struct nvmlEventSet_st *sets;

/* Where the set hangs in the list, so that it can be unhooked; NULL if it is none. */
static nvmlEventSet_t *hook_of(nvmlEventSet_t set) {
    nvmlEventSet_t *hook = &sets;
    while (*hook && *hook != set)
        hook = &(*hook)->next;
    return *hook ? hook : NULL;
}

EXPORT nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
    ENTER(call, DRIVER, NULL);
    *set = grown(NULL, 0, sizeof **set);
    (*set)->next = sets;
    sets = *set;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
    ENTER(call, DRIVER, NULL);
    nvmlEventSet_t *hook = hook_of(set);
    if (!hook)
        return NVML_ERROR_INVALID_ARGUMENT;
    *hook = set->next;
    free(set->all);
    free(set);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types) {
    ENTER(call, WHOLE_GPU, device);
    *types = SUPPORTED;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set) {
    ENTER(call, WHOLE_GPU, device);
    if (!hook_of(set))
        return NVML_ERROR_INVALID_ARGUMENT;
    if (types & ~(unsigned long long)SUPPORTED)
        return NVML_ERROR_NOT_SUPPORTED;
    for (size_t i = 0; i < set->count; i++)
        if (!strcmp(set->all[i].uuid, call.gpu->uuid)) {
            set->all[i].types |= types;
            return NVML_SUCCESS;
        }
    set->all = grown(set->all, set->count, sizeof *set->all);
    struct registration *registration = &set->all[set->count++];
    strcpy(registration->uuid, call.gpu->uuid);
    registration->types = types;
    registration->told_us = call.now_us;
    return NVML_SUCCESS;
}

/* The first XID that the registration has not been told of. */
static const struct xid *news(const struct gpu *gpu, struct registration *registration, int64_t now_us) {
    size_t then = 0;
    for (size_t i = 0; i < gpu->xid_count && gpu->xids[i].at_us <= now_us; i++) {
        const struct xid *xid = &gpu->xids[i];
        const bool same = xid->at_us == registration->told_us;
        if (xid->at_us < registration->told_us || (same && then++ < registration->told_then))
            continue;
        registration->told_then = same ? registration->told_then + 1 : 1;
        registration->told_us = xid->at_us;
        return xid;
    }
    return NULL;
}

static nvmlReturn_t poll(const struct call *call, nvmlEventSet_t set, nvmlEventData_t *data) {
    nvmlReturn_t code = NVML_ERROR_TIMEOUT;
    for (size_t i = 0; i < set->count; i++) {
        struct registration *registration = &set->all[i];
        const struct gpu *gpu = gpu_named(the_world(), registration->uuid);
        const bool listens = gpu && registration->types & EVENT_XID;
        const struct xid *xid = listens ? news(gpu, registration, call->now_us) : NULL;
        if (xid) {
            *data = (nvmlEventData_t){.device = handle_of(gpu->uuid, false), .type = EVENT_XID,
                                      .data = (unsigned long long)xid->code, .gi = (unsigned int)xid->gi,
                                      .ci = (unsigned int)xid->ci};
            return NVML_SUCCESS;
        }
        if (!gpu || reached(gpu->lost_us, call->now_us))
            code = NVML_ERROR_GPU_IS_LOST; /* once all XIDs are told: the one that says so comes first */
    }
    return code;
}

static nvmlReturn_t still_open(const struct call *call, nvmlEventSet_t set) {
    const struct world *world = the_world();
    if (!initialised(world, call->now_us))
        return NVML_ERROR_UNINITIALIZED;
    if (reached(world->mismatch_us, call->now_us))
        return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    return hook_of(set) ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

EXPORT nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms) {
    ENTER(call, DRIVER, NULL);
    for (;;) {
        nvmlReturn_t code = still_open(&call, set);
        if (!code)
            code = poll(&call, set, data);
        const int64_t left_us = (int64_t)timeout_ms * 1000 - elapsed_us(&call);
        if (code != NVML_ERROR_TIMEOUT || left_us <= 0)
            return code;
        pause_call(&call, left_us < WATCH_US ? left_us : WATCH_US);
    }
}
