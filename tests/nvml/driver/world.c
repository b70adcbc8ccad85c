/* The memory of a world. */
#include "world.h"
#include <stdlib.h>
#include <string.h>

/* `items` with room for one more than `count`, which is all zero. */
void *grown(void *items, size_t count, size_t size) {
    char *more = realloc(items, (count + 1) * size);
    if (!more)
        abort();
    memset(more + count * size, 0, size);
    return more;
}

bool reached(int64_t instant_us, int64_t now_us) {
    return instant_us != ABSENT && instant_us <= now_us;
}

static void gpu_free(struct gpu *gpu) {
    for (size_t i = 0; i < gpu->mig_count; i++) {
        free(gpu->migs[i].load.points);
        free(gpu->migs[i].rules.all);
    }
    for (size_t i = 0; i < gpu->process_count; i++)
        free(gpu->processes[i].load.points);
    free(gpu->load.points);
    free(gpu->rules.all);
    free(gpu->migs);
    free(gpu->processes);
    free(gpu->xids);
    free(gpu->throttles);
    free(gpu->resets_us);
}

void world_free(struct world *world) {
    if (!world)
        return;
    for (size_t i = 0; i < world->gpu_count; i++)
        gpu_free(&world->gpus[i]);
    free(world->gpus);
    free(world->rules.all);
    free(world);
}
