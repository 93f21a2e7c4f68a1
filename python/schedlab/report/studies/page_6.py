# SPDX-License-Identifier: MIT
"""The page of study 6: lottery and stride scheduling, with the figures
that two papers print as numbers.
"""

from collections.abc import Callable
from functools import partial
from typing import Literal

from schedlab.report.model import Page
from schedlab.report.studies.page_writer import Curve, Quantity, Writer
from schedlab.report.studies.study_6 import Queries
from schedlab.report.study_tables import FigureComparison, Measurement
from schedlab.studies.figures import Figure

_TICKETS = (1, 2, 5, 10, 20)
_RATE_EXPERIMENTS = [f"s6-rates-{tickets}" for tickets in _TICKETS]
_LOCK_EXPERIMENTS = {"s6-lock": "yields", "s6-lock-no-yield": "goes on"}
_LOCK_POLICIES = ("lottery", "draw", "transfers and draw", "draw, compensated", "all of theirs")
_IDEAL_PARTS = {"a": 1 / 2, "b": 1 / 3, "c": 1 / 6}
_HALVES_S = {"before": (0, 150), "after": (150, 300)}
"""Seconds before and after the change in the middle of a run."""


def make_page(q: Queries) -> Page:
    """Returns the page of study 6."""
    page = Writer(q.study, "Study 6: the first lottery, and stride")
    for write in (
        _write_lead,
        _write_summary,
        _write_rates,
        _write_clients,
        _write_video,
        _write_insulation,
        _write_lock,
        _write_stride,
    ):
        write(page, q)
    return page.page(q.trials)


def _measure_rate(q: Queries, policy: str, tickets: int) -> Measurement:
    """Returns the measured ratio of CPU times for this number of tickets."""
    return q.cpu_time_ratio(f"s6-rates-{tickets}", policy, "a", "b")


def _published_rate(q: Queries, tickets: int) -> Figure | None:
    """Returns the published ratio of CPU times for this number of tickets."""
    run = "three minutes" if tickets == _TICKETS[-1] else "the run farthest off"
    return q.figure("figure 4", f"{tickets} : 1", run)


def _write_lead(page: Writer, q: Queries) -> None:
    page.lead("A task's share of the CPU equals its share of the tickets, up to chance")
    lottery, stride = (_measure_rate(q, policy, 20) for policy in ("lottery", "stride"))
    if lottery.mean is not None and stride.mean is not None:
        page.lead(f""": with 20 : 1 tickets, one task gets {_published_rate(q, 20)} times as much as the other in the
        study, {lottery:.1f} times in the measurements, and {stride:.1f} times under stride, which is not random""")
    page.lead(f". {q.failures()}")


def _write_summary(page: Writer, q: Queries) -> None:
    page.section("In short")
    page.text("""
    **Claimed.** Tickets and a lottery are enough to share a machine. Rates follow tickets (figures 4 to 6, 8).
    Clients lend tickets to a server, and threads to the owner of a lock (7, 11). Groups are isolated (9), and a task
    that uses less than its time slice is compensated (section 3.4). Stride, published a year later, gives the same
    rates without randomness.""")
    part = partial(q.cpu_share, "s6-insulation")
    with page.if_measured():
        page.text(f"""
        **Measured.** With 10 : 1 and 20 : 1 tickets, one task gets {_measure_rate(q, "lottery", 10):.2f} and
        {_measure_rate(q, "lottery", 20):.2f} times as much under the lottery, and
        {_measure_rate(q, "stride", 10):.2f} and
        {_measure_rate(q, "stride", 20):.2f} under stride. When a task joins currency B, A's two tasks keep
        {part("currencies", "A1", 150, 300):.1f} and {part("currencies", "A2", 150, 300):.1f} %; without currencies
        they fall to {part("lottery", "A1", 150, 300):.1f} and {part("lottery", "A2", 150, 300):.1f} %.""")
    page.text("""
    **Teaches.** The relative error of a lottery falls with the square root of the number of draws: shorter time
    slices make it more exact. Stride is not random.""")
    page.curves(
        "study-6-in-short",
        "Ratio of the two tasks' CPU time, by tickets",
        _TICKETS,
        "ratio of their tickets",
        "times as much",
        {
            "lottery": Curve(partial(_measure_rate, q, "lottery"), partial(_published_rate, q)),
            "stride": Curve(partial(_measure_rate, q, "stride")),
        },
        caption=q.how(_RATE_EXPERIMENTS),
        ideal=lambda tickets: tickets,
        policies=False,
        order=["lottery", "stride"],
    )
    page.section("What was measured")
    page.text(f"""
    - **Machines.** The study used Mach 3.0 with a quantum of {q.figure("section 4", "quantum", "length")} ms. The
      simulator runs one CPU with the same quantum.
    - **Figures.** Published figures are numbers in the text of the first paper. Curves in both papers have no numbers
      and are not read off.
    - **Ideal.** Shares proportional to tickets.""")


