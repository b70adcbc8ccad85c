"""Shares of GPUs that HAMi gives out: what a pod has of the memory and cores of each of its devices."""

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputally.model.rules import HamiBasis, Rules
from gputally.shares.request import effective_units, holds_gpu, limited
from gputally.shares.schemes import covered, divided, labels_of, quantities_on
from tests.core.manifests import Json, as_node, as_pod

GPU = "nvidia.com/gpu"
MEM, PERCENT, CORES = "nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores"
MIB = 40_960
OLD_FORM = "GPU-a,10,40960,100,NVIDIA-A100,0,true:GPU-b,10,40960,100,NVIDIA-A100,0,true:"
NEW_FORM = "GPU-a,10,40960,100,NVIDIA-A100,0,true,0,hami-core:GPU-b,10,40960,100,NVIDIA-A100,0,false,1,mps:"
JSON_FORM = '[{"id":"GPU-a","count":10,"devmem":40960,"type":"x"},{"id":"GPU-b","count":10,"devmem":40960}]'
NAMES = {
    HamiBasis.MEMORY: Rules(),
    HamiBasis.CORES: Rules(hami_basis=HamiBasis.CORES),
    HamiBasis.LARGER: Rules(hami_basis=HamiBasis.LARGER),
}


def node(registered: str = NEW_FORM) -> tuple[tuple[str, str], ...]:
    annotations = {"hami.io/node-nvidia-register": registered}
    return tuple(labels_of(as_node({"metadata": {"name": "n", "annotations": annotations}})).items())


def container(**amounts: int) -> Json:
    names = {"gpu": GPU, "mem": MEM, "percent": PERCENT, "cores": CORES}
    asked = {names[key]: str(amount) for key, amount in amounts.items()}
    return {"name": "c", "resources": {"limits": asked}}


def pod(*containers: Json, given: str = "", bound: bool = True, init: tuple[Json, ...] = ()) -> Json:
    spec: dict[str, Any] = {"containers": list(containers), "initContainers": list(init)}
    if bound:
        spec["nodeName"] = "n"
    annotations = {"hami.io/vgpu-devices-allocated": given} if given else {}
    return {"metadata": {"uid": "u", "annotations": annotations}, "spec": spec}


def share(manifest: Json, registered: str = NEW_FORM, rules: Rules | None = None) -> int:
    rules = rules or Rules()
    return dict(quantities_on(effective_units(as_pod(manifest), rules), node(registered), rules)).get(GPU, 0)


