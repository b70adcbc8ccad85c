"""Events of the API, in their core/v1 view."""

from datetime import datetime

from msgspec import field

from gputally.model.kube.meta import Camel, Object


class ObjectReference(Camel, frozen=True):
    """The object that an Event refers to."""

    kind: str = ""
    api_version: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class EventSource(Camel, frozen=True):
    """The component that sent an Event through the older API."""

    component: str = ""


class EventSeries(Camel, frozen=True):
    """Repetitions of an Event."""

    last_observed_time: datetime | None = None


class Event(Object, frozen=True):
    """A core/v1 Event: `involvedObject` is the victim, or the owner of pods; `related` is the preemptor.

    Its times are `event_time` and `series`, or `first_timestamp` and `last_timestamp` if an older client sent it.
    """

    involved_object: ObjectReference = field(default_factory=ObjectReference)
    related: ObjectReference | None = None
    reason: str | None = None
    message: str | None = None
    event_time: datetime | None = None
    series: EventSeries | None = None
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    reporting_component: str = ""
    source: EventSource | None = None
