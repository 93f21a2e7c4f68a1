# SPDX-License-Identifier: MIT
"""Where tasks with deadlines mark their jobs, by which misses and lateness are measured
(docs/metrics.md)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from schedlab.workload.model import Item, Loop, Step, everything

_TIMER = re.compile(r"timer (\d+)")
_RESERVED = re.compile(r"(runtime|period) [1-9]")
_FROM_THE_FORK = Step("job 0 0ns absolute")
_NO_MORE = Step("job none")


def with_jobs(attributes: Mapping[str, int], body: tuple[Item, ...]) -> tuple[Item, ...]:
    """Returns what a process of a task does, with a mark before each timer of its own, where a job is done;
    the same body if the task has no runtime or no period.

    The first job is released at the fork, unless the task begins with a timer. A timer at the very
    end releases none.
    """
    steps = (item.words for item in everything(body) if isinstance(item, Step))
    set_later = {found[1] for words in steps if (found := _RESERVED.match(words))}
    given = {name for name in ("runtime", "period") if attributes.get(name)}
    if len(set_later | given) < 2:
        return body
    begin = () if _is_timer(_edge(body, 0)) else (_FROM_THE_FORK,)
    end = (_NO_MORE,) if _is_timer(_edge(body, -1)) else ()
    return (*begin, *_marked(body), *end)


def _marked(items: tuple[Item, ...]) -> Iterator[Item]:
    for item in items:
        if isinstance(item, Loop):
            yield replace(item, body=tuple(_marked(item.body)))
            continue
        if _is_timer(item):
            assert isinstance(item, Step)
            yield replace(item, words=item.words.replace("timer", "job", 1))
        yield item


def _edge(items: tuple[Item, ...], place: int) -> Item | None:
    """The first thing (0) that is done, or the last (-1); None: there is none."""
    if not items:
        return None
    item = items[place]
    if not isinstance(item, Loop):
        return item
    return None if place and math.isinf(item.rounds) else _edge(item.body, place)


def _is_timer(item: Item | None) -> bool:
    """Is it one of the process's own?"""
    return isinstance(item, Step) and bool(_TIMER.fullmatch(item.words))
