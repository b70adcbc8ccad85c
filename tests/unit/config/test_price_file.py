from decimal import Decimal
from pathlib import Path

import pytest

from gputally.accounting.prices.book import ALWAYS, Criterion, PriceBook, Trait
from gputally.config.prices import read_price_book
from gputally.errors import ConfigError
from gputally.model.price import Asset, Basis, Purchase

EXAMPLES = Path(__file__).parents[3] / "examples" / "prices"
SUMMER_2026 = 1_784_505_600_000_000
"""2026-07-20, 00:00 UTC, in µs."""
HEAD = "kind: PriceBook\ncurrency: EUR\nbasis: gpu\n"


def book(text: str, tmp_path: Path, name: str = "prices.yaml") -> PriceBook:
    path = tmp_path / name
    path.write_text(HEAD + text)
    return read_price_book(path)


def problems(text: str, tmp_path: Path) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        book(text, tmp_path)
    return [f"{problem.field}: {problem.text}" for problem in raised.value.problems]


def rule(match: str = "{default: true}", price: str = "1", since: str = "always", purchase: str = "") -> str:
    bought = f", purchase: {purchase}" if purchase else ""
    return f"- {{match: {match}, price: {price}, effective_from: {since}{bought}}}\n"


def test_a_book_is_read_as_written(tmp_path: Path) -> None:
    found = book(
        """
source: a list
as_of: 2026-07-20
tiers: {gold: 1.5, lead: "0.50"}
rules:
  - id: h100
    match: {instance_type: [p5.*, p5en.*], pool: big, labels: {accelerator: h100, spot: true}}
    purchase: [on-demand, reserved]
    prices:
      - {effective_from: always, price: 9.00}
      - {effective_from: 2026-07-20, price: 6.88}
""",
        tmp_path,
    )

    assert (found.name, found.currency, found.basis) == ("prices", "EUR", Basis.GPU)
    assert (found.source, found.as_of) == ("a list", "2026-07-20")
    assert found.tiers == (("gold", Decimal("1.5")), ("lead", Decimal("0.5")))
    (h100,) = found.rules
    assert h100.criteria == (
        Criterion(trait=Trait.INSTANCE_TYPE, globs=("p5.*", "p5en.*")),
        Criterion(trait=Trait.POOL, globs=("big",)),
        Criterion(trait=Trait.LABEL, key="accelerator", globs=("h100",)),
        Criterion(trait=Trait.LABEL, key="spot", globs=("true",)),
    )
    assert h100.purchases == (Purchase.ON_DEMAND, Purchase.RESERVED)
    assert [(p.from_us, str(p.per_gpu_hour)) for p in h100.prices] == [(ALWAYS, "9.00"), (SUMMER_2026, "6.88")]


def test_a_rule_without_purchase_prices_nodes_however_they_were_bought(tmp_path: Path) -> None:
    found = book("rules:\n" + rule(), tmp_path)

    assert all(found.price_of(Asset(purchase=option), tier=None, at_us=1) for option in Purchase)


def test_a_comment_or_a_new_name_leaves_the_digest_and_a_new_price_changes_it(tmp_path: Path) -> None:
    first = book("rules:\n" + rule(), tmp_path)
    renamed = book("# once more\nsource: somewhere\nrules:\n" + rule(), tmp_path, "other.yaml")
    dearer = book("rules:\n" + rule(price="2"), tmp_path)

    assert len(first.digest) == 64
    assert first.digest == renamed.digest != dearer.digest


def test_a_price_without_a_date_is_refused(tmp_path: Path) -> None:
    text = "rules:\n- {match: {default: true}, price: 1}\n"

    (problem,) = problems(text, tmp_path)
    assert problem.startswith("rules[0].effective_from: is missing; add the date from which it applies")


