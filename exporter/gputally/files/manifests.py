"""Manifests as plain values: multi-document YAML, JSON and lists, with the place of each object.

Values have the types that the API server's own reader of YAML gives them, except that dates stay text.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import yaml

from gputally.errors import ConfigError, Problem

STDIN: Final = Path("-")
"""Stands for standard input."""
SUFFIXES: Final = (".yaml", ".yml", ".json")
MOST_VALUES: Final = 1_000_000
"""In one document, with each alias counted as what it stands for."""
MOST_LEVELS: Final = 100
"""Levels of mappings and lists inside each other."""
_REMOVE_ALIASES: Final = "remove some of them"
_TOO_DEEP: Final = f"is nested too deeply; use {MOST_LEVELS} levels at most"
_ITSELF: Final = "contains itself through an alias; remove it"
_TIMESTAMP: Final = "tag:yaml.org,2002:timestamp"


class ManifestObject(NamedTuple):
    """One object: `place` names the document, and the item of a list, such as `document 2` or `items[3]`."""

    file: str
    place: str
    value: dict[str, Any]

    def problem(self, field: str, text: str) -> Problem:
        """A problem of a field of this object."""
        return Problem(self.file, ": ".join(part for part in (self.place, field) if part), text)


class _ManifestLoader(yaml.SafeLoader):
    """Rejects repeated keys, as kubectl does, and aliases that repeat values without end."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._sizes: dict[yaml.Node, int] = {}

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """The node; counts its values with aliases expanded. Raises: ComposerError for too many, or itself inside."""
        is_alias = self.check_event(yaml.AliasEvent)
        node = super().compose_node(parent, index)
        if node is None:
            return None
        if is_alias:
            if node not in self._sizes:
                raise yaml.composer.ComposerError(None, None, _ITSELF, node.start_mark)
            return node
        self._sizes[node] = size = 1 + sum(self._sizes[each] for each in _children(node))
        if size > MOST_VALUES:
            text = f"has more than {MOST_VALUES:,} values with its aliases expanded; {_REMOVE_ALIASES}"
            raise yaml.composer.ComposerError(None, None, text, node.start_mark)
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - inherited
        """The mapping. Raises: ConstructorError for a repeated key."""
        lines: dict[str, int] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in lines:
                    text = f"{key.value!r} is already defined on line {lines[key.value]}; keep one"
                    raise yaml.constructor.ConstructorError(None, None, text, key.start_mark)
                lines[key.value] = key.start_mark.line + 1
        return super().construct_mapping(node, deep=deep)


_ManifestLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def manifest_files(arguments: Iterable[Path]) -> list[Path]:
    """The files, with those in folders, sorted. Raises: ConfigError for a folder without manifests."""
    found: list[Path] = []
    for each in arguments:
        if not each.is_dir():
            found.append(each)
        elif inside := sorted(path for path in each.rglob("*") if path.suffix in SUFFIXES and path.is_file()):
            found += inside
        else:
            text = f"contains no manifests; it needs files that end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
            raise ConfigError([Problem(str(each), "", text)])
    return list(dict.fromkeys(found))


def manifest_objects(path: Path) -> Iterator[ManifestObject]:
    """The objects of a file. Raises: ConfigError for what is not YAML or not an object."""
    documents = _documents(_text(path), str(path))
    several = len(documents) > 1
    for number, document in enumerate(documents, start=1):
        if document is None:
            continue  # templates often leave empty documents
        place = f"document {number}" if several else ""
        if _is_deeper(document, MOST_LEVELS):
            raise ConfigError([Problem(str(path), place, _TOO_DEEP)])
        yield from _objects(str(path), place, document)


def _children(node: yaml.Node) -> Iterator[yaml.Node]:
    """What a node contains directly."""
    if isinstance(node, yaml.MappingNode):
        for pair in node.value:
            yield from pair
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value


