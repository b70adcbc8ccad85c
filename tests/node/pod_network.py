"""What the network of a cluster has and that of an enclosure has not: a way to the API server, and between pods.

All of it ends with the process that runs the tests, however that ends: the kernel removes the device with its file.
"""

import fcntl
import json
import os
import socket
import socketserver
import struct
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.cluster.control_plane import LOOPBACK
from tests.node.enclosure import program

API_SERVER = "10.0.0.1"
"""The address of the Service `kubernetes`, which the certificate of the API server names."""
GATEWAY = "10.211.0.1"
"""The node's end of each pod's pair of interfaces."""
DEVICE = "gputally0"
TUNSETIFF = 0x400454CA
TUN_WITHOUT_HEADER = 0x1001
LOOK_EVERY_S = 0.1


class PodNetwork:
    """Does what kube-proxy does in its mode IPVS, for one Service, and lets the node forward what comes from pods."""

    def __init__(self, api_server_port: int) -> None:
        self.port = api_server_port
        self.closed = threading.Event()

    def __enter__(self) -> Self:
        self.device = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(self.device, TUNSETIFF, struct.pack("16sH", DEVICE.encode(), TUN_WITHOUT_HEADER))
        ip("address", "add", f"{API_SERVER}/32", "dev", DEVICE)
        ip("link", "set", DEVICE, "up")
        self.proxy = Proxy((API_SERVER, 443), Handler)
        self.proxy.target = self.port
        threading.Thread(target=self.proxy.serve_forever, daemon=True).start()
        threading.Thread(target=self.forward, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closed.set()
        self.proxy.shutdown()
        self.proxy.server_close()
        os.close(self.device)

    def forward(self) -> None:
        """Only from the interfaces of pods, new ones too; no other setting of the machine is touched."""
        while not self.closed.wait(LOOK_EVERY_S):
            for link in json.loads(ip("-json", "address", "show", "to", GATEWAY) or "[]"):
                with suppress(OSError):  # the pod is gone meanwhile
                    Path(f"/proc/sys/net/ipv4/conf/{link['ifname']}/forwarding").write_text("1")


class Proxy(socketserver.ThreadingTCPServer):
    """Carries what it hears to a port of this machine."""

    allow_reuse_address = True
    daemon_threads = True
    target: int


class Handler(socketserver.BaseRequestHandler):
    """One connection."""

    def handle(self) -> None:
        assert isinstance(self.server, Proxy)
        with socket.create_connection((LOOPBACK, self.server.target)) as upstream:
            back = threading.Thread(target=carry, args=(upstream, self.request), daemon=True)
            back.start()
            carry(self.request, upstream)
            back.join()


def carry(source: socket.socket, target: socket.socket) -> None:
    """Until the source ends, or either breaks; both then close."""
    with suppress(OSError):
        while data := source.recv(2**16):
            target.sendall(data)
    for each in (source, target):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


def ip(*arguments: str) -> str:
    return subprocess.run([program("ip"), *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout
