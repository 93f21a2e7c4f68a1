# SPDX-License-Identifier: MIT
"""The page of study 5: weighted round-robin and a lottery in Linux."""

from functools import partial

from schedlab.report.model import Page
from schedlab.report.studies import linux_waits
from schedlab.report.studies.page_writer import Quantity, Writer, value_of
from schedlab.report.studies.study_5 import EIGHT, ONE, Queries
from schedlab.report.study_tables import FigureComparison, Measurement
from schedlab.report.wording import listed
from schedlab.studies.experiments import EXPERIMENTS, LINEAR_LOTTERY
from schedlab.studies.figures import Figure
from schedlab.studies.linux_experiments import (
    FAIR_CLASS,
    HACKBENCH,
    SYSBENCH,
    SYSBENCH_8,
    SYSBENCH_FREE,
)

_ONE_THREAD_TABLES = {
    SYSBENCH: ("study-5-linux", "by counted instructions"),
    SYSBENCH_FREE: ("study-5-linux-free", "by the host's time"),
}
"""Linux experiments with the prefix of their tables' names, and their clock."""
_WAKEUP_TABLES = {
    "s5-wakeups": ("study-5-wakeups-kernel", "on two CPUs of the schedlab kernel"),
    "s5-linux-wakeups": ("study-5-wakeups-linux", "on one CPU of Linux"),
}


def make_page(q: Queries) -> Page:
    """Returns the page of study 5."""
    page = Writer(q.study, "Study 5: WRR and lottery in Linux")
    _write_lead(page, q)
    _write_summary(page, q)
    _write_method(page, q)
    _write_published_tables(page, q)
    _write_linux(page, q)
    if q.on_our_kernel() or not q.on_linux():
        _write_schedlab_kernel(page, q)
        _write_one_thread(page, q)
        _write_eight_threads(page, q)
    _write_high_load(page, q)
    _write_weights(page, q)
    _write_other_workloads(page, q)
    _write_pattern(page, q)
    _write_wakeups(page, q)
    _write_benchmarks(page, q)
    _write_claims(page, q)
    return page.page(q.trials)


def _sorted_means(measured_values: dict[str, Measurement]) -> dict[str, float]:
    """Returns the means in ascending order. Raises NoMeasurement if one is missing."""
    values = {name: measured.value for name, measured in measured_values.items()}
    return dict(sorted(values.items(), key=lambda item: item[1]))


def _spread_percent(values: dict[str, float]) -> float:
    """Returns how far the maximum exceeds the minimum, in percent."""
    return 100 * (max(values.values()) / min(values.values()) - 1)


def _throughputs(q: Queries) -> dict[str, Measurement]:
    """Returns the published throughput of each scheduler."""
    return {policy: q.throughput(ONE, policy) for policy in ("cfs", "lottery:linux", "wrr:linux")}


def _rate_and_latency(q: Queries) -> tuple[Figure | None, Figure | None]:
    """Returns the events per second of the study's first run, and the mean latency."""
    return q.published_figure("throughput", "CFS", "1"), q.published_figure(
        "mean latency", "CFS", "1"
    )


def _linux_spread_percent(q: Queries, experiment: str) -> float:
    """Returns how far the throughputs on Linux differ, in percent."""
    return _spread_percent(_sorted_means(q.linux_figures(experiment, "events_per_second")))


def _write_lead(page: Writer, q: Queries) -> None:
    page.lead(f"""With one thread that computes, a scheduler has nothing to decide: the study's three schedulers
    differ by {_spread_percent({name: value_of(q.published_figure("throughput", name)) for name in q.schedulers}):.1f}
    % in its
    figures""")
    on_linux = q.linux_figures(SYSBENCH, "events_per_second").values()
    if q.ran(SYSBENCH) and all(measured.values for measured in on_linux):
        page.lead(f", and by {_linux_spread_percent(q, SYSBENCH):.1f} % on a current Linux kernel")
    elif all(measured.values for measured in _throughputs(q).values()):
        page.lead(
            f", and by {_spread_percent(_sorted_means(_throughputs(q))):.1f} % on the schedlab kernel"
        )
    page.lead(f". {q.failures()}")


