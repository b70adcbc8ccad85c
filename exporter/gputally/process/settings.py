"""Settings of a command: each defines a flag, an environment variable and a help text. Also checks their values.

A check returns its problems, none for a valid value.
"""

import argparse
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from gputally.errors import ConfigError, Problem
from gputally.process.addresses import parse_all

_MISSPELLED: Final = re.compile(r"unrecognized arguments: (?P<word>--\S+)|invalid choice: '(?P<choice>[^']*)'")
_LAST_PORT: Final = 65535


class Setting(NamedTuple):
    """A flag `--name`; the variable GPUTALLY_NAME (dots and dashes as underscores) gives another default."""

    name: str
    default: str
    metavar: str
    help: str


class Parser(argparse.ArgumentParser):
    """A parser that suggests the flag or command that a misspelled one may mean."""

    def error(self, message: str) -> NoReturn:
        """Print usage and message, and exit with status 2."""
        if match := _MISSPELLED.search(message):
            known = list(self._names())
            close = get_close_matches((match["word"] or match["choice"]).partition("=")[0], known, n=1)
            message += f"; did you mean {close[0]}?" if close else ""
        super().error(message)

    def parse_known_args(  # type: ignore[override]  # typeshed has overloads by the type of the namespace
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """A command rejects unknown flags itself, so that it suggests its own; argparse leaves that to the program."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown and not any(isinstance(action.choices, Mapping) for action in self._actions):
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def _names(self) -> Iterator[str]:
        """The flags and choices of the command."""
        yield from self._option_string_actions
        for action in self._actions:
            yield from map(str, action.choices or ())


def add_flags(
    parser: argparse.ArgumentParser, settings: Iterable[Setting], environment: Mapping[str, str] = os.environ
) -> None:
    """Add a flag for each setting. The environment overrides the default, also in the help text."""
    for setting in settings:
        default = environment.get(variable(setting.name), setting.default)
        parser.add_argument(
            f"--{setting.name}",
            dest=setting.name,
            default=default,
            metavar=setting.metavar,
            help=f"{setting.help} [{variable(setting.name)}{'; default: %(default)s' if default else ''}]",
        )


def add_epilog(parser: argparse.ArgumentParser, text: str) -> None:
    """Print `text`, such as examples, below the flags, with its own line breaks."""
    parser.epilog, parser.formatter_class = text, argparse.RawDescriptionHelpFormatter


def variable(name: str) -> str:
    """The environment variable of a setting: GPUTALLY_WEB_LISTEN_ADDRESS for web.listen-address."""
    return "GPUTALLY_" + name.upper().replace(".", "_").replace("-", "_")


def file(text: str) -> Path | None:
    """The path; None for an empty text."""
    return Path(text) if text else None


def unknown(values: Mapping[str, Any], name: str, options: tuple[str, ...]) -> list[Problem]:
    """The value is not one of the `options`."""
    if values[name] in options:
        return []
    return [Problem("", f"--{name}", f"unknown '{values[name]}'; use {', '.join(options[:-1])} or {options[-1]}")]


def unknown_entries(values: Mapping[str, Any], name: str, options: tuple[str, ...]) -> list[Problem]:
    """Entries of the list that are not `options`."""
    use = f"use {', '.join(options[:-1])} or {options[-1]}"
    found = [each for each in entries(values[name]) if each not in options]
    return [Problem("", f"--{name}", f"unknown '{each}'; {use}") for each in found]


def missing(values: Mapping[str, Any], name: str) -> list[Problem]:
    """The value is empty, but must name a file."""
    return [] if values[name] else [Problem("", f"--{name}", "is empty; specify a file")]


def not_a_number(values: Mapping[str, Any], name: str) -> list[Problem]:
    """The value is not a whole number above 0."""
    text = str(values[name])
    if text.isascii() and text.isdigit() and int(text):
        return []
    return [Problem("", f"--{name}", f"'{text}' is not a whole number above 0; use a number such as 15")]


def outside_range(values: Mapping[str, Any], name: str, most: int, why: str, *, least: int = 1) -> list[Problem]:
    """The value is not a whole number from `least` to `most`."""
    text = str(values[name])
    if text.isascii() and text.isdigit() and least <= int(text) <= most:
        return []
    return [Problem("", f"--{name}", f"'{text}' is not a whole number from {least} to {most}{why}")]


def no_port(values: Mapping[str, Any], name: str) -> list[Problem]:
    """The value is not a port to connect to."""
    problems = not_a_number(values, name)
    if not problems and int(values[name]) > _LAST_PORT:
        problems = [Problem("", f"--{name}", f"'{values[name]}' is not a valid port; use a port up to {_LAST_PORT}")]
    return problems


def key_without_certificate(values: Mapping[str, Any]) -> list[Problem]:
    """A key without a certificate."""
    if values["agents.key-file"] and not values["agents.cert-file"]:
        return [Problem("", "--agents.key-file", "has no certificate; specify it with --agents.cert-file")]
    return []


def no_pairs(values: Mapping[str, Any], name: str, form: str) -> list[Problem]:
    """The list has an incomplete pair or a repeated key."""
    found = pairs(values[name])
    problems = [
        Problem(
            "", f"--{name}", f"'{key}{'=' if text else ''}{text}' is not valid; use {form}, separate several by commas"
        )
        for key, text in found
        if not (key and text)
    ]
    keys = [key for key, _ in found]
    repeated = sorted({key for key in keys if keys.count(key) > 1})
    return problems or [Problem("", f"--{name}", f"names '{key}' more than once") for key in repeated]


def no_url(values: Mapping[str, Any], name: str) -> list[Problem]:
    """The value is neither empty nor a URL."""
    text = values[name]
    if not text or text.startswith(("http://", "https://")):
        return []
    return [Problem("", f"--{name}", f"'{text}' is not a URL; use a URL such as https://grafana.example.com")]


def no_urls(values: Mapping[str, Any], name: str) -> list[Problem]:
    """Not all values are URLs."""
    urls = [url for _, url in pairs(values[name]) if url and not url.startswith(("http://", "https://"))]
    return [Problem("", f"--{name}", f"'{url}' is not a URL; use a URL such as http://10.0.0.7:9837") for url in urls]


def pairs(text: str) -> tuple[tuple[str, str], ...]:
    """`KEY=VALUE,...` as pairs, including incomplete ones."""
    parts = [part.strip().partition("=") for part in text.split(",") if part.strip()]
    return tuple((key.strip(), value.strip()) for key, _, value in parts)


def no_addresses(values: Mapping[str, Any], name: str) -> tuple[Problem, ...]:
    """The list has an invalid address, or none."""
    try:
        parse_all(addresses(values[name]))
    except ConfigError as error:
        return error.problems
    return ()


def entries(text: str) -> tuple[str, ...]:
    """The entries of a comma-separated list, without empty and repeated ones."""
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def addresses(text: str) -> tuple[str, ...]:
    """The entries of a comma-separated list."""
    return tuple(part.strip() for part in text.split(","))
