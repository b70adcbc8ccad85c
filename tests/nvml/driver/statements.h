#pragma once
#include "line.h"
#include "world.h"

struct script { /* and where in it we are */
    struct line line;
    struct world *world;
    struct gpu *gpu;
    struct curve *load;   /* of what was begun last */
    struct rules *rules;  /* of what was begun last; NULL: a process, which has none */
    bool over_full;       /* a driver may claim more than 100 % of a process */
};

void statement(struct script *script, const char *keyword);
