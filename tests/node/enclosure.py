"""Where a node's programs live: namespaces for processes and mounts, which the kernel clears whatever happens."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.cluster.component import LEASH, Component, ComponentFailed
from tests.node import enclosed
from tests.node.enclosed import FOLDERS, own_folder

FIRST = enclosed.__file__
UNSHARED = ("--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation=private")


class Enclosure:
    """What is started in it ends with it: daemons, containers, mounts, and the network of pods. Needs root.

    It ends when it is closed or when who made it dies, killed outright too; only cgroups outlive it. A path is the
    same inside and outside, but for the FOLDERS of enclosed.py.
    """

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch

    def __enter__(self) -> Self:
        check_rights()
        self.scratch.mkdir(parents=True, exist_ok=True)
        command = [program("unshare"), *UNSHARED, "--", sys.executable, "-I", FIRST, str(self.scratch)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self.process.stdout
        if self.process.stdout.readline() != "ready\n":
            self.close()
            raise ComponentFailed(f"no enclosure for a node can be made; unshare said why, status {self.status}")
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Returns when the last process in it is gone."""
        self.process.communicate()  # closes the stdin that the first process waits for
        self.status = self.process.wait()

    def from_outside(self, path: str) -> Path:
        """Where to find what is called `path` in here."""
        folder = next(folder for folder in FOLDERS if path.startswith(f"{folder}/"))
        return own_folder(self.scratch, folder) / path.removeprefix(f"{folder}/")

    def inside(self, command: Sequence[str]) -> list[str]:
        """The command that runs `command` in here, and dies with it."""
        namespaces = f"/proc/{self.process.pid}/ns"
        enter = [program("nsenter"), f"--mount={namespaces}/mnt", f"--pid={namespaces}/pid_for_children"]
        return [*enter, "--", sys.executable, "-I", str(LEASH), program(command[0]), *command[1:]]


class Inhabitant(Component):
    """A server in an enclosure."""

    def __init__(self, enclosure: Enclosure, command: Sequence[str], *, log: Path, health: str) -> None:
        super().__init__(command, log=log, health=health)
        self.enclosure = enclosure
        self.arguments = command

    def launch(self) -> None:
        """Start the process; it is not ready yet."""
        self.command = self.enclosure.inside(self.arguments)
        super().launch()

    def kill(self) -> None:
        """SIGKILL to the server itself; nsenter, which is between it and us, then ends likewise."""
        if self.process:
            for child in children(self.process.pid):
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=10)
        super().kill()


def children(pid: int) -> list[int]:
    with suppress(FileNotFoundError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def program(name: str) -> str:
    found = shutil.which(name)
    if not found:
        raise ComponentFailed(f"{name} is not installed")
    return found


def check_rights() -> None:
    if sys.platform != "linux" or os.geteuid() != 0:
        raise ComponentFailed("a node needs Linux and root: run make e2e-node as root")