def test_a_multiplier_whose_product_with_a_price_is_inexact_is_refused(tmp_path: Path) -> None:
    text = "tiers: {gold: 1.000001}\nrules:\n" + rule(price="1.0000001")

    assert problems(text, tmp_path) == [
        "tiers.gold: times 1.0000001 has more than 12 decimals; round one of them"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ({}, {"match": "{pool: a}"}),
        ({"match": "{pool: a*}"}, {"match": "{pool: [ab, ac], gpu_model: L4}"}),
        ({"match": "{instance_type: P5*}"}, {"match": "{instance_type: p5.*}"}),
        ({"match": "{pool: a*}", "purchase": "[spot, on-demand]"}, {"match": "{pool: ab}", "purchase": "spot"}),
        ({"match": "{labels: {a: '*'}}"}, {"match": "{labels: {a: x, b: y}}"}),
    ],
)
def test_a_rule_behind_one_that_takes_all_it_matches_is_refused(
    earlier: dict[str, str], later: dict[str, str], tmp_path: Path
) -> None:
    (problem,) = problems("rules:\n" + rule(**earlier) + rule(**later), tmp_path)

    assert problem == "rules[1]: is never reached: rules[0] matches everything it does; move it before that rule"


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ({"match": "{pool: a}"}, {}),
        ({"match": "{pool: A*}"}, {"match": "{pool: ab}"}),
        ({"match": "{pool: 'a?'}"}, {"match": "{pool: a*}"}),
        ({"match": "{pool: a, gpu_model: L4}"}, {"match": "{pool: a}"}),
        ({"match": "{labels: {a: x}}"}, {"match": "{labels: {b: x}}"}),
        ({"purchase": "spot"}, {}),
        ({"since": "2026-07-20"}, {"match": "{pool: a}", "since": "2025-07-20"}),
    ],
)
def test_a_rule_that_is_reached_for_some_node_at_some_time_is_accepted(
    earlier: dict[str, str], later: dict[str, str], tmp_path: Path
) -> None:
    assert len(book("rules:\n" + rule(**earlier) + rule(**later), tmp_path).rules) == 2


def test_two_rules_of_the_same_match_and_purchase_are_refused_whatever_their_dates(tmp_path: Path) -> None:
    twice = rule("{pool: [a, b]}", since="2026-07-20") + rule("{pool: [a, b]}", since="2025-07-20")

    (problem,) = problems("rules:\n" + twice, tmp_path)
    assert problem.startswith("rules[1]: has the same match and purchase as rules[0]")


def test_two_rules_of_the_same_id_are_refused(tmp_path: Path) -> None:
    text = "rules:\n" + rule("{pool: a}").replace("{", "{id: x, ", 1) + rule().replace("{", "{id: x, ", 1)

    assert problems(text, tmp_path) == ["rules[1]: has the same id 'x' as rules[0]; use a unique id"]


def test_a_configuration_is_no_price_book() -> None:
    with pytest.raises(ConfigError, match="kind: unknown 'Configuration'; use PriceBook"):
        read_price_book(EXAMPLES.parent / "config.yaml")


@pytest.mark.parametrize(
    ("accelerator", "price"),
    [
        ("nvidia-a100-80gb", "2.21"),
        ("nvidia-a100-40gb", "1.65"),
        ("nvidia-h100-80gb", "3.75"),
        ("nvidia-l4", "0.81"),
        ("nvidia-t4", "2.00"),
    ],
)
def test_the_research_team_pays_by_the_accelerator_label(accelerator: str, price: str) -> None:
    research = read_price_book(EXAMPLES / "research-team.yaml")
    node = Asset(labels=(("accelerator", accelerator),))

    found = research.price_of(node, tier=None, at_us=SUMMER_2026)
    assert research.label_keys() == {"accelerator"}
    assert found is not None
    assert found.per_gpu_hour == Decimal(price)


@pytest.mark.parametrize(
    ("instance_type", "gpus", "price"),
    [
        ("p5.48xlarge", 8, "55.04"),
        ("g6e.48xlarge", 8, "30.131"),
        ("p4de.24xlarge", 8, "27.447"),
        ("g5.xlarge", 1, "1.006"),
    ],
)
def test_all_gpus_of_an_aws_instance_cost_what_the_instance_costs(instance_type: str, gpus: int, price: str) -> None:
    aws = read_price_book(EXAMPLES / "aws-us-east-1-on-demand.yaml")
    found = aws.price_of(Asset(instance_type=instance_type), tier=None, at_us=SUMMER_2026)

    assert found is not None
    assert found.per_gpu_hour * gpus == Decimal(price)


def test_the_aws_list_says_nothing_of_spot_nodes_or_of_the_time_before_it() -> None:
    aws = read_price_book(EXAMPLES / "aws-us-east-1-on-demand.yaml")
    spot = Asset(instance_type="p5.48xlarge", purchase=Purchase.SPOT)

    assert aws.price_of(spot, tier=None, at_us=SUMMER_2026) is None
    assert aws.price_of(Asset(instance_type="p5.48xlarge"), tier=None, at_us=SUMMER_2026 - 1) is None
