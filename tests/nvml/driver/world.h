/* What the script says of the machine: instants in epoch µs, loads in thousandths of a percent, bytes, mW. */
#pragma once
#include "abi.h"
#include <stdbool.h>
#include <stddef.h>

#define TEXT 96
#define ABSENT INT64_MIN /* of a number: the script does not give it, so the GPU does not support it */

struct point {
    int64_t at_us, value;
};

struct curve { /* 0 before the first point; the last one holds */
    struct point *points;
    size_t count;
};

struct rule { /* answers `code` or, if that is 0, hangs */
    char function[TEXT];
    nvmlReturn_t code;
    int64_t hang_us, from_us, until_us;
};

struct rules {
    struct rule *all;
    size_t count;
};

struct mig {
    char uuid[TEXT], profile[TEXT];
    int64_t index, gi, ci, gi_slices, ci_slices, processors, memory, used;
    struct curve load;
    struct rules rules;
};

struct process {
    int64_t pid, kind, memory, gi, ci, from_us, until_us;
    struct curve load;
};

struct xid {
    int64_t at_us, code, gi, ci;
};

struct throttle { /* a span in which clocks were held down, for the reason that this field counts */
    int64_t field, from_us, until_us;
};

struct gpu {
    char uuid[TEXT], name[TEXT], pci[TEXT];
    int64_t minor, architecture, gpm, samples, temperature, reasons, power_limit, power_scopes;
    int64_t memory[3];   /* total, used, reserved */
    int64_t power[2];    /* idle, at full load */
    int64_t clocks[4];   /* SM, memory, and their maxima */
    int64_t ecc[4];      /* corrected and uncorrected: volatile, then aggregate */
    int64_t remapped[4]; /* rows by corrected and uncorrected errors, pending, failed */
    int64_t mig_mode[2]; /* current, pending */
    int64_t energy_since_us, lost_us;
    int64_t shares[11];  /* by GPM metric: in percent of the load */
    struct curve load;
    struct rules rules;
    struct mig *migs;
    struct process *processes;
    struct xid *xids;
    struct throttle *throttles;
    int64_t *resets_us;
    size_t mig_count, process_count, xid_count, throttle_count, reset_count;
};

struct world {
    char driver[TEXT], nvml[TEXT];
    int64_t origin_us, cuda, init_error, mismatch_us, uninitialised_us;
    struct rules rules;
    struct gpu *gpus;
    size_t gpu_count;
};

/* parse.c: NULL, once stderr has been told why, if the script is broken. */
struct world *world_read(const char *path);

/* world.c */
void world_free(struct world *world);
void *grown(void *items, size_t count, size_t size);
bool reached(int64_t instant_us, int64_t now_us);

/* load.c */
__int128 curve_integral(const struct curve *curve, int64_t from_us, int64_t to_us);
int64_t percent_of(__int128 integral, int64_t span_us);
int64_t curve_percent(const struct curve *curve, int64_t from_us, int64_t to_us);
double curve_average(const struct curve *curve, int64_t from_us, int64_t to_us);
int64_t power_mw(const struct gpu *gpu, int64_t from_us, int64_t to_us);
uint64_t energy_mj(const struct gpu *gpu, int64_t now_us);
int64_t energy_start_us(const struct gpu *gpu, int64_t now_us);
int64_t sixth_us(int64_t number);
int64_t sixth_number(int64_t now_us);
