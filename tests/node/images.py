"""Container images without a registry: archives as `docker save` writes them, made of files of this machine."""

import io
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hack.image import archive
from tests.node.packages import BUSYBOX

TAG_OF_TESTS = "e2e"
APPLETS = ("cat", "date", "echo", "env", "false", "sh", "sleep", "true")


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
        variables = {"PATH": "/usr/local/bin:/usr/bin:/bin"} | dict(self.environment)
        settings = {"Cmd": list(self.command), "Env": [f"{name}={value}" for name, value in variables.items()]}
        archive.write(path, self.reference, [self.layer()], settings)

    def layer(self) -> bytes:
        """All files, owned by root and as old as the epoch, so that the same files make the same image."""
        content = io.BytesIO()
        with tarfile.open(fileobj=content, mode="w") as tar:
            for inside, source in sorted(self.files.items()):
                tar.add(source.resolve(), inside.lstrip("/"), filter=archive.anonymous)
            for inside, target in sorted(self.links.items()):
                link = tarfile.TarInfo(inside.lstrip("/"))
                link.type, link.linkname = tarfile.SYMTYPE, target
                tar.addfile(link)
        return content.getvalue()


def busybox(name: str, command: Sequence[str]) -> Image:
    links = {f"/bin/{applet}": "busybox" for applet in APPLETS}
    return Image(name, {"/bin/busybox": BUSYBOX}, links, command)


PAUSE = busybox("pause", ["/bin/sh", "-c", "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait; done"])
BUSYBOX_IMAGE = busybox("busybox", ["/bin/sh"])
