"""Dashboard queries for MIG and lost GPUs, which few clusters have, evaluated by promtool."""

import subprocess
from pathlib import Path

import pytest
import yaml

from gputally.catalog.agent.gpu_metrics import GRAVE_XIDS
from hack.pictures.dashboard import read
from hack.pictures.variables import Window, chosen, expand
from hack.promtool import REMEDY, ROOT, program
from monitoring.config import read as configured

GPU = 'instance="n1", gpu="GPU-1"'
SMALL, LARGE = "MIG-11111111-a", "MIG-22222222-b"
SLICED = (
    f'gputally_gpu_info{{{GPU}, device="{SMALL}", profile="1g.10gb", minor="0"}} 1',
    f'gputally_gpu_info{{{GPU}, device="{LARGE}", profile="2g.20gb", minor="0"}} 1',
)


def answers(folder: Path, *, panel: str, series: tuple[str, ...], expected: dict[str, float]) -> str:
    """promtool's failure output if the panel's first query does not return `expected` (labels: value), else ""."""
    promtool = program()
    if promtool is None:
        pytest.skip(REMEDY)
    samples = [line.rsplit(" ", 1) for line in series]
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": f"{value}x10"} for name, value in samples],
        "promql_expr_test": [
            {
                "expr": query(panel),
                "eval_time": "5m",
                "exp_samples": [{"labels": labels, "value": value} for labels, value in expected.items()],
            }
        ],
    }
    file = folder / "test.yaml"
    file.write_text(yaml.safe_dump({"tests": [test]}))
    result = subprocess.run([promtool, "test", "rules", str(file)], capture_output=True, text=True, check=False)
    return "" if result.returncode == 0 else result.stdout + result.stderr


def query(title: str) -> str:
    """The panel's first query, as Grafana sends it with all values selected."""
    for board in ("node", "condition"):
        dashboard = read(ROOT / "dashboards" / "generated" / f"{board}.json")
        for panel in dashboard.panels:
            if panel.title == title:
                variables = chosen(dashboard.templating.list, {})
                return expand(panel.targets[0].expr, variables, window=Window(0, 600, scrape=60))
    raise AssertionError(f"no panel is called {title}")


@pytest.mark.parametrize(
    ("panel", "metric"),
    [("Temperature by GPU", "gputally_gpu_temperature_celsius"), ("Power by GPU", "gputally_gpu_power_watts")],
)
def test_a_gpu_with_slices_of_two_sizes_is_one_gpu(tmp_path: Path, panel: str, metric: str) -> None:
    series = (*SLICED, f"{metric}{{{GPU}}} 61")
    expected = {'{instance="n1", gpu="GPU-1", minor="0"}': 61.0}

    assert answers(tmp_path, panel=panel, series=series, expected=expected) == ""


def test_slices_are_distinguished(tmp_path: Path) -> None:
    busy = tuple(
        f'gputally_gpu_utilization_ratio{{{GPU}, device="{device}"}} {value}'
        for device, value in ((SMALL, 0.25), (LARGE, 0.5))
    )
    common = 'instance="n1", gpu="GPU-1", minor="0"'
    expected = {
        f'{{{common}, device="{SMALL}", profile="1g.10gb", slice="MIG-11111111"}}': 0.25,
        f'{{{common}, device="{LARGE}", profile="2g.20gb", slice="MIG-22222222"}}': 0.5,
    }

    assert answers(tmp_path, panel="Utilisation by device", series=(*SLICED, *busy), expected=expected) == ""


def test_a_lost_gpu_without_other_series_is_shown_as_lost(tmp_path: Path) -> None:
    series = (f"gputally_gpu_up{{{GPU}}} 0",)

    assert answers(tmp_path, panel="GPU status", series=series, expected={f"{{{GPU}}}": 0.0}) == ""


def test_a_query_with_another_result_fails(tmp_path: Path) -> None:
    series = (f"gputally_gpu_up{{{GPU}}} 0",)

    assert "got:" in answers(tmp_path, panel="GPU status", series=series, expected={f"{{{GPU}}}": 1.0})


def test_every_hardware_xid_is_exposed_as_0_before_it_occurs() -> None:
    assert {int(xid) for xid in configured().hardware_xids.split("|")} <= set(GRAVE_XIDS)
