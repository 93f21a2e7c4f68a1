# SPDX-License-Identifier: MIT
"""Workloads with all kinds of steps, drawn by Hypothesis, in the simulator's format.

Strategies are cached: Hypothesis inspects each new one before it draws, which takes longer than
drawing.
"""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st

CHANNELS = ("red", "green", "blue")
_NAMES = ("one", "two", "three", "four")


@cache
def _times() -> st.SearchStrategy[str]:
    """Odd times, and times that coincide with others."""
    return st.one_of(
        st.integers(1, 5_000_000).map(lambda ns: f"{ns}ns"),
        st.integers(1, 30).map(lambda us: f"{100 * us}us"),
        st.integers(1, 4).map(lambda ms: f"{ms}ms"),
    )


@cache
def _moments() -> st.SearchStrategy[str]:
    return st.integers(0, 40).map(lambda half: f"{500 * half}us")


@cache
def _attributes() -> st.SearchStrategy[str]:
    return st.one_of(
        st.integers(0, 10).map(lambda n: f"priority {n}"),
        st.integers(1, 50).map(lambda n: f"tickets {n}"),
        st.integers(1, 10).map(lambda n: f"weight {n}"),
    )


@cache
def _steps(children: tuple[str, ...], switches: tuple[str, ...]) -> st.SearchStrategy[list[str]]:
    """One step of a process."""
    channel = st.sampled_from(CHANNELS)
    kinds = [
        _times().map(lambda time: f"run {time}"),
        _times().map(lambda time: f"run {time}"),
        _moments().map(lambda time: f"run until {time}"),
        _times().map(lambda time: f"sleep {time}"),
        st.integers(1, 4).map(lambda ticks: f"sleep {ticks}ticks"),
        _moments().map(lambda time: f"sleep until {time}"),
        st.tuples(st.integers(0, 2), _times(), st.sampled_from(("", " absolute"))).map(
            lambda drawn: f"timer {drawn[0]} {drawn[1]}{drawn[2]}"
        ),
        st.sampled_from(("yield", "wait", "mark note 7", "group g")),
        channel.map(lambda name: f"take {name}"),
        st.tuples(channel, channel).map(lambda two: f"take {two[0]} releasing {two[1]}"),
        st.tuples(channel, st.sampled_from(("", " 3", " all", " waiting"))).map(
            lambda drawn: f"give {drawn[0]}{drawn[1]}"
        ),
        _attributes(),
    ]
    if children:
        child = st.sampled_from(children)
        kinds.append(child.map(lambda name: f"fork {name}"))
        kinds.append(st.tuples(_attributes(), child).map(" ".join))
    if switches:
        kinds.append(st.sampled_from(switches))
    return st.one_of(kinds).map(lambda line: [line])


@cache
def _bodies(children: tuple[str, ...], switches: tuple[str, ...]) -> st.SearchStrategy[list[str]]:
    """Steps, and loops of steps; each loop takes time."""
    flat = st.lists(_steps(children, switches), min_size=1, max_size=5).map(
        lambda parts: [line for part in parts for line in part]
    )
    loop = st.tuples(st.integers(1, 4), flat).map(
        lambda drawn: [f"loop {drawn[0]}", *drawn[1], "run 10us", "end"]
    )
    return st.lists(st.one_of(flat, loop), min_size=1, max_size=3).map(
        lambda parts: [line for part in parts for line in part]
    )


_COUNTS = st.integers(1, len(_NAMES))
_ROOM = st.integers(0, 3)
_FIRST: st.SearchStrategy[list[str]] = st.one_of(st.just([]), _steps((), ()))
_LAST = st.one_of(
    st.integers(0, 6).map(lambda count: ["wait"] * count),
    st.integers(1, 60).map(lambda ms: [f"sleep {ms}ms"]),
)
_ENDS = st.sampled_from((["mark end"], []))


@cache
def _forked(names: tuple[str, ...]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(names), min_size=1, max_size=5)


@st.composite
def workloads(draw: st.DrawFn, switches: tuple[str, ...] = ()) -> str:
    """A root, and up to four programs; each may fork later ones.

    `switches`: lines that change the policy; any program may contain them.
    """
    names = _NAMES[: draw(_COUNTS)]
    lines = [f"channel {name} {draw(_ROOM)}" for name in CHANNELS]
    lines += ["program root", "group root", "mark begin"]
    for name in draw(_forked(names)):
        lines += [f"fork {name}", *draw(_FIRST)]
    lines += draw(_LAST)
    lines += draw(_ENDS)
    for index, name in enumerate(names):
        lines += [f"program {name}", *draw(_bodies(names[index + 1 :], switches))]
    return "\n".join(lines) + "\n"
