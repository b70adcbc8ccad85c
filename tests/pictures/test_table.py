from typing import Any

from hack.pictures.frames import run
from hack.pictures.table import Cell, table_of
from hack.pictures.variables import Window
from tests.pictures.scripted import END, START, ScriptedPrometheus, panel, target

PROMETHEUS = ScriptedPrometheus(
    {
        "gpus": {"tier=high,tenant=a": 4, "tier=high,tenant=b": 2, "tier=low,tenant=a": 1},
        "cost": {"tier=high,tenant=a": 40, "tier=low,tenant=a": float("nan"), "tier=low,tenant=c": 9},
        "quota": {"tier=high": 8},
    }
)
MERGE: dict[str, Any] = {"id": "merge", "options": {}}


def table(*queries: str, organize: dict[str, Any] | None = None, **options: object) -> dict[str, list[Cell | None]]:
    targets = [target(query, refId=ref, instant=True) for query, ref in zip(queries, "ABC", strict=False)]
    steps = [MERGE, {"id": "organize", "options": {"excludeByName": {"Time": True}, **(organize or {})}}]
    shown = panel("table", *targets, transformations=steps, options=options)
    return table_of(run(shown, PROMETHEUS, window=Window(START, END), variables={}))


def test_one_query_has_a_column_for_each_label_and_the_value() -> None:
    assert table("quota") == {"tier": ["high"], "Value": [8]}
    assert table("quota", organize={"excludeByName": {}})["Time"] == [END * 1000]


def test_rows_that_agree_in_their_labels_are_merged_and_the_others_stay() -> None:
    found = table("gpus", "cost")

    assert (found["tier"], found["tenant"]) == (["high", "high", "low", "low"], ["a", "b", "a", "c"])
    assert found["Value #A"] == [4, 2, 1, None]
    assert [str(cell) for cell in found["Value #B"]] == ["40.0", "None", "nan", "9.0"]


def test_merging_by_fewer_labels_goes_into_every_row_that_agrees() -> None:
    assert table("gpus", "quota")["Value #B"] == [8, 8, None]


def test_columns_are_left_out_renamed_and_put_in_order() -> None:
    organize = {
        "excludeByName": {"Time": True, "Value #A": True},
        "indexByName": {"tier": 0, "Value #B": 1},
        "renameByName": {"tier": "Tier", "Value #B": "Cost"},
    }

    assert list(table("gpus", "cost", organize=organize)) == ["Tier", "Cost", "tenant"]


def test_rows_are_sorted_by_a_column_and_what_is_no_number_comes_last() -> None:
    organize = {"renameByName": {"Value #B": "Cost"}}
    found = table("gpus", "cost", organize=organize, sortBy=[{"displayName": "Cost", "desc": True}])

    assert found["tier"] == ["high", "low", "high", "low"]
    assert found["Cost"][:2] == [40, 9]
