import pytest

from hack.structure import drawers, problems, repeated, unmirrored

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


def test_a_class_is_named_once_in_a_room() -> None:
    sources = {
        "exporter/gputally/ledger/lines.py": "class Lines: ...",
        "exporter/gputally/ledger/rows.py": "class Lines: ...",
        "exporter/gputally/ledger/sqlite/lines.py": "class Lines: ...",
    }

    assert list(repeated(sources)) == [
        "exporter/gputally/ledger/lines.py, exporter/gputally/ledger/rows.py: classes named Lines"
    ]


@pytest.mark.parametrize(
    ("path", "source", "problem"),
    [
        ("ledger/sqlite/waits/rows.py", "", "1: at most 2 levels of packages"),
        ("kube/api.py", '"""Of a watch."""\n', "1: a docstring that begins with 'Of' means nothing alone"),
        ("kube/api.py", '"""Its watch."""\n', "1: a docstring that begins with 'Its' means nothing alone"),
        ("kube/api.py", '"""By UID."""\n', "1: a docstring that begins with 'By' means nothing alone"),
        (
            "kube/api.py",
            'A = 1\n"""The same for lists."""\n',
            "2: a docstring that begins with 'The same' means nothing alone",
        ),
        (
            "kube/api.py",
            "On = Callable[[], None]\nclass Api:\n    def __init__(self, a: On, b: On, c: On | None): ...\n",
            "2: Api takes 3 callables; pass the part that has them",
        ),
        (
            "kube/api.py",
            "class Api(Struct):\n    a: Callable[[], int]\n    b: Callable[[], int]\n    c: Callable[[], int]\n",
            "1: Api takes 3 callables; pass the part that has them",
        ),
    ],
)
def test_what_breaks_a_rule_of_rooms_is_named(path: str, source: str, problem: str) -> None:
    assert list(problems(f"exporter/gputally/{path}", source)) == [f"exporter/gputally/{path}:{problem}"]


def test_a_short_module_with_one_user_beside_it_is_a_drawer() -> None:
    user = "from gputally.kube.lines import split\nfrom gputally.kube import late\n"
    sources = {
        "exporter/gputally/kube/api.py": user,
        "exporter/gputally/kube/lines.py": "x = 1\n" * 59,
        "exporter/gputally/kube/late.py": "x = 1\n" * 60,
        "exporter/gputally/kube/errors.py": "",
        "exporter/gputally/agent/agent.py": "from gputally.kube.errors import Failed\n",
        "exporter/gputally/shares/mig.py": "",
        "exporter/gputally/shares/schemes.py": "from gputally.shares import mig\n",
    }

    assert list(drawers(sources)) == [
        "exporter/gputally/kube/lines.py: 59 lines, used by exporter/gputally/kube/api.py alone"
    ]


def test_unit_tests_lie_by_the_package_of_their_subject() -> None:
    product = ("exporter/gputally/cli.py", "exporter/gputally/kube/api.py")
    mirrored = ("tests/unit/test_cli.py", "tests/unit/kube/test_api.py", "tests/unit/hack/test_form.py")

    assert list(unmirrored([*mirrored, "tests/property/test_books.py"], product)) == []
    assert list(unmirrored([*mirrored, "tests/unit/kube_api/test_api.py"], product)) == [
        "tests/unit/kube_api: no package has this name; move the tests to that of their subject"
    ]
