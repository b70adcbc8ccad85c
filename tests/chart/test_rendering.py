"""The rendered manifests of all sets of values: goldens, and properties of all objects."""

import re
from pathlib import Path

import pytest
import yaml

from gputally.cli import parser
from gputally.config.read import check
from gputally.config.web_file import read_web_config
from tests.chart.helm import CHART, IMAGED, NAMESPACE, container, objects, of_kind, pods, rendered, run
from tests.chart.matrix import MATRIX, MONITORED
from tests.cluster.manifests import Json
from tests.conftest import Golden
from tests.docs.pages import TEXTS, blocks

ROOT = CHART.parents[1]
STANDARD = ("name", "instance", "component", "version", "part-of", "managed-by")


@pytest.fixture(scope="session", params=MATRIX)
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Json]:
    """The objects of each set of values."""
    return objects(rendered(MATRIX[request.param], tmp_path_factory.mktemp("values")))


@pytest.mark.parametrize("name", MATRIX)
def test_the_manifests_are_as_recorded(name: str, golden: Golden, tmp_path: Path) -> None:
    manifests = rendered(MATRIX[name], tmp_path)

    golden.check(f"{name}.yaml", re.sub(r"^  token: \S+$", "  token: RANDOM", manifests, flags=re.MULTILINE))


def test_the_chart_passes_helm_lint() -> None:
    assert "1 chart(s) linted, 0 chart(s) failed" in run("lint", "--strict", str(CHART))


def test_every_object_has_the_standard_labels(found: list[Json]) -> None:
    for each in found:
        labels = each["metadata"]["labels"]
        assert {f"app.kubernetes.io/{name}" for name in STANDARD} <= labels.keys(), each["metadata"]["name"]
        assert all(len(value) <= 63 for value in labels.values())


def test_selectors_match_their_pods_and_no_others(found: list[Json]) -> None:
    labels = {name: pod["metadata"]["labels"].items() for name, pod in pods(found).items()}
    for each in found:
        wanted = selector(each)
        if wanted:
            assert [name for name, own in labels.items() if wanted.items() <= own] == [each["metadata"]["name"]]


def selector(found: Json) -> dict[str, str]:
    """The pod labels that an object selects, if it has a selector."""
    spec = found.get("spec", {})
    wanted: dict[str, str] = spec.get("podSelector", {}).get("matchLabels") or spec.get("selector", {})
    return wanted.get("matchLabels", wanted)  # type: ignore[return-value]  # a Service has no matchLabels


def test_the_program_accepts_the_arguments_of_its_pods(found: list[Json]) -> None:
    for pod in pods(found).values():
        parser().parse_args(container(pod)["args"])


def test_the_aggregator_selects_the_agents_of_its_release(found: list[Json]) -> None:
    flags = parser().parse_args(container(pods(found)[of_kind(found, "Deployment")["metadata"]["name"]])["args"])
    wanted = getattr(flags, "agents.selector")
    agents = [each for each in found if each["kind"] == "DaemonSet"]

    assert bool(wanted) == bool(agents)
    for agent in agents:
        labels = agent["spec"]["template"]["metadata"]["labels"]
        assert dict(pair.split("=") for pair in wanted.split(",")).items() <= labels.items()
        assert getattr(flags, "agents.namespace") == NAMESPACE


def test_every_mount_has_its_volume_and_every_volume_a_mount(found: list[Json]) -> None:
    for pod in pods(found).values():
        mounts = [mount["name"] for mount in container(pod)["volumeMounts"]]
        assert sorted(mounts) == sorted(volume["name"] for volume in pod["spec"]["volumes"])


def test_no_pod_requests_a_gpu(found: list[Json]) -> None:
    for pod in pods(found).values():
        resources = container(pod)["resources"]
        assert {*resources["requests"], *resources["limits"]} <= {"cpu", "memory"}


def test_the_mounted_files_have_no_problems(tmp_path: Path) -> None:
    [files] = [each["data"] for each in objects(rendered(MATRIX["priced"], tmp_path)) if each["kind"] == "ConfigMap"]
    for name, content in files.items():
        (tmp_path / name).write_text(content)

    assert files.keys() == {"config.yaml", "prices.yaml"}
    assert check(tmp_path / name for name in files) == []


