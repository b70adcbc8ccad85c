/* Many values with one call, each with its own answer. */
#include "call.h"
#include "throttle.h"

enum { ENERGY = 83, POWER_AVERAGE = 185, POWER_INSTANT = 186, SECOND_US = 1000000 };

static nvmlReturn_t power(const struct call *call, nvmlFieldValue_t *field) {
    const struct gpu *gpu = call->gpu;
    if (field->scope > 2 || gpu->power[0] == ABSENT || !(gpu->power_scopes >> field->scope & 1))
        return NVML_ERROR_NOT_SUPPORTED;
    int64_t from_us = field->field == POWER_AVERAGE ? call->now_us - SECOND_US : call->now_us;
    int64_t to_us = field->field == POWER_AVERAGE ? call->now_us : call->now_us + 1;
    field->value_type = VALUE_UNSIGNED_INT;
    field->value.as_uint = (unsigned int)power_mw(gpu, from_us, to_us);
    return NVML_SUCCESS;
}

static nvmlReturn_t fill(const struct call *call, nvmlFieldValue_t *field) {
    const struct gpu *gpu = call->gpu;
    if (field->field == POWER_AVERAGE || field->field == POWER_INSTANT)
        return power(call, field);
    field->value_type = VALUE_UNSIGNED_LONG_LONG;
    if (field->field == ENERGY && gpu->power[0] != ABSENT && gpu->energy_since_us != ABSENT)
        field->value.as_ulonglong = energy_mj(gpu, call->now_us);
    else if (throttle_field(field->field) && gpu->reasons != ABSENT)
        field->value.as_ulonglong = throttled_ns(gpu, field->field, call->now_us);
    else
        return NVML_ERROR_NOT_SUPPORTED;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *fields) {
    ENTER(call, WHOLE_GPU, device);
    for (int i = 0; i < count; i++) {
        fields[i].timestamp_us = call.now_us;
        fields[i].latency_us = 0;
        fields[i].code = fill(&call, &fields[i]);
    }
    return NVML_SUCCESS;
}