def _write_rates(page: Writer, q: Queries) -> None:
    """Adds the section on the ratio of two tasks' CPU times."""
    page.section("Rates")
    page.compared(
        "study-6-rates",
        "Relative rates (figure 4): ratio of the two tasks' CPU time",
        ["tickets"],
        {f"{tickets} : 1": tickets for tickets in _TICKETS},
        {
            "lottery": lambda tickets: FigureComparison(
                _published_rate(q, tickets), _measure_rate(q, "lottery", tickets), ideal=tickets
            ),
            "lottery, time slices of 10 ms": lambda tickets: FigureComparison(
                measured=_measure_rate(q, "short turns", tickets) if tickets == 10 else None
            ),
            "stride": lambda tickets: FigureComparison(
                measured=_measure_rate(q, "stride", tickets)
            ),
        },
        f"""Two tasks that compute for 60 s, or three minutes at 20 : 1. Of the study's runs at 10 : 1, the table
        shows the run that was farthest off. {q.how(_RATE_EXPERIMENTS)}""",
        decimals=2,
    )
    page.text(f"""
    **Why different.** The lottery is random. Over n draws the standard error of a share p is √(p (1 − p) ÷ n): at 10 :
    1 and 600 draws it is 1.2 points, so rates from 8.7 to 11.6 are within one standard error. The study's
    {_published_rate(q, 10)} is within two. Two experiments test this explanation: with ten times as many draws""")
    with page.if_measured(page.more):
        page.more(f"""it is {_measure_rate(q, "short turns", 10):.2f}; under stride, which is not random,
        {_measure_rate(q, "stride", 10):.2f}.""")

    def window(which: Literal["least", "most"], policy: str) -> FigureComparison:
        return FigureComparison(measured=q.in_windows("s6-fairness", policy, "a", "b", 8, which))

    page.compared(
        "study-6-fairness",
        "Fairness over time (figure 5), tickets 2 for 1",
        ["policy"],
        ["lottery", "short turns", "stride"],
        {
            "whole run": lambda policy: FigureComparison(
                q.figure("figure 5", "2 : 1", "whole run") if policy == "lottery" else None,
                q.cpu_time_ratio("s6-fairness", policy, "a", "b"),
                ideal=2,
            ),
            "least window": partial(window, "least"),
            "most window": partial(window, "most"),
        },
        f"200 s, divided into windows of 8 s. {q.how('s6-fairness')}",
        decimals=2,
    )
    page.text("""
    The windows of the study's figure have no printed numbers. Shorter time slices and stride narrow the measured
    range, so chance explains it.""")


def _write_clients(page: Writer, q: Queries) -> None:
    page.section("Tickets that follow the work")
    page.measured(
        "study-6-monte-carlo",
        "Monte Carlo (figure 6): work of the last of three tasks, in percent of the first one's work",
        ["policy"],
        ["lottery", "stride"],
        [
            Quantity(
                "measured", lambda policy: q.least_of_most("s6-monte-carlo", policy, "integrat")
            ),
            Quantity("due", lambda policy: 75.8, muted=True),
        ],
        f"Started two minutes apart, measured after ten minutes. {q.how('s6-monte-carlo')}",
    )
    page.text("""
    The study prints no numbers; its three curves converge. Each integration sets its tickets to the square of its
    relative error, and this square is inversely proportional to the work done. So the difference between the squares
    of two integrations' work is constant: after ten minutes, the last one should have done 75.8 % of the first one's
    work.""")
    page.section("Clients and a server")

    def response(policy: str, tickets: int) -> Measurement:
        return q.ratio(*(q.mark_interval("s6-clients", policy, count) for count in (tickets, 8)))

    page.compared(
        "study-6-clients",
        "Clients and a server (figure 7): response time relative to the client with 8 tickets",
        ["client"],
        {"8 tickets": 8, "3 tickets": 3, "1 ticket": 1},
        {
            "with transfers": lambda tickets: FigureComparison(
                q.figure(
                    "figure 7",
                    "1 ticket" if tickets == 1 else f"{tickets} tickets",
                    "response time",
                ),
                response("transfers", tickets),
                ideal=8 / tickets,
            ),
            "without": lambda tickets: FigureComparison(measured=response("lottery", tickets)),
        },
        q.how("s6-clients"),
        decimals=2,
    )
    page.text("""
    **Why different.** Without transfers, all clients wait equally long, so transfers cause the difference. The
    interval shows the effect of chance in five minutes.""")


