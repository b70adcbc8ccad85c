"""An agent pod from the API, and the outcomes of requests to it."""

from enum import StrEnum

from msgspec import Struct


class AgentPod(Struct, frozen=True, kw_only=True, gc=False):
    """A running agent pod, its node, and the IP address at which it serves."""

    uid: str
    node: str
    address: str
    created_us: int


class PullOutcome(StrEnum):
    """The outcome of a request to an agent."""

    ANSWERED = "answered"
    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    """No complete response within the deadline."""
    FORBIDDEN = "forbidden"
    """The agent rejects our token or certificate, or we have none."""
    STATUS = "status"
    """An HTTP status other than success."""
    OVERSIZED = "oversized"
    MALFORMED = "malformed"
    """Not a report, or a report with impossible values."""
    VERSION = "version"
    """A report with an unknown version."""
    BASIS = "basis"
    """A report that weighs MIG devices by another basis than ours."""
    NODE = "node"
    """A report of another node than the agent's."""