def _write_summary(page: Writer, q: Queries) -> None:
    page.section("In short")
    page.text(f"""
    **Claimed.** In sysbench, weighted round-robin (WRR) has more throughput in Linux than CFS, and a lottery less. In
    events per second:
    {listed([f"{q.published_figure('throughput', scheduler)} ({scheduler})" for scheduler in q.schedulers])}. These
    and the
    longest latencies give its ranking.""")
    rate, took = _rate_and_latency(q)
    page.text(f"""
    **Measured.** The study does not say how many threads its benchmark had. According to its figures it had one:
    {rate} events per second of {took} ms each fill the time of one thread.""")
    if q.on_our_kernel() and not q.all_simulated():
        with page.if_measured(page.more):
            longest = partial(q.latency, EIGHT, which="longest")
            page.more(f"""
            On the schedlab kernel the three schedulers differ by
            {_spread_percent(_sorted_means(_throughputs(q))):.1f} %, and with
            eight threads the longest latency of an event is {longest("cfs"):.0f} ms under CFS,
            {longest("lottery:linux"):.0f} ms under Lottery and {longest("wrr:linux"):.0f} ms under WRR.""")
    elif q.on_our_kernel():
        page.more("""
        The simulator's processes compute as long, but report no events, so these runs have none of the study's
        figures. [All policies compared](#comparison) shows how the policies share the CPU among eight threads.""")
    if q.ran(SYSBENCH):
        with page.if_measured():
            page.text(f"""
            On a current Linux kernel, the same three differ by {_linux_spread_percent(q, SYSBENCH):.1f} %:
            {_order_text(q, SYSBENCH, "throughput", True)}. ≈ marks a difference that is not significant.""")
    page.text("""
    **Teaches.** Only competing threads distinguish schedulers. With one thread, a difference in throughput comes from
    the machine, or from the scheduler's work at each tick.""")

    def throughput_ratio(name: str) -> tuple[Measurement, float]:
        ours = q.ratio(
            *(q.throughput(ONE, q.on_schedlab_kernel[scheduler]) for scheduler in (name, "CFS"))
        )
        theirs, cfs = (
            value_of(q.published_figure("throughput", scheduler)) for scheduler in (name, "CFS")
        )
        return ours, theirs / cfs

    page.dotted(
        "study-5-in-short",
        "Throughput of one thread, relative to CFS",
        "throughput ÷ CFS's",
        {name: throughput_ratio(name) for name in q.schedulers},
        caption=f"Published: Linux 5.15. Measured: the schedlab kernel. {q.how(ONE)}",
    )


def _write_published_tables(page: Writer, q: Queries) -> None:
    page.section("Tables 1 to 4: complexity, reasons, classes and modules")
    page.statements(
        "study-5-table-1",
        "The cost of a decision: the study's table 1",
        [
            *(f"published: {title}" for title in ("operation", "O(1) scheduler", "CFS", "winner")),
            *(f"measured: {policy}" for policy in q.operation_policies),
        ],
        [
            (*row[:4], *(q.growth(row[4], policy) for policy in q.operation_policies))
            for row in q.printed_table("table-1")
        ],
        """Measured: mean instructions with 64 → with 4,096 waiting tasks, on Spike (`./schedlab dev bench`). A change
        of priority takes a waiting task out and enqueues it again. The study's CFS caches the leftmost task of a tree.
        schedlab's `cfs` has a heap: a pick removes its root, and its cost grows with the tasks. Removing any other
        task takes O(log n) at most, and constant time on average.""",
    )
    page.statements(
        "study-5-table-2",
        "Reasons for CFS: the study's table 2",
        ["published: consideration", "published: explanation", "schedlab"],
        q.printed_table("table-2"),
        "The study prints no number for them.",
    )
    page.statements(
        "study-5-table-3",
        "Scheduling classes, the highest first: the study's table 3",
        [
            *(f"published: {title}" for title in ("scheduling class", "policies", "description")),
            "schedlab kernel",
            "schedlab's policies on Linux",
        ],
        q.printed_table("table-3"),
        "The study builds its policies into the fair class. schedlab's policies replace it.",
    )
    page.statements(
        "study-5-table-4",
        "Modules of the window: the study's table 4",
        ["published: module", "published: function", "schedlab's monitor"],
        q.printed_table("table-4"),
        """The study says that its window has a small overhead, which could affect measurements (section 9.1). The panel
        *Cost of watching* shows how much of the machine's time the monitor takes; reports are made without it.""",
    )
    page.text("""
    Section 7.2 reports an initial ramdisk of 821 MB that did not boot. It names a script that includes the microcode
    again and again, and a remedy: `EARLYMICROCODE=n` and `MODULES=dep`. schedlab does not repeat this: its Linux guest
    has its own small ramdisk.""")


def _order_text(q: Queries, experiment: str, quantity: str, falling: bool) -> str:
    """Returns the order of the schedulers as text. Raises NoMeasurement."""
    order = q.linux_order(experiment, quantity, falling)
    return order if isinstance(order, str) else f"{order.value}"


