"""docs/pending.md says what the commands say."""

import argparse

from gputally.answers.planned_pods import READERS
from gputally.answers.verdict_words import REASONS
from gputally.cli import parser
from gputally.model.verdicts import Reason
from tests.docs.pages import TEXTS, blocks, table
from tests.fakes.whole_parser import whole_parser
from tests.texts import fits_lines, pending_lines, what_if_lines, why_lines
from tests.unit.output.fits_documents import FINDINGS, FITS
from tests.unit.output.what_if_documents import EXAMPLE
from tests.unit.output.why_documents import ANSWER, why

PAGE = TEXTS["docs/pending.md"]


def test_the_example_is_what_the_command_prints() -> None:
    shown, findings, forecast, fits = blocks(PAGE, "text")

    assert findings in "\n".join(pending_lines(FINDINGS, subject="", width=96))
    assert fits.splitlines() == list(fits_lines(FITS, width=96))
    assert shown.splitlines() == list(why_lines(why(ANSWER), width=96))
    assert forecast.splitlines() == list(what_if_lines(EXAMPLE, width=96))


def test_every_verdict_is_explained_in_its_order() -> None:
    assert [row[0].strip("`") for row in table(PAGE, "Verdict")] == list(Reason)


def test_first_steps_are_those_that_the_command_prints() -> None:
    documented = {row[0].strip("`"): row[2] for row in table(PAGE, "Verdict")}

    steps = {reason: words.first_step for reason, words in REASONS.items() if words.first_step}
    assert {reason: documented[reason] for reason in steps} == steps


def test_every_line_of_an_answer_is_explained() -> None:
    heads = [
        line[:12].strip() for line in why_lines(why(ANSWER), width=1000) if line[:12].strip() and line[10:12] == "  "
    ]

    assert [row[0].strip("`") for row in table(PAGE, "Line")] == ["first", *heads]


def test_every_kind_of_manifest_is_named() -> None:
    assert [kind.name for kind in READERS if f"{kind.name}s" not in PAGE] == []


def test_the_examples_of_the_help_parse() -> None:
    for name in ("why", "what-if", "fits"):
        [commands] = [each for each in whole_parser()._actions if isinstance(each, argparse._SubParsersAction)]
        lines = (commands.choices[name].epilog or "").splitlines()
        shown = [line.split("  ", 3)[1].strip() for line in lines if line.startswith("  ") and "gputally" in line]
        assert len(shown) >= 4
        for example in shown:
            words = example.partition(" | jq")[0].split("gputally ", 1)[1].split()
            parser().parse_args(words)
