"""XIDs, as the real pynvml hears of them."""

import time
from dataclasses import replace

from tests.nvml.remote import Remote
from tests.nvml.script import Gpu, Script, Xid

TIMEOUT, LOST = 10, 15
GPU = Gpu(uuid="GPU-a")
LISTEN = "nvmlDeviceRegisterEvents(gpu('GPU-a'), nvmlEventTypeXidCriticalError, keep('{0}', nvmlEventSetCreate()))"
WAIT = "nvmlEventSetWait(set, {})"


def script(*gpus: Gpu) -> Script:
    return Script(origin_us=time.time_ns() // 1000, gpus=gpus)


def test_an_xid_wakes_who_waits_for_it(remote: Remote) -> None:
    scene = script(GPU)
    remote.play(scene)
    remote.ask(LISTEN.format("set"))

    waiting = remote.start(WAIT.format(20_000))
    assert remote.code("nvmlDeviceGetPowerUsage(gpu('GPU-a'))") == 0  # meanwhile
    xid = Xid(at=scene.since_origin(time.time_ns() // 1000), code=79, gi=3, ci=1)
    remote.play(replace(scene, gpus=[replace(GPU, xids=[xid])]))

    event = waiting.result(20)
    assert (event["eventType"], event["eventData"]) == (8, 79)
    assert (event["gpuInstanceId"], event["computeInstanceId"]) == (3, 1)
    assert remote.code(WAIT.format(0)) == TIMEOUT


def test_xids_before_registration_are_lost(remote: Remote) -> None:
    remote.play(script(replace(GPU, xids=[Xid(at=-1, code=79)])))

    remote.ask(LISTEN.format("set"))

    assert remote.code(WAIT.format(1)) == TIMEOUT


def test_each_set_is_told_once_of_each_xid_even_of_one_instant(remote: Remote) -> None:
    remote.play(script(GPU))
    remote.ask(LISTEN.format("set"))
    remote.ask(LISTEN.format("other"))
    remote.play(script(replace(GPU, xids=[Xid(at=0, code=31), Xid(at=0, code=45), Xid(at=0, code=45)])))

    told = [remote.ask(WAIT.format(20_000))["eventData"] for _ in range(3)]

    assert told == [31, 45, 45]
    assert remote.code(WAIT.format(0)) == TIMEOUT
    assert remote.ask("nvmlEventSetWait(other, 20000)")["eventData"] == 31


def test_who_waits_hears_the_xid_and_then_that_the_gpu_is_lost(remote: Remote) -> None:
    remote.play(script(GPU))
    remote.ask(LISTEN.format("set"))
    remote.play(script(replace(GPU, lost=0, xids=[Xid(at=0, code=79)])))

    assert remote.ask(WAIT.format(20_000))["eventData"] == 79
    assert remote.code(WAIT.format(20_000)) == LOST


def test_a_set_that_is_freed_waits_no_more(remote: Remote) -> None:
    remote.play(script(GPU))
    remote.ask(LISTEN.format("set"))
    waiting = remote.start(f"({WAIT.format(20_000)})")

    remote.ask("nvmlEventSetFree(set)")

    assert waiting.exception(20)


def test_only_known_kinds_of_event_can_be_registered(remote: Remote) -> None:
    remote.play(script(GPU))

    types = remote.ask("nvmlDeviceGetSupportedEventTypes(gpu('GPU-a'))")

    assert types & 8
    assert remote.code(f"nvmlDeviceRegisterEvents(gpu('GPU-a'), {types}, nvmlEventSetCreate())") == 0
    assert remote.code("nvmlDeviceRegisterEvents(gpu('GPU-a'), nvmlEventTypeClock, nvmlEventSetCreate())") == 3
