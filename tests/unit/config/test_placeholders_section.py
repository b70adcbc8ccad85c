"""The section `placeholders` declares pods without work, or says what is wrong with it."""

from pathlib import Path

import pytest

from gputally.config.rules_file import read_rules
from gputally.errors import ConfigError
from gputally.model.rules import Placeholders


def written(tmp_path: Path, placeholders: str) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(f"kind: Configuration\nplaceholders: {placeholders}\n")
    return path


def test_tiers_classes_and_images_are_one_expression_or_a_list(tmp_path: Path) -> None:
    text = "{tiers: spare, classes: [gpu-placeholder, 'headroom-.*'], images: '.*/pause:.*'}"

    assert read_rules(written(tmp_path, text)).placeholders == Placeholders(
        tiers=("spare",), classes=("gpu-placeholder", "headroom-.*"), images=(".*/pause:.*",)
    )


def test_other_placeholders_are_other_rules_so_that_the_images_of_running_pods_are_read_again(tmp_path: Path) -> None:
    found = [read_rules(written(tmp_path, f"{{images: '{image}'}}")).digest for image in ("a", "b")]

    assert len(set(found)) == 2


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{image: a}", "placeholders.image: unknown field; did you mean 'images'?"),
        ("{classes: '('}", "placeholders.classes: "),
        ("{tiers: []}", "placeholders.tiers: is an empty list; use a list, with '- ' before each entry"),
    ],
)
def test_what_is_wrong_is_named_with_its_fix(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read_rules(written(tmp_path, text))

    assert f"{raised.value.problems[0].field}: {raised.value.problems[0].text}".startswith(problem)
