"""The screen of `gputally top`: a summary and a table that fit the terminal."""

from collections.abc import Sequence
from typing import Final

from rich.console import Group as Stack
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from gputally.model.api.allocations import AllocationsDocument, UnaccountedCount
from gputally.model.printable import printable
from gputally.output.allocation_groups import Group, capacity, groups, jobs, offered, total

_CHROME: Final = 2
"""Lines besides the rows and the summary: the heads, and the keys."""
_NARROW: Final = 100
"""Below this width, states are left out."""
_JOB: Final = "job"
_STATES: Final = ("running", "gang_wait", "starting", "terminating")
KEYS: Final = {"t": "tier", "e": "tenant", "j": "job", "n": "node", "m": "model", "p": "pod"}


def screen(document: AllocationsDocument, *, by: str, width: int, height: int | None, keys: bool = False) -> Stack:
    """Everything for one instant; `height` None shows all rows."""
    offers = offered(document) if by == "node" else {}
    rows = jobs(document) if by == _JOB else groups(document.pods, by=by, offered=offers)
    lines = summary(document)
    chrome = _CHROME + len(lines)
    shown = rows if height is None else rows[: max(1, height - chrome)]
    parts: list[RenderableType] = [*lines, table(shown, by=by, currency=document.currency, width=width)]
    hidden = len(rows) - len(shown)
    hints = [f"{hidden} more rows"] if hidden else []
    hints += ["  ".join(f"{key} {name}" for key, name in KEYS.items()) + "  q quit"] if keys else []
    if hints:
        free = 0 if height is None else height - chrome - len(shown)
        parts += [Text()] * free  # the keys stay at the bottom
        parts.append(Text("  ".join(hints), style="dim", no_wrap=True, overflow="ellipsis"))
    return Stack(*parts)


def summary(document: AllocationsDocument) -> list[Text]:
    """Capacity, demand and cost, a line each; and one of the pods that are not accounted, if there are any."""
    everything, states = total(document), capacity(document)
    lines = []
    if states is not None:
        all_gpus = sum(gpus for state, gpus in states.items() if state != "overcommitted")
        parts = ", ".join(f"{number(gpus)} {state}" for state, gpus in sorted(states.items(), key=_most) if gpus)
        lines.append(f"GPUs     {number(all_gpus)}: {parts}" if parts else "GPUs     none")
    else:
        lines.append(f"GPUs     {number(everything.held)} held by your tenants")
    waiting = sum(1 for pod in document.pods if pod.state == "pending")
    demand = (
        f"{waiting} {'pod waits' if waiting == 1 else 'pods wait'} for {number(everything.pending)} GPUs: "
        "gputally why --all says why"
        if waiting
        else "no pods"
    )
    lines.append(f"Pending  {demand}")
    lines.append(f"Cost     {_cost(everything, document.currency)}")
    found = [Text(line, no_wrap=True, overflow="ellipsis") for line in lines]
    if document.unaccounted:
        found.append(Text(_unaccounted(document.unaccounted), style="yellow", no_wrap=True, overflow="ellipsis"))
    return found


def _unaccounted(found: Sequence[UnaccountedCount]) -> str:
    """`Unaccounted  3 pods (claim); 1 pod, 2 GPUs (not_offered)`."""
    parts = [
        f"{each.pods:,} {'pod' if each.pods == 1 else 'pods'}"
        f"{f', {number(each.gpus)} GPUs' if each.gpus else ''} ({each.reason})"
        for each in found
    ]
    return f"Unaccounted  {'; '.join(parts)}"


def _most(item: tuple[str, float]) -> float:
    return -item[1]


def _cost(everything: Group, currency: str) -> str:
    if not currency:
        return "no price book"
    unpriced = f", and {number(everything.unpriced)} GPUs without a price" if everything.unpriced else ""
    return f"{everything.cost:,.2f} {currency} per hour for the allocated GPUs{unpriced}"


def table(rows: Sequence[Group], *, by: str, currency: str, width: int) -> Table:
    """A row for each group; narrow terminals show fewer columns."""
    is_wide = width >= _NARROW
    found = Table(box=None, pad_edge=False, expand=True, header_style="bold reverse")
    found.add_column(by.upper(), no_wrap=True, overflow="ellipsis", ratio=1)
    states = _STATES if is_wide else ()
    has_nodes = is_wide and by == _JOB
    heads = ("PODS", *(["NODES"] if has_nodes else []), "GPUS ↓", *(each.upper().replace("_", " ") for each in states))
    for head in (*heads, "PENDING", f"{currency}/H" if currency else ""):
        found.add_column(head, justify="right", no_wrap=True)
    for group in rows:
        by_state = [number(group.gpus.get(state, 0)) for state in states]
        pending = Text(number(group.pending), style="yellow" if group.pending else "dim")
        cost = f"{group.cost:,.2f}" if group.cost or not group.unpriced else "no price"
        name = Text(printable(group.name), no_wrap=True, overflow="ellipsis")
        held = number(group.held) + (f" of {number(group.offered)}" if group.offered is not None else "")
        counted = (str(group.pods), _nodes(group)) if has_nodes else (str(group.pods),)
        found.add_row(name, *counted, held, *by_state, pending, cost if currency else "")
    return found


def _nodes(group: Group) -> str:
    """`8`, or `8 for 1` if a single one would hold the pods of the job."""
    used = len(group.nodes)
    return f"{used} for {group.needed}" if group.needed is not None and group.needed < used else str(used)


def number(gpus: float) -> str:
    """`8`, or `0.25` for shares."""
    return f"{gpus:,.2f}".rstrip("0").rstrip(".")
