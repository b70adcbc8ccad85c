#include "line.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool more(struct line *line) {
    while (isspace((unsigned char)*line->rest))
        line->rest++;
    return !line->problem && *line->rest;
}

/* The next word, which is empty if there is none. */
char *word(struct line *line) {
    if (!more(line)) {
        line->problem = line->problem ? line->problem : "too few words";
        return line->rest + strlen(line->rest);
    }
    char *start = line->rest;
    while (*line->rest && !isspace((unsigned char)*line->rest))
        line->rest++;
    if (*line->rest)
        *line->rest++ = 0;
    return start;
}

static void keep(struct line *line, const char *from, char *into, size_t room) {
    if ((size_t)snprintf(into, room, "%s", from) >= room)
        line->problem = "too long a word";
}

void text(struct line *line, char *into, size_t room) {
    keep(line, word(line), into, room);
}

/* All that is left, spaces within it too. */
void remainder_of(struct line *line, char *into, size_t room) {
    if (!more(line))
        line->problem = "too few words";
    char *end = line->rest + strlen(line->rest);
    while (end > line->rest && isspace((unsigned char)end[-1]))
        *--end = 0;
    keep(line, line->rest, into, room);
    line->rest = end;
}

int64_t number(struct line *line) {
    char *start = word(line), *end;
    errno = 0;
    int64_t value = strtoll(start, &end, 0);
    if (!line->problem && (*end || errno))
        line->problem = "not an integer";
    return value;
}

/* 12.5 is 12500. */
int64_t thousandths(struct line *line) {
    char *start = word(line), *end;
    double value = strtod(start, &end);
    if (!line->problem && (*end || !(value >= 0) || value > 1e15))
        line->problem = "not a number of 0 or more";
    return line->problem ? 0 : (int64_t)(value * 1000 + 0.5);
}
