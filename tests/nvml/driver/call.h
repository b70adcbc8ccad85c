/* What every entry point begins with: the lock, the script as it is now, and whether the call is refused. */
#pragma once
#include "world.h"

enum subject { INITIALISATION, DRIVER, DEVICE, WHOLE_GPU, MIG_DEVICE };

enum { HANGS = -1, LOOK_US = 5000 }; /* no answer yet: ask again, this often */
enum { WATCH_US = 100000 }; /* who waits for events looks less often: an agent that always waits is measured */

struct call {
    const char *function;
    int64_t now_us, since_us; /* by the wall; by the monotonic clock, when it began */
    struct gpu *gpu;          /* of the device, or its parent */
    struct mig *mig;          /* NULL: the device is a whole GPU */
};

/* The lock is held from here to the end of the scope. */
#define ENTER(call, subject, device)                                                                                  \
    struct call call __attribute__((cleanup(leave)));                                                                 \
    do {                                                                                                              \
        nvmlReturn_t refusal = enter(&call, __func__, subject, device);                                               \
        if (refusal)                                                                                                  \
            return refusal;                                                                                           \
    } while (0)

nvmlReturn_t enter(struct call *call, const char *function, enum subject subject, nvmlDevice_t device);
void leave(struct call *call);
void pause_call(struct call *call, int64_t us); /* lets others in; the world may be another one afterwards */
nvmlReturn_t admitted(const struct call *call, const struct rules *rules); /* or HANGS */
nvmlReturn_t copied(const char *from, char *into, unsigned int room);
int64_t elapsed_us(const struct call *call);

/* Under the lock only. */
struct world *the_world(void);

/* handle.c: one for ever for each UUID. */
nvmlDevice_t handle_of(const char *uuid, bool is_mig);
bool handle_known(nvmlDevice_t device);
bool handle_is_mig(nvmlDevice_t device);
struct gpu *gpu_of(struct world *world, nvmlDevice_t device, struct mig **mig);
struct gpu *gpu_named(struct world *world, const char *uuid);
struct mig *mig_named(struct gpu *gpu, const char *uuid);

/* system.c */
bool initialised(const struct world *world, int64_t now_us);
