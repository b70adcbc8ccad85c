"""Image archives in the format of `docker save`, which every engine loads; the output is reproducible."""

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


def write(path: Path, reference: str, layers: Sequence[bytes], settings: Mapping[str, object]) -> None:
    """Write an archive with the layers (tar files) and the `config` section of the image."""
    digests = [hashlib.sha256(layer).hexdigest() for layer in layers]
    config = json.dumps(
        {
            "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
            "config": settings,
            "created": "1970-01-01T00:00:00Z",
            "os": "linux",
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]},
        }
    ).encode()
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    names = [f"{digest}/layer.tar" for digest in digests]
    manifest = [{"Config": config_name, "RepoTags": [reference], "Layers": names}]
    with tarfile.open(path, "w") as archive:
        _add(archive, config_name, config)
        for name, layer in zip(names, layers, strict=True):
            _add(archive, name, layer)
        _add(archive, "manifest.json", json.dumps(manifest).encode())


def layer_of(folder: Path) -> bytes:
    """A tar of the folder; all files are owned by root and have mtime 0."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for path in sorted(folder.rglob("*")):
            tar.add(path, str(path.relative_to(folder)), recursive=False, filter=anonymous)
    return content.getvalue()


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


def anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Remove the owner and times of the build machine."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member
