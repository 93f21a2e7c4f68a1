# SPDX-License-Identifier: MIT
"""The page of study 4: from round-robin to a feedback queue."""

from functools import partial

from schedlab.report.charts import schedules
from schedlab.report.model import Page
from schedlab.report.studies.page_writer import Curve, MeasuredCell, Quantity, Writer, value_of
from schedlab.report.studies.study_4 import Queries
from schedlab.report.study_tables import FigureComparison, Measurement
from schedlab.report.wording import listed
from schedlab.studies.experiment import name_without_cost

_CPU_BOUND_MAX = 40
_FIGURE_OF_SCHEDULER = {"RR": 9, "MLFQ": 10}
_SAMPLE_ROWS = (
    (
        "short-job",
        "1-left",
        "A short job next to a long one: the study's figure 1, left",
        "a long CPU-bound job is on the lowest level; a short interactive job enters on the"
        " highest level and ends soon. The study's text names levels Q0 to Q2; this queue has the"
        " four of section 3.2.1.",
    ),
    (
        "interactive",
        "1-right",
        "An interactive job next to a long one: the study's figure 1, right",
        "a job that often does I/O keeps its high priority, because it blocks before its time is used up.",
    ),
    (
        "two-jobs",
        "2",
        "Two long jobs: the study's figure 2",
        "the lower the priority, the longer the time slices.",
    ),
)
"""Simulated experiments that reproduce the study's figures 1 and 2:
name, figure, title, caption.
"""
_DRAWN_TICKS = 60
"""Ticks of round-robin's schedule that are drawn; the rest is alike."""


def make_page(q: Queries) -> Page:
    """Returns the page of study 4."""
    page = Writer(q.study, "Study 4: from round-robin to a feedback queue")
    with page.if_measured(page.lead):
        page.lead(f"""Interactive processes next to {_CPU_BOUND_MAX} that compute end after
        {q.compared_turnaround("interactive", "MLFQ", _CPU_BOUND_MAX):,.0f} ticks under the feedback queue (MLFQ) and
        after
        {q.compared_turnaround("interactive", "RR", _CPU_BOUND_MAX):,.0f} under round-robin""")
        page.lead(
            ": MLFQ serves them first after the others have been demoted below them."
            if q.feedback_is_quicker(_CPU_BOUND_MAX)
            else ", so MLFQ does not serve them first in these runs."
        )
    page.lead(q.failures())
    _write_summary(page, q)
    _write_method(page, q)
    _write_figures_1_and_2(page, q)
    _write_correctness(page, q)
    _write_mixed_benchmark(page, q)
    _write_reasons(page, q)
    _write_moments_and_forks(page, q)
    page.show(q.wakeups_chart())
    page.contradictions_about("section 4.2")
    _write_built_in(page, q)
    _write_sleeper(page, q)
    if q.ran(q.changes_late):
        _write_late_starts(page, q)
    if any(map(q.ran, q.scans)):
        _write_scan(page, q)
    if q.ran(q.with_and_without_boost):
        _write_boost(page, q)
    if q.ran(q.next_to_shortest_first):
        _write_shortest_first(page, q)
    _write_claims(page, q)
    return page.page(q.trials)


def _write_summary(page: Writer, q: Queries) -> None:
    page.section("In short")
    page.text(f"""
    **Claimed.** A feedback queue with four levels and a boost serves interactive processes quickly. Their time "didn't
    increase much" with more processes that compute (section 4.2). The study gives no number. In its authors' output,
    they end after {q.authors("interactive", "MLFQ", _CPU_BOUND_MAX)} ticks next to {_CPU_BOUND_MAX} of these, and under
    round-robin after {q.authors("interactive", "RR", _CPU_BOUND_MAX)}.""")
    with page.if_measured():
        page.text(f"""
        **Measured.** They end after {q.compared_turnaround("interactive", "MLFQ", _CPU_BOUND_MAX):,.0f} and
        {q.compared_turnaround("interactive", "RR", _CPU_BOUND_MAX):,.0f} ticks, of which they sleep
        {q.ideal("interactive", _CPU_BOUND_MAX):.0f}.""")
    page.text("""
    **Teaches.** A feedback queue has to run a process to learn how it behaves. A process that computes is served like
    all others until it has used up its time on the highest level, and again after each boost. So each such process
    delays interactive processes, by an amount that depends on when they start between two boosts.""")
    page.curves(
        "study-4-in-short",
        "Interactive processes next to processes that compute",
        q.sizes,
        "CPU-bound processes",
        "mean turnaround, ticks",
        {
            scheduler: Curve(
                partial(q.compared_turnaround, "interactive", scheduler),
                partial(q.authors, "interactive", scheduler),
            )
            for scheduler in q.schedulers
        },
        caption=f"Mean turnaround. {q.how(q.benchmark_runs())}",
        ideal=partial(q.ideal, "interactive"),
        policies=False,
        order=list(q.schedulers),
    )


