"""Container images without a registry: archives as `docker save` writes them, made of files of this machine."""

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.manifests import Json
from tests.node.packages import BUSYBOX

TAG_OF_TESTS = "e2e"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
APPLETS = ("cat", "echo", "env", "false", "sh", "sleep", "true")


@dataclass(frozen=True)
class Image:
    """What to put into an image, by absolute path inside; a folder brings all that is in it."""

    name: str
    files: Mapping[str, Path]
    links: Mapping[str, str] = field(default_factory=dict)
    command: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def reference(self) -> str:
        """As a pod's `image` names it; containerd completes short names to such ones."""
        return f"docker.io/library/{self.name}:{TAG_OF_TESTS}"

    def write(self, path: Path) -> None:
        """Write the archive that `ctr images import` reads."""
        layer = self.layer()
        digest = hashlib.sha256(layer).hexdigest()
        config = json.dumps(self.config(digest)).encode()
        config_name = f"{hashlib.sha256(config).hexdigest()}.json"
        manifest = [{"Config": config_name, "RepoTags": [self.reference], "Layers": [f"{digest}/layer.tar"]}]
        with tarfile.open(path, "w") as archive:
            add(archive, config_name, config)
            add(archive, f"{digest}/layer.tar", layer)
            add(archive, "manifest.json", json.dumps(manifest).encode())

    def layer(self) -> bytes:
        """All files, owned by root and as old as the epoch, so that the same files make the same image."""
        content = io.BytesIO()
        with tarfile.open(fileobj=content, mode="w") as tar:
            for inside, source in sorted(self.files.items()):
                tar.add(source.resolve(), inside.lstrip("/"), filter=anonymous)
            for inside, target in sorted(self.links.items()):
                link = tarfile.TarInfo(inside.lstrip("/"))
                link.type, link.linkname = tarfile.SYMTYPE, target
                tar.addfile(link)
        return content.getvalue()

    def config(self, layer_digest: str) -> Json:
        variables = {"PATH": "/usr/local/bin:/usr/bin:/bin"} | dict(self.environment)
        return {
            "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
            "os": "linux",
            "config": {"Cmd": list(self.command), "Env": [f"{name}={value}" for name, value in variables.items()]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_digest}"]},
        }


def add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


def anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def busybox(name: str, command: Sequence[str]) -> Image:
    links = {f"/bin/{applet}": "busybox" for applet in APPLETS}
    return Image(name, {"/bin/busybox": BUSYBOX}, links, command)


PAUSE = busybox("pause", ["/bin/sh", "-c", "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait; done"])
BUSYBOX_IMAGE = busybox("busybox", ["/bin/sh"])
