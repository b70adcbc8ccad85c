import os
from pathlib import Path

from gputally.devices.kubelet.pod_uids import PodUids
from gputally.model.devices import PartAllocation, PartAllocations


def held(pod: str, namespace: str = "ml") -> PartAllocation:
    return PartAllocation(part="GPU-0", namespace=namespace, pod=pod, container="main", resource="nvidia.com/gpu")


def uids(known: PodUids, *assignments: PartAllocation) -> list[str]:
    return [each.pod_uid for each in known.name(PartAllocations(at_us=0, held=assignments)).held]


def test_a_pod_is_known_by_the_folder_of_its_logs(tmp_path: Path) -> None:
    for folder in ("ml_train-0_uid-1", "prod_train-0_uid-2", "ml_other_uid-3"):
        (tmp_path / folder).mkdir()

    assert uids(PodUids(str(tmp_path)), held("train-0"), held("train-0", "prod"), held("gone")) == [
        "uid-1",
        "uid-2",
        "",
    ]


def test_a_pod_that_takes_a_name_over_is_not_the_one_that_had_it(tmp_path: Path) -> None:
    known = PodUids(str(tmp_path))
    (tmp_path / "ml_train-0_old").mkdir()
    first = uids(known, held("train-0"))
    uids(known)
    listed = uids(known, held("train-0"))  # the kubelet tells of it before it makes the folder
    _later(tmp_path)
    (tmp_path / "ml_train-0_new").mkdir()

    assert (first, listed, uids(known, held("train-0"))) == (["old"], [""], ["new"])


def test_a_pod_that_takes_a_name_over_between_two_looks_is_known_by_its_newer_folder(tmp_path: Path) -> None:
    known = PodUids(str(tmp_path))
    (tmp_path / "ml_train-0_old").mkdir()
    first = uids(known, held("train-0"))
    _later(tmp_path)
    (tmp_path / "ml_train-0_new").mkdir()

    assert (first, uids(known, held("train-0"))) == (["old"], ["new"])


def _later(folder: Path) -> None:
    """Once the file system's clock, which is coarse, has gone on."""
    before_ns = folder.stat().st_mtime_ns
    while before_ns >= _now_ns(folder):
        pass


def _now_ns(folder: Path) -> int:
    """By the file system's clock, which is coarse."""
    os.utime(folder)
    return folder.stat().st_ctime_ns


def test_without_the_folder_nobody_is_known_and_nothing_fails(tmp_path: Path) -> None:
    assert uids(PodUids(str(tmp_path / "missing")), held("train-0")) == [""]
    assert uids(PodUids(""), held("train-0")) == [""]