def _write_method(page: Writer, q: Queries) -> None:
    """Adds the section on benchmarks, machines and policies."""
    page.section("What was measured")
    page.item("""**Machines.** The study changed Linux 5.15 and measured with sysbench, on a machine that it does not
    describe. The schedlab kernel runs the same benchmark on one CPU of 1 GHz with one instruction per nanosecond.""")
    page.more(
        """A stock Linux kernel also runs in QEMU, with the same policy files through sched_ext, and with sysbench
        itself (`--cpu-max-prime=10000`; the study names no options). Its fair class, EEVDF since Linux 6.6, is
        compared with the study's CFS."""
        if q.on_linux()
        else "Linux itself is not measured in these runs."
    )
    page.item("""**Benchmark** (`cpubench`). A thread does *events* for a set time; an event finds the primes up to
    10,000. An event's *latency* is the time from its beginning to its end, including the time of other threads. On
    Spike, where all events take the same number of instructions, only the first is executed.""")
    page.item("""**Schedulers.** Weighted round-robin (`wrr:linux`) and lottery (`lottery:linux`) as sections
    3.3.1 and 3.4.1 describe them. CFS on the schedlab kernel is `cfs`: the rules of Linux 5.15, the study's kernel,
    without groups.""")
    page.item(
        """**Ideal.** There is none: with one thread that always runs, a scheduler cannot do better."""
    )


def _write_linux(page: Writer, q: Queries) -> None:
    for experiment, (name, clock) in _ONE_THREAD_TABLES.items():
        if q.ran(experiment):
            page.section(f"Tables 5 and 6 on Linux, {clock}")
            _write_linux_thread(page, q, experiment, name, clock)
        elif experiment == SYSBENCH:
            page.section("Tables 5 and 6 on Linux")
            page.text("""
            Not run. These runs need the Linux guest: QEMU, and Debian packages that `./schedlab reproduce study-5`
            fetches once. `./schedlab doctor` lists missing parts.""")
    if not q.ran(SYSBENCH_8):
        return
    page.section("Eight threads on Linux")
    page.text("""
    With eight threads, a policy has a choice. The work is the same under all policies; the time slices differ. With
    long time slices, most events are not interrupted, but a few wait for a time slice of each other thread.""")
    latency = {
        "mean": "latency_mean_ms",
        "median": "latency_p50_ms",
        "95th percentile": "latency_p95_ms",
        "99th percentile": "latency_p99_ms",
        "longest": "latency_max_ms",
    }

    def printed(figure: str, policy: str) -> Measurement:
        return q.printed_output(SYSBENCH_8, policy, figure)

    def summed_up(column: str, policy: str) -> Measurement:
        return q.summary(SYSBENCH_8, policy, column)

    page.measured(
        "study-5-linux-eight-threads",
        "Eight threads of sysbench on Linux",
        ["policy"],
        q.linux_policies(SYSBENCH_8),
        [
            Quantity("events a second", partial(printed, "events_per_second"), digits=1),
            *(
                Quantity(title, partial(printed, figure), "latency, ms", 2)
                for title, figure in latency.items()
            ),
            Quantity("switches to another process", partial(summed_up, "context_switches")),
            Quantity("migrations", partial(summed_up, "migrations")),
        ],
        f"""{q.how(SYSBENCH_8)} Percentiles come from sysbench's histogram, whose classes are 1.8 % wide; switches and
        migrations from the trace.""",
        digits=0,
    )
    with page.if_measured():
        longest = _sorted_means(q.linux_figures(SYSBENCH_8, "latency_max_ms"))
        page.text(f"""
        The fastest policy has {_linux_spread_percent(q, SYSBENCH_8):.1f} % more throughput than the slowest; the
        longest
        latencies are {listed([f"{ms:.0f} ms (`{policy}`)" for policy, ms in longest.items()])}.""")


