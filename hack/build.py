"""Builds the programs for the control plane, monitoring and chart tests, each once: `python -m hack.build`.

With arguments, it builds only the named programs: `python -m hack.build kubelet`.

The programs are Go modules. Builds are cached in the user's cache folder by name and version. Only the go.mod files
below `binaries/` set versions; their go.sum files make every machine build from the same sources.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MODULES = Path(__file__).parent / "binaries"


class BuildFailed(Exception):
    """A missing build tool, or the output of the Go compiler."""


@dataclass(frozen=True)
class Binary:
    """A Go command from a module pinned in `binaries/<folder>`."""

    name: str
    folder: str
    module: str
    package: str

    @property
    def version(self) -> str:
        """The version that the go.mod requires, such as `v1.36.3`."""
        return required(self.module, self.folder)

    @property
    def path(self) -> Path:
        """Path of the built program."""
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return cache / "gputally" / "bin" / f"{self.name}-{self.version}" / self.name

    @property
    def linker_flags(self) -> str:
        """Strips symbols, and sets the version variables that some programs report."""
        stamps = STAMPS[self.module](self) if self.module in STAMPS else {}
        return " ".join(["-s -w", *(f"-X {variable}={value}" for variable, value in stamps.items())])


def required(module: str, folder: str) -> str:
    """The version of `module` that `binaries/<folder>/go.mod` requires."""
    pinned = re.search(
        rf"^(?:require)?\s+{re.escape(module)} (v\S+)", (MODULES / folder / "go.mod").read_text(), re.MULTILINE
    )
    assert pinned, f"binaries/{folder}/go.mod does not require {module}"
    return pinned.group(1)


def stamps_of_kubernetes(binary: Binary) -> dict[str, str]:
    """The version shown by `kubectl version` and by the component's metrics."""
    major, minor, _ = binary.version.removeprefix("v").split(".")
    stamps = {"gitVersion": binary.version, "gitMajor": major, "gitMinor": minor}
    return {f"k8s.io/component-base/version.{name}": value for name, value in stamps.items()}


def stamps_of_helm(binary: Binary) -> dict[str, str]:
    """Helm's own version, and the Kubernetes version for offline rendering (the default is 1.20)."""
    minor = required("k8s.io/client-go", binary.folder).split(".")[1]
    packages = ("helm.sh/helm/v3/pkg/chartutil", "helm.sh/helm/v3/pkg/lint/rules")
    major = {f"{package}.k8sVersionMajor": "1" for package in packages}
    minors = {f"{package}.k8sVersionMinor": minor for package in packages}
    return {"helm.sh/helm/v3/internal/version.version": binary.version} | major | minors


STAMPS: Mapping[str, Callable[[Binary], dict[str, str]]] = {
    "k8s.io/kubernetes": stamps_of_kubernetes,
    "helm.sh/helm/v3": stamps_of_helm,
    "github.com/yannh/kubeconform": lambda binary: {"main.version": binary.version},
}


def of_kubernetes(name: str) -> Binary:
    """A command from k8s.io/kubernetes."""
    return Binary(name=name, folder="kubernetes", module="k8s.io/kubernetes", package=f"k8s.io/kubernetes/cmd/{name}")


ETCD = Binary(name="etcd", folder="etcd", module="go.etcd.io/etcd/server/v3", package="go.etcd.io/etcd/server/v3")
API_SERVER = of_kubernetes("kube-apiserver")
SCHEDULER = of_kubernetes("kube-scheduler")
CONTROLLER_MANAGER = of_kubernetes("kube-controller-manager")
KWOK = Binary(name="kwok", folder="kwok", module="sigs.k8s.io/kwok", package="sigs.k8s.io/kwok/cmd/kwok")
BINARIES = (ETCD, KWOK, API_SERVER, SCHEDULER, CONTROLLER_MANAGER)
KUBELET = of_kubernetes("kubelet")  # for tests on a real node; not part of the control plane
KUBECTL = of_kubernetes("kubectl")  # for the commands in runbooks
KUEUE = Binary(  # for the tests on a real queue
    name="kueue", folder="kueue", module="sigs.k8s.io/kueue", package="sigs.k8s.io/kueue/cmd/kueue"
)
KUBE_STATE_METRICS = Binary(  # for the import from Prometheus, and the peer in the benchmarks
    name="kube-state-metrics",
    folder="kube-state-metrics",
    module="k8s.io/kube-state-metrics/v2",
    package="k8s.io/kube-state-metrics/v2",
)


