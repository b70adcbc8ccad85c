/* What a GPU shows at this moment. */
#include "call.h"

static nvmlReturn_t told(int64_t value, unsigned int *into) {
    *into = (unsigned int)value;
    return value == ABSENT ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates) {
    ENTER(call, WHOLE_GPU, device);
    if (call.gpu->mig_mode[0] == 1)
        return NVML_ERROR_NOT_SUPPORTED;
    int64_t last = sixth_number(call.now_us);
    int64_t percent = curve_percent(&call.gpu->load, sixth_us(last - 1), sixth_us(last));
    rates->gpu = (unsigned int)percent;
    rates->memory = (unsigned int)(percent * call.gpu->shares[10] / 100);
    return NVML_SUCCESS;
}

/* Total, used and reserved bytes of the device; nothing is reserved in an instance. */
static nvmlReturn_t memory(const struct call *call, uint64_t bytes[3]) {
    const int64_t of_mig[3] = {call->mig ? call->mig->memory : 0, call->mig ? call->mig->used : 0, 0};
    const int64_t *from = call->mig ? of_mig : call->gpu->memory;
    for (int i = 0; i < 3; i++)
        bytes[i] = (uint64_t)from[i];
    return from[0] == ABSENT ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *info) {
    ENTER(call, DEVICE, device);
    uint64_t bytes[3];
    nvmlReturn_t code = memory(&call, bytes);
    *info = (nvmlMemory_t){.total = bytes[0], .used = bytes[1] + bytes[2], .free = bytes[0] - bytes[1] - bytes[2]};
    return code;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *info) {
    ENTER(call, DEVICE, device);
    uint64_t bytes[3];
    if (info->version != (sizeof *info | 2u << 24))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlReturn_t code = memory(&call, bytes);
    info->total = bytes[0];
    info->used = bytes[1];
    info->reserved = bytes[2];
    info->free = bytes[0] - bytes[1] - bytes[2];
    return code;
}

EXPORT nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *milliwatts) {
    ENTER(call, WHOLE_GPU, device);
    if (call.gpu->power[0] == ABSENT)
        return NVML_ERROR_NOT_SUPPORTED;
    return told(power_mw(call.gpu, call.now_us, call.now_us + 1), milliwatts);
}

EXPORT nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *millijoules) {
    ENTER(call, WHOLE_GPU, device);
    if (call.gpu->power[0] == ABSENT || call.gpu->energy_since_us == ABSENT)
        return NVML_ERROR_NOT_SUPPORTED;
    *millijoules = energy_mj(call.gpu, call.now_us);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *milliwatts) {
    ENTER(call, WHOLE_GPU, device);
    return told(call.gpu->power_limit, milliwatts);
}

EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned int *milliwatts) {
    ENTER(call, WHOLE_GPU, device);
    return told(call.gpu->power_limit, milliwatts);
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned int sensor, unsigned int *celsius) {
    ENTER(call, WHOLE_GPU, device);
    return sensor ? NVML_ERROR_INVALID_ARGUMENT : told(call.gpu->temperature, celsius);
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t *info) {
    ENTER(call, WHOLE_GPU, device);
    if (info->version != (sizeof *info | 1u << 24))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return info->sensor ? NVML_ERROR_INVALID_ARGUMENT : told(call.gpu->temperature, (unsigned int *)&info->celsius);
}

/* `first`: of the two clocks in question. */
static nvmlReturn_t clock_of(const struct call *call, unsigned int type, int first, unsigned int *megahertz) {
    enum { GRAPHICS, SM, MEMORY, VIDEO };
    if (type > VIDEO)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (type == VIDEO)
        return NVML_ERROR_NOT_SUPPORTED;
    return told(call->gpu->clocks[first + (type == MEMORY)], megahertz);
}

EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, unsigned int type, unsigned int *megahertz) {
    ENTER(call, WHOLE_GPU, device);
    return clock_of(&call, type, 0, megahertz);
}

EXPORT nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, unsigned int type, unsigned int *megahertz) {
    ENTER(call, WHOLE_GPU, device);
    return clock_of(&call, type, 2, megahertz);
}

EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending) {
    ENTER(call, WHOLE_GPU, device);
    told(call.gpu->mig_mode[1], pending);
    return told(call.gpu->mig_mode[0], current);
}
