/* Counters of activity: two samples of one device give the exact averages between them. */
#include "call.h"
#include <stdlib.h>
#include <string.h>

enum { VERSION = 1, WHOLE = -1, PERCENT = 100 };

struct nvmlGpmSample_st {
    char uuid[TEXT]; /* of the GPU; empty: nothing was sampled */
    int64_t gi, at_us;
};

EXPORT nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *support) {
    ENTER(call, DEVICE, device);
    if (support->version != VERSION)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    support->supported = call.gpu->gpm == 1;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample) {
    ENTER(call, DRIVER, NULL);
    *sample = grown(NULL, 0, sizeof **sample);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample) {
    ENTER(call, DRIVER, NULL);
    free(sample);
    return NVML_SUCCESS;
}

static nvmlReturn_t take(const struct call *call, int64_t gi, nvmlGpmSample_t sample) {
    if (call->gpu->gpm != 1)
        return NVML_ERROR_NOT_SUPPORTED;
    strcpy(sample->uuid, call->gpu->uuid);
    sample->gi = gi;
    sample->at_us = call->now_us;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample) {
    ENTER(call, DEVICE, device);
    return take(&call, call.mig ? call.mig->gi : WHOLE, sample);
}

static bool has_instance(const struct gpu *gpu, int64_t gi) {
    for (size_t i = 0; i < gpu->mig_count; i++)
        if (gpu->migs[i].gi == gi)
            return true;
    return false;
}

EXPORT nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device, unsigned int gi, nvmlGpmSample_t sample) {
    ENTER(call, WHOLE_GPU, device);
    return has_instance(call.gpu, gi) ? take(&call, gi, sample) : NVML_ERROR_INVALID_ARGUMENT;
}

/* Percent; a GPU instance is as busy as its compute instances are, each by its size. */
static double activity(const struct gpu *gpu, int64_t gi, int64_t from_us, int64_t to_us) {
    double sum = 0;
    if (gi == WHOLE)
        return curve_average(&gpu->load, from_us, to_us);
    for (size_t i = 0; i < gpu->mig_count; i++) {
        const struct mig *mig = &gpu->migs[i];
        if (mig->gi == gi)
            sum += curve_average(&mig->load, from_us, to_us) * (double)mig->ci_slices / (double)mig->gi_slices;
    }
    return sum;
}

static void fill(nvmlGpmMetric_t *metric, const struct gpu *gpu, double percent) {
    static const char *const NAMES[] = {
        [1] = "graphics_util", [2] = "sm_util", [3] = "sm_occupancy", [5] = "any_tensor_util", [10] = "dram_bw_util"};
    const bool known = metric->id < sizeof NAMES / sizeof *NAMES && NAMES[metric->id];
    metric->code = known ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
    metric->value = known ? percent * (double)gpu->shares[metric->id] / PERCENT : 0;
    metric->short_name = metric->long_name = known ? NAMES[metric->id] : "";
    metric->unit = "%";
}

EXPORT nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *query) {
    ENTER(call, DRIVER, NULL);
    const nvmlGpmSample_t first = query->first, second = query->second;
    if (query->version != VERSION)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (!first || !second || strcmp(first->uuid, second->uuid) || first->gi != second->gi)
        return NVML_ERROR_INVALID_ARGUMENT;
    const struct gpu *gpu = gpu_named(the_world(), first->uuid);
    if (!gpu || first->at_us >= second->at_us || (first->gi != WHOLE && !has_instance(gpu, first->gi)))
        return NVML_ERROR_INVALID_ARGUMENT;
    const double percent = activity(gpu, first->gi, first->at_us, second->at_us);
    for (unsigned int i = 0; i < query->count && i < sizeof query->metrics / sizeof *query->metrics; i++)
        fill(&query->metrics[i], gpu, percent);
    return NVML_SUCCESS;
}
