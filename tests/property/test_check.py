import string
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gputally.config.read import check

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").rglob("*.yaml"))
KEYS = ["kind", "tiers", "rules", "match", "default", "labels", "purchase", "price", "prices", "effective_from", "from"]
SCALARS = st.one_of(
    st.sampled_from(
        ["", "{class}", "{9}", "*", "spot", "true", "2026-07-20", "1e400", "-0", "PriceBook", "USD", "((("]
    ),
    st.text(string.printable, max_size=8),
    st.none(),
    st.integers(),
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


def spliced(tree: object, value: object, draw: st.DataObject) -> object:
    """`tree` with one part of it, drawn at random, replaced by `value`."""
    parts = list(tree) if isinstance(tree, dict) else list(range(len(tree))) if isinstance(tree, list) else []
    if not parts or draw.draw(st.integers(0, 4)) == 0:
        return value
    assert isinstance(tree, dict | list)
    copy = tree.copy()
    part = draw.draw(st.sampled_from(parts))
    copy[part] = spliced(tree[part], value, draw)
    return copy


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("check") / "file.yaml"


@given(st.sampled_from(EXAMPLES), TREES, st.data())
def test_whatever_a_field_holds_the_problems_are_listed(
    file: Path, example: Path, value: object, data: st.DataObject
) -> None:
    tree = yaml.safe_load(example.read_text())
    file.write_text(yaml.safe_dump(spliced(tree, value, data), allow_unicode=True))

    for problem in check([file]):
        assert problem.file == str(file)
        assert problem.text


@given(st.binary(max_size=200) | st.text("&*!|>%@-:#[]{}?,'\" \n\tabc").map(str.encode))
def test_whatever_bytes_a_file_holds_the_problems_are_listed(file: Path, content: bytes) -> None:
    file.write_bytes(content)

    assert check([file])