def _write_method(page: Writer, q: Queries) -> None:
    """Adds the section on workloads and policies."""
    few, many = (q.authors("CPU-bound", "RR", size) for size in (2, 20))
    per_process = (value_of(many) - value_of(few)) / 18
    page.section("What was measured")
    page.text(f"""
    - **Schedulers.** Round-robin over the process table (`rr:table-scan`), and the study's feedback queue
      (`mlfq:allotment-boost`): four levels with time slices of 2, 4, 8 and 32 ticks and allotments of 8, 16 and 32;
      every 480 ticks all processes are boosted. One CPU is assumed, because the study does not say how many it had.
    - **Experiments.** Three CPU-bound processes, traced tick by tick; two interactive processes next to 2 to 40
      CPU-bound ones; a process that sleeps 5 ticks next to 20 CPU-bound ones.
    - **Work.** The study's CPU-bound process counts to 200 million. In the authors' output, 2 of them take {few}
    ticks under round-robin and 20 take {many}: ({many} − {few}) ÷ 18 = {per_process:.1f} for each. So the measured
    processes compute {q.work:.0f} ticks. Those of figures 7 and 8 compute 344, as in the authors' output of figure 7,
    which shows two boosts. Their run begins at the same moment between two boosts.""")


def _write_figures_1_and_2(page: Writer, q: Queries) -> None:
    """Adds its figures 1 and 2, which its text explains without numbers."""
    if not any(q.ran(f"s4-sample-{which}") for which, *_ in _SAMPLE_ROWS):
        return
    page.section("Examples of feedback: figures 1 and 2")
    for which, name, title, description in _SAMPLE_ROWS:
        page.schedule(
            f"study-4-figure-{name}",
            title,
            q.first_trace(f"s4-sample-{which}", "MLFQ"),
            caption=f"""Published as text only: {description} There are four levels; 3 is the highest.
            {q.how(f"s4-sample-{which}", [q.schedulers["MLFQ"]])}""",
        )


def _write_correctness(page: Writer, q: Queries) -> None:
    """Adds the section on traces by tick: figures 7 and 8."""
    page.section("Correctness: figures 7 and 8")
    page.text("""
    The study's kernel printed the running process and its level at each tick. The measured values come from the
    trace: the process that runs in the middle of each tick, and the policy's annotation when it picked the
    process.""")
    if q.has_trace("RR"):
        _draw_schedule(page, q, "RR", 8, _DRAWN_TICKS)
        turn, same = q.usual_slice("RR"), q.ticks_until_first_end("RR")
        page.compared(
            "study-4-turn",
            "The commonest time slice, ticks",
            ["scheduler"],
            ["RR"],
            {"time slice": partial(_compare_turn, q)},
            q.how(q.trace_experiment, [q.schedulers["RR"]]),
        )
        page.text(f"""
        In the study, each of the three processes runs for {q.figure("section 4.1", "RR", "turn")} tick at a time. In
        the measurements, {100 * turn.part:.0f} % of the time slices last {turn.length}. Until the first process ends
        in the authors' output, the same process runs at {same.same} of {same.of} ticks. There, the processes end after
        {_range_text(q.ticks_of_authors("RR"))} ticks, and after {_range_text(q.ticks_of_authors("MLFQ"))} in
        figure 7. So figure
        8 shows less work than figure 7. The measured processes have the work of figure 7 in both figures.""")
    else:
        page.text(f"Figure 8: {q.missing_trace_text('RR')}.", "note")
    if q.has_trace("MLFQ"):
        _draw_schedule(page, q, "MLFQ", 7)
        same = q.tick_by_tick("MLFQ")
        page.text(f"""
        At {same.same:,} of the {same.of:,} ticks of the authors' output, the same process runs on the same level. The
        other ticks are where the first process ends: published after 342 ticks, measured after 344.""")
        page.show(q.levels_table())
        first, second = (
            q.figure("section 4.1", "boost", moment)
            for moment in ("first, before", "second, after")
        )
        page.text(f"""
        In the study, all processes are boosted before tick {first} and again after tick {second}.""")
        if boosts := q.boosts_seen():
            page.more(f"""In the measurements, they are boosted at the machine's ticks
            {listed([str(boost) for boost in boosts])}, multiples of {q.figure("section 3.2.1", "boost", "period")}.
            The run begins at tick {q.run_begins()}, so these are its ticks
            {listed([str(boost - q.run_begins()) for boost in boosts])}. The authors' processes are boosted at ticks
            331 and 811 of their output. If boosts are counted from the start of the machine, which the text does not
            say, the first process started 150 ticks after a boost, as if the command was typed at a shell.""")
        else:
            page.more("In this trace no process is boosted.")
    else:
        page.text(f"Figure 7: {q.missing_trace_text('MLFQ')}.", "note")
    page.contradictions_named("rising-by-waking")