def _write_linux_thread(page: Writer, q: Queries, experiment: str, name: str, clock: str) -> None:
    _write_tables(page, q, experiment, name, f" on Linux, one thread, {clock}")
    page.statements(
        f"{name}-differences",
        "Differences between the schedulers",
        ["quantity", "difference", "published, table 6", "measured", "significant?"],
        [
            (
                title,
                f"{pair[1]} − {pair[0]}",
                q.difference_published(quantity, pair),
                q.difference_measured(quantity, pair, experiment),
                q.chance_of_difference(quantity, pair, experiment),
            )
            for quantity, title in q.quantities.items()
            for pair in q.pairs
        ],
        """In brackets: the 95 % interval of the difference (Welch's t, independent runs). A p-value below 0.05 is
        significant; by chance, one test in twenty is below 0.05.""",
    )
    page.text("""
    **The study's conclusions.** *WRR has the highest throughput, the lottery the lowest* (sections 6.2, 6.3);
    measured:""")
    with page.if_measured(page.more):
        page.more(f"{_order_text(q, experiment, 'throughput', True)}.")
    page.more("*WRR has the lowest maximum latency, CFS the highest* (6.4); measured:")
    with page.if_measured(page.more):
        page.more(f"{_order_text(q, experiment, 'maximum latency', False)}.")
    page.more("(≈: not significant.)")
    if waits := linux_waits.wait_rows(q, experiment):
        page.show(linux_waits.waits_table(q, experiment, waits))
        page.text(f"""
        One thread waits only for the machine's other threads. During its longest wait, these were mostly
        {linux_waits.running_threads_text(waits)}. So a *maximum latency* shows other activity of the machine, and
        little about a scheduler.""")
    if experiment == SYSBENCH:
        page.text(
            """
            **Effects of emulation.** No table above shows the speed of Linux on a real machine.

            - *By counted instructions*: QEMU executes the guest's instructions one by one, and its clock moves by the
              same few nanoseconds for each. A division takes as long as an addition; there are no caches, no branch
              predictor, no turbo. A policy costs only its instructions; its effect on caches costs nothing. In
              return, a run repeats exactly: a difference between two policies comes from the policies, or from the
              position in a tick at which a run started, which depends on the seed.
            - *Several CPUs share this clock*: while one executes an instruction, time passes for the others. So all
              of these runs use one CPU.
            - *By the host's time*: the clock is real, and the host does other work. The longest times come from the
            host.""",
            "note",
        )


def _write_tables(page: Writer, q: Queries, experiment: str, name: str, place: str) -> None:
    """Adds the tables of an experiment: published and measured figures of each run, and their
    means.
    """

    def of_run(quantity: str, scheduler: str, run: str = "") -> FigureComparison:
        return FigureComparison(
            q.published_figure(quantity, scheduler, run),
            q.measured_figure(quantity, scheduler, experiment, run),
            decimals=q.digits(quantity, experiment),
        )

    parts = {title: partial(of_run, quantity) for quantity, title in q.quantities.items()}
    titles = {q.titled(scheduler, experiment): scheduler for scheduler in q.schedulers}
    page.compared(
        f"{name}-table-5",
        f"Each run{place}: the study's table 5",
        ["scheduler", "run"],
        {(title, run): (scheduler, run) for title, scheduler in titles.items() for run in "123"},
        parts,
        f"Measured: the run with this seed. {q.how(experiment)}",
    )
    title = f"Means of the runs{place}: the study's table 6"
    page.compared(f"{name}-table-6", title, ["scheduler"], titles, parts, q.how(experiment))


def _write_schedlab_kernel(page: Writer, q: Queries) -> None:
    page.section("Tables 5 and 6 on the schedlab kernel")
    _write_tables(page, q, ONE, "study-5", ", one thread")
    with page.if_measured():
        page.text(f"""
        An event takes {q.latency(ONE, "wrr:linux", "mean"):.4f} ms (published:
        {q.published_figure("mean latency", "WRR")} ms), under all three schedulers. The study does not say how fast
        its CPU was, so the difference is not explained.""")
    longest = q.longest_printed()
    page.text(f"""
    **The longest latency** of table 6 is a mean of three maxima, and a single run can dominate it, such as
    {longest.name}'s {longest.worst:.2f} ms in one of three. The medians of the three are
    {listed([f"{ms:.2f} ms ({name})" for name, ms in longest.medians.items()])}.""")
    with page.if_measured(page.more):
        against = {
            name: f"{q.latency(ONE, policy, 'longest'):.4f} against {q.latency(ONE, policy, 'mean'):.4f}"
            for name, policy in q.on_schedlab_kernel.items()
        }
        page.more(f"""On the schedlab kernel nothing else runs, and the longest latency is hardly above the mean:
        {against["CFS"]} ms (CFS), {against["Lottery"]} ms (Lottery) and {against["WRR"]} ms (WRR).""")
    page.more("It is not known which other work ran on the study's machine at that moment.")
    page.contradictions_about("table 5", "table 6")


def _write_threads_table(page: Writer, q: Queries, experiment: str, name: str, title: str) -> None:
    """Adds the table of throughput and latencies of an experiment's threads."""

    def latency(which: str, policy: str) -> Measurement:
        return q.latency(experiment, policy, which)

    def summed_up(column: str, policy: str) -> Measurement:
        return q.summary(experiment, policy, column)

    digits = 4 if experiment == ONE else 3
    page.measured(
        name,
        f"{title} under schedlab's policies",
        ["policy"],
        q.policies_shown(experiment),
        [
            Quantity("events a second", partial(q.throughput, experiment), digits=1),
            Quantity("mean", partial(latency, "mean"), "latency, ms", digits),
            Quantity("longest", partial(latency, "longest"), "latency, ms", digits),
            Quantity("of the CPU's time, %", partial(q.running, experiment), "the threads run", 2),
            Quantity("decisions", partial(summed_up, "scheduler_entries"), "scheduler"),
            Quantity(
                "switches to another process", partial(summed_up, "context_switches"), "scheduler"
            ),
            Quantity("of the CPU's time, %", partial(q.overhead, experiment), "scheduler", 3),
        ],
        f"""Decisions and switches count the threads and the parent that waits for them. {q.how(experiment)}""",
        digits=0,
    )


