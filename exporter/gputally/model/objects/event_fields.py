"""Parts of an Event."""

from datetime import datetime

from gputally.model.objects.camel import Camel


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
