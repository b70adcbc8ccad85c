"""Lines out of chunks."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gputally.kube.reflector import Lines


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n"), min_size=1)), st.lists(st.integers(0, 400))
)
def test_lines_come_out_the_same_wherever_the_network_cuts(texts: list[str], cuts: list[int]) -> None:
    data = "".join(f"{text}\n" for text in texts).encode()
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    lines = Lines()

    found = [line for a, b in pairwise(edges) for line in lines.feed(data[a:b])]

    assert found == [text.encode() for text in texts]


def test_a_line_without_an_end_is_kept_back() -> None:
    lines = Lines()

    assert lines.feed(b"one\ntw") == [b"one"]
    assert lines.feed(b"o\n\n") == [b"two"]


def test_a_line_of_fifty_megabytes_in_small_chunks_comes_whole() -> None:
    lines = Lines()
    chunk = b"x" * 4096

    assert not any(lines.feed(chunk) for _ in range(50_000_000 // 4096))
    assert len(lines.feed(b"\n")[0]) == 50_000_000 // 4096 * 4096
