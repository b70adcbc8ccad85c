from pathlib import Path

import pytest

from gputally.config.read import check
from tests.conftest import Golden

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[2] / "examples"
FILES = sorted(set(EXAMPLES.rglob("*.yaml")) - {EXAMPLES / "alertmanager.yaml"})


@pytest.mark.parametrize("name", ["bad_prices", "bad_config"])
def test_all_problems_of_a_very_bad_file_are_listed_at_once(
    name: str, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(HERE)

    problems = check([Path(f"{name}.yaml")])

    golden.check(f"{name}.problems", "".join(f"{problem}\n" for problem in problems))


def test_the_problems_of_all_files_are_listed_together(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").touch()

    problems = check([tmp_path / "empty.yaml", tmp_path / "missing.yaml", *FILES])

    assert [Path(problem.file).name for problem in problems] == ["empty.yaml", "missing.yaml"]


def test_the_examples_have_no_problems() -> None:
    assert len(FILES) >= 3
    assert check(FILES) == []


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("currency: USD\n", "kind: is missing; add `kind: PriceBook` or `kind: Configuration`"),
        (
            "kind: Pricebook\n",
            "kind: unknown 'Pricebook'; use PriceBook or Configuration (did you mean 'PriceBook'?)",
        ),
        ("- kind: PriceBook\n", "is a list; use fields in the form `name: value`"),
        ("just text\n", "is one value; use fields in the form `name: value`"),
    ],
)
def test_a_file_says_what_it_is(content: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(content)

    assert [str(found) for found in check([path])] == [f"{path}: {problem}"]
