"""What the user chose for `gputally top`."""

from dataclasses import dataclass

from gputally.top.authorization import Credentials


@dataclass(frozen=True, kw_only=True)
class Service:
    """The aggregator's Service; an empty context or kubeconfig is kubectl's own choice."""

    namespace: str = "gputally"
    name: str = "gputally-aggregator"
    port: int = 9836
    context: str = ""
    kubeconfig: str = ""

    def arguments(self) -> list[str]:
        """The arguments of kubectl."""
        flags = {"context": self.context, "kubeconfig": self.kubeconfig}
        chosen = [f"--{flag}={value}" for flag, value in flags.items() if value]
        return [*chosen, f"--namespace={self.namespace}", "port-forward", f"service/{self.name}", f":{self.port}"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """`url` "" reaches the `service` through kubectl. `once` prints one table; so does a pipe."""

    url: str
    service: Service
    credentials: Credentials
    by: str
    interval_s: float
    once: bool
    output: str