def _write_one_thread(page: Writer, q: Queries) -> None:
    """Adds the subsection on one thread on the schedlab kernel."""
    page.section("What the benchmark cannot see")
    rate, took = _rate_and_latency(q)
    page.text(f"""
    {rate} events per second of {took} ms each are {value_of(rate) * value_of(took) / 1000:.2f} s of work per second:
    the study's thread always runs, and a scheduler has no other thread to choose.""")
    _write_threads_table(page, q, ONE, "study-5-one-thread", "One thread")
    with page.if_measured():
        ends = q.slowest_and_fastest_policy()
        page.text(f"""
        The slowest (`{ends.slow}`) and the fastest (`{ends.fast}`) differ by {ends.spread:.2f} %""")
        if ends.work < ends.spread / 2:
            page.more(f""", of which the schedulers' time explains {ends.work:.3f} percentage points. The machine's
            clock moves in steps of {q.summary(ONE, "rr", "clock_step_ns", 1e-3):.0f} µs,
            {q.clock_step_of_tick("rr"):.1f} % of a tick, and an interrupt ends a step early.""")
            if lost := q.steps_lost():
                page.more(f"""According to the cycle counter, the CPU stops for {lost[0]:.1f} steps of each tick under
                `{ends.slow}` and for {lost[1]:.1f} under `{ends.fast}`: the difference comes from the machine, not
                from picking a thread. The cause of the additional interruptions is not known.""")
        else:
            page.more(f"; the schedulers take {ends.work:.3f} percentage points of it.")
    with page.if_measured():
        events, ms = q.throughput(ONE, "rr").value, q.latency(ONE, "rr", "mean").value
        page.text(f"""
        Between two events a thread writes the latency of the last one to the trace: it does {events:,.0f} events per
        second of {ms:.4f} ms under `rr`, which fill {100 * events * ms / 1000:.1f} % of its time.""")
    if q.has_several_seeds():
        page.more(f"""All seeds give the same throughput under {q.same_for_all_seeds()} of the
        {len(q.policies_shown(ONE))} policies: the machine repeats a run exactly, and with one
        thread nothing is random.""")


def _write_eight_threads(page: Writer, q: Queries) -> None:
    """Adds the subsection on eight threads on the schedlab kernel."""
    page.section("Eight threads")
    page.text("""
    The same benchmark runs with eight threads on one CPU, so a policy decides which thread runs. The policies do not
    differ in the number of events, but in the longest duration of an event.""")
    page.show(q.latencies_chart())
    _write_threads_table(page, q, EIGHT, "study-5-eight-threads", "Eight threads")
    page.text(
        "Short time slices interrupt most events for a short time; long time slices interrupt few"
        " events for a long time:"
    )
    for policy in ("rr", "cfs", "wrr:linux"):
        turn = q.usual_slice_ms(policy)
        page.item(f"`{policy}`:")
        with page.if_measured(page.more):
            page.more(f"""a time slice is {turn:.2f} ms. An event computes {q.latency(ONE, policy, "mean"):.2f} ms; an
            interrupted event waits for a time slice of each of the other seven threads, {7 * turn:.0f} ms. 95 of 100
            events take at most {q.latency(EIGHT, policy, "95th"):.2f} ms, and the longest takes
            {q.latency(EIGHT, policy, "longest"):.1f}.""")
    _write_linear_search(page, q)
    page.section("Time slices of WRR: section 3.3.3")
    factor, priority = q.setting("slice"), q.setting("priority")
    page.text(f"""
    A time slice lasts {factor} ms × the process's priority, by default {priority}:
    {value_of(factor) * value_of(priority):.0f} ms.""")
    if turns := q.expired_slices_ms("wrr:linux"):
        page.more(f"""Of the {len(turns)} used-up time slices in the traces of the eight threads, the shortest lasts
        {min(turns):.3f} ms, the longest {max(turns):.3f} and the median {q.usual_slice_ms("wrr:linux"):.3f}. (The
        study's listing computes the time slice at each pick, and does not show what ends it.
        In schedlab, a tick does.)""")
    else:
        page.more("*There is no trace of eight threads under `wrr:linux`.*")


