"""A real kubelet in an enclosure."""

import json
from collections.abc import Mapping
from pathlib import Path

from hack import build
from tests.cluster.component import ComponentFailed
from tests.cluster.control_plane import LOOPBACK, free_ports
from tests.cluster.manifests import Json
from tests.node.enclosure import Enclosure, Inhabitant

NEVER_FULL = {"imagefs.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%"}


class Kubelet(Inhabitant):
    """Configuration, logs and pods' logs lie in `folder`, all else in the enclosure's own /var/lib/kubelet.

    That is no flag's value here, for the folder of device plugins would not follow --root-dir.
    """

    def __init__(
        self,
        enclosure: Enclosure,
        folder: Path,
        *,
        kubeconfig: Path,
        runtime: str,
        name: str,
        labels: Mapping[str, str],
    ) -> None:
        self.root = enclosure.from_outside("/var/lib/kubelet")
        self.logs = folder / "pods"
        self.device_plugins = self.root / "device-plugins"
        self.pod_resources = self.root / "pod-resources" / "kubelet.sock"
        port, health_port = free_ports(2)
        config = folder / "config.json"
        command = [
            str(build.KUBELET.path),
            f"--kubeconfig={kubeconfig}",
            f"--config={config}",
            f"--cert-dir={folder / 'certificates'}",
            f"--hostname-override={name}",
            f"--node-labels={','.join(f'{label}={value}' for label, value in labels.items())}",
        ]
        health = f"http://{LOOPBACK}:{health_port}/healthz"
        super().__init__(enclosure, command, log=folder / "log", health=health)
        folder.mkdir(parents=True)
        config.write_text(json.dumps(configuration(folder, runtime, port=port, health_port=health_port), indent=1))

    async def start(self) -> None:
        """Returns when it is healthy; its Node may not be ready yet."""
        if not build.KUBELET.path.exists():
            raise ComponentFailed("not built yet: kubelet; run python -m hack.build kubelet")
        self.launch()
        await self.ready()

    async def restart(self) -> None:
        """SIGKILL, then the same data; containers run on meanwhile."""
        self.kill()
        await self.start()


def configuration(folder: Path, runtime: str, *, port: int, health_port: int) -> Json:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": runtime,
        "address": LOOPBACK,
        "port": port,
        "healthzPort": health_port,
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "podLogsDir": str(folder / "pods"),
        "volumePluginDir": str(folder / "volume-plugins"),
        "resolvConf": "",
        "nodeStatusUpdateFrequency": "1s",  # tests await what it says of devices
        # What the machine may lack, or should keep:
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": False,
        "enforceNodeAllocatable": [],
        "failSwapOn": False,
        "oomScoreAdj": 0,
        "makeIPTablesUtilChains": False,
        "localStorageCapacityIsolation": False,
        "evictionHard": NEVER_FULL,
        "imageGCHighThresholdPercent": 100,
    }
