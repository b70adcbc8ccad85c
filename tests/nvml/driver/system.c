/* The driver as a whole. */
#include "call.h"

static unsigned int users;
static int64_t initialised_us;

bool initialised(const struct world *world, int64_t now_us) {
    const bool over = reached(world->uninitialised_us, now_us) && world->uninitialised_us > initialised_us;
    return users > 0 && !over;
}

static nvmlReturn_t begin(const struct call *call) {
    const struct world *world = the_world();
    if (world->init_error)
        return (nvmlReturn_t)world->init_error;
    users = initialised(world, call->now_us) ? users + 1 : 1;
    initialised_us = call->now_us;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned int flags) {
    (void)flags;
    ENTER(call, INITIALISATION, NULL);
    return begin(&call);
}

EXPORT nvmlReturn_t nvmlInit_v2(void) {
    ENTER(call, INITIALISATION, NULL);
    return begin(&call);
}

EXPORT nvmlReturn_t nvmlShutdown(void) {
    ENTER(call, DRIVER, NULL);
    users--;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int room) {
    ENTER(call, DRIVER, NULL);
    return copied(the_world()->driver, version, room);
}

EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int room) {
    ENTER(call, DRIVER, NULL);
    return copied(the_world()->nvml, version, room);
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) {
    ENTER(call, DRIVER, NULL);
    *version = (int)the_world()->cuda;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) { /* what pynvml asks by default */
    ENTER(call, DRIVER, NULL);
    *version = (int)the_world()->cuda;
    return NVML_SUCCESS;
}

EXPORT const char *nvmlErrorString(nvmlReturn_t code) {
    static const char *const TEXTS[] = {
        "Success", "Uninitialized", "Invalid Argument", "Not Supported", "Insufficient Permissions",
        "Already Initialized", "Not Found", "Insufficient Size", "Insufficient External Power", "Driver Not Loaded",
        "Timeout", "Interrupt Request Issue", "NVML Shared Library Not Found", "Function Not Found",
        "Corrupted infoROM", "GPU is lost", "GPU requires reset", "GPU access blocked by the operating system",
        "Driver/library version mismatch", "In use by another client", "Insufficient Memory", "No data",
    };
    return code < sizeof TEXTS / sizeof *TEXTS ? TEXTS[code] : "Unknown Error";
}