def _write_linear_search(page: Writer, q: Queries) -> None:
    """Adds the subsection on the cost of the lottery's linear search."""
    page.text(f"""
    **A linear search.** Section 6.3 says that the lottery has less throughput because it goes through all tasks at each
    decision. `lottery:linux` finds the winner in a tree, and `{LINEAR_LOTTERY}`, study 3's lottery with the same
    chances, in a list.""")
    with page.if_measured(page.more):
        (tree_1, list_1), (tree_8, list_8) = (
            [q.overhead(experiment, policy).value for policy in ("lottery:linux", LINEAR_LOTTERY)]
            for experiment in (ONE, EIGHT)
        )
        lottery, cfs = (
            value_of(q.published_figure("throughput", name)) for name in ("Lottery", "CFS")
        )
        page.more(f"""The scheduler takes {tree_1:.3f} % of the time with a tree and {list_1:.3f} % with a list for one
        thread, {tree_8:.3f} % and {list_8:.3f} % for eight. The study's lottery has {100 * (1 - lottery / cfs):.1f} %
        less throughput than its CFS. The search accounts for {round(list_1, 3) - round(tree_1, 3):.3f} points of that
        with one thread, and for {round(list_8, 3) - round(tree_8, 3):.3f} with eight; the rest is not explained.""")
    page.text("""
    **More threads.** Section 6.2 says that WRR picks in constant time, and section 9.1 that the lottery could be slow
    with very many tasks. So it is with a linear search, and not with a tree:""")
    page.statements(
        "study-5-decisions",
        "The cost of a decision with more tasks",
        ["operation", *(f"measured: {policy}" for policy in q.decision_policies)],
        [
            (row[0], *(q.growth(row[4], policy) for policy in q.decision_policies))
            for row in q.printed_table("table-1")
            if row[4]
        ],
        "Mean instructions with 64 → with 4,096 waiting tasks, on Spike (`./schedlab dev bench`).",
    )


def _write_high_load(page: Writer, q: Queries) -> None:
    """Adds the section on a shell next to tasks that compute."""
    run_loads = {name: load for name, load in q.high_loads.items() if q.ran(name)}
    if not run_loads:
        return
    page.section("A high load: section 7.1")
    page.text("""
    The study reports that its first WRR froze the system under a high load, until the test had ended. That version is
    not printed. In schedlab's test, a *shell* wakes every 10 ms and computes for 0.5 ms, next to processes that
    compute for 300 ms each. `wrr:linux` does what the text says. `wrr:listing` does what the listings do with Linux's
    list: a picked task moves to the front, so the task that ran before is next.""")
    page.measured(
        "study-5-high-load",
        "A shell next to processes that compute, ms",
        ["processes", "policy"],
        {
            (load, policy): (name, policy)
            for name, load in run_loads.items()
            for policy in EXPERIMENTS[name].study_policies
        },
        [
            Quantity(
                "the shell's longest wait", partial(q.under_load, "wakeup_latency_max_ns", "shell")
            ),
            Quantity(
                "the others' longest response", partial(q.under_load, "response_max_ns", "load")
            ),
        ],
        q.how(list(run_loads)),
    )
    name = list(run_loads)[-1]
    with page.if_measured():
        by_text, by_listing = (
            q.under_load("wakeup_latency_max_ns", "shell", name, policy)
            for policy in ("wrr:linux", "wrr:listing")
        )
        page.text(f"""
        With {run_loads[name]} processes, the shell waits up to {by_text:,.0f} ms under `wrr:linux`: a time slice
        of 50 ms for each process, which looks like a freeze and ends with the load. Under `wrr:listing` it waits up to
        {by_listing:.0f} ms, but processes that compute begin late: two alternate, and the last one first
        runs after {q.under_load("response_max_ns", "load", name, "wrr:listing"):,.0f} ms. Under `lottery:linux`, whose
        freeze the study does not report, the shell waits up to
        {q.under_load("wakeup_latency_max_ns", "shell", name, "lottery:linux"):,.0f} ms. Which of these the study
        saw, or another cause in its first version, is not explained.""")


def _write_weights(page: Writer, q: Queries) -> None:
    """Adds the table of CPU time by priority."""
    if not q.ran(q.by_priority):
        return
    page.section("CPU time by priority: sections 3.3.1 and 3.4.1")
    page.text("""
    The study says that a higher priority gives more CPU time under WRR, and that CPU time under the lottery is
    proportional to tickets. It measured neither. In schedlab's test, four processes that compute have priorities from
    1 to 4, next to two that mostly sleep.""")
    page.measured(
        "study-5-weights",
        "CPU time of processes that compute, % of their sum",
        ["policy"],
        q.policies_of(q.by_priority),
        [
            Quantity(str(priority), partial(q.share_of_priority, priority), "priority")
            for priority in q.priorities
        ],
        f"""In proportion to priority: 10, 20, 30 and 40 %. `wrr:listing` follows the study's listings, which do not
        enforce a time slice. {q.how(q.by_priority)}""",
    )


