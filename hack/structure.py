"""Checks code size limits, and that exemptions have a reason: `python -m hack.structure`, part of `make verify`."""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Final

ROOT: Final = Path(__file__).parents[1]
FOLDERS: Final = ("alerts", "dashboards", "exporter", "hack", "labs", "monitoring", "simulator", "tests")
FILE_LINES: Final = 500
FUNCTION_LINES: Final = 40
POSITIONAL: Final = 5
"""Maximum number of positional arguments; tests may have more, because pytest passes them by name."""
PRODUCT: Final = "exporter/gputally/"
SHAPELESS: Final = frozenset({"common.py", "helpers.py", "misc.py", "util.py", "utils.py"})
_PURE: Final = (
    "model",
    "frameworks",
    "shares",
    "placement",
    "accounting",
    "metering",
    "catalog",
    "posture",
    "questions",
    "reports",
)
CORE: Final = tuple(f"exporter/gputally/{each}/" for each in _PURE)
IMPURE: Final = frozenset({"input", "now", "open", "print", "today", "utcnow"})
"""Calls that access the clock or I/O without an import that import-linter would detect."""
ROOM_DEPTH: Final = 2
"""Maximum number of folders below the package, without folders of data."""
DRAWER_LINES: Final = 60
"""A shorter module with one importer, in its own folder, is a warning: it belongs into that one."""
REGISTRIES: Final = ("catalog/", "commands/", "frameworks/", "posture/checks/", "shares/")
"""Folders below the package with one module for each entry, however short it is."""
UNIT_TESTS: Final = "tests/unit"
BESIDE_PACKAGES: Final = frozenset({"hack", "sim"})
"""Folders of unit tests whose subject is not the product."""
CALLABLES: Final = 2
"""Maximum number of callables that a constructor takes."""
_FRAGMENT: Final = re.compile(r"(Of|Those|These|The same|That|As|Such|They|Their|It|Its|By) ")
"""How a docstring begins that means nothing alone."""
_EXEMPTION: Final = re.compile(
    r"#\s*(?P<what>noqa(?::\s*[A-Z]+[0-9]+(?:,\s*[A-Z]+[0-9]+)*)?|type:\s*ignore(?:\[[\w, -]+\])?)(?P<reason>.*)"
)

Function = ast.FunctionDef | ast.AsyncFunctionDef


def problems(path: str, source: str) -> Iterator[str]:
    """Violations in the file at `path` (relative to the root), each as `path:line: problem`."""
    lines = source.count("\n")
    if lines > FILE_LINES:
        yield f"{path}:1: {lines} lines, {FILE_LINES} at most; split it by subject"
    if Path(path).name in SHAPELESS:
        yield f"{path}:1: name the file after what is in it"
    tree = ast.parse(source)
    for function in functions(tree):
        yield from (f"{path}:{function.lineno}: {problem}" for problem in _function_problems(path, function))
    if path.startswith(PRODUCT):
        yield from (f"{path}:{line}: {problem}" for line, problem in _room_problems(path, tree))
    if path.startswith(CORE):
        yield from (f"{path}:{line}: the core may not call {name}()" for line, name in _impure_calls(tree))
    yield from (f"{path}:{line}: give the reason of '{what}'" for line, what in unexplained(source))


def repeated(sources: Mapping[str, str]) -> Iterator[str]:
    """Names of classes that are used more than once in a room, which is a folder."""
    places: dict[tuple[Path, str], list[str]] = {}
    for path, source in sources.items():
        for each in ast.parse(source).body:
            if isinstance(each, ast.ClassDef):
                places.setdefault((Path(path).parent, each.name), []).append(path)
    yield from (f"{', '.join(paths)}: classes named {name}" for (_, name), paths in places.items() if len(paths) > 1)


def unmirrored(tests: Iterable[str], product: Iterable[str]) -> Iterator[str]:
    """Folders of unit tests that have no package of the same name."""
    packages = {Path(path).parent for path in product}
    folders = {Path(path).parent.relative_to(UNIT_TESTS) for path in tests if path.startswith(f"{UNIT_TESTS}/")}
    for folder in sorted(folders):
        if folder.as_posix() not in BESIDE_PACKAGES and Path(PRODUCT, folder) not in packages:
            yield f"{UNIT_TESTS}/{folder}: no package has this name; move the tests to that of their subject"


def drawers(sources: Mapping[str, str]) -> Iterator[str]:
    """Short modules that only one module of their own folder uses."""
    importers: dict[str, list[str]] = {}
    for path, source in sources.items():
        for name in _imported(source):
            importers.setdefault(name, []).append(path)
    for path, source in sources.items():
        users = importers.get(_module(path), [])
        is_entry = path.removeprefix(PRODUCT).startswith(REGISTRIES) or Path(path).name.startswith("__")
        is_near = len(users) == 1 and Path(users[0]).parent == Path(path).parent
        if is_near and not is_entry and source.count("\n") < DRAWER_LINES:
            yield f"{path}: {source.count(chr(10))} lines, used by {users[0]} alone"


