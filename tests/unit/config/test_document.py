from pathlib import Path

import pytest

from gputally.config.document import load
from gputally.errors import ConfigError


def refusal(content: bytes, tmp_path: Path) -> str:
    path = tmp_path / "prices.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as raised:
        load(path).raise_problems()
    return str(raised.value).replace(str(path), path.name)


@pytest.mark.parametrize(
    ("content", "problem", "remedy"),
    [
        (b"", "is empty", "start with `kind: PriceBook` or `kind: Configuration`"),
        (b"# nothing but a comment\n", "is empty", "start with `kind: PriceBook` or `kind: Configuration`"),
        (b"name: caf\xe9\n", "is not UTF-8 text (byte 0xe9 at 9)", "save it as UTF-8"),
        (b"a: 1\nb: \x07\n", "line 2: contains a control character", "remove it"),
        (
            b"a: 1\nb: c: d\n",
            "line 2, column 5: mapping values are not allowed here",
            "quote text that contains ': ', and check the indentation",
        ),
        (
            b"a:\n\t- b\n",
            "line 2, column 1: while scanning for the next token, found character '\\t' that cannot start any token",
            "indent with spaces, not tabs",
        ),
        (
            b"a: 'open\n",
            "line 2, column 1: while scanning a quoted scalar, found unexpected end of stream",
            "close the quote or bracket that is still open",
        ),
        (
            b"a: 1\n---\nb: 2\n",
            "line 2, column 1: expected a single document in the stream, but found another document",
            "use one document per file, without '---' inside",
        ),
        (
            b"a: &loop [*loop]\n",
            "line 1, column 11: an alias is not supported here",
            "repeat the value, and quote text that starts with *",
        ),
        (b"[" * 5000, "is nested too deeply", "close the open brackets"),
        (b"a: !!python/object:os.system {}\n", "a: has the tag !!python/object:os.system", "remove it"),
        (b"a: !secret b\n", "a: has the tag !secret", "remove it"),
        (b"a:\n  b: 1\n  c: 2\n  b: 3\n", "a.b: is defined on lines 2 and 4", "keep one"),
    ],
)
def test_a_file_that_cannot_be_read_says_where_and_what_to_do(
    content: bytes, problem: str, remedy: str, tmp_path: Path
) -> None:
    assert refusal(content, tmp_path) == f"prices.yaml: {problem}; {remedy}"


def test_a_missing_file_is_a_problem_and_no_traceback(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"prices\.yaml: cannot be read: No such file or directory"):
        load(tmp_path / "prices.yaml")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load(tmp_path)


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    path = tmp_path / "prices.yaml"
    path.write_bytes(b"\xef\xbb\xbfkind: PriceBook\n")

    assert [key for key, _ in load(path).pairs()] == ["kind"]


def test_texts_stay_as_written(tmp_path: Path) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text("a: 2.10\nb: no\nc: 2026-07-20\nd: 0x10\n")

    assert [field.parse(str) for _, field in load(path).pairs()] == ["2.10", "no", "2026-07-20", "0x10"]