def _is_deeper(value: object, levels: int) -> bool:
    """Whether more than `levels` mappings and lists are inside each other."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    if inside is None:
        return False
    return levels == 0 or any(_is_deeper(each, levels - 1) for each in inside)


def _text(path: Path) -> str:
    try:
        return (sys.stdin.buffer.read() if path == STDIN else path.read_bytes()).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        text = f"is not UTF-8 text (byte 0x{error.object[error.start]:02x} at {error.start}); save it as UTF-8"
        raise ConfigError([Problem(str(path), "", text)]) from None
    except OSError as error:
        raise ConfigError([Problem(str(path), "", f"cannot be read: {error.strerror}")]) from None


def _documents(text: str, file: str) -> list[Any]:
    """All documents; JSON is YAML too, but its own decoder takes seconds where that of YAML takes minutes."""
    found: list[Any] = []
    if text.lstrip().startswith("{"):
        with suppress(msgspec.DecodeError, RecursionError):
            return [msgspec.json.decode(text)]
    try:
        found.extend(yaml.load_all(text, Loader=_ManifestLoader))
    except yaml.MarkedYAMLError as error:
        raise ConfigError([Problem(file, _document_at(text, error), _syntax(error))]) from None
    except RecursionError:
        raise ConfigError([Problem(file, "", _TOO_DEEP)]) from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError([Problem(file, "", f"is not YAML: {str(error).splitlines()[0]}")]) from None
    return found


def _document_at(text: str, error: yaml.MarkedYAMLError) -> str:
    """Which document has the error, by the separators before it."""
    mark = error.problem_mark or error.context_mark
    lines = text.splitlines()[: mark.line] if mark else []
    separators = [place for place, line in enumerate(lines) if line.rstrip() == "---" or line.startswith("--- ")]
    first = separators and not any(line.strip() and not line.startswith("#") for line in lines[: separators[0]])
    number = len(separators) + (0 if first else 1)
    return f"document {number}" if number > 1 else ""


def _syntax(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    what = ", ".join(filter(None, (error.context, error.problem)))
    if "already defined" in what or what == _ITSELF or what.endswith(_REMOVE_ALIASES):
        return where + what
    template = mark and "{{" in (mark.buffer or "")
    remedy = "render templates first, as with helm template" if template else "check indentation, quotes and brackets"
    return f"{where}{what}; {remedy}"


def _objects(file: str, place: str, value: object) -> Iterator[ManifestObject]:
    """The object, or the items of a list, which may lack a kind of their own."""
    here = ManifestObject(file, place, value if isinstance(value, dict) else {})
    if not isinstance(value, dict):
        raise ConfigError([here.problem("", "is not a mapping; each document is a Kubernetes object")])
    _require_type(here)
    kind, items = value["kind"], value.get("items")
    if not kind.endswith("List") or not isinstance(items, list):
        yield ManifestObject(file, place, _without_nulls(value))
        return
    of_items = {"apiVersion": value["apiVersion"], "kind": kind.removesuffix("List")} if kind != "List" else {}
    for index, item in enumerate(items):
        inside = f"{place}: items[{index}]" if place else f"items[{index}]"
        yield from _objects(file, inside, of_items | item if isinstance(item, dict) else item)


def _require_type(found: ManifestObject) -> None:
    kind = found.value.get("kind")
    if kind in ("Configuration", "PriceBook") and "apiVersion" not in found.value:
        text = "is a file of gputally, not of Kubernetes; name a Configuration with --config.file"
        raise ConfigError([found.problem("kind", text)])
    for field in ("apiVersion", "kind"):
        value = found.value.get(field)
        if not isinstance(value, str) or not value:
            text = "is missing; each document is a Kubernetes object" if value is None else "is not text; quote it"
            raise ConfigError([found.problem(field, text)])


def _without_nulls(value: Any) -> Any:  # noqa: ANN401 - any YAML value
    """For the API server, a null is an absent field."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value
