import pytest

from hack.structure import problems, repeated

PATH = "exporter/gputally/accounting/cut.py"


def function(lines: int) -> str:
    return "def cut():\n" + "    pass\n" * (lines - 1)


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("x = 1\n" * 501, f"{PATH}:1: 501 lines, 500 at most; split it by subject"),
        (function(41), f"{PATH}:1: cut has 41 lines, 40 at most"),
        (
            "def cut(a, b, c, d, e, f): ...\n",
            f"{PATH}:1: cut takes 6 arguments by position; make some keyword-only with `*`",
        ),
        ("\nopen('a')\n", f"{PATH}:2: the core may not call open()"),
        ("datetime.now(UTC)\n", f"{PATH}:1: the core may not call now()"),
        ("x = 1  # noqa: E501\n", f"{PATH}:1: give the reason of 'noqa: E501'"),
        ("x = 1  # noqa\n", f"{PATH}:1: give the reason of 'noqa'"),
        ("x = 1  # type: ignore[misc]\n", f"{PATH}:1: give the reason of 'type: ignore[misc]'"),
    ],
)
def test_what_breaks_a_limit_is_named_with_its_place(source: str, problem: str) -> None:
    assert list(problems(PATH, source)) == [problem]


@pytest.mark.parametrize(
    "source",
    [
        "x = 1\n" * 500,
        function(40),
        "def cut(self, a, b, c, d, e, *, f, g): ...\n",
        "x = 1  # noqa: E501 - the text of the standard\n",
        "x = 1  # noqa: E501, S101  # the text of the standard\n",
        "x = 1  # type: ignore[misc]  # the client's gap\n",
        "x = 1  # noqa: E501 - the text of the standard\ny = 1  # noqa: E501\n",
        "x = '# noqa'\n",
    ],
)
def test_what_keeps_within_the_limits_is_not_mentioned(source: str) -> None:
    assert list(problems(PATH, source)) == []


def test_a_reason_covers_only_what_stands_right_below_it() -> None:
    source = "x = 1  # noqa: E501 - the text of the standard\n\ny = 1  # noqa: E501\n"

    assert list(problems(PATH, source)) == [f"{PATH}:3: give the reason of 'noqa: E501'"]


def test_a_file_is_named_after_what_is_in_it() -> None:
    assert list(problems("exporter/gputally/utils.py", "")) == [
        "exporter/gputally/utils.py:1: name the file after what is in it"
    ]


def test_only_the_core_is_kept_from_the_clock() -> None:
    assert list(problems("exporter/gputally/process/clock.py", "datetime.now(UTC)\n")) == []


def test_a_module_or_class_of_the_product_is_named_once() -> None:
    sources = {
        "exporter/gputally/kube/watch.py": "class Lines: ...",
        "exporter/gputally/totals/lines.py": "class Sums: ...",
        "exporter/gputally/totals/rows.py": "class Lines: ...",
        "exporter/gputally/totals/__init__.py": "",
        "exporter/gputally/kube/__init__.py": "",
    }

    assert sorted(repeated(sources)) == [
        "exporter/gputally/kube/watch.py, exporter/gputally/totals/lines.py: modules named lines.py",
        "exporter/gputally/kube/watch.py, exporter/gputally/totals/rows.py: classes named Lines",
    ]
