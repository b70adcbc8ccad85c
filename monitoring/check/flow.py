"""What is known of the values at one point of a query: their labels, and what they measure."""

from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from monitoring.check.dimension import NUMBER, Dimension


class Flow(NamedTuple):
    """The values that leave a node of the tree, and the problems on the way there.

    `currencies` tells whether they were read in several. `bounds` is what buckets of a histogram measure, and
    `constant` the value of a number that the query spells out.
    """

    labels: frozenset[str] = frozenset()
    dimension: Dimension = NUMBER
    problems: tuple[str, ...] = ()
    currencies: bool = False
    bounds: Dimension | None = None
    scalar: bool = False
    constant: Fraction | None = None

    @property
    def is_money(self) -> bool:
        """Whether these are amounts, or amounts for something."""
        return "money" in dict(self.dimension.powers)

    @property
    def is_mixed(self) -> bool:
        """Whether they are amounts in several currencies."""
        return self.currencies and self.is_money

    def but(self, *problems: str) -> "Flow":
        """The same with these problems as well."""
        return self._replace(problems=(*self.problems, *problems))

    def lacking(self, labels: Iterable[str], *, where: str) -> "Flow":
        """The same, with a problem for each of the labels that is not left here."""
        return self.but(*(self.lack(label, where) for label in labels if label not in self.labels))

    def lack(self, label: str, where: str) -> str:
        """That there is no such label for what asks for it."""
        left = ", ".join(sorted(self.labels)) or "none"
        return f"{where}: no label {label} is left there; there are {left}"
