/* Errors of the memory, and what holds the clocks down. */
#include "call.h"
#include "throttle.h"

enum { ERROR_TYPES = 2, COUNTERS = 2, DEVICE_MEMORY = 2, LOCATIONS = 8 };

static nvmlReturn_t errors(const struct gpu *gpu, unsigned int type, unsigned int counter, unsigned long long *count) {
    if (type >= ERROR_TYPES || counter >= COUNTERS)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (gpu->ecc[0] == ABSENT)
        return NVML_ERROR_NOT_SUPPORTED;
    *count = (unsigned long long)gpu->ecc[2 * counter + type];
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, unsigned int type, unsigned int counter,
                                                unsigned long long *count) {
    ENTER(call, WHOLE_GPU, device);
    return errors(call.gpu, type, counter, count);
}

/* All errors are in the device's memory. */
EXPORT nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, unsigned int type, unsigned int counter,
                                                    unsigned int location, unsigned long long *count) {
    ENTER(call, WHOLE_GPU, device);
    nvmlReturn_t code = location < LOCATIONS ? errors(call.gpu, type, counter, count) : NVML_ERROR_INVALID_ARGUMENT;
    if (!code && location != DEVICE_MEMORY)
        *count = 0;
    return code;
}

EXPORT nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending) {
    ENTER(call, WHOLE_GPU, device);
    *current = *pending = 1;
    return call.gpu->ecc[0] == ABSENT ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *corrected, unsigned int *uncorrected,
                                              unsigned int *pending, unsigned int *failed) {
    ENTER(call, WHOLE_GPU, device);
    const int64_t *rows = call.gpu->remapped;
    *corrected = (unsigned int)rows[0];
    *uncorrected = (unsigned int)rows[1];
    *pending = (unsigned int)rows[2];
    *failed = (unsigned int)rows[3];
    return rows[0] == ABSENT ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

static nvmlReturn_t reasons(const struct call *call, unsigned long long *mask) {
    if (call->gpu->reasons == ABSENT)
        return NVML_ERROR_NOT_SUPPORTED;
    *mask = (unsigned long long)call->gpu->reasons | throttle_reasons(call->gpu, call->now_us);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long *mask) {
    ENTER(call, WHOLE_GPU, device);
    return reasons(&call, mask);
}

EXPORT nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long *mask) {
    ENTER(call, WHOLE_GPU, device);
    return reasons(&call, mask);
}
