"""A YAML file as a tree of plain text, with the path of each value.

YAML's implicit types (2.10 is a float, `no` is false) are disabled: the field that reads a value decides its
type, so a price keeps its digits and the label value `true` stays text. Tags, aliases and repeated keys are
rejected, so that no value of a price book depends on another place in the file. The digest of what a file says does
not depend on its formatting and comments.
"""

import re
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec
import yaml

from gputally.config.fields import Field
from gputally.errors import ConfigError, Problem

_PLAIN_TAGS = {f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map")}
_REMEDIES = {
    "'\\t'": "indent with spaces, not tabs",
    "mapping values": "quote text that contains ': ', and check the indentation",
    "another document": "use one document per file, without '---' inside",
    "alias": "repeat the value, and quote text that starts with *",
    "cannot start any token": "quote text that starts with a special character",
    "end of stream": "close the quote or bracket that is still open",
}


STDIN: Final = Path("-")
"""Stands for standard input."""


def load(path: Path, *, start: str = "`kind: PriceBook` or `kind: Configuration`") -> Field:
    """The top-level field of the file, or of standard input for `-`; structural problems are already recorded.

    Raises: ConfigError for a file that is unreadable, not YAML, or empty; then the message suggests `start`.
    """
    root = _composed(_text(path), str(path))
    if root is None:
        raise _refused(str(path), f"is empty; start with {start}")
    field = Field(file=str(path), path="", node=root)
    _check_structure(field)
    return field


def _text(path: Path) -> str:
    try:
        content = sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        text = f"is not UTF-8 text (byte 0x{error.object[error.start]:02x} at {error.start}); save it as UTF-8"
        raise _refused(str(path), text) from None
    except OSError as error:
        raise _refused(str(path), f"cannot be read: {error.strerror}") from None


def _refused(file: str, text: str) -> ConfigError:
    return ConfigError([Problem(file, "", text)])


class _Loader(yaml.BaseLoader):
    """Composes plain text values only."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Reject aliases: a self-referencing alias never ends."""
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]  # untyped in its stubs
            raise yaml.composer.ComposerError(None, None, "an alias is not supported here", mark)
        return super().compose_node(parent, index)


def _composed(text: str, file: str) -> yaml.Node | None:
    try:
        return yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        raise _refused(file, _syntax(error)) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise _refused(file, f"line {line}: contains a control character; remove it") from None
    except RecursionError:
        raise _refused(file, "is nested too deeply; close the open brackets") from None


def _syntax(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    what = ", ".join(filter(None, (error.context, error.problem)))
    remedies = (remedy for sign, remedy in _REMEDIES.items() if sign in what)
    return f"{where}{what}; {next(remedies, 'check indentation, quotes and brackets')}"


def _check_structure(field: Field) -> None:
    """Record problems that are invalid in any field."""
    if field.node.tag not in _PLAIN_TAGS:
        field.refuse(f"has the tag {_short(field.node.tag)}; remove it")
    if isinstance(field.node, yaml.MappingNode):
        _check_keys(field, field.node)
    for child in _children(field):
        _check_structure(child)


def _short(tag: str) -> str:
    return re.sub(r"^tag:yaml\.org,2002:", "!!", tag)


def _children(field: Field) -> Iterator[Field]:
    if isinstance(field.node, yaml.MappingNode):
        yield from (field.child(key.value, value) for key, value in field.node.value if isinstance(key.value, str))
    elif isinstance(field.node, yaml.SequenceNode):
        yield from (field.entry(index, value) for index, value in enumerate(field.node.value))


def _check_keys(field: Field, node: yaml.MappingNode) -> None:
    lines: dict[str, int] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            field.refuse(f"line {line}: a list or mapping cannot be a field name; use plain text")
        elif key.value in lines:
            field.child(key.value, value).refuse(f"is defined on lines {lines[key.value]} and {line}; keep one")
        else:
            lines[key.value] = line


def digest(content: msgspec.Struct) -> str:
    """SHA-256 in hexadecimal of the struct's fields, the same in every process."""
    return sha256(msgspec.json.encode(content, order="deterministic")).hexdigest()