def _write_video(page: Writer, q: Queries) -> None:
    def rate(policy: str, viewer: str, when: str) -> Measurement:
        other = "c" if when == "before" else "b"
        return q.cpu_time_ratio("s6-video", policy, viewer.lower(), other, *_HALVES_S[when])

    def through_a_display(viewer: str, when: str) -> FigureComparison:
        frames = (q.marked("s6-display", "lottery", n) for n in (1 if viewer == "A" else 2, 3))
        rate = q.ratio(*frames) if when == "before" else None
        return FigureComparison(q.figure("figure 8", f"{viewer} {when}", "rate"), rate)

    page.section("Viewers")
    page.compared(
        "study-6-video",
        "Viewers (figure 8): rate relative to the viewer with one part of the tickets",
        ["viewer", "tickets"],
        {
            ("A before", 3): ("A", "before"),
            ("B before", 2): ("B", "before"),
            ("A after", 3): ("A", "after"),
            ("C after", 2): ("C", "after"),
        },
        {
            "lottery": lambda viewer, when: FigureComparison(
                q.figure("figure 8", f"{viewer} {when}", "rate without a display"),
                rate("lottery", viewer, when),
                ideal=3 if viewer == "A" else 2,
            ),
            "through a display": through_a_display,
            "stride": lambda viewer, when: FigureComparison(measured=rate("stride", viewer, when)),
        },
        f"Tickets 3 : 2 : 1, and 3 : 1 : 2 in the second half. {q.how(['s6-video', 's6-display'])}",
        decimals=2,
    )
    page.text(f"""
    **Why different.** The study's viewers drew through one display server, which served them in turn. The study says
    that this distorts its figures: without a display its rates were
    {q.figure("figure 8", "A before", "rate without a display")} and
    {q.figure("figure 8", "B before", "rate without a display")}, like the measured ones. In the simulator, three
    viewers that wait for one server after each frame get equal rates. The study's rates are between the two; it does
    not say how often its viewers waited, so the size is not explained.""")


def _write_insulation(page: Writer, q: Queries) -> None:
    """Adds the section on currencies, which insulate users from each other."""
    page.section("Load insulation")

    def cpu_share(policy: str, when: str, task: str) -> Measurement:
        return q.cpu_share("s6-insulation", policy, task, *_HALVES_S[when])

    groups = {
        "currencies": "lottery, with currencies",
        "lottery": "lottery, without",
        "hsfq": "hsfq",
    }
    page.measured(
        "study-6-insulation",
        "Load insulation (figure 9): a task's share of the CPU before and after B3 starts, percent",
        ["task"],
        ["A1", "A2", "B1", "B2", "B3"],
        [
            Quantity(when, partial(cpu_share, policy, when), group)
            for policy, group in groups.items()
            for when in _HALVES_S
        ],
        f"""Currencies A and B have the same value; A1 and A2 hold 1 : 2 tickets of A; B1, B2 and B3 hold 1 : 2 : 3
        tickets of B. {q.how("s6-insulation")}""",
    )
    page.text(f"""
    A new task inflates currency B by half of its tickets. The tasks of A keep their shares, under
    `lottery:currencies` and under `hsfq`, whose groups have the same effect. In the study, the tasks of A did
    {q.figure("figure 9", "A : B", "before")} times as much as the tasks of B before it started, and
    {q.figure("figure 9", "A : B", "after")} times after.""")


