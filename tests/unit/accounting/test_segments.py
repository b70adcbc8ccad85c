from collections.abc import Iterator, Sequence
from decimal import Decimal

from msgspec.structs import replace

from gputally.accounting.facts.allocation import segments_of, span_of
from gputally.model.allocation import End, Segment, State, Terms
from gputally.model.pod_record import PodRecord
from gputally.model.price import Asset, Basis, Price, Purchase

GPU = "nvidia.com/gpu"
TERMS = Terms(
    from_us=10,
    tier="gold",
    tenant="red",
    gpu_model="A100",
    pool="train",
    asset=Asset(gpu_model="A100", pool="train"),
    quantities=((GPU, 2_000_000),),
)
POD = PodRecord(
    uid="u", namespace="ml", name="a", units=((GPU, 2),), created_us=0, node="n1", scheduled_us=10, terms=(TERMS,)
)


def price(rate: int) -> Price:
    return Price(
        key=str(rate), currency="EUR", per_gpu_hour=Decimal(rate), rate=rate, basis=Basis.NODE, purchase=Purchase.SPOT
    )


def segments(
    record: PodRecord, *, until_us: int | None = None, prices: dict[int, int] | None = None
) -> Sequence[Segment]:
    """`prices` is rate by instant from which on it holds."""
    dated = prices or {}

    def steps(_: Terms, from_us: int, until_us: int | None) -> Iterator[tuple[int, Price | None]]:
        past = [rate for at_us, rate in dated.items() if at_us <= from_us]
        yield from_us, price(past[-1]) if past else None
        yield from ((at, price(rate)) for at, rate in dated.items() if from_us < at < (until_us or max(dated) + 1))

    return segments_of(record, until_us=until_us, prices=steps)


def spans(record: PodRecord, *, until_us: int | None = None) -> list[tuple[str, int, int | None]]:
    return [(s.state.value, s.start_us, s.end_us) for s in segments(record, until_us=until_us)]


def test_a_life_is_starting_then_running_then_terminating() -> None:
    record = replace(POD, started_us=15, deletion_us=30, end_us=40, end_by=End.FINISHED)

    assert spans(record) == [("starting", 10, 15), ("running", 15, 30), ("terminating", 30, 40)]


def test_a_pod_that_lasts_has_an_open_segment() -> None:
    assert spans(replace(POD, started_us=15)) == [("starting", 10, 15), ("running", 15, None)]


def test_a_pod_asked_to_stop_before_it_started_never_runs() -> None:
    record = replace(POD, deletion_us=12, started_us=15, end_us=40, end_by=End.FINISHED)

    assert spans(record) == [("starting", 10, 12), ("terminating", 12, 40)]


def test_what_precedes_the_binding_is_in_force_from_the_binding_on() -> None:
    assert spans(replace(POD, started_us=5)) == [("running", 10, None)]
    assert spans(replace(POD, deletion_us=5)) == [("terminating", 10, None)]


def test_what_follows_the_end_cuts_nothing() -> None:
    assert spans(replace(POD, started_us=50, deletion_us=60, end_us=40, end_by=End.DELETED)) == [("starting", 10, 40)]


def test_a_pod_never_bound_or_refused_has_no_segments() -> None:
    assert spans(replace(POD, scheduled_us=None)) == []
    assert spans(replace(POD, accepted=False, end_by=End.REJECTED, end_us=12)) == []


def test_a_pod_refused_after_it_ran_has_segments() -> None:
    record = replace(POD, end_by=End.REJECTED, end_us=40, started_us=15)

    assert spans(record) == [("starting", 10, 15), ("running", 15, 40)]


def test_an_end_never_precedes_its_start() -> None:
    assert span_of(replace(POD, end_us=5, end_by=End.FINISHED), None) is None
    assert spans(replace(POD, end_us=5, end_by=End.FINISHED)) == []


def test_a_pod_that_ends_as_it_is_bound_has_no_segments() -> None:
    assert spans(replace(POD, end_us=10, end_by=End.DELETED)) == []


def test_no_allocation_outlives_its_node() -> None:
    assert spans(POD, until_us=25) == [("starting", 10, 25)]
    assert spans(replace(POD, end_us=20, end_by=End.FINISHED), until_us=25) == [("starting", 10, 20)]
    assert spans(POD, until_us=5) == []


def test_terms_cut_where_they_change_and_the_first_hold_from_the_binding_on() -> None:
    record = replace(POD, terms=(replace(TERMS, from_us=12), replace(TERMS, from_us=20, tenant="blue")))

    assert [(s.tenant, s.labels[1], s.start_us, s.end_us) for s in segments(record)] == [
        ("red", "red", 10, 20),
        ("blue", "blue", 20, None),
    ]


def test_each_resource_has_its_own_segments() -> None:
    units = ((GPU, 2), ("nvidia.com/mig-1g.10gb", 1))
    terms = replace(TERMS, quantities=((GPU, 2_000_000), ("nvidia.com/mig-1g.10gb", 142_857)))

    found = segments(replace(POD, units=units, terms=(terms,), started_us=15))

    assert [(s.resource, s.quantity, s.state) for s in found] == [
        (GPU, 2_000_000, State.STARTING),
        ("nvidia.com/mig-1g.10gb", 142_857, State.STARTING),
        (GPU, 2_000_000, State.RUNNING),
        ("nvidia.com/mig-1g.10gb", 142_857, State.RUNNING),
    ]


def test_prices_cut_where_they_change() -> None:
    found = segments(replace(POD, end_us=40, end_by=End.FINISHED), prices={15: 3, 20: 4})

    assert [(s.price and s.price.rate, s.start_us, s.end_us) for s in found] == [
        (None, 10, 15),
        (3, 15, 20),
        (4, 20, 40),
    ]


def test_a_price_change_that_changes_nothing_cuts_nothing() -> None:
    assert [(s.start_us, s.end_us) for s in segments(POD, prices={0: 3, 20: 3})] == [(10, None)]
