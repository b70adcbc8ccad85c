"""Compares verdict, prediction and suggestions with what the real scheduler does."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

from gputally.model.advice import PriorityChoice, Suggestion, WhatIf
from gputally.model.verdicts import Reason, Verdict
from gputally.placement.needs import needs_of
from gputally.placement.scheduler_text import unmodelled
from gputally.placement.suggestions import suggestions
from gputally.placement.verdicts import judged
from gputally.placement.what_if import what_if
from tests.cluster.api import Api
from tests.e2e.oracle import live
from tests.e2e.oracle.alter import after, without
from tests.e2e.oracle.board import Board
from tests.e2e.oracle.sample import with_priority
from tests.e2e.oracle.state import VALUES, State, class_name
from tests.e2e.oracle.trial import RULES, Outcome, Trial, situation_of

CLASSES = tuple(
    PriorityChoice(class_name(value, preempts=preempts), value, preempts)
    for value in VALUES
    for preempts in (True, False)
)


@dataclass
class Report:
    """What was compared for one state; `errors` say where the scheduler differs."""

    reason: Reason
    checks: int = 0
    errors: list[str] = field(default_factory=list)

    def check(self, holds: bool, what: str, *details: object) -> None:  # noqa: FBT001 - like an assertion
        self.checks += 1
        if not holds:
            self.errors.append(" ".join([what, *map(str, details)]))


class Examiner:
    """Examines states in one cluster."""

    def __init__(self, api: Api, board: Board) -> None:
        self.api = api
        self.board = board
        self._numbers = count()

    async def examine(self, state: State) -> Report:
        async with Trial.of(self.api, self.board, state) as trial:
            room, needs = await trial.room(), needs_of(with_priority(state.pod), RULES)
            predicted = what_if(needs, room, situation_of(state))
            await trial.wait_pod()
            outcome = await trial.outcome(binds=bool(predicted.nodes or predicted.evictions))
            situation = trial.situation(outcome)
            verdict = judged(needs, room, situation)
            report = Report(verdict.reason)
            wrong = disagreement(predicted, outcome, trial)
            report.check(not wrong, f"{state.name}: what-if:", wrong, predicted, outcome)
            report.check(not unmodelled(outcome.text), f"{state.name}: text", outcome.text)
            names = dict(trial.names)
            if verdict.obstacles and live.is_removable(verdict.obstacles):
                await live.remove(trial, verdict.obstacles)
                after_all = await trial.outcome(binds=True)
                report.check(is_done(after_all, state), f"{state.name}: live: not bound without", verdict, after_all)
        if verdict.obstacles:
            await self.remove(report, state, verdict, names)
            found = suggestions(verdict, needs, room, situation, classes=CLASSES)
            await self.suggest(report, state, found, names)
        return report

    async def remove(self, report: Report, state: State, verdict: Verdict, names: dict[str, str]) -> None:
        """Without its obstacles the pod is bound; with any one of them it is not."""
        freed = await self.tried(without(state, verdict.obstacles, names), binds=True)
        report.check(is_done(freed, state), f"{state.name}: not bound without", verdict, freed)
        is_stopping = bool(verdict.victims) and {names[uid] for uid in verdict.victims} <= state.stopping
        for obstacle in verdict.obstacles:
            others = [each for each in verdict.obstacles if each != obstacle]
            kept = await self.tried(without(state, others, names), binds=False)
            is_kept = not kept.bound and (is_stopping or not kept.nominated)
            report.check(is_kept, f"{state.name}: bound in spite of", obstacle, verdict, kept)

    async def suggest(self, report: Report, state: State, found: Sequence[Suggestion], names: dict[str, str]) -> None:
        """Each suggestion has the pod bound, or has it wait for victims that take their time."""
        for suggestion in found:
            changed = after(state, suggestion.changes, names)
            victims = suggestion.eviction.victims if suggestion.eviction else ()
            is_slow = any(names[uid] in changed.stopping for uid in victims)
            outcome = await self.tried(changed, binds=not is_slow)
            works = outcome.nominated if is_slow else outcome.bound
            report.check(bool(works), f"{state.name}: no use:", suggestion, outcome)

    async def tried(self, state: State, *, binds: bool) -> Outcome:
        """What the scheduler does with such a state."""
        async with Trial.of(self.api, self.board, state.renamed(f"{state.name}-{next(self._numbers)}")) as trial:
            await trial.wait_pod()
            return await trial.outcome(binds=binds)


def is_done(outcome: Outcome, state: State) -> bool:
    """Whether the pod is bound, or waits only for victims that take their time."""
    return bool(outcome.bound or (outcome.nominated and state.stopping))


def disagreement(predicted: WhatIf, outcome: Outcome, trial: Trial) -> str:
    """How the prediction differs from what happened; "" if it does not."""
    if predicted.nodes:
        return "" if outcome.bound in predicted.nodes and not outcome.victims else "should fit"
    if not predicted.evictions:
        return "should wait" if outcome.bound or outcome.victims else ""
    eviction = predicted.evictions[0]
    victims = {trial.names[uid] for uid in eviction.victims}
    if eviction.node not in (outcome.bound, outcome.nominated):
        return "another node"
    return "" if outcome.victims == victims - trial.state.stopping else "other victims"
