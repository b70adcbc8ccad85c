/* The script: one statement per line, `#` begins a comment. What follows a `gpu` line says something of that GPU;
 * `load`, `error` and `hang` belong to the last gpu, mig or process that was begun. Instants are µs since the origin. */
#define _GNU_SOURCE
#include "statements.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void complain(const char *path, int at, const char *keyword, const char *problem) {
    fprintf(stderr, "libnvidia-ml: %s:%d: %s: %s\n", path, at, keyword, problem);
}

static bool obey(struct script *script, char *content, const char *path, int at) {
    char *comment = strchr(content, '#');
    if (comment)
        *comment = 0;
    script->line = (struct line){.rest = content};
    if (!more(&script->line))
        return true;
    const char *keyword = word(&script->line);
    statement(script, keyword);
    if (more(&script->line))
        script->line.problem = "too many words";
    if (script->line.problem)
        complain(path, at, keyword, script->line.problem);
    return !script->line.problem;
}

static struct world *empty_world(void) {
    struct world *world = grown(NULL, 0, sizeof *world);
    strcpy(world->driver, "570.124.06");
    strcpy(world->nvml, "12.570.124.06");
    world->cuda = 12080;
    world->origin_us = ABSENT;
    world->mismatch_us = world->uninitialised_us = ABSENT;
    return world;
}

static struct world *read_all(FILE *file, const char *path) {
    struct script script = {.world = empty_world()};
    char *content = NULL;
    size_t room = 0;
    bool good = true;
    for (int at = 1; good && getline(&content, &room, file) >= 0; at++)
        good = obey(&script, content, path, at);
    free(content);
    if (good)
        return script.world;
    world_free(script.world);
    return NULL;
}

struct world *world_read(const char *path) {
    FILE *file = path ? fopen(path, "re") : NULL;
    if (!file) {
        complain(path ? path : "(GPUTALLY_NVML_SCRIPT is not set)", 0, "script", "cannot be read");
        return NULL;
    }
    struct world *world = read_all(file, path);
    fclose(file);
    return world;
}
