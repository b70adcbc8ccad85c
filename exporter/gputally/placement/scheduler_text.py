"""What kube-scheduler says about a waiting pod, in its condition PodScheduled.

The wording is no API and differs between versions, so that it only confirms a verdict, or names what is not modelled.

Source: kubernetes pkg/scheduler/framework/types.go, FitError.Error, and the plugins' reasons, of 1.26 to 1.37.
"""

import re
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

_HEAD: Final = re.compile(r"0/[0-9]+ nodes are available: ?")
_COUNT: Final = re.compile(r"([0-9]{1,9}) (.*)", re.DOTALL)
_PREEMPTION: Final = "preemption: "
_MAX_LENGTH: Final = 4096
_MAX_PART: Final = 200


class Topic(StrEnum):
    """What a part of the text is about."""

    MODELLED = "modelled"
    """Resources, taints, cordons, selectors and node affinity."""
    VOLUMES = "volumes"
    POD_AFFINITY = "pod affinity"
    TOPOLOGY_SPREAD = "topology spread"
    HOST_PORTS = "host ports"
    CLAIM = "claim"
    OTHER = "other"


class MessagePart(NamedTuple):
    """A part of the text, about so many nodes; None if it is about the pod."""

    topic: Topic
    text: str
    nodes: int | None


_PATTERNS: Final = (  # first match; "since" where a version changed the wording
    (r"Insufficient \S+", Topic.MODELLED),
    (r"Too many pods", Topic.MODELLED),
    (r".*untolerated taint", Topic.MODELLED),  # "had taint {...}, that the pod didn't tolerate" before 1.26
    (r"node\(s\) had taint", Topic.MODELLED),
    (r"that the pod didn't tolerate", Topic.MODELLED),
    (r"node\(s\) were unschedulable", Topic.MODELLED),
    (r"node\(s\) didn't match Pod's node affinity", Topic.MODELLED),
    (r"node\(s\) didn't match the requested node name", Topic.MODELLED),
    (r"node\(s\) didn't satisfy plugin\(s\) \[NodeAffinity\]", Topic.MODELLED),
    (r"no nodes available to schedule pods", Topic.MODELLED),
    (r"Scheduling is blocked due to non-empty scheduling gates", Topic.MODELLED),
    (r".*(persistentvolumeclaim|PersistentVolume|volume)", Topic.VOLUMES),
    (r"node\(s\) didn't find available persistent", Topic.VOLUMES),
    (r"node\(s\) did not have enough free storage", Topic.VOLUMES),
    (r".*topology spread", Topic.TOPOLOGY_SPREAD),
    (r"node\(s\) didn't (match|satisfy) .*(affinity|anti-affinity)", Topic.POD_AFFINITY),
    (r"node\(s\) didn't have free ports", Topic.HOST_PORTS),
    (r".*(resourceclaim|resource claim|allocate all claims|ResourceClaim|device class)", Topic.CLAIM),
)
_TOPICS: Final = [(re.compile(pattern), topic) for pattern, topic in _PATTERNS]


@lru_cache(maxsize=1024)
def message_parts(text: str) -> tuple[MessagePart, ...]:
    """The parts of the text in front of what it says about preemption; at most 200 characters of each."""
    filtered = text[:_MAX_LENGTH].partition(_PREEMPTION)[0]
    filtered = _HEAD.sub("", filtered, count=1).strip().rstrip(".")
    return tuple([_message_part(part.strip()) for part in filtered.split(", ") if part.strip()])


def unmodelled(text: str) -> tuple[MessagePart, ...]:
    """What the text says that is not modelled."""
    return tuple([each for each in message_parts(text) if each.topic is not Topic.MODELLED])


def _message_part(part: str) -> MessagePart:
    counted = _COUNT.fullmatch(part)
    said = counted[2] if counted else part
    topic = next((topic for pattern, topic in _TOPICS if pattern.match(said)), Topic.OTHER)
    return MessagePart(topic, said[:_MAX_PART], int(counted[1]) if counted else None)
