/* The part of NVML's binary interface that is served here, laid out as pynvml of nvidia-ml-py 13.615.71 has it. */
#pragma once
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

typedef unsigned int nvmlReturn_t;
typedef struct nvmlDevice_st *nvmlDevice_t;
typedef struct nvmlEventSet_st *nvmlEventSet_t;
typedef struct nvmlGpmSample_st *nvmlGpmSample_t;

enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_TIMEOUT = 10,
    NVML_ERROR_GPU_IS_LOST = 15,
    NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_ERROR_UNKNOWN = 999,
};

enum { NO_INSTANCE = 0xFFFFFFFF }; /* GPU and compute instance of what runs on a whole GPU */

enum { EVENT_SINGLE_BIT_ECC = 1, EVENT_DOUBLE_BIT_ECC = 2, EVENT_XID = 8 };

enum { VALUE_UNSIGNED_INT = 1, VALUE_UNSIGNED_LONG_LONG = 3 };

typedef union {
    double as_double;
    unsigned int as_uint;
    unsigned long long as_ulonglong;
} nvmlValue_t;

typedef struct {
    char legacy_bus_id[16];
    unsigned int domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} nvmlPciInfo_t;

typedef struct {
    unsigned int gpu, memory;
} nvmlUtilization_t;

typedef struct {
    unsigned long long total, free, used;
} nvmlMemory_t;

typedef struct {
    unsigned int version;
    unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;

typedef struct {
    unsigned int version, sensor;
    int celsius;
} nvmlTemperature_t;

typedef struct {
    unsigned long long timestamp_us;
    nvmlValue_t value;
} nvmlSample_t;

typedef struct {
    unsigned int field, scope;
    long long timestamp_us, latency_us;
    unsigned int value_type;
    nvmlReturn_t code;
    nvmlValue_t value;
} nvmlFieldValue_t;

typedef struct {
    unsigned int pid;
    unsigned long long memory;
    unsigned int gi, ci;
} nvmlProcessInfo_t;

typedef struct {
    unsigned int pid;
    unsigned long long timestamp_us;
    unsigned int sm, memory, encoder, decoder;
} nvmlProcessUtilizationSample_t;

typedef struct {
    unsigned int processors, copy_engines, decoders, encoders, jpegs, ofas, gi_slices, ci_slices;
    unsigned long long memory_mib;
} nvmlDeviceAttributes_t;

typedef struct {
    unsigned int version, supported;
} nvmlGpmSupport_t;

typedef struct {
    unsigned int id;
    nvmlReturn_t code;
    double value;
    const char *short_name, *long_name, *unit;
} nvmlGpmMetric_t;

typedef struct {
    unsigned int version, count;
    nvmlGpmSample_t first, second;
    nvmlGpmMetric_t metrics[477];
} nvmlGpmMetricsGet_t;

typedef struct {
    nvmlDevice_t device;
    unsigned long long type, data;
    unsigned int gi, ci;
} nvmlEventData_t;