def _compare_turn(q: Queries, scheduler: str) -> FigureComparison:
    """Compares the commonest time slice with the published one."""
    return FigureComparison(
        q.figure("section 4.1", scheduler, "turn"),
        Measurement((q.usual_slice(scheduler).length,)),
        decimals=0,
    )


def _draw_schedule(
    page: Writer, q: Queries, scheduler: str, figure: int, until: int | None = None
) -> None:
    """Adds the chart of the published and the measured schedule, up to the tick `until`."""
    page.picture(
        schedules,
        f"study-4-figure-{figure}",
        f"Three CPU-bound processes under {scheduler}: the study's figure {figure}",
        q.schedule(scheduler, until),
        caption=f"""{f"The first {until} ticks. " if until else ""}Published: the authors' output.
        {q.how(q.trace_experiment, [q.schedulers[scheduler]])}""",
    )


def _range_text(values: list[int]) -> str:
    """Returns the least and the greatest value in words."""
    return f"{min(values)} to {max(values)}"


def _write_mixed_benchmark(page: Writer, q: Queries) -> None:
    page.section("The mixed benchmark: figures 9 and 10")
    page.text(f"""
    Two **interactive** processes write a line to a file and sleep 5 ticks, twenty times. Next to them, 2 to 40
    **CPU-bound** ones compute {q.work:.0f} ticks each, on one CPU. The measure is the mean time from fork to end.
    Ideally, an interactive process needs {q.ideal("interactive", 2):.0f} ticks regardless of the number of CPU-bound
    processes, and n CPU-bound processes that share the CPU equally all need n × {q.work:.0f}. The study's text has
    the curves without numbers: *published* is the output of its authors, *rerun* the output of their programs on
    another machine. Section 4.2 says that printing in the kernel takes time itself, so the study prints only at
    `exit()`. schedlab's kernel prints nothing: it records events.""")
    in_one_boot = q.ran(q.rounds_experiment)
    for scheduler, figure in _FIGURE_OF_SCHEDULER.items():
        page.curves(
            f"study-4-figure-{figure}",
            f"The mixed benchmark under {scheduler}: the study's figure {figure}",
            q.sizes,
            "CPU-bound processes",
            "mean turnaround, ticks",
            {
                kind: Curve(
                    partial(q.compared_turnaround, kind, scheduler),
                    partial(q.authors, kind, scheduler),
                )
                for kind in q.kinds
            },
            caption=f"Mean turnaround{', all rounds in one boot' if in_one_boot else ''}.",
            ideal=partial(q.ideal, "interactive"),
            policies=False,
            order=list(q.kinds),
            ideal_title="ideal, interactive",
        )
        page.compared(
            f"study-4-figure-{figure}-table",
            f"Mean turnaround under {scheduler} ({q.schedulers[scheduler]}), ticks",
            ["CPU-bound"],
            q.sizes,
            {kind: partial(_compare_turnaround, q, kind, scheduler) for kind in q.kinds},
            f"""{"All rounds in one boot, as the study ran them." if in_one_boot else ""}
            {q.how(q.benchmark_runs())}""",
        )
    page.text("""
    A tick of the study is 10 ms of its machine and its emulator, so only shapes can be compared: the time next to the
    most processes divided by the time next to the fewest, and the ticks that each additional CPU-bound process adds
    (the slope of a straight line through all points).""")
    curves = {
        f"{scheduler}, {kind}": (scheduler, kind) for scheduler in q.schedulers for kind in q.kinds
    }
    page.measured(
        "study-4-shapes",
        "Shapes of the four curves",
        ["curve"],
        curves,
        [
            Quantity(
                whose, partial(q.curve, shape, whose), q.shape_title(shape), muted=whose == "ideal"
            )
            for shape in ("growth", "slope")
            for whose in ("published", "rerun", "measured", "ideal")
        ],
        f"""Growth: published and measured, from the smallest to the largest number of processes; for the rerun from
        {q.rerun_sizes()}. Measured: the numbers of processes that were run.""",
    )
    page.text(f"""
    The authors' output has each process of the 20 rounds, {2 * 460} in all. The measured processes are compared one
    by one: in each round the shortest time with the shortest, and so on. Under MLFQ, the time of interactive
    processes depends on when a round begins between two boosts (below).""")
    _write_process_times(page, q, curves)