def of_prometheus(name: str, *, folder: str = "prometheus") -> Binary:
    """A command from a Prometheus project."""
    module = f"github.com/prometheus/{folder}"
    return Binary(name=name, folder=folder, module=module, package=f"{module}/cmd/{name}")


PROMETHEUS = of_prometheus("prometheus")
PROMTOOL = of_prometheus("promtool")
ALERTMANAGER = of_prometheus("alertmanager", folder="alertmanager")
AMTOOL = of_prometheus("amtool", folder="alertmanager")
OPERATOR = Binary(
    name="operator",
    folder="prometheus-operator",
    module="github.com/prometheus-operator/prometheus-operator",
    package="github.com/prometheus-operator/prometheus-operator/cmd/operator",
)
MONITORING = (PROMETHEUS, PROMTOOL, ALERTMANAGER, AMTOOL, OPERATOR)
HELM = Binary(name="helm", folder="helm", module="helm.sh/helm/v3", package="helm.sh/helm/v3/cmd/helm")
KUBECONFORM = Binary(
    name="kubeconform",
    folder="kubeconform",
    module="github.com/yannh/kubeconform",
    package="github.com/yannh/kubeconform/cmd/kubeconform",
)
OF_THE_CHART = (HELM, KUBECONFORM)
DEFAULT = (*BINARIES, *MONITORING, *OF_THE_CHART, KUBECTL, KUEUE)
BY_NAME = {binary.name: binary for binary in (*DEFAULT, KUBELET, KUBE_STATE_METRICS)}


def build(binary: Binary) -> None:
    """Compile to a temporary path and rename, so that an interrupted build leaves no incomplete program."""
    unfinished = binary.path.with_name(f".{binary.name}.{os.getpid()}")
    unfinished.parent.mkdir(parents=True, exist_ok=True)
    try:
        compile_to(unfinished, binary)
        unfinished.replace(binary.path)
    finally:
        unfinished.unlink(missing_ok=True)


def compile_to(target: Path, binary: Binary) -> None:
    """Compile a static, stripped program. Raises: BuildFailed with the compiler output."""
    command = ["go", "build", "-trimpath", "-ldflags", binary.linker_flags, "-o", str(target), binary.package]
    environment = os.environ | {"CGO_ENABLED": "0"}
    result = subprocess.run(
        command, cwd=MODULES / binary.folder, env=environment, capture_output=True, text=True, check=False
    )
    if result.returncode:
        raise BuildFailed(f"{' '.join(command)}\n{result.stderr.strip()}{missing_git()}")


def missing_git() -> str:
    """A hint to install git, or "" if it is installed."""
    if shutil.which("git"):
        return ""
    return "\n(git is not installed: Go needs it for modules that no proxy serves; install git and run this again)"


def build_missing(wanted: Sequence[Binary]) -> None:
    """Build the programs in `wanted` that are not cached, and print the time of each."""
    missing = [binary for binary in wanted if not binary.path.exists()]
    if missing and not shutil.which("go"):
        names = ", ".join(binary.name for binary in missing)
        raise BuildFailed(f"go is not installed: it compiles {names}; install Go 1.26 or newer from https://go.dev/dl")
    if missing:
        say("Compiling takes up to twelve minutes on two cores, once.\n")
    for number, binary in enumerate(missing, start=1):
        say(f"[{number}/{len(missing)}] {binary.name} {binary.version} ...")
        started = time.monotonic()
        build(binary)
        say(f" {time.monotonic() - started:.0f} s\n")


def say(text: str) -> None:
    """Print progress without buffering."""
    sys.stdout.write(text)
    sys.stdout.flush()


def main(names: Sequence[str]) -> int:
    """Return the exit code: 0, or 1 after printing one message."""
    started = time.monotonic()
    try:
        wanted = called(names) if names else DEFAULT
        build_missing(wanted)
    except BuildFailed as failure:
        sys.stderr.write(f"\n{failure}\n")
        return 1
    say(f"{len(wanted)} programs in {wanted[0].path.parents[1]}, after {time.monotonic() - started:.1f} s\n")
    return 0


def called(names: Sequence[str]) -> Sequence[Binary]:
    """The programs with these names. Raises: BuildFailed for an unknown name."""
    if unknown := sorted(set(names) - set(BY_NAME)):
        raise BuildFailed(f"no program is called {', '.join(unknown)}; there are {', '.join(BY_NAME)}")
    return [BY_NAME[name] for name in names]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
