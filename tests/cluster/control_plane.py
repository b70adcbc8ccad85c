"""A real Kubernetes control plane on loopback, with kwok instead of kubelets; it starts in seconds."""

import asyncio
import json
import socket
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from hack import build
from tests.cluster.component import Component, ComponentFailed
from tests.cluster.credentials import Credentials

STAGES = Path(__file__).with_name("stages.yaml")
LOOPBACK = "127.0.0.1"
SERVICES = "10.0.0.0/24"
PORTS = ("etcd", "etcd peers", "kube-apiserver", "kube-scheduler", "kube-controller-manager", "kwok")


class ControlPlane:
    """etcd, kube-apiserver, kube-scheduler, kube-controller-manager and kwok; logs and data are in `scratch`.

    RBAC is on. The user `admin` may do everything; the user `gputally` has only permissions that tests bind to it.
    Nodes are not marked lost without heartbeats; a test that needs a lost node patches its conditions.
    Pods need no ServiceAccount, since no process runs in them, unless `service_accounts` is set. `scheduler_args` are
    added to those of the scheduler.
    """

    def __init__(
        self,
        scratch: Path,
        *,
        api_server_args: Sequence[str] = (),
        scheduler_args: Sequence[str] = (),
        service_accounts: bool = False,
    ) -> None:
        self.scratch = scratch
        ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
        certificates = scratch / "certificates"
        if not service_accounts:
            api_server_args = ["--disable-admission-plugins=ServiceAccount", *api_server_args]
        self.port = ports["kube-apiserver"]
        self.url = f"https://{LOOPBACK}:{self.port}"
        self.ca_file = certificates / "apiserver.crt"  # also contains the self-signed CA
        self.credentials = Credentials(scratch, server=self.url, ca_file=self.ca_file)
        self.components = {
            component.name: component
            for component in (
                self.etcd(ports),
                self.api_server(ports, certificates, api_server_args),
                self.scheduler(ports, scheduler_args),
                self.controller_manager(ports),
                self.kwok(ports),
            )
        }

    async def __aenter__(self) -> Self:
        check_built()
        try:
            await self.start("etcd")
            await self.start("kube-apiserver")
            await asyncio.gather(*map(self.start, ("kube-scheduler", "kube-controller-manager", "kwok")))
        except BaseException:
            self.kill_all()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self.kill_all()

    def token(self, user: str) -> str:
        """The bearer token of `admin` or `gputally`."""
        return self.credentials.tokens[user]

    def kubeconfig(self, user: str) -> Path:
        """A kubeconfig file for `admin` or `gputally`."""
        return self.credentials.kubeconfig(user)

    async def start(self, name: str) -> None:
        """Start the component `name` (see PORTS) and wait until it is ready."""
        self.components[name].launch()
        await self.components[name].ready()

    def kill(self, name: str) -> None:
        """Send SIGKILL to the component `name`."""
        self.components[name].kill()

    def kill_all(self) -> None:
        for component in reversed(self.components.values()):
            component.kill()

    async def restart_api_server(self) -> None:
        """Kill and start it with the same port and data: every open watch breaks."""
        self.kill("kube-apiserver")
        await self.start("kube-apiserver")

    async def restart_etcd(self) -> None:
        """Kill and start it with the same port and data; returns when the API server is ready again too."""
        self.kill("etcd")
        await self.start("etcd")
        await self.components["kube-apiserver"].ready()

    def etcd(self, ports: Mapping[str, int]) -> Component:
        clients, peers = (f"http://{LOOPBACK}:{ports[name]}" for name in ("etcd", "etcd peers"))
        arguments = [
            f"--data-dir={self.scratch / 'etcd'}",
            f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            "--unsafe-no-fsync",  # it must survive SIGKILL, not a power failure
            "--log-level=warn",
        ]
        return self.component(build.ETCD, arguments, health=f"{clients}/readyz")

    def api_server(self, ports: Mapping[str, int], certificates: Path, extra: Sequence[str]) -> Component:
        arguments = [
            f"--etcd-servers=http://{LOOPBACK}:{ports['etcd']}",
            f"--bind-address={LOOPBACK}",
            f"--secure-port={ports['kube-apiserver']}",
            f"--cert-dir={certificates}",
            "--authorization-mode=RBAC",
            f"--token-auth-file={self.credentials.token_file}",
            f"--service-account-issuer={self.url}",
            f"--service-account-key-file={self.credentials.signing_key}",
            f"--service-account-signing-key-file={self.credentials.signing_key}",
            "--endpoint-reconciler-type=none",
            f"--service-cluster-ip-range={SERVICES}",
            "--allow-privileged=true",
            *extra,
        ]
        return self.component(build.API_SERVER, arguments, health=f"{self.url}/readyz")

    def scheduler(self, ports: Mapping[str, int], extra: Sequence[str]) -> Component:
        arguments = [*self.control_loop(ports["kube-scheduler"]), f"--config={self.scheduler_config()}", *extra]
        return self.component(build.SCHEDULER, arguments, health=health(ports["kube-scheduler"]))

    def scheduler_config(self) -> Path:
        """A file in which a pod that does not fit is tried again after a second, and not after up to ten.

        With a file, the scheduler ignores the flags that the file can replace.
        """
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(self.kubeconfig("admin")), "qps": 5000, "burst": 5000},
            "leaderElection": {"leaderElect": False},
            "podInitialBackoffSeconds": 1,
            "podMaxBackoffSeconds": 1,
        }
        path = self.scratch / "kube-scheduler.json"
        path.write_text(json.dumps(config))
        return path

    def controller_manager(self, ports: Mapping[str, int]) -> Component:
        arguments = [
            *self.control_loop(ports["kube-controller-manager"]),
            f"--service-account-private-key-file={self.credentials.signing_key}",
            f"--root-ca-file={self.ca_file}",
            "--node-monitor-period=1s",
            "--node-monitor-grace-period=8760h",
            "--node-startup-grace-period=8760h",
            "--node-eviction-rate=100",  # nodes per second; the default is 0.1
        ]
        return self.component(build.CONTROLLER_MANAGER, arguments, health=health(ports["kube-controller-manager"]))

    def control_loop(self, port: int) -> list[str]:
        return [
            f"--kubeconfig={self.kubeconfig('admin')}",
            f"--bind-address={LOOPBACK}",
            f"--secure-port={port}",
            "--leader-elect=false",
            "--kube-api-qps=5000",
            "--kube-api-burst=5000",
        ]

    def kwok(self, ports: Mapping[str, int]) -> Component:
        server = f"{LOOPBACK}:{ports['kwok']}"
        arguments = [
            f"--kubeconfig={self.kubeconfig('admin')}",
            f"--config={STAGES}",
            "--manage-all-nodes=false",
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            f"--server-address={server}",
        ]
        return self.component(build.KWOK, arguments, health=f"http://{server}/readyz")

    def component(self, binary: build.Binary, arguments: Sequence[str], *, health: str) -> Component:
        log = self.scratch / f"{binary.name}.log"
        return Component([str(binary.path), *arguments], log=log, health=health)


def health(port: int) -> str:
    return f"https://{LOOPBACK}:{port}/healthz"


def check_built() -> None:
    missing = [binary.name for binary in build.BINARIES if not binary.path.exists()]
    if missing:
        raise ComponentFailed(f"not built yet: {', '.join(missing)}; run python -m hack.build")


def free_ports(count: int) -> list[int]:
    """Different ports that are free now."""
    with ExitStack() as sockets:
        bound = [sockets.enter_context(socket.socket()) for _ in range(count)]
        for each in bound:
            each.bind((LOOPBACK, 0))
        return [each.getsockname()[1] for each in bound]
