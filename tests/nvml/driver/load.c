/* Exact arithmetic on curves: what was averaged, and what it cost in energy. */
#include "world.h"

enum { MILLI = 1000, FULL = 100 * MILLI, US_PER_SECOND = 1000000 };

/* Thousandths of a percent, times µs. */
__int128 curve_integral(const struct curve *curve, int64_t from_us, int64_t to_us) {
    __int128 sum = 0;
    for (size_t i = 0; i < curve->count; i++) {
        const struct point *point = &curve->points[i];
        int64_t end_us = i + 1 < curve->count && point[1].at_us < to_us ? point[1].at_us : to_us;
        int64_t start_us = point->at_us > from_us ? point->at_us : from_us;
        if (start_us < end_us)
            sum += (__int128)point->value * (end_us - start_us);
    }
    return sum;
}

/* The average over a span, rounded to whole percent, halves up. */
int64_t percent_of(__int128 integral, int64_t span_us) {
    __int128 whole = (__int128)MILLI * span_us;
    return (int64_t)((2 * integral + whole) / (2 * whole));
}

int64_t curve_percent(const struct curve *curve, int64_t from_us, int64_t to_us) {
    return percent_of(curve_integral(curve, from_us, to_us), to_us - from_us);
}

double curve_average(const struct curve *curve, int64_t from_us, int64_t to_us) {
    return (double)curve_integral(curve, from_us, to_us) / ((double)MILLI * (double)(to_us - from_us));
}

/* mW times µs, times FULL. */
static __int128 work(const struct gpu *gpu, int64_t from_us, int64_t to_us) {
    __int128 idle = (__int128)gpu->power[0] * FULL * (to_us - from_us);
    return idle + (gpu->power[1] - gpu->power[0]) * curve_integral(&gpu->load, from_us, to_us);
}

/* The average of a span, which is not empty. */
int64_t power_mw(const struct gpu *gpu, int64_t from_us, int64_t to_us) {
    return (int64_t)(work(gpu, from_us, to_us) / ((__int128)FULL * (to_us - from_us)));
}

/* When the counters of energy and throttling last stood at 0. */
int64_t energy_start_us(const struct gpu *gpu, int64_t now_us) {
    int64_t start_us = gpu->energy_since_us;
    for (size_t i = 0; i < gpu->reset_count; i++)
        if (gpu->resets_us[i] <= now_us && gpu->resets_us[i] > start_us)
            start_us = gpu->resets_us[i];
    return start_us;
}

uint64_t energy_mj(const struct gpu *gpu, int64_t now_us) {
    int64_t start_us = energy_start_us(gpu, now_us);
    return start_us < now_us ? (uint64_t)(work(gpu, start_us, now_us) / ((__int128)FULL * US_PER_SECOND)) : 0;
}

/* The driver looks six times a second; these are the instants, counted from the epoch. */
int64_t sixth_us(int64_t number) {
    return number / 6 * US_PER_SECOND + number % 6 * US_PER_SECOND / 6;
}

/* Of the last one that has passed. */
int64_t sixth_number(int64_t now_us) {
    int64_t number = now_us / US_PER_SECOND * 6 + now_us % US_PER_SECOND * 6 / US_PER_SECOND;
    return sixth_us(number + 1) <= now_us ? number + 1 : number;
}
