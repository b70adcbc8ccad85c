"""The command line with the flags of all commands; in use, only those of the chosen command are added."""

import argparse

from gputally.cli import CommandParser, parser


def whole_parser() -> argparse.ArgumentParser:
    """The parser of `gputally`, complete."""
    root = parser()
    for action in root._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                assert isinstance(command, CommandParser)
                command.complete()
    return root
