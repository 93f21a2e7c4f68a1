# SPDX-License-Identifier: MIT
"""`./schedlab dev bench simulator`: how fast it decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from schedlab.base.display.terminal import new_table, results, say
from schedlab.base.toolchain.policies import read_catalogue
from schedlab.commands.options import echo_json, json_option

if TYPE_CHECKING:
    from rich.table import Table

    from schedlab_tools.benchmarks.peers import Peer
    from schedlab_tools.benchmarks.simulator_speed import Aim, Decision


@click.command("simulator")
@click.option(
    "--peers",
    "with_peers",
    is_flag=True,
    help="Also other simulators of PyPI, each installed into an environment of its own.",
)
@json_option
def simulator(with_peers: bool, as_json: bool) -> None:
    """Measure how fast the simulator decides on this host, and how fast its trace is measured.

    In CPU time of one core; exit status 1 if an aim is not met. With --peers, others get the same
    work (100 processes, 1,000 units each, round-robin), and two small cases that show what they do
    when things happen at once, and after a pause.
    """
    from schedlab_tools.benchmarks import long_trace
    from schedlab_tools.benchmarks import simulator_speed as simulator_bench

    measured = simulator_bench.measure()
    aims = simulator_bench.aims(measured, simulator_bench.process_bytes(list(read_catalogue())))
    aims += long_trace.measure().aims()
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
    from schedlab_tools.benchmarks import peers

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
    title = "The simulator on one core of this host (CPU time, least of some rounds)"
    table = new_table(title, "what", ">measured", ">aim: at most", "unit", "aim")
    for aim in aims:
        table.add_row(aim.name, f"{aim.value:,.1f}", f"{aim.most:,.0f}", aim.unit, aim.verdict)
    return table


def peers_table(peers: list[Peer]) -> Table:
    title = (
        "Decisions a second, round-robin; which runs if B arrives as A's slice ends; after a pause"
    )
    figures = (">CPUs", ">decisions a second", ">of ours")
    table = new_table(title, "simulator", *figures, "A and B", "remark")
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
