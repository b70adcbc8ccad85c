/* Which devices there are, and what they are. */
#include "call.h"
#include <stdio.h>
#include <string.h>

/* A device that is found by something else than its handle meets the same obstacles. */
static nvmlReturn_t found(const struct call *call, const struct gpu *gpu, const struct mig *mig, nvmlDevice_t *device) {
    nvmlReturn_t code = admitted(call, mig ? &mig->rules : &gpu->rules);
    if (!code && reached(gpu->lost_us, call->now_us))
        code = NVML_ERROR_GPU_IS_LOST;
    if (!code)
        *device = mig ? handle_of(mig->uuid, true) : handle_of(gpu->uuid, false);
    return code;
}

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) {
    ENTER(call, DRIVER, NULL);
    *count = (unsigned int)the_world()->gpu_count;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
    ENTER(call, DRIVER, NULL);
    for (;; pause_call(&call, LOOK_US)) {
        if (index >= the_world()->gpu_count)
            return NVML_ERROR_INVALID_ARGUMENT;
        nvmlReturn_t code = found(&call, &the_world()->gpus[index], NULL, device);
        if (code != (nvmlReturn_t)HANGS)
            return code;
    }
}

static nvmlReturn_t by_uuid(const struct call *call, const char *uuid, nvmlDevice_t *device) {
    struct world *world = the_world();
    struct gpu *gpu = gpu_named(world, uuid);
    if (gpu)
        return found(call, gpu, NULL, device);
    for (size_t i = 0; i < world->gpu_count; i++) {
        struct mig *mig = mig_named(&world->gpus[i], uuid);
        if (mig)
            return found(call, &world->gpus[i], mig, device);
    }
    return NVML_ERROR_NOT_FOUND;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
    ENTER(call, DRIVER, NULL);
    for (;; pause_call(&call, LOOK_US)) {
        nvmlReturn_t code = by_uuid(&call, uuid, device);
        if (code != (nvmlReturn_t)HANGS)
            return code;
    }
}

EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int room) {
    ENTER(call, DEVICE, device);
    char whole[2 * TEXT + 8];
    if (!call.mig)
        return copied(call.gpu->name, name, room);
    snprintf(whole, sizeof whole, "%s MIG %s", call.gpu->name, call.mig->profile);
    return copied(whole, name, room);
}

EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int room) {
    ENTER(call, DEVICE, device);
    return copied(call.mig ? call.mig->uuid : call.gpu->uuid, uuid, room);
}

EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index) {
    ENTER(call, DEVICE, device);
    *index = (unsigned int)(call.mig ? call.mig->index : call.gpu - the_world()->gpus);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor) {
    ENTER(call, WHOLE_GPU, device);
    *minor = (unsigned int)call.gpu->minor;
    return call.gpu->minor == ABSENT ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, unsigned int *architecture) {
    ENTER(call, DEVICE, device);
    *architecture = (unsigned int)call.gpu->architecture;
    return call.gpu->architecture == ABSENT ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *info) {
    ENTER(call, WHOLE_GPU, device);
    memset(info, 0, sizeof *info);
    if (sscanf(call.gpu->pci, "%x:%x:%x", &info->domain, &info->bus, &info->device) < 3)
        return NVML_ERROR_NOT_SUPPORTED;
    snprintf(info->bus_id, sizeof info->bus_id, "%08X:%02X:%02X.0", info->domain, info->bus & 255, info->device & 255);
    snprintf(info->legacy_bus_id, sizeof info->legacy_bus_id, "%04X:%02X:%02X.0", info->domain & 65535,
             info->bus & 255, info->device & 255);
    return NVML_SUCCESS;
}
