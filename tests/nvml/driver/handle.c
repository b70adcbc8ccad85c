/* A handle stands for a UUID: it outlives scripts, and a device that comes back has the handle it had. */
#include "call.h"
#include <string.h>

struct nvmlDevice_st {
    char uuid[TEXT];
    bool is_mig;
    struct nvmlDevice_st *next;
};

static struct nvmlDevice_st *handles;

nvmlDevice_t handle_of(const char *uuid, bool is_mig) {
    for (nvmlDevice_t device = handles; device; device = device->next)
        if (device->is_mig == is_mig && !strcmp(device->uuid, uuid))
            return device;
    nvmlDevice_t device = grown(NULL, 0, sizeof *device);
    strcpy(device->uuid, uuid);
    device->is_mig = is_mig;
    device->next = handles;
    return handles = device;
}

bool handle_known(nvmlDevice_t device) {
    nvmlDevice_t known = handles;
    while (known && known != device)
        known = known->next;
    return known;
}

bool handle_is_mig(nvmlDevice_t device) {
    return device->is_mig;
}

struct gpu *gpu_named(struct world *world, const char *uuid) {
    for (size_t i = 0; i < world->gpu_count; i++)
        if (!strcmp(world->gpus[i].uuid, uuid))
            return &world->gpus[i];
    return NULL;
}

struct mig *mig_named(struct gpu *gpu, const char *uuid) {
    for (size_t i = 0; i < gpu->mig_count; i++)
        if (!strcmp(gpu->migs[i].uuid, uuid))
            return &gpu->migs[i];
    return NULL;
}

/* The GPU that the device is or lies in; NULL if it is no more. */
struct gpu *gpu_of(struct world *world, nvmlDevice_t device, struct mig **mig) {
    *mig = NULL;
    if (!device->is_mig)
        return gpu_named(world, device->uuid);
    for (size_t i = 0; i < world->gpu_count; i++)
        if ((*mig = mig_named(&world->gpus[i], device->uuid)))
            return &world->gpus[i];
    return NULL;
}
