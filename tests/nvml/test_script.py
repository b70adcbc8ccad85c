from fractions import Fraction
from pathlib import Path

from tests.nvml.script import Fault, Gpu, Hang, Script, average, counted_mj, energy_mj, integral

SECOND = 10**6
CURVE = [(0, 50), (2, 12.5), (3, 0)]


def test_a_curve_is_constant_from_point_to_point() -> None:
    assert integral(CURVE, -SECOND, 0) == 0
    assert integral(CURVE, -SECOND, SECOND) == 50 * SECOND
    assert integral(CURVE, SECOND, 9 * SECOND) == Fraction("62.5") * SECOND
    assert integral([(0, 7)], 0, 9 * SECOND) == 63 * SECOND
    assert average(CURVE, SECOND, 3 * SECOND) == Fraction("31.25")


def test_energy_is_power_over_time_since_the_last_reset() -> None:
    gpu = Gpu(uuid="GPU-a", idle_watts=100, max_watts=500, curve=CURVE, energy_since=-1, resets=[1, 8])

    assert energy_mj(gpu, 0, 2 * SECOND) == 2 * 300_000
    assert counted_mj(gpu, 0) == 100_000
    assert counted_mj(gpu, 2 * SECOND) == 300_000


def test_a_script_is_written_at_once_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "gpus.txt"

    Script(origin_us=7).write(path)
    Script(origin_us=8).write(path)

    assert path.read_text().startswith("origin 8\n")
    assert list(tmp_path.iterdir()) == [path]


def test_a_fault_without_a_beginning_has_always_been() -> None:
    assert Fault(function="nvmlInit", code=9).line() == "error nvmlInit 9"
    assert Fault(function="nvmlInit", code=9, start=1).line() == "error nvmlInit 9 1000000"
    assert Hang(function="*", end=1).line() == "hang * forever -1000000000000000 1000000"
