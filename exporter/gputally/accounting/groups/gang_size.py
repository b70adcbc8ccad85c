"""How many pods a gang has."""

from gputally.accounting.frameworks.declared_groups import NO_GANG
from gputally.accounting.frameworks.gang_rules import LEADER_WORKER_SET
from gputally.accounting.groups.gang_members import GangMembers
from gputally.accounting.groups.gang_record import GangRecord


def size_of(gang: GangMembers, known: GangRecord) -> int | None:
    """What its PodGroup objects declare, if they are read; else that of its Jobs, or what its pods state.

    None if all that exist must run. Pods without GPUs are not known. A scheduler of gangs binds no pod before all of a
    gang exist: if there never were as many as objects declare, or pods state, the others have no GPUs.
    """
    if known.minimums and 0 < (declared := _declared(gang, known)) <= max(known.most, NO_GANG):
        return declared
    if gang.needs_object and not known.minimums:
        return NO_GANG
    if known.parts:
        return sum(size for _, size in known.parts)
    if gang.group.kind == LEADER_WORKER_SET and gang.stated:
        return gang.stated - (not gang.has_leader)
    return gang.stated if 0 < gang.stated <= max(known.most, NO_GANG) else None


def _declared(gang: GangMembers, known: GangRecord) -> int:
    """What all of its PodGroup objects declare; 0 if some of its pods name none that is known."""
    minimums = dict(known.minimums)
    return sum(minimums[name] for name in gang.names) if minimums.keys() >= {*gang.names} else 0
