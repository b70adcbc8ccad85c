"""Append-only histories whose versions share their common beginning.

A short history is a tuple. A long one consists of chapters, so that the cost of appending does not depend on its
length: a user who changes a label often must not make each change more expensive than the previous one.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TypeVar, overload

Entry = TypeVar("Entry")
CHAPTER = 64
"""Entries of a chapter; the open chapter at the end has up to twice as many."""


class ChunkedHistory(Sequence[Entry]):
    """A long history: immutable whole chapters, and the open entries at the end."""

    __slots__ = ("open", "whole")

    def __init__(self, whole: tuple[tuple[Entry, ...], ...], open_: tuple[Entry, ...]) -> None:
        self.whole = whole
        self.open = open_

    def __len__(self) -> int:
        return len(self.whole) * CHAPTER + len(self.open)

    def __iter__(self) -> Iterator[Entry]:
        return self._since(0)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Sequence) and len(self) == len(other) == alike(self, other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    @overload
    def __getitem__(self, index: int) -> Entry: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Entry, ...]: ...

    def __getitem__(self, index: int | slice) -> Entry | tuple[Entry, ...]:
        if isinstance(index, slice):
            start, stop, _ = index.indices(len(self))
            return tuple(islice(self._since(start), max(0, stop - start)))
        chapter, place = divmod(index + len(self) if index < 0 else index, CHAPTER)
        if chapter < 0:
            raise IndexError(index)
        if chapter < len(self.whole):
            return self.whole[chapter][place]
        return self.open[place + (chapter - len(self.whole)) * CHAPTER]

    def _since(self, start: int) -> Iterator[Entry]:
        first, place = divmod(start, CHAPTER)
        if first >= len(self.whole):
            return islice(self.open, start - len(self.whole) * CHAPTER, None)
        return chain(self.whole[first][place:], *self.whole[first + 1 :], self.open)


def grown(history: Sequence[Entry], kept: int, more: Iterable[Entry]) -> Sequence[Entry]:
    """The first `kept` entries of `history`, followed by `more`."""
    if isinstance(history, tuple) and len(history) < CHAPTER:
        short = (*history[:kept], *more) if kept else tuple(more)
        if len(short) < CHAPTER:
            return short
        history, kept, more = short, len(short), ()
    whole = history.whole[: kept // CHAPTER] if isinstance(history, ChunkedHistory) else ()
    tail = (*history[len(whole) * CHAPTER : kept], *more)
    closed = max(0, len(tail) // CHAPTER - 1)
    whole += tuple(tail[i * CHAPTER : (i + 1) * CHAPTER] for i in range(closed))
    return ChunkedHistory(whole, tail[closed * CHAPTER :]) if whole else tail


def alike(old: Sequence[Entry], new: Sequence[Entry]) -> int:
    """The number of equal entries at the beginning of both."""
    if old is new:
        return len(old)
    shared = 0
    if not isinstance(old, tuple) and isinstance(old, ChunkedHistory) and isinstance(new, ChunkedHistory):
        shared = _shared(old, new) * CHAPTER  # the first test is the fast one
    pairs = zip(old[shared:], new[shared:], strict=False) if shared else zip(old, new, strict=False)
    for index, (before, after) in enumerate(pairs, shared):
        if before is not after and before != after:
            return index
    return min(len(old), len(new))


def _shared(old: ChunkedHistory[Entry], new: ChunkedHistory[Entry]) -> int:
    """The number of shared chapters: if a chapter is shared, so are all before it."""
    count = min(len(old.whole), len(new.whole))
    while count and old.whole[count - 1] is not new.whole[count - 1]:
        count -= 1
    return count
