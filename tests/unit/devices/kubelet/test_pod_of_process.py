import os
from pathlib import Path

import pytest

from gputally.devices.kubelet.pod_uids import PodOfProcess, pod_in

UID = "0b4c0b1a-9d7f-4a36-9e55-1f2d3c4b5a69"
SYSTEMD = UID.replace("-", "_")
STATIC = "4d61ba0cb1f5ac6bb0e4a43fc4a1ae87"
SLICE = "/kubepods.slice/kubepods-burstable.slice"
CONTAINER = "1f" * 32


def process(root: Path, pid: int, cgroup: str) -> None:
    folder = root / str(pid)
    folder.mkdir(parents=True)
    (folder / "cgroup").write_text(cgroup)


@pytest.mark.parametrize(
    ("path", "uid"),
    [
        (f"0::{SLICE}/kubepods-burstable-pod{SYSTEMD}.slice/cri-containerd-{CONTAINER}.scope", UID),
        (f"0::/kubepods.slice/kubepods-pod{SYSTEMD}.slice/crio-{CONTAINER}.scope", UID),
        (f"0::/kubepods/besteffort/pod{UID}/{CONTAINER}", UID),
        (f"0::/kubepods/burstable/pod{STATIC}/{CONTAINER}", STATIC),
        (f"0::{SLICE}/kubepods-burstable-pod{STATIC}.slice/x.scope", STATIC),
        (f"12:pids:/kubepods/pod{UID}/{CONTAINER}\n11:memory:/kubepods/pod{UID}/{CONTAINER}\n1:name=systemd:/", UID),
        (f"0::/../../pod{UID}/{CONTAINER}", UID),
        (f"0::/../../kubepods-besteffort-pod{SYSTEMD}.slice/cri-containerd-{CONTAINER}.scope", UID),
        (f"0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{SYSTEMD}.slice/x.scope", UID),
        (f"0::/kubepods/pod{UID}", UID),
        ("0::/system.slice/nvidia-persistenced.service", ""),
        (f"0::/machine.slice/libpod-{CONTAINER}.scope", ""),
        ("0::/user.slice/podman/pod-of-mine", ""),
        ("0::/", ""),
        ("", ""),
    ],
)
def test_the_pod_is_in_the_path_of_the_control_group(path: str, uid: str) -> None:
    assert pod_in(f"{path}\n") == uid


def test_a_process_of_a_pod_a_process_of_the_host_and_one_not_to_be_seen(tmp_path: Path) -> None:
    process(tmp_path, 7, f"0::/kubepods/pod{UID}/{CONTAINER}\n")
    process(tmp_path, 8, "0::/init.scope\n")
    pod_of = PodOfProcess(tmp_path)

    assert (pod_of(7), pod_of(8), pod_of(9)) == (UID, "", None)


def test_the_control_group_of_a_process_is_read_once(tmp_path: Path) -> None:
    process(tmp_path, 7, f"0::/kubepods/pod{UID}/{CONTAINER}\n")
    pod_of = PodOfProcess(tmp_path)

    assert pod_of(7) == UID
    (tmp_path / "7" / "cgroup").write_text("0::/\n")

    assert pod_of(7) == UID


def test_a_pid_that_is_used_again_is_another_process(tmp_path: Path) -> None:
    process(tmp_path, 7, f"0::/kubepods/pod{UID}/{CONTAINER}\n")
    pod_of = PodOfProcess(tmp_path)
    assert pod_of(7) == UID

    (tmp_path / "7").rename(tmp_path / "gone")
    assert pod_of(7) is None
    process(tmp_path, 7, "0::/init.scope\n")

    assert pod_of(7) == ""


def test_this_process_can_be_seen() -> None:
    assert PodOfProcess()(os.getpid()) is not None