def _imported(source: str) -> set[str]:
    """The modules that a module imports, anywhere in it, and what may be one."""
    found = [each for each in ast.walk(ast.parse(source)) if isinstance(each, ast.ImportFrom) and each.module]
    return {name for each in found for name in (str(each.module), *(f"{each.module}.{a.name}" for a in each.names))}


def _module(path: str) -> str:
    return path.removeprefix("exporter/").removesuffix(".py").replace("/", ".")


def functions(tree: ast.AST) -> list[Function]:
    """All functions and methods, including nested ones."""
    return [node for node in ast.walk(tree) if isinstance(node, Function)]


def length(function: Function) -> int:
    """Lines from `def` to the end, without decorators."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


def _function_problems(path: str, function: Function) -> Iterator[str]:
    if length(function) > FUNCTION_LINES:
        yield f"{function.name} has {length(function)} lines, {FUNCTION_LINES} at most"
    arguments = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    positional = [name for name in arguments if name not in ("self", "cls")]
    if len(positional) > POSITIONAL and not path.startswith(("labs/", "tests/")):
        yield f"{function.name} takes {len(positional)} arguments by position; make some keyword-only with `*`"


def _room_problems(path: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    if path.removeprefix(PRODUCT).count("/") > ROOM_DEPTH:
        yield 1, f"at most {ROOM_DEPTH} levels of packages"
    aliases = {name for each in tree.body for name in _callable_aliases(each)}
    for each in ast.walk(tree):
        if isinstance(each, ast.ClassDef) and (number := _callables(each, aliases)) > CALLABLES:
            yield each.lineno, f"{each.name} takes {number} callables; pass the part that has them"
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant) and isinstance(each.value.value, str):
            begin = _FRAGMENT.match(each.value.value)
            if begin:
                yield each.lineno, f"a docstring that begins with '{begin[1]}' means nothing alone"


def _callable_aliases(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.Assign) and _is_callable(statement.value, set()):
        yield from (each.id for each in statement.targets if isinstance(each, ast.Name))


def _callables(found: ast.ClassDef, aliases: set[str]) -> int:
    """How many callables the constructor takes, as its arguments or as fields."""
    fields = [each.annotation for each in found.body if isinstance(each, ast.AnnAssign)]
    constructors = [each.args for each in found.body if isinstance(each, Function) and each.name == "__init__"]
    arguments = [each.annotation for args in constructors for each in (*args.args, *args.kwonlyargs)]
    return max(sum(_is_callable(each, aliases) for each in annotations) for annotations in (fields, arguments))


def _is_callable(annotation: ast.expr | None, aliases: set[str]) -> bool:
    """Whether a type is a callable, or one or None."""
    text = ast.unparse(annotation) if annotation else ""
    return text.startswith("Callable[") or text.removesuffix(" | None") in aliases


def _impure_calls(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name in IMPURE:
                yield node.lineno, name


def unexplained(source: str) -> Iterator[tuple[int, str]]:
    """Exemptions without a reason, as (line, exemption); a reason also covers the same exemption on the next line."""
    explained: dict[int, str] = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        match = _EXEMPTION.match(token.string) if token.type == tokenize.COMMENT else None
        if match is None:
            continue
        line, what = token.start[0], match["what"]
        if re.search(r"\w", match["reason"]) or explained.get(line - 1) == what:
            explained[line] = what
        else:
            yield line, what


def main() -> int:
    """Check every file; the last line of output reports function lengths."""
    found: list[str] = []
    lengths: list[int] = []
    product: dict[str, str] = {}
    tests: list[str] = []
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        name, source = path.relative_to(ROOT).as_posix(), path.read_text()
        found += problems(name, source)
        if name.startswith(("exporter/", "simulator/")):
            lengths += map(length, functions(ast.parse(source)))
        if name.startswith(PRODUCT):
            product[name] = source
        if name.startswith("tests/"):
            tests.append(name)
    found += [*repeated(product), *unmirrored(tests, product)]
    warnings = [f"warning: {each}" for each in drawers(product)]
    print("\n".join([*warnings, *found]))
    sizes = sorted(source.count("\n") for path, source in product.items() if not Path(path).name.startswith("__"))
    print(
        f"{len(sizes)} modules of {median(sizes):g} lines in the median, 9 of 10 at most {sizes[len(sizes) * 9 // 10]}"
    )
    print(f"{len(lengths)} functions of {median(lengths):g} lines in the median, {max(lengths)} at most")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
