"""Readers of the fields of a file, which record every problem at its path and continue.

A reader converts a `Field` to a value, or records the problem and returns None. A parser converts text to a
value, or raises ValueError with the problem and the fix.
"""

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

import yaml

from gputally.config.values import a_list_of, choice, nearest
from gputally.errors import ConfigError, Problem

T = TypeVar("T")
D = TypeVar("D")
Parser = Callable[[str], T]
_PLAIN_KEY = re.compile(r"[\w-]+")


def child_path(path: str, key: str) -> str:
    """The path of the field `key` of the mapping at `path`."""
    if not _PLAIN_KEY.fullmatch(key):
        return f'{path}["{key}"]'
    return f"{path}.{key}" if path else key


@dataclass(frozen=True)
class Field:
    """A value in a file. A `path` is, for example, `rules[2].purchase`.

    All fields of a file share its `problems`, each with its line.
    """

    file: str
    path: str
    node: yaml.Node
    problems: dict[Problem, int] = field(default_factory=dict)

    def refuse(self, text: str) -> None:
        """Record a problem of this field: what is wrong, and how to fix it."""
        self.problems.setdefault(Problem(self.file, self.path, text), self.node.start_mark.line)

    @property
    def sound(self) -> bool:
        """Whether this section or entry and its children have no problems; not for the whole file."""
        below = (f"{self.path}.", f"{self.path}[")
        return not any(p.field == self.path or p.field.startswith(below) for p in self.problems)

    def raise_problems(self) -> None:
        """Raises: ConfigError with all problems of the file from top to bottom, if there are any."""
        if self.problems:
            raise ConfigError(sorted(self.problems, key=self.problems.__getitem__))

    def child(self, key: str, node: yaml.Node) -> "Field":
        """The field `key` of this mapping."""
        return self._at(child_path(self.path, key), node)

    def entry(self, index: int, node: yaml.Node) -> "Field":
        """The entry `index` of this list."""
        return self._at(f"{self.path}[{index}]", node)

    def _at(self, path: str, node: yaml.Node) -> "Field":
        return Field(file=self.file, path=path, node=node, problems=self.problems)

    def parse(self, parser: Parser[T]) -> T | None:
        """The scalar as parsed by `parser`; None after recording a problem."""
        if not isinstance(self.node, yaml.ScalarNode):
            self.refuse(f"is {_shape(self.node)}; use a single value")
            return None
        if not self.node.value:
            self.refuse("is empty; add a value, or remove the field")
            return None
        try:
            return parser(self.node.value)
        except ValueError as error:
            self.refuse(str(error))
            return None

    def checked_key(self, key: str, parser: Parser[str]) -> str:
        """The key of this field as parsed by `parser`; if it is invalid, records a problem and returns `key`."""
        try:
            return parser(key)
        except ValueError as error:
            self.refuse(str(error))
            return key

    @property
    def is_empty_list(self) -> bool:
        """Whether this is `[]`."""
        return isinstance(self.node, yaml.SequenceNode) and not self.node.value

    def items(self) -> list["Field"]:
        """The entries of this list, which must not be empty."""
        if not isinstance(self.node, yaml.SequenceNode) or not self.node.value:
            self.refuse(f"is {_shape(self.node)}; use a list, with '- ' before each entry")
            return []
        return [self.entry(index, node) for index, node in enumerate(self.node.value)]

    def pairs(self, remedy: str = "use fields in the form `name: value`") -> list[tuple[str, "Field"]]:
        """The keys and fields of this mapping, which must not be empty; `remedy` is the fix in the problem."""
        if not isinstance(self.node, yaml.MappingNode) or not self.node.value:
            self.refuse(f"is {_shape(self.node)}; {remedy}")
            return []
        keys = ((key, node) for key, node in self.node.value if isinstance(key, yaml.ScalarNode))
        return [(key.value, self.child(key.value, node)) for key, node in keys]

    def section(self, *known: str) -> "Section":
        """This mapping as a section, which allows only the `known` fields."""
        return Section(self, known)


class Section:
    """A mapping with known fields."""

    def __init__(self, field: Field, known: Iterable[str]) -> None:
        self.field = field
        self._known = tuple(map(str, known))
        self._fields = dict(field.pairs(f"use fields ({', '.join(self._known)}) in the form `name: value`"))
        for key in self._fields:
            if key not in self._known:
                self._fields[key].refuse(self._unknown(key))

    def __contains__(self, key: str) -> bool:
        return key in self._fields

    def __getitem__(self, key: str) -> Field:
        return self._fields[key]

    def read(self, key: str, reader: Callable[[Field], T | None], default: D) -> T | D:
        """The field as read by `reader`; `default` if it is absent or invalid (then a problem is recorded)."""
        value = reader(self._fields[key]) if key in self._fields else None
        return default if value is None else value

    def require(self, key: str, reader: Callable[[Field], T | None], remedy: str) -> T | None:
        """The field as read by `reader`; if it is absent, records a problem with `remedy` as the fix."""
        if key in self._fields:
            return reader(self._fields[key])
        if self._fields:  # an empty or invalid mapping already has its own problem
            self.field.child(key, self.field.node).refuse(f"is missing; {remedy}")
        return None

    def _unknown(self, key: str) -> str:
        near = nearest(key, self._known)
        remedy = f"did you mean {near!r}?" if near else f"known fields are {a_list_of(self._known)}"
        return f"unknown field; {remedy}"


def value(parser: Parser[T]) -> Callable[[Field], T | None]:
    """A reader of one value."""
    return lambda field: field.parse(parser)


def values(parser: Parser[T]) -> Callable[[Field], tuple[T, ...]]:
    """A reader of one value or a list of values; omits duplicates, and invalid values after recording the problem."""

    def read(field: Field) -> tuple[T, ...]:
        fields = [field] if isinstance(field.node, yaml.ScalarNode) else field.items()
        return tuple(dict.fromkeys(found for f in fields if (found := f.parse(parser)) is not None))

    return read


def kind_of(root: Field, kinds: Collection[str]) -> str | None:
    """The declared `kind` of the file, which must be one of `kinds`."""
    declared = dict(root.pairs())
    if "kind" in declared:
        return declared["kind"].parse(choice(kinds))
    if declared:
        root.child("kind", root.node).refuse(f"is missing; add {' or '.join(f'`kind: {kind}`' for kind in kinds)}")
    return None


def _shape(node: yaml.Node) -> str:
    """The shape of a value, for problem texts."""
    if isinstance(node, yaml.ScalarNode):
        return "one value" if node.value else "empty"
    kind = "list" if isinstance(node, yaml.SequenceNode) else "mapping"
    return f"a {kind}" if node.value else f"an empty {kind}"
