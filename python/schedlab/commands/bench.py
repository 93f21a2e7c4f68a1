# SPDX-License-Identifier: MIT
"""`./schedlab bench simulator`, `./schedlab bench monitor` and `./schedlab bench monitor-model`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from schedlab.commands.options import echo_json, json_option
from schedlab.display.terminal import new_table, results, say

if TYPE_CHECKING:
    from rich.table import Table

    from schedlab.benchmarks.live_model import Measured
    from schedlab.benchmarks.peers import Peer
    from schedlab.benchmarks.simulator_speed import Aim, Decision
    from schedlab.benchmarks.watching import Watching


@click.command("simulator")
@click.option(
    "--peers",
    "with_peers",
    is_flag=True,
    help="Also other simulators of PyPI, each installed into an environment of its own.",
)
@json_option
def bench_simulator(with_peers: bool, as_json: bool) -> None:
    """Measure how fast the simulator decides on this host.

    In CPU time of one core; exit status 1 if an aim is not met. With --peers, others get the same
    work (100 processes, 1,000 units each, round-robin), and two small cases that show what they do
    when things happen at once, and after a pause.
    """
    from schedlab.benchmarks import simulator_speed as simulator_bench
    from schedlab.toolchain.policies import read_catalogue

    measured = simulator_bench.measure()
    aims = simulator_bench.aims(measured, simulator_bench.process_bytes(list(read_catalogue())))
    peers = ask_peers(measured) if with_peers else []
    if as_json:
        decisions = [{**vars(one), "per_second": one.per_second} for one in measured]
        told = {"decisions": decisions, "aims": [aim.to_dict() for aim in aims]}
        echo_json({**told, "peers": [peer.to_dict() for peer in peers]})
    else:
        results().print(aims_table(aims))
        if peers:
            results().print(peers_table(peers))
    if any(aim.verdict != "met" for aim in aims):
        raise SystemExit(1)


def ask_peers(measured: list[Decision]) -> list[Peer]:
    """Ours first."""
    from schedlab.benchmarks import peers

    speeds = {(one.name, one.processes): one.per_second for one in measured}
    answers = [
        peers.ours(speeds["decision-traced", 100]),
        peers.ours(speeds["decision-4-cpus", 1000], 4),
    ]
    for name, counts in peers.PEERS.items():
        for cpus in counts:
            say(f"asking {name}, {cpus} CPU{'s' if cpus > 1 else ''}")
            answers.append(peers.ask(name, cpus))
    return answers


def aims_table(aims: list[Aim]) -> Table:
    table = new_table("The simulator on one core of this host (CPU time, least of some rounds)")
    table.add_column("what")
    for heading in ("measured", "aim: at most"):
        table.add_column(heading, justify="right")
    table.add_column("unit")
    table.add_column("aim")
    for aim in aims:
        table.add_row(aim.name, f"{aim.value:,.1f}", f"{aim.most:,.0f}", aim.unit, aim.verdict)
    return table


def peers_table(peers: list[Peer]) -> Table:
    table = new_table(
        "Decisions a second, round-robin; who runs if B arrives as A's slice ends; after a pause"
    )
    table.add_column("simulator")
    for heading in ("CPUs", "decisions a second", "of ours"):
        table.add_column(heading, justify="right")
    table.add_column("A and B")
    table.add_column("remark")
    ours = {peer.cpus: peer.per_second for peer in peers if peer.name == "schedlab"}
    for peer in peers:
        speed, base = peer.per_second, ours[peer.cpus]
        table.add_row(
            peer.name,
            str(peer.cpus),
            f"{speed:,.0f}" if speed else "",
            f"{speed / base:.3g}" if speed and base else "",
            peer.schedule_of_tie,
            peer.remark,
        )
    return table


@click.command("monitor")
@json_option
def bench_monitor(as_json: bool) -> None:
    """Count what being watched costs our kernel.

    Instructions on Spike with one CPU: exact, and the same every time. Exit status 1 if watching
    takes more than 5 % of a CPU, at one question for sched_status a second.
    """
    from schedlab.benchmarks import watching as monitor_bench
    from schedlab.machines import kernel_machine
    from schedlab.toolchain.build import IMAGE, KERNEL, build

    build("kernel", "image")
    rows = monitor_bench.measure(kernel_machine("spike"), KERNEL, IMAGE)
    if as_json:
        echo_json({"watching": [row.to_dict() for row in rows], "aim": monitor_bench.MOST})
    else:
        results().print(watching_table(rows))
    if any(row.verdict != "met" for row in rows):
        raise SystemExit(1)


def watching_table(rows: list[Watching]) -> Table:
    """A row for each number of processes."""
    table = new_table("What being watched costs (Spike, 1 CPU, instructions)")
    headings = ("processes", "queues, and blocks in time", "a record", "a question and its answer")
    for heading in (*headings, "of a CPU, asked once a second (aim: at most 5 %)"):
        table.add_column(heading, justify="right")
    table.add_column("aim")
    for row in rows:
        table.add_row(
            f"{row.processes:,}",
            f"{row.tracing:.3%}",
            f"{row.record_instructions:.0f}",
            f"{row.read_instructions:,.0f}",
            f"{row.share:.3%}",
            row.verdict,
        )
    return table


@click.command("monitor-model")
@json_option
def bench_monitor_model(as_json: bool) -> None:
    """Measure how many records a second the live monitor takes in on this host.

    In CPU time of one core, with five frames for each 200,000 records. Exit status 1 if it is less
    than the aim.
    """
    from schedlab.benchmarks import live_model as monitor_model_bench
    from schedlab.toolchain.build import build

    build("simulator")
    measured = monitor_model_bench.measure()
    if as_json:
        echo_json({"scenes": [one.to_dict() for one in measured]})
    else:
        results().print(model_table(measured))
    if any(one.verdict != "met" for one in measured):
        raise SystemExit(1)


def model_table(measured: list[Measured]) -> Table:
    """A row for each scene."""
    table = new_table("Records that the monitor takes in on one core of this host (CPU time)")
    table.add_column("policy and processes")
    for heading in ("records", "a second", "aim: at least", "a frame"):
        table.add_column(heading, justify="right")
    table.add_column("aim")
    for one in measured:
        table.add_row(
            one.name,
            f"{one.records:,}",
            f"{one.records_per_second:,.0f}",
            f"{one.aim:,}",
            f"{one.frame_ms:.1f} ms",
            one.verdict,
        )
    return table
