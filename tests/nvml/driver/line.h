/* Reading a script line word by word. The first problem is kept; after it, words read as nothing. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct line {
    char *rest;
    const char *problem;
};

bool more(struct line *line);
char *word(struct line *line);
void text(struct line *line, char *into, size_t room);
void remainder_of(struct line *line, char *into, size_t room);
int64_t number(struct line *line);
int64_t thousandths(struct line *line);
