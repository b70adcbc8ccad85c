import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, choose_encoder

from gputally.exposition.negotiation import PLAIN, gzip_accepted, media

OPENMETRICS = "application/openmetrics-text"
PROMETHEUS_2 = (
    f"{OPENMETRICS};version=1.0.0;q=0.5,{OPENMETRICS};version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
PROMETHEUS_3 = (
    f"{OPENMETRICS};version=1.0.0;escaping=allow-utf-8;q=0.6,{OPENMETRICS};version=0.0.1;q=0.5,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
PROTOBUF = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7"
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        (PROMETHEUS_2, f"{OPENMETRICS}; version=1.0.0; charset=utf-8; escaping=underscores"),
        (PROMETHEUS_3, f"{OPENMETRICS}; version=1.0.0; charset=utf-8; escaping=allow-utf-8"),
        (f"{PROTOBUF},{PROMETHEUS_3}", f"{OPENMETRICS}; version=1.0.0; charset=utf-8; escaping=allow-utf-8"),
        (OPENMETRICS, f"{OPENMETRICS}; version=1.0.0; charset=utf-8"),
        (f"{OPENMETRICS}; version=0.0.1", f"{OPENMETRICS}; version=0.0.1; charset=utf-8"),
        (f'{OPENMETRICS}; version="1.0.0"', f"{OPENMETRICS}; version=1.0.0; charset=utf-8; escaping=underscores"),
        (f"{OPENMETRICS.upper()};VERSION=0.0.1", f"{OPENMETRICS}; version=0.0.1; charset=utf-8"),
        ("text/plain;version=0.0.4", PLAIN.content_type),
        ("text/plain", PLAIN.content_type),
        ("text/plain;version=1.0.0;escaping=dots", "text/plain; version=1.0.0; charset=utf-8; escaping=dots"),
        (f"{OPENMETRICS};version=1.0.0;q=0.2,text/plain;q=0.9", PLAIN.content_type),
        (f"text/plain;q=0.5,{OPENMETRICS};version=0.0.1;q=0.5", PLAIN.content_type),
        (f"{OPENMETRICS};q=0,text/plain;q=0.1", PLAIN.content_type),
        (f"{OPENMETRICS};q=0", PLAIN.content_type),
        (f"{OPENMETRICS};version=7.0.0", PLAIN.content_type),
        (f"{OPENMETRICS};version=0.0.1;q=much", f"{OPENMETRICS}; version=0.0.1; charset=utf-8"),
        (f"{OPENMETRICS};version=0.0.1;q=nan", PLAIN.content_type),
        (BROWSER, PLAIN.content_type),
        ("application/json", PLAIN.content_type),
        ("*/*", PLAIN.content_type),
        (" ,;,", PLAIN.content_type),
        ("", PLAIN.content_type),
    ],
)
def test_the_format_is_the_best_liked_that_we_write(accept: str, content_type: str) -> None:
    chosen = media(accept)

    assert chosen.content_type == content_type
    assert chosen.openmetrics == content_type.startswith(OPENMETRICS)


@pytest.mark.parametrize(
    "accept",
    [
        "",
        "*/*",
        "text/plain",
        "text/plain;version=0.0.4",
        "text/plain;version=1.0.0",
        "text/plain;version=1.0.0;escaping=values",
        OPENMETRICS,
        f"{OPENMETRICS};version=1.0.0",
        f"{OPENMETRICS};version=1.0.0;escaping=allow-utf-8",
        f"{OPENMETRICS};version=1.0.0;escaping=unheard-of",
        PROMETHEUS_2,
        PROMETHEUS_3,
    ],
)
def test_the_content_type_is_the_clients(accept: str) -> None:
    assert media(accept).content_type == choose_encoder(accept)[1]


def test_the_answer_to_no_wish_is_the_oldest_format() -> None:
    assert PLAIN.content_type == CONTENT_TYPE_PLAIN_0_0_4


@given(st.text(st.sampled_from('*/;,=q. "0159-aénx')) | st.text())
def test_no_header_is_too_broken_for_an_answer(header: str) -> None:
    assert media(header)
    assert gzip_accepted(header) in {True, False}


@pytest.mark.parametrize(
    ("accept_encoding", "accepted"),
    [
        ("gzip", True),
        ("GZIP", True),
        ("deflate, gzip;q=0.5", True),
        ("gzip;q=0", False),
        ("gzip;q=0.0, *", False),
        ("*", True),
        ("*;q=0", False),
        ("identity", False),
        ("xgzip", False),
        ("", False),
    ],
)
def test_gzip_is_used_only_where_it_is_welcome(accept_encoding: str, *, accepted: bool) -> None:
    assert gzip_accepted(accept_encoding) is accepted