def _compare_turnaround(q: Queries, kind: str, scheduler: str, size: int) -> FigureComparison:
    """Compares a turnaround in the mixed benchmark with the published one."""
    theirs = q.authors(kind, scheduler, size)
    return FigureComparison(
        theirs,
        q.compared_turnaround(kind, scheduler, size),
        q.in_rounds(kind, scheduler, size, True),
        costs_run=q.experiment_with_study_costs(q.rounds_experiment),
        rerun=q.authors(kind, scheduler, size, "rerun"),
        ideal=q.ideal(kind, size),
        notes={"measured": q.phase_footnote(kind, scheduler, size)},
        is_counted=not q.determined_a_cost(theirs),
    )


def _write_process_times(page: Writer, q: Queries, curves: dict[str, tuple[str, str]]) -> None:
    """Adds the tables of the turnaround of single tasks."""
    costs_note = q.how([q.rounds_experiment, q.experiment_with_study_costs(q.rounds_experiment)])

    def process_times(
        figure: str, with_study_costs: bool, scheduler: str, kind: str
    ) -> Measurement:
        return q.agreement_of_tasks(figure, scheduler, kind, with_study_costs)

    page.measured(
        "study-4-each-process",
        "The mixed benchmark, process by process",
        ["processes"],
        curves,
        [
            Quantity(f"{what}, %", partial(process_times, what, with_study_costs), group)
            for with_study_costs, group in ((False, "measured"), (True, "study costs"))
            for what in ("near", "off")
        ],
        f"""All rounds in one boot. Near: within 15 %, or a tick. Off: the mean difference over all processes of a
        kind, in percent of the published time. {costs_note}""",
    )

    def extreme(which: int, whose: str, scheduler: str, kind: str, size: int) -> Measurement:
        return q.shortest_and_longest(scheduler, kind, size, which, whose)

    page.measured(
        "study-4-spread",
        "The shortest and the longest time of a round, ticks",
        ["processes", "CPU-bound"],
        {
            (name, size): (*curve, size)
            for name, curve in curves.items()
            for size in (2, 10, 20, 30, 40)
        },
        [
            Quantity(title, partial(extreme, which, whose), group, 0 if whose == "published" else 1)
            for whose, group in (
                ("published", "published"),
                ("measured", "measured"),
                ("costs", "study costs"),
            )
            for which, title in ((0, "shortest"), (-1, "longest"))
        ],
        f"All rounds in one boot. {costs_note}",
    )


def _write_reasons(page: Writer, q: Queries) -> None:
    """Adds the section on why interactive tasks take longer under round-robin."""
    rr, mlfq = q.round_robin_findings(), q.feedback_findings()
    if not rr and not mlfq:
        page.text("*There is no trace of this benchmark, so there are no causes.*")
        return
    page.text("Causes, from the traces:")
    if rr:
        page.item(f"**RR**, {rr.size} CPU-bound (seed {rr.seed}):")
        if rr.sleeps and rr.back:
            page.more(
                f"""after each sleep and each wait for the disk, an interactive process waits for a time slice of all
                others, {rr.back:.1f} ticks (median)."""
            )
        page.more(
            f"""So it has begun {rr.started_sleeps:.1f} of its {rr.sleeps:.0f} sleeps when the last CPU-bound process
            ends, and ends {rr.later:.0f} ticks later: interactive processes outlast CPU-bound ones, and each
            additional CPU-bound process adds all of its work to their time. The interactive processes also take longer
            in {q.sizes_with_slow_interactive()} of the authors' {len(q.sizes)} rows."""
            if rr.sleeps
            else "no interactive process is in the trace."
        )
    if mlfq:
        page.item(f"**MLFQ**, {mlfq.size} CPU-bound")
        with page.if_measured(page.more):
            page.more(
                f"""(seed {mlfq.seed}): the CPU-bound ones stay on the highest level until each has used its
                allotment of {mlfq.allotment} ticks there, for {mlfq.lasted:.0f} ticks in all; the interactive ones
                share it with them, and have begun {mlfq.started_sleeps:.1f} of their {mlfq.sleeps:.0f} sleeps by
                then. After that they run first, and a round of writing and sleeping takes {mlfq.round:.1f} ticks. So
                each additional CPU-bound process delays them by {mlfq.allotment} ticks until the next boost. Over
                the rounds, which include boosts, it adds {q.curve("slope", "measured", "MLFQ", "interactive"):.1f}
                (published: {q.curve("slope", "authors", "MLFQ", "interactive"):.1f})."""
                if mlfq.allotment
                else ": the trace has no level."
            )
    page.item("**CPU-bound**:")
    with page.if_measured(page.more):
        page.more(f"""{_CPU_BOUND_MAX} of them take
        {q.compared_turnaround("CPU-bound", "RR", _CPU_BOUND_MAX):,.0f} ticks under
        RR, and the ideal
        is {_CPU_BOUND_MAX * q.work:,.0f}. In the ideal, all begin together; in the measurements, the last is forked
        {q.fork_distance(_CPU_BOUND_MAX):.0f} ticks after the first, and the time of each counts from its fork.""")


