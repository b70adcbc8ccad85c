"""A containerd of our own in an enclosure, with runc, a network for pods, and images from this machine."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from string import Template

from tests.cluster.component import ComponentFailed
from tests.cluster.control_plane import LOOPBACK, SERVICES, free_ports
from tests.node.enclosure import Enclosure, Inhabitant, program
from tests.node.images import PAUSE, Image
from tests.node.packages import CNI_PLUGINS

CONFIG = Template("""\
version = 2
root = "$folder/root"
state = "$folder/state"

[grpc]
address = "$socket"

[metrics]
address = "$metrics"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "$pause"
# Not every machine's root may lower it, and then no sandbox would start.
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "$plugins"
conf_dir = "$folder/cni"

[plugins."io.containerd.grpc.v1.cri".containerd]
# The scratch folder may itself lie on an overlay.
snapshotter = "native"
""")


class Containerd(Inhabitant):
    """Everything lies in `folder`, its socket too."""

    def __init__(self, enclosure: Enclosure, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / "containerd.sock"
        self.metrics = f"{LOOPBACK}:{free_ports(1)[0]}"
        config = folder / "config.toml"
        health = f"http://{self.metrics}/v1/metrics"  # the one thing that it serves by HTTP
        super().__init__(enclosure, ["containerd", "--config", str(config)], log=folder / "log", health=health)
        (folder / "cni").mkdir(parents=True)
        (folder / "cni" / "10-pods.conflist").write_text(json.dumps(network(folder)))
        config.write_text(
            CONFIG.substitute(
                folder=folder, socket=self.socket, metrics=self.metrics, pause=PAUSE.reference, plugins=CNI_PLUGINS
            )
        )

    @property
    def endpoint(self) -> str:
        """Of the container runtime interface."""
        return f"unix://{self.socket}"

    async def load(self, *images: Image) -> None:
        """Make images known to the kubelet."""
        for image in images:
            archive = self.folder / f"{image.name}.tar"
            await asyncio.to_thread(image.write, archive)
            await self.ctr("images", "import", "--snapshotter=native", str(archive))
            archive.unlink()

    async def ctr(self, *arguments: str) -> str:
        """What containerd's own client prints, told to look where the kubelet's containers are."""
        return await output([program("ctr"), f"--address={self.socket}", "--namespace=k8s.io", *arguments])


def network(folder: Path) -> dict[str, object]:
    """A pair of interfaces for each pod, which goes with the pod's namespace; nothing is masqueraded.

    Beside the other pods, pods find only Services, if someone answers for these: tests/node/pod_network.py.
    """
    ipam = {
        "type": "host-local",
        "subnet": "10.211.0.0/24",
        "routes": [{"dst": SERVICES}],
        "dataDir": str(folder / "addresses"),
    }
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "ptp", "ipam": ipam}]}


async def output(command: Sequence[str]) -> str:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    printed, _ = await process.communicate()
    if process.returncode:
        raise ComponentFailed(f"{' '.join(command)}\n{printed.decode(errors='replace')}")
    return printed.decode()
