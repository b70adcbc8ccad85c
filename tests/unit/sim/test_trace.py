import gzip
from pathlib import Path

import pytest
from msgspec.structs import replace

from gputally.errors import ConfigError
from gputally_sim.trace.trace import Trace, TraceNode, TracePod, read_nodes, read_trace

HEADER = "id,tenant,qos,gpu_type,gpu_count,gpu_milli,submit,start,end,node,status,cpu_milli\n"
PART = TracePod(
    id="p-1",
    tenant="lab",
    qos="LS",
    gpu_types=("T4", "V100"),
    gpu_milli=460,
    submit_s=5,
    start_s=7,
    end_s=19,
    status="Failed",
)


def written(folder: Path, text: str, *, name: str = "trace.csv") -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode(), mtime=0) if name.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize("name", ["trace.csv", "trace.csv.gz"])
def test_a_row_is_read_plain_or_compressed(name: str, tmp_path: Path) -> None:
    path = written(tmp_path, HEADER + "p-1,lab,LS,T4|V100|T4,1,460,5,7,19,,Failed,8000\n", name=name)

    assert read_trace(path) == Trace((PART,))


def test_only_multiples_of_a_thousand_are_whole_gpus() -> None:
    assert [replace(PART, gpu_milli=milli).is_whole for milli in (460, 1000, 1500, 8000)] == [False, True, False, True]


def test_pods_come_by_submission_and_those_without_gpus_are_left_out(tmp_path: Path) -> None:
    rows = "late,,,,1,1000,9,,,,Pending,0\ncpu,,,,0,0,1,1,2,,Succeeded,0\nsoon,,,,8,8000,2,3,,,Running,0\n"

    pods = read_trace(written(tmp_path, HEADER + rows)).pods

    assert [(pod.id, pod.start_s, pod.end_s) for pod in pods] == [("soon", 3, None), ("late", None, None)]


def test_nodes_without_gpus_are_left_out(tmp_path: Path) -> None:
    path = written(tmp_path, "node,gpu_type,gpu_count,cpu_milli\na,,0,32000\nb,T4,2,32000\n")

    assert read_nodes(path) == (TraceNode(name="b", gpu_type="T4", gpus=2),)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (",,,,1,1000,0,0,1,,Pass,", "line 2, id: is blank; add a name"),
        ("a,,,,1,half,0,0,1,,Pass,", "line 2, gpu_milli: 'half' is not a whole number; use one such as 60"),
        ("a,,,,1,1000,0,0,1.5,,Pass,", "line 2, end: '1.5' is not a whole number; use one such as 60"),
        ("a,,,,1,1000,,0,1,,Pass,", "line 2, submit: '' is not a whole number; use one such as 60"),
        ("a,,,,1,1000,5,4,9,,Pass,", "line 2, start: 4 is before submit 5; use the order submit, start, end"),
        ("a,,,,1,1000,0,4,3,,Pass,", "line 2, end: 3 is before start 4; use the order submit, start, end"),
        (
            "a,,,,1,1000,0,0,1,,Passed,",
            "line 2, status: unknown 'Passed'; use Succeeded, Pass, Failed, Killed, Running, Pending",
        ),
        ("a,,,,1,1000,0,0,1,,Pass,\na,,,,1,1000,2,2,3,,Pass,", "line 3, id: 'a' is also on line 2; make it unique"),
    ],
)
def test_a_row_that_cannot_be_is_told_with_its_line_column_and_remedy(row: str, problem: str, tmp_path: Path) -> None:
    path = written(tmp_path, HEADER + row + "\n")

    with pytest.raises(ConfigError) as caught:
        read_trace(path)

    assert str(caught.value) == f"{path}: {problem}"


def test_all_problems_are_told_at_once_but_not_thousands(tmp_path: Path) -> None:
    rows = "".join(f"p{number},,,,1,x,0,0,1,,Pass,\n" for number in range(1000))

    with pytest.raises(ConfigError) as caught:
        read_trace(written(tmp_path, HEADER + rows))

    assert [problem.field for problem in caught.value.problems[:2]] == ["line 2, gpu_milli", "line 3, gpu_milli"]
    assert caught.value.problems[-1].text == "and 990 more"
    assert len(caught.value.problems) == 11


def test_missing_columns_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read_nodes(written(tmp_path, "node,gpus\n"))

    assert [problem.text for problem in caught.value.problems] == [
        "has no column 'gpu_type'; add it to the header",
        "has no column 'gpu_count'; add it to the header",
    ]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("trace.csv.gz", b"id,tenant", "cannot be read: Not a gzipped file"),
        ("trace.csv.gz", gzip.compress(b"id,tenant" * 99, mtime=0)[:20], "is not CSV in UTF-8: Compressed file ended"),
        ("trace.csv", b"\xff\xfe", "is not CSV in UTF-8: 'utf-8' codec can't decode"),
    ],
)
def test_a_file_of_another_kind_is_told(name: str, content: bytes, problem: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)

    with pytest.raises(ConfigError, match=problem):
        read_trace(tmp_path / name)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.csv: cannot be read: No such file or directory"):
        read_trace(tmp_path / "none.csv")


def test_a_squeezed_trace_keeps_order_and_what_ran_runs_for_a_second() -> None:
    long = TracePod(
        id="q", tenant="", qos="", gpu_types=(), gpu_milli=1000, submit_s=25, start_s=None, end_s=99, status="Pending"
    )

    squeezed = Trace((PART, long)).squeezed(10)

    assert [(pod.submit_s, pod.start_s, pod.end_s) for pod in squeezed.pods] == [(0, 0, 1), (2, None, 9)]
    assert squeezed.end_s == 9


def test_a_trace_ends_with_the_last_thing_that_happens() -> None:
    assert Trace((PART,)).end_s == 19
    assert Trace(()).end_s == 0
