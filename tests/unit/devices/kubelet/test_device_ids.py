"""The names of devices, read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputally.devices.kubelet.device_assignments import DeviceId, parse

UUID = "8f7c1b0e-6a9d-4c3f-b1de-52f04c6f1a77"
NUMBERS = st.integers(min_value=0, max_value=999_999_999)
UUIDS = st.uuids().map(str)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"GPU-{UUID}", {"uuid": f"GPU-{UUID}"}),
        (f"GPU-{UUID}::3", {"uuid": f"GPU-{UUID}", "replica": 3}),
        (f"MIG-{UUID}", {"uuid": f"MIG-{UUID}"}),
        (f"MIG-{UUID}::0", {"uuid": f"MIG-{UUID}", "replica": 0}),
        (f"MIG-GPU-{UUID}/7/0", {"uuid": f"GPU-{UUID}", "gi": 7, "ci": 0}),
        (f"MIG-GPU-{UUID}/7/0::12", {"uuid": f"GPU-{UUID}", "gi": 7, "ci": 0, "replica": 12}),
        ("nvidia0", {"minor": 0}),
        ("nvidia10/gi1", {"minor": 10, "gi": 1}),
        ("nvidia0/gi1/vgpu2", {"minor": 0, "gi": 1, "replica": 2}),
        ("nvidia0/vgpu2", {"minor": 0, "replica": 2}),
        ("gpu-3", {"minor": 3}),
        ("gpu-0-mig-1g5gb-19-4", {"minor": 0, "profile": 19, "start": 4}),
        ("gpu-0-mig-1g24gb-me-20-5", {"minor": 0, "profile": 20, "start": 5}),
        ("gpu-1-mig-1c-3g20gb-9-0", {"minor": 1, "profile": 9, "start": 0}),
        ("gpu-1-mig-9-4-4", {"minor": 1, "profile": 9, "start": 4}),
    ],
)
def test_every_known_form_of_name_says_what_it_stands_for(text: str, said: dict[str, str | int]) -> None:
    assert parse(text) == DeviceId(text=text, **said)  # type: ignore[arg-type]  # the values are of mixed types


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "tegra",
        "GPU-",
        f"GPU-{UUID}::",
        f"GPU-{UUID}::x",
        f"GPU-{UUID}\n",
        f"gpu-{UUID}",
        f"MIG-GPU-{UUID}",
        f"MIG-GPU-{UUID}/7",
        "nvidia",
        "nvidia²",
        "nvidia0/gi1/2",
        "nvidiactl",
        "gpu-vfio-0",
        "gpu-0-mig-1g5gb",
        "nvidia" + "9" * 5000,
    ],
)
def test_a_name_of_no_known_form_is_kept_and_says_nothing(text: str) -> None:
    assert parse(text) == DeviceId(text=text)


@given(st.text())
def test_no_text_is_an_error(text: str) -> None:
    assert parse(text).text == text


@given(kind=st.sampled_from(["GPU", "MIG"]), uuid=UUIDS, replica=st.none() | NUMBERS)
def test_a_uuid_and_its_replica_are_found_again(kind: str, uuid: str, replica: int | None) -> None:
    text = f"{kind}-{uuid}" + ("" if replica is None else f"::{replica}")

    assert parse(text) == DeviceId(text=text, uuid=f"{kind}-{uuid}", replica=replica)


@given(minor=NUMBERS, gi=st.none() | NUMBERS, replica=st.none() | NUMBERS)
def test_a_minor_number_and_what_follows_it_are_found_again(minor: int, gi: int | None, replica: int | None) -> None:
    text = f"nvidia{minor}" + ("" if gi is None else f"/gi{gi}") + ("" if replica is None else f"/vgpu{replica}")

    assert parse(text) == DeviceId(text=text, minor=minor, gi=gi, replica=replica)


@given(uuid=UUIDS, gi=NUMBERS, ci=NUMBERS, replica=st.none() | NUMBERS)
def test_the_parts_of_an_old_mig_name_are_found_again(uuid: str, gi: int, ci: int, replica: int | None) -> None:
    text = f"MIG-GPU-{uuid}/{gi}/{ci}" + ("" if replica is None else f"::{replica}")

    assert parse(text) == DeviceId(text=text, uuid=f"GPU-{uuid}", gi=gi, ci=ci, replica=replica)


@given(
    minor=NUMBERS, name=st.from_regex(r"[1-7]g[0-9]{1,3}gb(-me|-gfx)?", fullmatch=True), profile=NUMBERS, start=NUMBERS
)
def test_the_parts_of_a_dra_mig_name_are_found_again(minor: int, name: str, profile: int, start: int) -> None:
    text = f"gpu-{minor}-mig-{name}-{profile}-{start}"

    assert parse(text) == DeviceId(text=text, minor=minor, profile=profile, start=start)
