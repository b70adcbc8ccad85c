/* Who runs on a device: on a GPU in MIG mode, all of its instances' processes. */
#include "call.h"

enum kind { COMPUTE, GRAPHICS, MPS };

static bool runs(const struct process *process, const struct call *call, enum kind kind) {
    const struct mig *mig = call->mig;
    const bool here = !mig || (process->gi == mig->gi && process->ci == mig->ci);
    const bool now = process->from_us <= call->now_us && call->now_us < process->until_us;
    return here && now && process->kind == (int64_t)kind;
}

/* A buffer too small is told how large it must be, but where nobody runs even none will do. */
static nvmlReturn_t list(const struct call *call, enum kind kind, unsigned int *count, nvmlProcessInfo_t *infos) {
    unsigned int room = infos ? *count : 0;
    *count = 0;
    for (size_t i = 0; i < call->gpu->process_count; i++) {
        const struct process *process = &call->gpu->processes[i];
        if (!runs(process, call, kind))
            continue;
        if (*count < room)
            infos[*count] = (nvmlProcessInfo_t){.pid = (unsigned int)process->pid,
                                                .memory = (unsigned long long)process->memory,
                                                .gi = (unsigned int)process->gi,
                                                .ci = (unsigned int)process->ci};
        ++*count;
    }
    return *count <= room ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                            nvmlProcessInfo_t *infos) {
    ENTER(call, DEVICE, device);
    return list(&call, COMPUTE, count, infos);
}

EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                             nvmlProcessInfo_t *infos) {
    ENTER(call, DEVICE, device);
    return list(&call, GRAPHICS, count, infos);
}

EXPORT nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                               nvmlProcessInfo_t *infos) {
    ENTER(call, DEVICE, device);
    return list(&call, MPS, count, infos);
}