@pytest.mark.parametrize("registered", [OLD_FORM, NEW_FORM, JSON_FORM])
def test_a_pod_has_what_it_has_of_the_memory(registered: str) -> None:
    assert share(pod(container(gpu=1, mem=MIB // 4)), registered) == 250_000
    assert share(pod(container(gpu=1, percent=30)), registered) == 300_000


def test_amounts_are_of_each_device_of_a_container() -> None:
    assert share(pod(container(gpu=2, mem=MIB // 4))) == 500_000
    assert share(pod(container(gpu=2, percent=30), container(gpu=1, mem=MIB // 2))) == 1_100_000


def test_without_an_amount_all_memory_of_a_device_is_the_pods() -> None:
    assert share(pod(container(gpu=1))) == 1_000_000
    assert share(pod(container(gpu=2, cores=10))) == 2_000_000
    assert share(pod(container(gpu=1, mem=MIB // 2), container(gpu=1))) == 1_500_000


def test_who_names_an_amount_alone_has_one_device() -> None:
    assert share(pod(container(mem=MIB // 2))) == 500_000
    assert holds_gpu(as_pod(pod(container(mem=1))), Rules())


def test_memory_counts_before_a_percentage() -> None:
    assert share(pod(container(gpu=1, mem=MIB // 4, percent=90))) == 250_000


def test_init_containers_run_before_the_others() -> None:
    assert share(pod(container(gpu=1, mem=MIB // 4), init=(container(gpu=1, mem=MIB // 2),))) == 500_000


@pytest.mark.parametrize(
    ("basis", "expected"), [(HamiBasis.MEMORY, 250_000), (HamiBasis.CORES, 400_000), (HamiBasis.LARGER, 400_000)]
)
def test_a_share_goes_by_the_configured_basis(basis: HamiBasis, expected: int) -> None:
    assert share(pod(container(gpu=1, mem=MIB // 4, cores=40)), rules=NAMES[basis]) == expected


@pytest.mark.parametrize("basis", list(HamiBasis))
def test_without_a_limit_of_cores_a_share_goes_by_memory(basis: HamiBasis) -> None:
    assert share(pod(container(gpu=1, mem=MIB // 4)), rules=NAMES[basis]) == 250_000


def test_what_the_scheduler_gave_counts_before_what_was_asked() -> None:
    given = "GPU-a,NVIDIA,20480,30:GPU-b,NVIDIA,10240,30:;GPU-a,NVIDIA,10240,0:;"
    manifest = pod(container(gpu=2, percent=90), container(gpu=1), given=given)

    assert share(manifest) == 1_000_000
    assert share(manifest, rules=NAMES[HamiBasis.CORES]) == 600_000


@pytest.mark.parametrize(
    "given",
    [
        "GPU-a,NVIDIA,10240,0:;,,0,0:;",
        "GPU-a,NVIDIA,10240,0:;;",
        ",,0,0:;GPU-a,NVIDIA,10240,0:;,,0,0:;",
        ";GPU-a,NVIDIA,10240,0:;;",
        "GPU-a,NVIDIA,10240,0:;",
    ],
)
def test_a_slot_of_a_container_without_devices_takes_nothing_away(given: str) -> None:
    """An init container and a sidecar that need CPU alone; HAMi's versions write their slots differently, or not."""
    assert share(pod(container(gpu=1), container(), given=given, init=(container(),))) == 250_000


def test_where_init_containers_have_no_slots_a_pod_has_what_the_others_were_given() -> None:
    given = "GPU-a,NVIDIA,10240,0:;"

    assert share(pod(container(gpu=1), given=given, init=(container(gpu=1, percent=50),))) == 250_000
    assert share(pod(container(), given=";", init=(container(gpu=1, percent=50),))) == 500_000


class Asked(NamedTuple):
    """A container: its devices, with the MiB that HAMi gives it of each."""

    devices: tuple[int, ...]

    @property
    def container(self) -> Json:
        return container(gpu=len(self.devices)) if self.devices else container()

    @property
    def slot(self) -> str:
        return "".join(f"GPU-{place},NVIDIA,{mib},0:" for place, mib in enumerate(self.devices))


ASKED = st.builds(Asked, st.lists(st.integers(1, MIB), max_size=3).map(tuple))


@given(st.lists(ASKED, max_size=3), st.lists(ASKED, min_size=1, max_size=4), st.sampled_from(["", ",,0,0:"]), st.data())
def test_what_each_container_got_is_found_in_every_form_of_the_annotation(
    inits: list[Asked], mains: list[Asked], empty: str, data: st.DataObject
) -> None:
    """Newer versions have slots of init containers too; devices of no container are ever taken for another's."""
    has_inits = data.draw(st.booleans())
    slots = [each.slot or empty for each in (*(inits if has_inits else ()), *mains)]
    while slots and not slots[-1].strip(",0:") and data.draw(st.booleans()):
        slots.pop()
    manifest = pod(
        *(each.container for each in mains),
        given="".join(f"{slot};" for slot in slots),
        init=tuple(each.container for each in inits),
    )

    with_slots = inits if has_inits or not any(each.devices for each in mains) else []
    mib = max(sum(sum(each.devices) for each in mains), *(sum(each.devices) for each in with_slots), 0)
    whole = max(sum(len(each.devices) for each in mains), *(len(each.devices) for each in inits), 0)
    units = dict(effective_units(as_pod(manifest), Rules()))
    assert units.get(GPU, 0) == whole
    if has_inits or any(each.devices for each in mains):
        assert units.get(MEM, 0) == mib
    assert share(manifest) <= whole * 1_000_000


@given(st.lists(ASKED, max_size=2), st.lists(ASKED, min_size=1, max_size=3), st.text(",;:0129-GPUa", max_size=40))
def test_an_annotation_that_anybody_may_write_changes_no_number_of_devices(
    inits: list[Asked], mains: list[Asked], text: str
) -> None:
    forms = [each.container for each in mains], tuple(each.container for each in inits)

    given, asked = (share(pod(*forms[0], given=each, init=forms[1])) for each in (text, ""))

    assert given <= asked


def test_a_pod_that_is_not_bound_was_given_nothing_yet() -> None:
    assert share(pod(container(gpu=1, percent=50), given="GPU-a,NVIDIA,1,1:;", bound=False)) == 500_000


@pytest.mark.parametrize(
    "text",
    ["nonsense", "GPU-a,NVIDIA,x,1:;", "GPU-a,NVIDIA:;", ";", "GPU-a,NVIDIA,-5,0:;", "GPU-a,A,9,9:GPU-b,A,9,9:"],
)
def test_an_annotation_that_cannot_be_or_is_of_other_devices_leaves_what_was_asked(text: str) -> None:
    assert share(pod(container(gpu=1, percent=50), given=text)) == 500_000


def test_an_annotation_gives_no_more_devices_and_takes_none_away() -> None:
    """Whoever creates pods may write it, and the kubelet goes by what the containers ask for."""
    forged = effective_units(as_pod(pod(container(gpu=8), given="GPU-a,NVIDIA,1,1:;")), Rules())

    assert dict(forged)[GPU] == 8
    assert quantities_on(forged, (), Rules()) == ((GPU, 8_000_000),)


def test_where_hami_shares_no_gpus_what_a_pod_says_of_memory_means_nothing() -> None:
    units = effective_units(as_pod(pod(container(gpu=2, mem=1))), Rules())

    assert quantities_on(units, (), Rules()) == ((GPU, 2_000_000),)
    assert limited(units, ((GPU, 1),), Rules()) == ((GPU, 1), (MEM, 2))


def test_a_pod_has_no_more_than_its_devices_and_its_node() -> None:
    assert share(pod(container(gpu=1, mem=10**8))) == 1_000_000
    assert share(pod(container(gpu=20, mem=MIB))) == 2_000_000


@pytest.mark.parametrize(("offered", "gpus"), [(20, 2_000_000), (10, 1_000_000), (0, 0)])
def test_a_node_offers_the_gpus_that_its_devices_stand_for(offered: int, gpus: int) -> None:
    assert covered([(GPU, offered)], node(), Rules()) == gpus


def test_a_node_that_hami_shares_is_divided() -> None:
    assert divided([(GPU, 20)], node(), Rules())


@pytest.mark.parametrize("text", ["", "nonsense", "GPU-a,10,x,100,A,0,true:", "[{}]", "[", "GPU-a,10:"])
def test_a_node_whose_registration_cannot_be_read_is_one_without(text: str) -> None:
    assert node(text) == ()


def test_a_node_without_gpus_left_offers_nothing() -> None:
    assert covered([(GPU, 0)], node("[]"), Rules()) == 0


@given(st.lists(st.integers(1, MIB), max_size=20))
def test_what_fits_into_the_memory_of_a_node_is_never_more_than_its_gpus(amounts: list[int]) -> None:
    """HAMi gives out no more memory than there is."""
    fitting, used = [], 0
    for amount in amounts:
        if used + amount <= 2 * MIB:
            fitting.append(amount)
            used += amount

    shares = [share(pod(container(gpu=1, mem=amount))) for amount in fitting]
    assert sum(shares) <= 2_000_000
    assert sum(shares) > 1_000_000 * used // MIB - len(shares) - 1
