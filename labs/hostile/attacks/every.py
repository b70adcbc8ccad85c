"""All attacks by name; add new attacks here."""

from collections.abc import Awaitable, Callable, Mapping

from labs.hostile.attacks import (
    budgets,
    bulk,
    formulas,
    impostors,
    labels,
    owner_chains,
    owner_crowd,
    owner_paths,
    placement,
    resource_names,
    storms,
    times,
    waits,
)
from labs.hostile.tenant import Tenant

Attack = Callable[[Tenant], Awaitable[None]]

EARLY: Mapping[str, Attack] = {
    waits.GANGS: waits.old_gangs,
    labels.JUNK: labels.junk,
    owner_paths.NAME: owner_paths.attack,
}
"""Attacks that finish before the late tenants start."""
ATTACKS: Mapping[str, Attack] = {
    owner_crowd.NAME: owner_crowd.attack,
    owner_chains.NAME: owner_chains.attack,
    placement.NAME: placement.attack,
    resource_names.NAME: resource_names.attack,
    labels.TOGGLING: labels.toggling,
    storms.PODS: storms.pods,
    storms.JOBS: storms.jobs,
    bulk.NAME: bulk.attack,
    waits.ENDLESS: waits.endless,
    formulas.NAME: formulas.attack,
    budgets.NAME: budgets.attack,
    times.GRACE: times.grace,
    times.PRIORITIES: times.priorities,
    impostors.NAME: impostors.attack,
}
"""Attacks that run concurrently."""
