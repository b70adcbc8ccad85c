"""The measured program: an aggregator as a separate process."""

import http.client
import subprocess
import sys
import time
from pathlib import Path
from typing import Final, Self

from labs.bench.workload import MODELS
from tests.cluster.control_plane import LOOPBACK, free_ports

POLL_SECONDS: Final = 0.01
TIMEOUT_SECONDS: Final = 180
CONFIGURATION = """
kind: Configuration
tenants:
  rules:
    - from: namespace-label
      key: team
"""
PRICES = """
kind: PriceBook
currency: USD
basis: node
rules:
"""


class MeasurementFailed(Exception):
    """A measurement failed."""


class Aggregator:
    """Runs one aggregator process at a time, with its files in `folder`."""

    def __init__(self, folder: Path, kubeconfig: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._ledger = folder / "ledger.db"
        self._log = folder / "aggregator.log"
        [self._port] = free_ports(1)
        self._process: subprocess.Popen[bytes] | None = None
        configuration, prices = write_configuration(folder)
        self._command = (
            *(sys.executable, "-m", "gputally", "aggregator"),
            *("--kubeconfig", str(kubeconfig), "--ledger", str(self._ledger)),
            *("--config.file", str(configuration), "--prices.file", str(prices)),
            *("--web.listen-address", f"{LOOPBACK}:{self._port}"),
            *("--metrics.zero-seconds", "0"),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    def start(self) -> float:
        """Start the process; return the seconds from launch until ready."""
        launched = time.monotonic()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        while time.monotonic() - launched < TIMEOUT_SECONDS:
            if self._ready():
                return time.monotonic() - launched
            if self._process.poll() is not None:
                break
            time.sleep(POLL_SECONDS)
        raise MeasurementFailed(f"the aggregator did not become ready:\n{self._log.read_text()[-2000:]}")

    def start_fresh(self) -> float:
        """Delete the ledger and start; return the seconds until ready."""
        self.kill()
        for path in self._ledger.parent.glob(f"{self._ledger.name}*"):
            path.unlink()
        return self.start()

    def restart(self) -> float:
        """Stop with SIGTERM and start again with the same ledger; return the seconds until ready."""
        assert self._process
        self._process.terminate()
        self._process.wait()
        return self.start()

    def kill(self) -> None:
        """Send SIGKILL if the process runs."""
        if self._process:
            self._process.kill()
            self._process.wait()

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(LOOPBACK, self._port, timeout=60)

    def _ready(self) -> bool:
        """Poll /readyz with a new connection each time, because the port is not open at first."""
        try:
            connection = self.connection()
            connection.request("GET", "/readyz")
            return connection.getresponse().status == http.client.OK
        except OSError:
            return False
        finally:
            connection.close()


def write_configuration(folder: Path) -> tuple[Path, Path]:
    """Write a configuration with tenants by namespace label, and a price book for all GPU models."""
    configuration, prices = folder / "config.yaml", folder / "prices.yaml"
    configuration.write_text(CONFIGURATION)
    prices.write_text(PRICES + "".join(map(_price, MODELS)))
    return configuration, prices


def _price(model: str) -> str:
    return f"  - match: {{gpu_model: {model}}}\n    price: 2.21\n    effective_from: always\n"


def resident_mib(pid: int, *, peak: bool = False) -> float:
    """Current or peak resident memory of a process."""
    field = "VmHWM" if peak else "VmRSS"
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise MeasurementFailed(f"process {pid} has no {field}")