def _write_moments_and_forks(page: Writer, q: Queries) -> None:
    """Adds the tables by the moment when a round begins, and by the distance of forks."""
    if q.has_moments():
        moments = q.moments()
        page.text(f"""
        **The time of the boost.** All are boosted every {q.figure("section 3.2.1", "boost", "period")} ticks, and the
        CPU-bound ones then compete with the interactive ones again. So the start of a round matters: started at
        {moments.count} moments, interactive processes next to {_CPU_BOUND_MAX} others take {moments.least:.0f} to
        {moments.most:.0f} ticks""")
        if q.has_moments(True):
            slow = q.moments(True)
            page.more(f", and {slow.least:.0f} to {slow.most:.0f} with study costs")
        page.more(f""". The study's {q.authors("interactive", "MLFQ", _CPU_BOUND_MAX)}
        {"lies" if q.within_moments() else "does not lie"} within that. The study ran its {len(q.sizes)} rounds in one
        boot, so that each began after the previous ones; so do the measured rounds.""")
    _write_phases(page, q)
    if not q.ran(q.experiment_with_study_costs(q.rounds_experiment)):
        return
    size = q.sizes[-2]
    measured, theirs = q.in_rounds, partial(q.authors, "CPU-bound", size=size)
    page.text(f"""
    **Slow forks.** A fork may have taken longer on the study's machine, relative to a tick, than in schedlab. With
    {q.extra_ticks("fork", "RR"):.2f} ticks more under round-robin and {q.extra_ticks("fork", "MLFQ"):.2f} under MLFQ,
    {_CPU_BOUND_MAX} CPU-bound processes take the study's time. These two cells agree by definition, and no other
    figure shows slow forks. *Study costs* also has xv6's `sleep()`: all sleeping processes are woken at each tick, and
    each checks its time.""")
    with page.if_measured(page.more):
        page.more(f"""With study costs, {size} CPU-bound ones take
        {measured("CPU-bound", "RR", size, True):,.0f} ticks under
        RR instead of {measured("CPU-bound", "RR", size):,.0f} (authors: {theirs("RR")}), and
        {measured("CPU-bound", "MLFQ", size, True):,.0f} under MLFQ instead of
        {measured("CPU-bound", "MLFQ", size):,.0f}
        ({theirs("MLFQ")}): the time of each counts from its fork, and the forks are further apart. Study costs hardly
        change the time of interactive processes under round-robin,
        {measured("interactive", "RR", 2, True):.0f} ticks next to 2 instead of
        {measured("interactive", "RR", 2):.0f}. The authors' {q.authors("interactive", "RR", 2)} ticks
        are not explained.""")


