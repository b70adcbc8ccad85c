/* Spans in which clocks are held down: the mask shows them while they last, the fields count them. */
#include "throttle.h"

static const struct {
    int64_t field;
    unsigned long long reason;
} REASONS[] = {{74, 0x4}, {76, 0x10}, {269, 0x20}, {270, 0x40}, {271, 0x80}};

enum { REASON_COUNT = sizeof REASONS / sizeof *REASONS };

static unsigned long long reason_of(int64_t field) {
    for (int i = 0; i < REASON_COUNT; i++)
        if (REASONS[i].field == field)
            return REASONS[i].reason;
    return 0;
}

bool throttle_field(int64_t field) {
    return reason_of(field);
}

unsigned long long throttle_reasons(const struct gpu *gpu, int64_t now_us) {
    unsigned long long mask = 0;
    for (size_t i = 0; i < gpu->throttle_count; i++)
        if (gpu->throttles[i].from_us <= now_us && now_us < gpu->throttles[i].until_us)
            mask |= reason_of(gpu->throttles[i].field);
    return mask;
}

unsigned long long throttled_ns(const struct gpu *gpu, int64_t field, int64_t now_us) {
    const int64_t start_us = energy_start_us(gpu, now_us);
    unsigned long long ns = 0;
    for (size_t i = 0; i < gpu->throttle_count; i++) {
        const struct throttle *span = &gpu->throttles[i];
        int64_t from_us = span->from_us > start_us ? span->from_us : start_us;
        int64_t until_us = span->until_us < now_us ? span->until_us : now_us;
        if (span->field == field && from_us < until_us)
            ns += (unsigned long long)(until_us - from_us) * 1000;
    }
    return ns;
}
