import sys
from types import ModuleType

import pynvml
import pytest

from gputally.devices.nvml.library import Nvml, Versions, adopt, load
from gputally.errors import DriverChanged, DriverMissing, NvmlError
from tests.nvml.script import Fault, Gpu
from tests.unit.devices.nvml.conftest import Node


def test_the_versions_are_those_of_the_driver(node: Node, nvml: Nvml) -> None:
    node.play(driver="580.1", nvml="13.580.1")

    assert nvml.versions() == Versions(driver="580.1", nvml="13.580.1")


def test_a_version_that_is_not_told_is_empty(node: Node, nvml: Nvml) -> None:
    node.play(driver="580.1", faults=[Fault(function="nvmlSystemGetNVMLVersion", code=13)])

    assert nvml.versions() == Versions(driver="580.1", nvml="")


def test_without_the_library_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(pynvml, "nvmlLib", None)
    monkeypatch.setattr(pynvml, "CDLL", missing)

    with pytest.raises(DriverMissing, match=r"Library Not Found \(code 12\); run on .* `runtimeClassName: nvidia`"):
        load().initialise()


def test_a_driver_that_is_not_loaded_is_missing(node: Node) -> None:
    node.play(init_error=9)

    with pytest.raises(DriverMissing, match=r"Driver Not Loaded \(code 9\); run on a node with an NVIDIA driver"):
        node.nvml.initialise()


def test_a_driver_that_was_upgraded_ends_the_process(node: Node, nvml: Nvml) -> None:
    node.play(Gpu(uuid="GPU-a"), mismatch=-1)

    with pytest.raises(DriverChanged, match="must restart"):
        nvml.ask(nvml.calls.nvmlDeviceGetCount)
    with pytest.raises(DriverChanged):
        nvml.initialise()


def test_a_package_that_only_has_the_name_is_refused() -> None:
    impostor = ModuleType("pynvml")
    impostor.__file__ = "/somewhere/pynvml.py"

    with pytest.raises(NvmlError, match=r"/somewhere/pynvml.py is not NVIDIA's pynvml; run `pip uninstall pynvml`"):
        adopt(impostor)


def test_without_pynvml_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)

    with pytest.raises(NvmlError, match=r"install gputally\[agent\]"):
        load()
