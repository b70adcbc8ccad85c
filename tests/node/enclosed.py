"""The first process of an enclosure: `python enclosed.py SCRATCH`. It ends with its stdin, and all others with it.

A kubelet and a containerd believe that the machine is theirs. Here they may: the folders that they write to whatever
their configuration says, and the kernel settings that they change, are replaced by copies below SCRATCH.
"""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

FOLDERS = ("/run", "/var/lib", "/var/log")
SETTINGS = (
    "kernel/keys/root_maxbytes",
    "kernel/keys/root_maxkeys",
    "kernel/panic",
    "kernel/panic_on_oops",
    "net/ipv4/ip_forward",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
)


def main(scratch: Path) -> None:
    for folder in FOLDERS:
        own = own_folder(scratch, folder)
        own.mkdir()
        mount(own, folder)
    for setting in SETTINGS:
        shown = f"/proc/sys/{setting}"
        own = scratch / "sysctl" / setting
        own.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(shown, own)
        mount(own, shown)
    (scratch / "sysctl/net/ipv4/ip_forward").write_text("1\n")  # CNI's ptp insists; no pod here talks beyond its node
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # orphans come here to die, and leave no zombie
    print("ready", flush=True)  # noqa: T201 - whoever started this waits for the line
    sys.stdin.read()


def own_folder(scratch: Path, folder: str) -> Path:
    """What stands for `folder` inside; its name is short, for sockets lie in it, whose paths have 107 bytes at most."""
    return scratch / folder.strip("/").replace("/", "-")


def mount(source: Path, target: str) -> None:
    subprocess.run(["mount", "--bind", str(source), target], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