@pytest.mark.parametrize("values", blocks(TEXTS["docs/install.md"], "yaml"))
def test_documented_values_render(values: str, tmp_path: Path) -> None:
    assert objects(rendered(values, tmp_path))


@pytest.mark.parametrize("component", ["aggregator", "agent"])
def test_the_web_configuration_has_no_problems(component: str, tmp_path: Path) -> None:
    secret = of_kind(objects(rendered(MATRIX["guarded"], tmp_path)), "Secret", f"-{component}-web")
    file = tmp_path / "web.yaml"
    file.write_text(secret["stringData"]["web.yaml"])

    assert read_web_config(file).tls


def test_a_package_renders_the_same_as_the_folder(tmp_path: Path) -> None:
    run("package", str(CHART), "--destination", str(tmp_path))
    [package] = tmp_path.glob("*.tgz")
    values = {**MATRIX["existing"], **MONITORED}

    assert rendered(values, tmp_path, chart=package) == rendered(values, tmp_path)
    assert run("show", "readme", str(package)) == run("show", "readme", str(CHART)) != ""


def test_agents_use_the_mig_basis_and_restart_only_when_it_changes(tmp_path: Path) -> None:
    def agent_of(**configuration: object) -> Json:
        found = objects(rendered({"configuration": configuration}, tmp_path))
        spec: Json = of_kind(found, "DaemonSet")["spec"]["template"]
        return spec

    plain, tenants = agent_of(), agent_of(limits={"tenants": 5})
    memory, compute = agent_of(mig={"basis": "memory"}), agent_of(mig={"basis": "compute"})
    assert plain == tenants
    assert "--config.file" not in str(plain)
    assert "--config.file=/etc/gputally/files/config.yaml" in memory["spec"]["containers"][0]["args"]
    [files] = [each["configMap"] for each in memory["spec"]["volumes"] if each["name"] == "files"]
    assert files["items"] == [{"key": "config.yaml", "path": "config.yaml"}]
    assert memory["metadata"]["annotations"] != compute["metadata"]["annotations"]


def test_a_configuration_change_replaces_the_pod(tmp_path: Path) -> None:
    def checksum(prices: object) -> str:
        template = of_kind(objects(rendered({"priceBook": prices}, tmp_path)), "Deployment")["spec"]["template"]
        return str(template["metadata"]["annotations"]["checksum/files"])

    book = MATRIX["priced"]["priceBook"]
    assert checksum(book) == checksum(dict(book)) != checksum({**book, "currency": "EUR"})


def test_dashboards_and_rules_equal_the_generated_ones(tmp_path: Path) -> None:
    found = objects(rendered(MONITORED, tmp_path))
    dashboards = {name: text for each in found if each["kind"] == "ConfigMap" for name, text in each["data"].items()}
    rules = {each["metadata"]["name"]: each["spec"] for each in found if each["kind"] == "PrometheusRule"}

    for path in (ROOT / "dashboards/generated").iterdir():
        assert dashboards.pop(f"gputally-{path.name}") == path.read_text().strip()
    for path in (ROOT / "alerts/generated/rules").iterdir():
        assert rules.pop(f"gputally-{path.stem}") == yaml.safe_load(path.read_text())
    assert (dashboards, rules) == ({}, {})


def test_releases_with_the_same_name_in_two_namespaces_share_no_object(tmp_path: Path) -> None:
    here = objects(rendered({}, tmp_path))
    there = objects(run("template", "gputally", str(CHART), *IMAGED, "--namespace", "elsewhere"))
    clusterwide = {"ClusterRole", "ClusterRoleBinding"}

    assert not {name(each) for each in here if each["kind"] in clusterwide} & {name(each) for each in there}


def name(found: Json) -> str:
    return str(found["metadata"]["name"])


def test_object_names_fit_with_the_longest_release_name(tmp_path: Path) -> None:
    for each in objects(rendered({**MATRIX["guarded"], **MONITORED}, tmp_path, release="r" * 53)):
        assert len(each["metadata"]["name"]) <= (253 if each["kind"].startswith("Cluster") else 63)