def _write_other_workloads(page: Writer, q: Queries) -> None:
    """Adds the section on the workloads that the study names as missing."""
    if not q.ran(q.mix) and not q.ran(q.io):
        return
    page.section("Other workloads: section 9.1")
    page.text("""
    Section 9.1 names two kinds of workload that the study did not test: I/O-intensive ones, and a mix of real-time and
    batch tasks. Both run in the simulator. In the mix, *control* needs 0.9 of each 10 ms and *video* 2.9 of each 30 ms;
    two batch jobs compute. In the other, 40 processes wait for I/O ten times each, and hardly compute.""")
    if q.ran(q.mix):
        deadlines = "missed deadlines, %"
        page.measured(
            "study-5-mix",
            "Two real-time tasks next to two batch jobs",
            ["policy"],
            q.policies_of(q.mix),
            [
                *(
                    Quantity(task, partial(q.missed, task), deadlines)
                    for task in ("control", "video")
                ),
                Quantity(
                    "batch jobs", partial(q.group_share, q.mix, "batch"), "share of the CPU, %"
                ),
            ],
            q.how(q.mix),
        )
    if q.ran(q.io):
        page.measured(
            "study-5-io",
            "40 processes that wait for I/O",
            ["policy"],
            q.policies_of(q.io),
            [
                Quantity(title, lambda policy, column=column: q.summary(q.io, policy, column, 1e-6))
                for title, column in (
                    ("mean turnaround, ms", "turnaround_mean_ns"),
                    ("until all have ended, ms", "completion_ns"),
                    ("idle, ms", "idle_ns"),
                )
            ],
            q.how(q.io),
        )


def _write_pattern(page: Writer, q: Queries) -> None:
    if not q.ran(q.pattern):
        return
    page.section("Deterministic patterns: section 3.4.2")
    page.text("""
    Section 3.4.2 says that randomness avoids problems of performance that deterministic patterns cause. The study shows
    no such pattern. In schedlab's test, two equal processes compute. A third computes for half a tick and sleeps for
    one and a half, in step with the ticks.""")
    with page.if_measured(page.more):
        first, second = (q.group_share(q.pattern, group, "rr") for group in q.equal_tasks)
        page.more(f"""Under `rr`, the same process always gets the half tick that the third leaves: the equal processes
        get {first:.1f} and {second:.1f} % of the CPU. Under `lottery:linux`, which process gets it is drawn, and their
        shares differ by {q.unequal_points("lottery:linux"):.1f} points. The study's own weighted round-robin is no
        example: its time slices of 50 ms make half a tick matter little.""")
    page.measured(
        "study-5-pattern",
        "Two equal processes next to a sleeper in step with the ticks, % of the CPU",
        ["policy"],
        q.policies_of(q.pattern),
        [
            *(
                Quantity(group, partial(q.group_share, q.pattern, group))
                for group in (*q.equal_tasks, "half")
            ),
            Quantity("difference of the equal ones, points", q.unequal_points),
        ],
        q.how(q.pattern),
    )


def _write_wakeups(page: Writer, q: Queries) -> None:
    """Adds the section on wake-up latencies."""
    if not any(q.ran(experiment) for experiment in _WAKEUP_TABLES):
        return
    page.section("Wake-ups: not measured by study 5")
    page.text("""
    The study's conclusion is that WRR suits *latency-sensitive scenarios* (section 6.5). Its benchmark is none,
    because its only thread never waits. In the workload `wakeups`, two message processes wake four workers each.
    Every worker does a fifth of a tick of work and reports it. After the last report, the message process sleeps for
    a tick and wakes the workers again. Two more processes always compute. The *wake-up latency* is the time from a
    worker's wake-up until it runs, according to the trace.""")
    for experiment, (name, place) in _WAKEUP_TABLES.items():
        if q.ran(experiment):
            _write_wakeup_table(page, q, experiment, name, place)


