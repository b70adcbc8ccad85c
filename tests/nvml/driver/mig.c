/* The instances a GPU is cut into; their indices have gaps. */
#include "call.h"

enum { MOST = 7 };

EXPORT nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count) {
    ENTER(call, WHOLE_GPU, device);
    *count = call.gpu->mig_mode[0] == ABSENT ? 0 : MOST;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *mig) {
    ENTER(call, WHOLE_GPU, device);
    if (call.gpu->mig_mode[0] == ABSENT)
        return NVML_ERROR_NOT_SUPPORTED;
    if (index >= MOST)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (size_t i = 0; call.gpu->mig_mode[0] == 1 && i < call.gpu->mig_count; i++)
        if (call.gpu->migs[i].index == index) {
            *mig = handle_of(call.gpu->migs[i].uuid, true);
            return NVML_SUCCESS;
        }
    return NVML_ERROR_NOT_FOUND;
}

EXPORT nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig, nvmlDevice_t *device) {
    ENTER(call, MIG_DEVICE, mig);
    *device = handle_of(call.gpu->uuid, false);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is_mig) {
    ENTER(call, DEVICE, device);
    *is_mig = call.mig != NULL;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned int *gi) {
    ENTER(call, MIG_DEVICE, device);
    *gi = (unsigned int)call.mig->gi;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned int *ci) {
    ENTER(call, MIG_DEVICE, device);
    *ci = (unsigned int)call.mig->ci;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes) {
    ENTER(call, DEVICE, device);
    const struct mig *mig = call.mig;
    if (!mig)
        return NVML_ERROR_NOT_SUPPORTED;
    *attributes = (nvmlDeviceAttributes_t){
        .processors = (unsigned int)mig->processors,
        .copy_engines = (unsigned int)mig->gi_slices,
        .decoders = (unsigned int)mig->gi_slices,
        .gi_slices = (unsigned int)mig->gi_slices,
        .ci_slices = (unsigned int)mig->ci_slices,
        .memory_mib = (unsigned long long)mig->memory >> 20,
    };
    return NVML_SUCCESS;
}
