"""What decides about a waiting pod besides the nodes."""

from msgspec import Struct

from gputally.model.placement.needs import Needs


class TaskState(Struct, frozen=True, gc=False):
    """A task of a gang with a minimum of its own: `least` of its pods must run.

    `members` of them exist, of which `bound` hold resources. `waiting` are the needs of the others and their number.
    """

    name: str
    least: int
    members: int
    bound: int
    waiting: tuple[tuple[Needs, int], ...] = ()


class GangState(Struct, frozen=True, kw_only=True, gc=False, cache_hash=True):
    """The gang of a waiting pod, which its scheduler binds at once: `least` pods of it must run.

    `members` of them exist, of which `bound` hold resources. `waiting` are the needs of the others and their number; by
    default, they are like the pod's own. `is_mixed` says that they differ in more ways than are told apart, so that
    nobody knows whether they fit at once. `tasks` are those with a minimum of their own.
    """

    name: str
    least: int
    members: int
    bound: int = 0
    waiting: tuple[tuple[Needs, int], ...] = ()
    is_mixed: bool = False
    tasks: tuple[TaskState, ...] = ()


class QuotaState(Struct, frozen=True, kw_only=True, gc=False):
    """A quota that refuses the pod: of `what`, it admits `hard`, of which `used` are used; the pod needs `needed`."""

    name: str
    what: str
    hard: int
    used: int
    needed: int


class Situation(Struct, frozen=True, kw_only=True, gc=False):
    """The circumstances of a waiting pod. `text` is the scheduler's message in its condition PodScheduled.

    `uid` is needed of a nominated pod, whose own nomination takes nothing from it, else "". `has_scheduler` says
    whether its scheduler was ever seen to work. `gang` is given only if a scheduler waits for the whole gang.
    `nominated_node` is where room is made for it. `open_claims` are its ResourceClaims without an allocation; `queue`
    says what its queue system waits for. `is_serving` says whether its tier serves users.
    """

    uid: str = ""
    has_scheduler: bool = True
    gang: GangState | None = None
    quota: QuotaState | None = None
    queue: str = ""
    open_claims: tuple[str, ...] = ()
    nominated_node: str = ""
    text: str = ""
    is_serving: bool = False