def _write_late_starts(page: Writer, q: Queries) -> None:
    """Adds the table of tasks that start to sleep later."""
    page.section("A process that computes first and sleeps later: section 4.3")
    page.text("""
    The study adds that a process that computes and later sleeps may not be served when it wakes, because of its low
    level. In schedlab's test, such a process computes for 60 ticks, which demotes it to the lowest level, and then
    repeatedly sleeps for 5 ticks, next to 20 that compute.""")
    policies = {"RR": q.schedulers["RR"], **{f"MLFQ, {k}": v for k, v in q.implementations.items()}}
    page.measured(
        "study-4-late",
        "Wake-up latency of a process that sleeps later, ticks",
        ["scheduler"],
        policies,
        [Quantity(which, partial(q.wakeup_of_late, which)) for which in ("median", "max")],
        q.how(q.changes_late),
    )
    with page.if_measured():
        page.text(f"""
        On the lowest level it waits up to {q.wakeup_of_late("max", "mlfq:allotment-boost"):.0f} ticks, for time
        slices of 32 ticks. The next boost raises it, and it stays above the others because it now sleeps: the median
        wait is {q.wakeup_of_late("median", "mlfq:allotment-boost"):.0f} ticks. Under round-robin it waits
        {q.wakeup_of_late("median", "rr:table-scan"):.0f} ticks each time.""")


def _write_scan(page: Writer, q: Queries) -> None:
    """Adds the table of a run queue that scans the table of processes."""
    page.section("The study's implementation: a scan of the table")
    page.text("""
    The study's scheduler has no queues. At each decision it scans the whole table of processes and takes the first
    one of the highest level (section 3.2.2, figure 4): `mlfq:table-scan`. The tables above show
    `mlfq:allotment-boost`, the same rule with lists. The study calls lists scalable, and its scan simpler. This table
    compares turnarounds. In instructions, a decision among 64 tasks costs about eight times as much with a scan
    (`./schedlab dev bench`).""")
    page.measured(
        "study-4-scan",
        "Mean turnaround with lists and with a scan of the table, ticks",
        ["processes"],
        {title: name for name, title in q.scans.items()},
        [
            Quantity(
                title, lambda experiment, policy=policy: q.turnaround_with_scan(experiment, policy)
            )
            for title, policy in q.implementations.items()
        ],
        q.how(list(q.scans)),
    )
    page.text("""
    Section 4.3 names two causes of the shorter sleep: a scheduler that looks at all 64 processes wakes a process on
    time, and the level of the process is high. In xv6, a sleeping process checks its time when it runs, and a scan of
    the table runs none.""")
    with page.if_measured(page.more):
        listed_, scanned = (
            q.waited("s4-scan-sleeper", policy) for policy in q.implementations.values()
        )
        page.more(f"""After its wake-up, the sleeper waits {listed_:.1f} ticks with lists, which hold no sleeping
        process, and {scanned:.1f} with a scan. So the scan is not the cause.""")


def _write_boost(page: Writer, q: Queries) -> None:
    """Adds the table of a task that computes while new tasks keep arriving."""
    page.section("The boost against starvation: sections 3.1 and 3.2.1")
    page.text("""
    The study says that the boost prevents starvation, and has no test of it. In schedlab's test, one process computes
    while new processes keep arriving, which end on the highest level.""")
    page.measured(
        "study-4-boost",
        "A process that computes while new ones keep arriving",
        ["policy"],
        q.policies_of(q.with_and_without_boost),
        [Quantity("share of the CPU, %", q.share_of_old, digits=2)],
        q.how(q.with_and_without_boost),
    )


def _write_shortest_first(page: Writer, q: Queries) -> None:
    """Adds the table of the mixed benchmark under policies that know how long a task runs."""
    page.section("Compared with shortest job first: section 3.1")
    page.text("""
    The study says that a feedback queue serves short, interactive jobs as Shortest Job First does, without knowing how
    long they run. `srpt` and `srpt:sjf` know it. In the simulator, next to 20 processes that compute:""")
    page.measured(
        "study-4-shortest-first",
        "The mixed benchmark and policies that know the length of a job: mean turnaround, ticks",
        ["policy"],
        q.policies_of(q.next_to_shortest_first),
        [Quantity(kind, partial(q.next_to_shortest, kind)) for kind in q.kinds],
        q.how(q.next_to_shortest_first),
    )


def _write_phases(page: Writer, q: Queries) -> None:
    """Adds the table of turnarounds by the phase of the tick when a round begins."""
    shown = {experiment: size for experiment, size in q.phases.items() if q.ran(experiment)}
    if not shown:
        return

    def published(experiment: str) -> Measurement:
        return Measurement((value_of(q.authors("interactive", "MLFQ", shown[experiment])),))

    page.measured(
        "study-4-phases",
        "Interactive processes under MLFQ, by the start of a round between two boosts, ticks",
        ["CPU-bound"],
        {str(size): experiment for experiment, size in shown.items()},
        [
            Quantity("published", published),
            Quantity("least of eight moments", partial(q.phase_extreme, min)),
            Quantity("greatest", partial(q.phase_extreme, max)),
        ],
        q.how(list(shown)),
    )
    inside = q.published_within_phases(list(shown))
    page.text(f"""
    The published value lies between the smallest and the largest time of these moments for {len(inside)} of
    {len(shown)} sizes{f": {listed([str(shown[kind]) for kind in inside])}" if inside else ""}.""")