def _write_lock(page: Writer, q: Queries) -> None:
    page.section("A lock")
    rows = {
        (after, policy): (experiment, policy)
        for experiment, after in _LOCK_EXPERIMENTS.items()
        for policy in _LOCK_POLICIES
        if q.ran(experiment, policy)
    }

    def lock_cell(
        row: str,
        column: str,
        measure: Callable[[str, str], Measurement],
        decimals: int,
        experiment: str,
        policy: str,
    ) -> FigureComparison:
        theirs = (experiment, policy) == ("s6-lock", "all of theirs")
        figure = q.figure("figure 11", row, column) if theirs else None
        return FigureComparison(figure, measure(experiment, policy), decimals=decimals)

    def taken(mark: int, experiment: str, policy: str) -> Measurement:
        return q.marked(experiment, policy, mark)

    def taken_ratio(experiment: str, policy: str) -> Measurement:
        return q.ratio(taken(1, experiment, policy), taken(2, experiment, policy))

    def waited(group: str, experiment: str, policy: str) -> Measurement:
        return q.mark_delays(experiment, policy, *((3, 1) if group == "A" else (4, 2)))

    def waited_ratio(experiment: str, policy: str) -> Measurement:
        return q.ratio(waited("B", experiment, policy), waited("A", experiment, policy))

    page.compared(
        "study-6-lock",
        "A lock (figure 11): acquisitions by four threads with 2 tickets each (A) and four with 1 (B)",
        ["after the lock", "policy"],
        rows,
        {
            "A": partial(lock_cell, "A", "acquisitions", partial(taken, 1), 0),
            "B": partial(lock_cell, "B", "acquisitions", partial(taken, 2), 0),
            "A : B": partial(lock_cell, "A : B", "acquisitions", taken_ratio, 2),
        },
        f"Two minutes. {q.how(_LOCK_EXPERIMENTS)}",
    )
    page.compared(
        "study-6-waiting",
        "Waiting time for the lock, ms",
        ["after the lock", "policy"],
        rows,
        {
            "A": partial(lock_cell, "A", "waiting", partial(waited, "A"), 0),
            "B": partial(lock_cell, "B", "waiting", partial(waited, "B"), 0),
            "B ÷ A": partial(lock_cell, "A : B", "waiting", waited_ratio, 2),
        },
        q.how(_LOCK_EXPERIMENTS),
    )
    page.text("""
    **Why different.** The study describes four properties of its lock: the owner holds the tickets of the waiting
    threads (`lottery:transfers`), the next owner is drawn by lottery (`overtake=1`), a thread that releases the lock
    yields the CPU, and the scheduler compensates a thread that has not used its time slice (`compensation=1`). The
    runs remove or add each property alone.""")
    lock_experiment = "s6-lock"
    without, with_them = "draw, compensated", "all of theirs"
    with page.if_measured():
        page.text(f"""
        - **The yield makes the threads compete.** Each thread computes for 50 ms and holds the lock for 50. If it
          continues after the release, its time slice of 100 ms ends while the lock is free, and no thread waits
          ({waited("A", "s6-lock-no-yield", "all of theirs"):.1f} ms).
        - **The draw makes waits depend on tickets.** Without it, the threads with fewer tickets wait
          {waited_ratio(lock_experiment, "lottery"):.2f} times as long as the others, with it
          {waited_ratio(lock_experiment, "draw"):.2f} times.
        - **Compensation** matters less: with it, A takes the lock {taken_ratio(lock_experiment, "all of theirs"):.2f}
          times as often as B, and without it {taken_ratio(lock_experiment, "transfers and draw"):.2f} times; the
          difference is hardly significant. The study has {q.figure("figure 11", "A : B", "acquisitions")}.
        - **Transfers** shorten an owner's 50 ms, and so the waits. The published waits,
        {q.figure("figure 11", "A", "waiting")} and {q.figure("figure 11", "B", "waiting")} ms, are near the measured
        ones without transfers, {waited("A", lock_experiment, without):.0f} and
        {waited("B", lock_experiment, without):.0f}, and not near those with transfers,
        {waited("A", lock_experiment, with_them):.0f} and {waited("B", lock_experiment, with_them):.0f}. It is not
        explained why transfers have no effect in the study.""")


def _write_stride(page: Writer, q: Queries) -> None:
    page.section("Compensation")
    page.measured(
        "study-6-compensation",
        "Compensation (section 3.4): CPU share of a task that uses a fifth of its time slices, percent",
        ["policy"],
        ["lottery", "uncompensated", "stride"],
        [
            Quantity("measured", lambda policy: q.cpu_share("s6-compensation", policy, "fifth")),
            Quantity("due", lambda policy: 50, muted=True),
        ],
        f"It has as many tickets as the other task, which uses its whole time slices. {q.how('s6-compensation')}",
    )
    page.text("""
    Without compensation a task that uses a fifth of its time slice gets a fifth of the other task's CPU time. The
    study explains compensation with these numbers and prints no measurement. Stride charges the time used and needs no
    compensation.""")
    page.section("Stride")

    def farthest(task: str, policy: str) -> Measurement:
        return q.largest_error("s6-three", policy, task, _IDEAL_PARTS[task], 100)

    def deviation(task: str, policy: str) -> Measurement:
        return q.quantum_gap("s6-three", policy, task, 100)

    gap = "standard deviation of the time from one quantum to the next, quanta"
    page.measured(
        "study-6-stride",
        "Stride against lottery, tickets 3 : 2 : 1",
        ["policy"],
        ["stride", "lottery"],
        [
            *(
                Quantity(task, partial(farthest, task), "largest error of a task, quanta")
                for task in _IDEAL_PARTS
            ),
            *(Quantity(task, partial(deviation, task), gap) for task in _IDEAL_PARTS),
        ],
        f"Two minutes, quanta of 100 ms. {q.how('s6-three')}",
        digits=2,
    )
    page.text("""
    According to the second paper, the error of a pair of tasks under stride is at most one quantum, while the
    lottery's error grows with the square root of the number of draws. Under stride the time from one quantum of a
    task to its next varies little; under a lottery its standard deviation is √(1 − p) ÷ p: 1.41, 2.45 and 5.48 quanta
    for parts of 1/2, 1/3 and 1/6.""")
