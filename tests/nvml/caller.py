"""A process that evaluates what it reads with pynvml, each expression in its own thread; remote.py is the other end.

It ends without its threads when its input does: a call that hangs cannot be ended otherwise.
"""

import ctypes
import json
import os
import sys
import threading
from collections.abc import Callable

import pynvml

NAMES = {name: value for name, value in vars(pynvml).items() if name.startswith(("nvml", "NVML", "c_nvml"))}
KEPT: dict[str, object] = {}
"""What expressions store, with `keep("set", nvmlEventSetCreate())`, and later ones find."""
speaking = threading.Lock()


def keep(name: str, value: object) -> object:
    KEPT[name] = value
    return value


def gpu(uuid: str) -> object:
    """The handle that was got first, as an agent holds it."""
    if uuid not in KEPT:
        KEPT[uuid] = pynvml.nvmlDeviceGetHandleByUUID(uuid)
    return KEPT[uuid]


def metrics(first: object, second: object, *ids: int) -> dict[int, float | int]:
    """By metric its value or, where there is none, minus the code."""
    query = pynvml.c_nvmlGpmMetricsGet_t(version=1, numMetrics=len(ids), sample1=first, sample2=second)
    for metric, number in zip(query.metrics, ids, strict=False):
        metric.metricId = number
    pynvml.nvmlGpmMetricsGet(query)
    answers = query.metrics[: len(ids)]
    return {answer.metricId: -answer.nvmlReturn if answer.nvmlReturn else answer.value for answer in answers}


def plain(value: object) -> object:
    """As JSON has it."""
    if isinstance(value, ctypes.Structure):
        return {field[0]: plain(getattr(value, field[0])) for field in value._fields_}
    if isinstance(value, ctypes.Union):
        return plain(value.ullVal)  # the widest of them; the rest of it is zero
    if isinstance(value, ctypes.c_uint):
        return value.value
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, pynvml.nvmlFriendlyObject):
        return vars(value)
    return value if isinstance(value, str | int | float | dict | None) else "a handle"


def answer(number: int, expression: str) -> None:
    reply: dict[str, object] = {"number": number}
    try:
        reply["value"] = plain(eval(expression, {**NAMES, **HELPERS}, KEPT))
    except pynvml.NVMLError as refusal:
        reply["code"] = refusal.value
    except Exception as mistake:  # noqa: BLE001 - the other end raises it
        reply["mistake"] = repr(mistake)
    with speaking:
        print(json.dumps(reply), flush=True)  # noqa: T201 - this is how it speaks


HELPERS: dict[str, Callable[..., object]] = {"keep": keep, "gpu": gpu, "metrics": metrics}

if __name__ == "__main__":
    for line in sys.stdin:
        threading.Thread(target=answer, args=json.loads(line), daemon=True).start()
    os._exit(0)