def _write_built_in(page: Writer, q: Queries) -> None:
    page.subsection("The built-in policies")
    policies = q.built_in_policies_run(q.experiments)
    if not policies:
        page.text("Not run.")
        return

    def turnaround(kind: str, size: int, policy: str) -> Measurement:
        return q.turnaround(kind, policy, size)

    page.measured(
        "study-4-policies",
        "Mean turnaround in ticks, by number of CPU-bound processes",
        ["policy"],
        policies,
        [
            Quantity(str(size), partial(turnaround, kind, size), f"{kind}, beside")
            for kind in q.kinds
            for size in q.sizes_of_built_in()
        ],
        q.how([f"s4-mixed-{size}" for size in q.sizes_of_built_in()], q.built_in),
    )


def _write_sleeper(page: Writer, q: Queries) -> None:
    early, late = q.sleepers
    page.section("The sleeper: section 4.3")

    def slept(experiment: str, scheduler: str) -> FigureComparison:
        theirs = q.figure("section 4.3", "sleeper", scheduler) if experiment == early else None
        return FigureComparison(
            theirs,
            q.slept(experiment, scheduler),
            q.slept(q.experiment_with_study_costs(experiment), scheduler),
            costs_run=q.experiment_with_study_costs(experiment),
            ideal=q.requested_sleep_ticks,
            decimals=0,
        )

    page.compared(
        "study-4-sleeper",
        "A process that sleeps 5 ticks next to 20 that compute",
        ["the sleeper starts", "scheduler"],
        {
            (when, scheduler): (experiment, scheduler)
            for experiment, when in q.sleepers.items()
            for scheduler in q.schedulers
        },
        {
            "slept, ticks": slept,
            "fork to end, ticks": lambda experiment, scheduler: FigureComparison(
                measured=q.from_fork(experiment, scheduler),
                study_costs=q.from_fork(q.experiment_with_study_costs(experiment), scheduler),
                costs_run=q.experiment_with_study_costs(experiment),
                rerun=q.rerun_of_sleeper(scheduler) if experiment == early else None,
            ),
        },
        q.how(q.sleepers),
    )
    for experiment, when in q.sleepers.items():
        with page.if_measured():
            page.text(f"""
            Started {when}, it waits after its wake-up for {q.waited(experiment, "RR"):.1f} ticks under round-robin and
            {q.waited(experiment, "MLFQ"):.1f} under MLFQ.""")
    page.text("""
    It waits for a time slice of each process that runs before it. Under round-robin, its turn comes every 20 ticks, of
    which 5 pass while it sleeps: 15 of the 20 others run before it. Under MLFQ, the processes on
    the highest level do, with time slices of 2 ticks.
    Each CPU-bound process is there for its first 8 ticks, 160 ticks for all 20.""")
    slow = q.experiment_with_study_costs(early)
    if q.ran(slow):
        with page.if_measured(page.more):
            page.more(f"""With study costs, it sleeps {q.slept(slow, "MLFQ"):.0f} ticks instead of
            {q.slept(early, "MLFQ"):.0f}, even if it is forked right after the others (published:
            {q.figure("section 4.3", "sleeper", "MLFQ")}). The parent takes {20 * q.extra_ticks("fork", "MLFQ"):.1f}
            ticks
            to fork 20 processes, and is demoted to the next level before it forks the sleeper. So the sleeper starts
            after the others have been demoted. The scheduler charges a whole tick to the
            process that runs when the tick ends. The parent starts just before a tick. So its allotment of 8 ticks is
            used up before it has run for 8 ticks.""")
    without = name_without_cost(slow, "recheck")
    if q.ran(without):
        page.text("""
        **Wake-ups at each tick.** Section 4.3 says that a sleeping process checks its time only when the scheduler
        reaches it. That is xv6's `sleep()`, which study costs have.""")
        with page.if_measured(page.more):
            page.more(f"""With it, the sleeper sleeps {q.slept(slow, "RR"):.1f} ticks under round-robin and
            {q.slept(slow, "MLFQ"):.1f} under MLFQ. If a timer wakes it once, at its time, it sleeps
            {q.slept(without, "RR"):.1f} and {q.slept(without, "MLFQ"):.1f}.""")
    forks = [fork for fork in q.forks if q.ran(fork)]
    if forks:
        page.measured(
            "study-4-forks",
            "The sleeper, by the duration of a fork",
            ["ticks of the parent for a fork"],
            {q.forks[fork]: fork for fork in forks},
            [
                Quantity("20 forks", lambda experiment: 20 * float(q.forks[experiment])),
                Quantity("slept", partial(q.slept, scheduler="MLFQ")),
            ],
            f"""All in ticks. The allotment of the highest level is 8 ticks, and 20 forks of 0.38 ticks need 7.6. This
            decides whether the parent is demoted before it forks the sleeper. {q.how(forks)}""",
        )
    with page.if_measured(page.more):
        page.more(f"""If it starts {q.sleepers[late]}, it sleeps {q.slept(late, "MLFQ"):.1f} ticks, or
        {q.slept(q.experiment_with_study_costs(late), "MLFQ"):.1f} with study costs. A sleep of 5 ticks ends at the
        fifth tick after its start, so it can be up to a tick shorter.""")
    with page.if_measured():
        rr, mlfq = (
            value_of(q.rerun_of_sleeper(scheduler)) / q.from_fork(early, scheduler).value
            for scheduler in ("RR", "MLFQ")
        )
        page.text(f"""
        The rerun's turnarounds are {rr:.1f} times (RR) and {mlfq:.1f} times (MLFQ) the measured ones. They are ticks
        of another machine; the factor is not explained.""")
    page.contradictions_about("section 4.3")
    if policies := q.built_in_policies_run(q.sleepers):
        page.measured(
            "study-4-sleeper-policies",
            "The sleeper under the built-in policies: ticks slept",
            ["policy"],
            policies,
            [
                Quantity(when, partial(q.slept, sleeper), "started")
                for sleeper, when in q.sleepers.items()
            ],
            digits=0,
        )


