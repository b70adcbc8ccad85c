from typing import Any

from hack.pictures.dashboard import Transformation
from hack.pictures.frames import run
from hack.pictures.table import Cell, Table, table_of, unknown_steps
from hack.pictures.variables import Window
from tests.pictures.scripted import END, START, ScriptedPrometheus, panel, target

PROMETHEUS = ScriptedPrometheus(
    {
        "gpus": {"tier=high,tenant=a": 4, "tier=high,tenant=b": 2, "tier=low,tenant=a": 1},
        "cost": {"tier=high,tenant=a": 40, "tier=low,tenant=a": 3, "tier=low,tenant=c": 9},
        "quota": {"tier=high": 8},
    }
)
MERGE: dict[str, Any] = {"id": "merge", "options": {}}


def table(*queries: str, then: tuple[dict[str, Any], ...] = ()) -> Table:
    targets = [
        target(query, refId=ref, instant=True, format="table") for query, ref in zip(queries, "ABC", strict=False)
    ]
    filled = run(
        panel("table", *targets, transformations=list(then)), PROMETHEUS, window=Window(START, END), variables={}
    )
    return table_of(filled)


def rows(found: Table, *names: str) -> list[tuple[Cell, ...]]:
    by_name = {column.name: column.cells for column in found}
    return list(zip(*(by_name[name] for name in names), strict=True))


def test_one_query_has_a_column_for_the_time_each_label_and_the_value() -> None:
    found = table("gpus")

    assert [column.name for column in found] == ["Time", "tenant", "tier", "Value"]
    assert rows(found, "Time", "tier", "tenant", "Value")[1] == (END * 1000, "high", "b", 2)


def test_several_queries_are_shown_one_by_one_unless_they_are_merged() -> None:
    assert [column.name for column in table("gpus", "cost")] == ["Time", "tenant", "tier", "Value #A"]


def test_rows_that_agree_in_their_labels_are_merged_and_the_others_stay() -> None:
    assert rows(table("gpus", "cost", then=(MERGE,)), "tier", "tenant", "Value #A", "Value #B") == [
        ("high", "a", 4, 40),
        ("high", "b", 2, None),
        ("low", "a", 1, 3),
        ("low", "c", None, 9),
    ]


def test_merging_by_fewer_labels_goes_into_every_row_that_agrees() -> None:
    assert rows(table("gpus", "quota", then=(MERGE,)), "tier", "tenant", "Value #A", "Value #B") == [
        ("high", "a", 4, 8),
        ("high", "b", 2, 8),
        ("low", "a", 1, None),
    ]


def test_rows_are_joined_by_one_field_and_columns_of_one_name_are_numbered() -> None:
    inner = {"id": "joinByField", "options": {"byField": "tier", "mode": "inner"}}
    found = table("cost", "quota", then=(inner,))

    assert [column.name for column in found] == ["tier", "Time 1", "tenant", "Value #A", "Time 2", "Value #B"]
    assert rows(found, "tier", "tenant", "Value #A", "Value #B") == [("high", "a", 40, 8)]


def test_columns_are_left_out_renamed_and_put_in_order() -> None:
    organize = {
        "id": "organize",
        "options": {
            "excludeByName": {"Time": True},
            "indexByName": {"tier": 0, "tenant": 1, "Value #B": 2, "Value #A": 3},
            "renameByName": {"tier": "Tier", "Value #B": "Cost"},
        },
    }
    found = table("gpus", "cost", then=(MERGE, organize))

    assert [column.name for column in found] == ["Tier", "tenant", "Cost", "Value #A"]
    assert [column.origin for column in found] == ["tier", "tenant", "Value #B", "Value #A"]


def test_rows_are_sorted_by_a_column_and_empty_cells_come_last() -> None:
    sort = {"id": "sortBy", "options": {"sort": [{"field": "Value #B", "desc": True}]}}

    assert rows(table("gpus", "cost", then=(MERGE, sort)), "Value #B") == [(40,), (9,), (3,), (None,)]


def test_columns_are_chosen_by_name_or_pattern() -> None:
    names = {"id": "filterFieldsByName", "options": {"include": {"names": ["tier"], "pattern": "/^Value/"}}}
    other = {"id": "filterFieldsByName", "options": {"exclude": {"pattern": "T.*"}}}

    assert [column.name for column in table("gpus", then=(names,))] == ["tier", "Value"]
    assert [column.name for column in table("gpus", then=(other,))] == ["tenant", "tier", "Value"]


def test_a_transformation_that_is_left_out_is_named() -> None:
    assert unknown_steps([Transformation(id="merge"), Transformation(id="groupBy")]) == ["groupBy"]
