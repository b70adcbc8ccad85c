"""Manifests that are hostile, or broken, are rejected with the place."""

import json
import time
from pathlib import Path

import pytest

from gputally.errors import ConfigError
from gputally.files.manifests import manifest_objects

HEAD = "apiVersion: v1\nkind: Pod\n"
BOMB = HEAD + "a: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
BOMB += "".join(f"b{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 9))
DEEP = json.dumps({"apiVersion": "v1", "kind": "Pod"})[:-1] + ', "spec": ' + "[" * 400 + "]" * 400 + "}"
DEEPER = HEAD + "spec: " + "[" * 5000 + "]" * 5000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            BOMB,
            "line 8, column 5: has more than 1,000,000 values with its aliases expanded; remove some of them",
            id="bomb",
        ),
        pytest.param(
            HEAD + "a: &a [*a]\n", "line 3, column 4: contains itself through an alias; remove it", id="itself"
        ),
        pytest.param(DEEP, "is nested too deeply; use 100 levels at most", id="JSON"),
        pytest.param(DEEPER, "is nested too deeply; use 100 levels at most", id="YAML"),
    ],
)
def test_a_hostile_file_is_rejected_soon_with_its_place(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(text)
    before = time.process_time()

    with pytest.raises(ConfigError) as error:
        list(manifest_objects(file))

    assert str(error.value) == f"{file}: {message}"
    assert time.process_time() - before < 5


def test_aliases_repeat_values(tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(HEAD + "a: &a {x: 1}\nb: [*a, *a]\nc: {<<: *a}\n")
    [found] = manifest_objects(file)

    assert (found.value["b"], found.value["c"]) == ([{"x": 1}, {"x": 1}], {"x": 1})
