"""`gputally demo` runs the aggregator on a simulated cluster."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from gputally.demo.plan import Demo
from gputally.process.command import needing, run_until_stopped


def add_demo_flags(command: ArgumentParser) -> None:
    """Add all flags."""
    command.set_defaults(run=_demo)
    add = command.add_argument
    add("--for", dest="duration", metavar="TIME", default="", help="stop after e.g. 30s or 5m; without it, at Ctrl-C")
    add(
        "--web.listen-address",
        dest="address",
        metavar="HOST:PORT",
        default="127.0.0.1:0",
        help="address that serves /metrics; port 0 selects a free port [default: %(default)s]",
    )
    add(
        "--ledger", metavar="FILE", type=Path, help="keep the ledger in this file; by default, it is deleted at the end"
    )
    add("--seed", type=int, metavar="N", default=1, help="random seed of the simulation [default: 1]")
    add(
        "--speed",
        type=float,
        metavar="X",
        default=600.0,
        help="simulated seconds per second; 600 is a day in 2.4 minutes [default: 600]",
    )
    shown = command.add_mutually_exclusive_group().add_argument
    shown(
        "--scenario",
        choices=("s1", "s2", "waits"),
        default="s1",
        help="s1: inference by day, training by night; s2: four tiers, tenants with quotas; waits: pods that wait for "
        "different reasons, such as deadlocked gangs and inverted priorities [default: s1]",
    )
    shown("--trace", metavar="FILE", type=Path, help="replay the pods of this CSV instead, to its end")
    add(
        "--trace-nodes",
        metavar="FILE",
        type=Path,
        help="nodes for the replay (CSV); without it, they join when needed",
    )
    add("--chaos", action="store_true", help="inject random faults of connections, API server, nodes and clocks")


def _demo(parsed: Namespace) -> int:
    """Run the demo until it is over or asked to stop."""
    with needing("the demo needs it: in a clone of gputally, pip install ./simulator"):
        from gputally.demo.demo import run, time_limit  # noqa: PLC0415 - needs the simulator

    plan = Demo(
        address=parsed.address,
        ledger=parsed.ledger,
        seed=parsed.seed,
        speed=parsed.speed,
        scenario=parsed.scenario,
        duration_s=time_limit(parsed.duration),
        trace=parsed.trace,
        trace_nodes=parsed.trace_nodes,
        chaos=parsed.chaos,
    )
    return run_until_stopped(lambda: run(plan))
