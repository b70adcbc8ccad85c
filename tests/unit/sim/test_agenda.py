from gputally_sim.agenda import Agenda, Worklist


def test_actions_run_in_order_of_time_then_of_entry() -> None:
    agenda = Agenda(100)
    ran: list[tuple[str, int]] = []
    for name, due_us in (("late", 300), ("first", 200), ("second", 200), ("past", 50)):
        agenda.at(due_us, lambda name=name: ran.append((name, agenda.now_us)))  # type: ignore[misc]  # a default binds early

    agenda.run_until(1000)

    assert ran == [("past", 100), ("first", 200), ("second", 200), ("late", 300)]
    assert agenda.now_us == 1000


def test_time_does_not_pass_an_action_that_is_still_to_run() -> None:
    agenda = Agenda(0)
    agenda.at(10, lambda: None)

    agenda.catch_up(50)

    assert agenda.now_us == 10


def test_a_limited_run_says_whether_anything_due_is_left() -> None:
    agenda = Agenda(0)
    for due_us in (1, 2, 3):
        agenda.at(due_us, lambda: None)

    assert not agenda.run_until(10, limit=2)
    assert agenda.now_us == 2
    assert agenda.run_until(10, limit=2)


def test_an_earlier_action_is_announced() -> None:
    agenda = Agenda(0)
    announced: list[int | None] = []
    agenda.on_earlier = lambda: announced.append(agenda.next_us)

    for due_us in (20, 30, 10):
        agenda.at(due_us, lambda: None)

    assert announced == [20, 10]


def test_a_key_added_twice_is_reconciled_once() -> None:
    agenda = Agenda(0)
    seen: list[str] = []
    worklist: Worklist[str] = Worklist(agenda, seen.append)

    worklist.add("a")
    worklist.add("a")
    worklist.add_after(5, "a")
    agenda.run_until(10)

    assert seen == ["a", "a"]
