#pragma once
#include "world.h"

bool throttle_field(int64_t field);
unsigned long long throttle_reasons(const struct gpu *gpu, int64_t now_us);
unsigned long long throttled_ns(const struct gpu *gpu, int64_t field, int64_t now_us);