def _write_wakeup_table(page: Writer, q: Queries, experiment: str, name: str, place: str) -> None:
    """Adds the table and the chart of wake-up latencies of an experiment."""

    def woken(which: str, policy: str) -> Measurement:
        return q.woken(experiment, policy, f"wakeup_latency_{which}_ns")

    page.measured(
        name,
        f"Woken workers next to two processes that compute, {place}",
        ["policy"],
        q.linux_policies(experiment),
        [
            *(
                Quantity(title, partial(woken, which), "wake-up latency, ms", 3)
                for title, which in (
                    ("median", "median"),
                    ("99th percentile", "p99"),
                    ("longest", "max"),
                )
            ),
            Quantity("rounds", partial(q.rounds, experiment), digits=0),
            Quantity(
                "CPU time of computing processes, %", partial(q.share_of_computing, experiment)
            ),
        ],
        q.how(experiment),
    )
    with page.if_measured():
        waits = _sorted_means(q.wakeups(experiment))
        page.text(f"""
        The 99th percentile of the workers' waits is
        {listed([f"{ms:.3g} ms (`{policy}`)" for policy, ms in waits.items()])}.""")
        if wrr := q.place_of_wrr(experiment):
            page.more(f"The study's WRR is {wrr.rank}")
            if wrr.times:
                page.more(f", {wrr.times} times the kernel's fair class")
            page.more(
                ": its time slices last 50 ms, and a woken process waits for a time slice of each computing process."
                if wrr.last
                else "."
            )


def _write_benchmarks(page: Writer, q: Queries) -> None:
    """Adds the section on hackbench and stress-ng."""
    if benchmarks := [benchmark for benchmark in q.benchmarks if q.ran(benchmark)]:
        page.section("Messages, switches and pipes on Linux")
        page.text("""
        In these benchmarks a scheduler decides very often: processes wait for each other's messages, and each message
        wakes another process. Compared with the fair class, policies pay for sched_ext: a BPF program for each
        decision, and the policy's lists under a lock. *hackbench* measures the time until 80 processes have passed
        their messages; *stress-ng* counts the operations of four processes: computing (`cpu`), switching by a pipe
        (`switch`), filling a pipe (`pipe`).""")
        columns = {
            stressor: (f"{name}, operations per second", "stress-ng", 0)
            for stressor, name in q.stressors.items()
        }
        columns[HACKBENCH] = ("seconds", "hackbench", 3)
        page.measured(
            "study-5-linux-benchmarks",
            "hackbench and stress-ng on Linux",
            ["policy"],
            q.linux_policies(benchmarks),
            [
                Quantity(title, partial(q.result, benchmark), group, digits)
                for benchmark in benchmarks
                for title, group, digits in (columns[benchmark],)
            ],
            f"{q.how(benchmarks)} Less is better for hackbench, more for the others.",
        )
        for benchmark in benchmarks:
            if q.result(benchmark, FAIR_CLASS).mean:
                texts = [
                    f"{percent:+.1f} % (`{policy}`)"
                    for policy, percent in q.unlike_fair_class(benchmark)
                ]
                page.text(
                    f"""**{q.benchmarks[benchmark]}**, significant differences from the fair class:
                    {listed(texts)}."""
                    if texts
                    else f"**{q.benchmarks[benchmark]}**: no policy differs significantly from the fair class."
                )
    if suites := [suite for suite in q.suites if q.ran(suite)]:
        page.section("The other studies' suites on Linux")
        page.text("""
        These are the programs of studies 1, 3 and 4, compiled for Linux from the same source. A tick of Linux is 4 ms
        instead of 1 ms, and the programs' work is proportional to the tick, so times are about four times those of
        the other studies' pages. Fork, exit and wake-up have the costs of Linux.""")
        for benchmark in suites:
            page.item(f"`{q.suites[benchmark]}`: {EXPERIMENTS[benchmark].title}.")
        page.measured(
            "study-5-linux-suites",
            "The other studies' suites on Linux: mean turnaround, ms",
            ["policy"],
            q.linux_policies(suites),
            [Quantity(q.suites[suite], partial(q.mean_turnaround, suite)) for suite in suites],
            q.how(suites),
        )


def _write_claims(page: Writer, q: Queries) -> None:
    """Adds the table of the study's statements with the measured figures."""
    page.section("What the study claims")
    page.statements(
        "study-5-claims",
        "The study's conclusions",
        ["section", "the study says", "published", "schedlab kernel", "on Linux"],
        [
            (
                section,
                statement,
                q.order_in_study(quantity, falling),
                *(
                    q.order_on_linux(quantity, experiment, falling)
                    for experiment in (ONE, SYSBENCH)
                ),
            )
            for section, statement, quantity, falling in (
                (
                    "6.2",
                    "WRR has the highest throughput, the lottery the lowest",
                    "throughput",
                    True,
                ),
                ("5.3", "mean latencies are nearly the same", "mean latency", False),
                (
                    "6.4",
                    "longest latencies follow complexity: WRR, lottery, CFS",
                    "maximum latency",
                    False,
                ),
            )
        ],
        page.command,
    )
    page.text("""
    *≈*: the difference is not significant (95 %; on the schedlab kernel, paired by seed). The published figures are
    those of table 6. The text on the table of one thread says how much of the measured difference is the schedulers'
    work.""")
    page.other_contradictions()