def _write_claims(page: Writer, q: Queries) -> None:
    """Adds the table of the study's statements with the measured figures."""
    page.section("What the study claims")
    rr, mlfq = (
        value_of(q.authors("CPU-bound", scheduler, _CPU_BOUND_MAX)) for scheduler in ("RR", "MLFQ")
    )
    ratio = q.ratio(
        *(
            q.compared_turnaround("CPU-bound", scheduler, _CPU_BOUND_MAX)
            for scheduler in ("MLFQ", "RR")
        )
    )

    def ratio_with_most(column: str) -> MeasuredCell:
        mlfq, rr = (
            q.summary(f"s4-mixed-{_CPU_BOUND_MAX}", q.schedulers[name], column)
            for name in ("MLFQ", "RR")
        )
        return MeasuredCell(q.ratio(mlfq, rr), 2)

    page.text("""
    Sections 3.1 and 6 name systems with a feedback queue, and BFS and CFS as schedulers used on Linux. This is
    background, which schedlab does not repeat. BFS was a patch that Linux itself never included.""")
    page.statements(
        "study-4-claims",
        "Statements of the study",
        ["section", "the study says", "published figures", "measured"],
        [
            (
                "1",
                f"MLFQ improves throughput (ratio to RR, beside {_CPU_BOUND_MAX})",
                "none",
                ratio_with_most("throughput_per_second"),
            ),
            (
                "1",
                f"MLFQ shares CPU time more fairly (Jain's index, ratio to RR, beside {_CPU_BOUND_MAX})",
                "none",
                ratio_with_most("fairness_share"),
            ),
            (
                "4.2",
                "interactive processes under MLFQ hardly take longer (next to 40, ÷ next to 2)",
                q.curve("growth", "authors", "MLFQ", "interactive"),
                q.growth_to_most(),
            ),
            (
                "4.2",
                "CPU-bound ones take as long under MLFQ as under RR (ratio, 40)",
                f"{mlfq / rr:.2f}",
                MeasuredCell(ratio, 2),
            ),
            *(
                (
                    "4.3",
                    f"ticks that a sleep of 5 ticks lasts next to 20 others, under {scheduler}",
                    q.figure("section 4.3", "sleeper", scheduler),
                    q.slept("s4-sleeper", scheduler),
                )
                for scheduler in q.schedulers
            ),
        ],
        page.command,
        right=["published figures", "measured"],
    )
    page.other_contradictions()
