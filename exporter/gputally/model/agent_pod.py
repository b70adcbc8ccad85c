"""An agent as the API shows it, and what can become of asking it."""

from enum import StrEnum

from msgspec import Struct


class AgentPod(Struct, frozen=True, kw_only=True, gc=False):
    """A running pod of the agent: on which node it is, and the IP address at which it answers."""

    uid: str
    node: str
    address: str
    created_us: int


class Outcome(StrEnum):
    """What became of a request to an agent."""

    ANSWERED = "answered"
    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    """No whole answer within the deadline."""
    FORBIDDEN = "forbidden"
    """It does not accept our token or certificate, or we have none to show."""
    STATUS = "status"
    """An HTTP status that is no answer."""
    OVERSIZED = "oversized"
    MALFORMED = "malformed"
    """No report, or one with impossible figures."""
    VERSION = "version"
    """A report in a form we do not know."""
    BASIS = "basis"
    """A report of MIG devices that were weighed by another basis than ours."""
    NODE = "node"
    """A report of another node than the agent is on."""
