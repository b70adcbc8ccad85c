/* The driver's memory of the last seconds: a value for each sixth of a second. */
#include "call.h"

enum { GPU_UTILIZATION = 1, MEMORY_UTILIZATION = 2, RING = 120 };

EXPORT nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, unsigned int type, unsigned long long last_seen_us,
                                         unsigned int *value_type, unsigned int *count, nvmlSample_t *samples) {
    ENTER(call, WHOLE_GPU, device);
    const struct gpu *gpu = call.gpu;
    if (gpu->samples != 1 || gpu->mig_mode[0] == 1 || (type != GPU_UTILIZATION && type != MEMORY_UTILIZATION))
        return NVML_ERROR_NOT_SUPPORTED;
    *value_type = VALUE_UNSIGNED_INT;
    if (!samples) {
        *count = RING;
        return NVML_SUCCESS;
    }
    const int64_t last = sixth_number(call.now_us), share = type == GPU_UTILIZATION ? 100 : gpu->shares[10];
    int64_t first = last - RING + 1;
    while (first <= last && (unsigned long long)sixth_us(first) <= last_seen_us)
        first++;
    if (first > last)
        return NVML_ERROR_NOT_FOUND;
    if (*count < last - first + 1)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    *count = (unsigned int)(last - first + 1);
    for (int64_t i = first; i <= last; i++) {
        int64_t percent = curve_percent(&gpu->load, sixth_us(i - 1), sixth_us(i)) * share / 100;
        samples[i - first] = (nvmlSample_t){(unsigned long long)sixth_us(i), {.as_uint = (unsigned int)percent}};
    }
    return NVML_SUCCESS;
}

/* The average from what the caller last saw to the last sixth in which the process lived; one that idled has none. */
static bool utilization(const struct process *process, const struct call *call, int64_t last_seen_us,
                        nvmlProcessUtilizationSample_t *sample) {
    const int64_t now = sixth_number(call->now_us), oldest_us = sixth_us(now - RING);
    const int64_t end_us = process->until_us < call->now_us ? sixth_us(sixth_number(process->until_us)) : sixth_us(now);
    const int64_t start_us = last_seen_us > oldest_us ? last_seen_us : oldest_us;
    const int64_t began_us = process->from_us > start_us ? process->from_us : start_us;
    const __int128 used = began_us < end_us ? curve_integral(&process->load, began_us, end_us) : 0;
    if (!used)
        return false;
    const unsigned int percent = (unsigned int)percent_of(used, end_us - start_us);
    const unsigned int of_memory = (unsigned int)((uint64_t)percent * (uint64_t)call->gpu->shares[10] / 100);
    *sample = (nvmlProcessUtilizationSample_t){
        .pid = (unsigned int)process->pid, .timestamp_us = (uint64_t)end_us, .sm = percent, .memory = of_memory};
    return true;
}

/* Asked for the size it names that of its buffer, as drivers do; that nothing is in it shows only then. */
EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples,
                                                    unsigned int *count, unsigned long long last_seen_us) {
    enum { ENTRIES = 100 };
    ENTER(call, WHOLE_GPU, device);
    const struct gpu *gpu = call.gpu;
    const unsigned int room = *count;
    if (gpu->mig_mode[0] == 1)
        return NVML_ERROR_NOT_SUPPORTED;
    *count = gpu->process_count ? ENTRIES : 0;
    if (!samples || room < *count)
        return gpu->process_count ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
    *count = 0;
    for (size_t i = 0; i < gpu->process_count && *count < room; i++)
        if (utilization(&gpu->processes[i], &call, (int64_t)last_seen_us, &samples[*count]))
            ++*count;
    return *count ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}
