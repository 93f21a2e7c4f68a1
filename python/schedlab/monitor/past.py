# SPDX-License-Identifier: MIT
"""What a system has told lately, kept so that it can be shown as it was.

A model is a function of what it was fed. So an earlier one is made again: from a copy that was made
before that time, and the records that came after the copy.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import numpy.typing as npt

from schedlab.monitor.model import Model, ModelFrame
from schedlab.monitor.system import Records, Refused, Status, StepKind
from schedlab.trace.format import Kind

RECORDS_MAX = 1_000_000
"""What is kept: 32 MB of records, and five models at most."""
_STRETCH = RECORDS_MAX // 4
"""Records from one copy of the model to the next."""
_SEEN_MAX = 10_000
_NO_LIMIT = 1 << 62
_MILLISECOND_NS = 1_000_000
STANDARD_TICK_NS = 1_000_000
"""The length of a step by a tick, where a machine has no ticks."""


@dataclass
class _Stretch:
    """A model as it was, and what it was fed from then on."""

    model: Model
    fed: list[Records | Status] = field(default_factory=list)
    records: int = 0


class Past:
    """The last RECORDS_MAX records or so that a model was fed, and what was made of them."""

    def __init__(self, model: Model) -> None:
        """`model`: as it is at the beginning."""
        self.tick_ns = model.header.tick_ns or STANDARD_TICK_NS
        self._stretches = deque([_Stretch(copy.deepcopy(model))])
        self._seen: dict[int, int] = {}
        """Moments that were shown, and how many records were known then."""
        self._decides: Kind = Kind.SWITCH
        """The kind of record that tells of a decision."""

    # --- what is kept

    def add(self, records: Records) -> None:
        """Keeps what the model was fed."""
        if len(records) == 0:
            return
        if (records["kind"] == Kind.SCHEDULER_EXIT).any():
            self._decides = Kind.SCHEDULER_EXIT
        if self._stretches:
            self._stretches[-1].fed.append(records)
            self._stretches[-1].records += len(records)
        while sum(each.records for each in self._stretches) > RECORDS_MAX:
            self._stretches.popleft()

    def add_status(self, status: Status) -> None:
        """Keeps what the model was told besides; of several in a row the last, which says all."""
        if not self._stretches:
            return
        fed = self._stretches[-1].fed
        if fed and isinstance(fed[-1], Status):
            fed.pop()
        fed.append(status)

    def mark(self, model: Model) -> None:
        """The model has been fed all, and no text is half told: maybe it is copied."""
        if not self._stretches or self._stretches[-1].records >= _STRETCH:
            self._stretches.append(_Stretch(copy.deepcopy(model)))

    def see(self, model: Model) -> None:
        """It is shown as it is now: it will be shown so again. Records of one moment may come apart."""
        self._seen.pop(model.now_ns, None)
        self._seen[model.now_ns] = model.events
        if len(self._seen) > _SEEN_MAX:
            del self._seen[next(iter(self._seen))]

    # --- moments

    @property
    def begin_ns(self) -> int:
        """The first time that can be shown. Refused: there is none."""
        for each in self._stretches:
            if each.model.events:
                return each.model.now_ns
            for records in _pieces(each):
                return int(records["time"][0])
        raise Refused("nothing earlier is kept")

    def before(self, time_ns: int, kind: StepKind) -> int:
        """Returns the moment that is a step earlier. Refused: it is not kept any more."""
        begin_ns = self.begin_ns
        if time_ns <= begin_ns:
            raise Refused(f"nothing is kept of what was before {begin_ns / 1e9:.6f} s")
        if kind is StepKind.MILLISECOND:
            found = time_ns - _MILLISECOND_NS
        elif kind is StepKind.TICK:
            found = (time_ns - 1) // self.tick_ns * self.tick_ns
        else:
            earlier = (self._times(records, kind, -1, time_ns) for records in self._backwards())
            found = next((int(times.max()) for times in earlier if len(times)), begin_ns)
        return max(found, begin_ns)

    def after(self, time_ns: int, kind: StepKind) -> int | None:
        """Returns the moment that is a step later, or None if nothing of the kind is kept."""
        if kind is StepKind.MILLISECOND:
            return time_ns + _MILLISECOND_NS
        if kind is StepKind.TICK:
            return (time_ns // self.tick_ns + 1) * self.tick_ns
        later = (self._times(records, kind, 1, time_ns) for records in self._forwards())
        return next((int(times.min()) for times in later if len(times)), None)

    def _times(
        self, records: Records, kind: StepKind, sign: int, time_ns: int
    ) -> npt.NDArray[np.int64]:
        """Returns the times before (-1) or after (1) a moment at which such a thing happened."""
        times: npt.NDArray[np.int64] = records["time"].astype(np.int64)
        found = (times - time_ns) * sign > 0
        if kind is StepKind.DECISION:
            found &= (records["kind"] == self._decides) & (records["process"] != 0)
        return times[found]

    def _forwards(self) -> Iterator[Records]:
        return chain.from_iterable(_pieces(each) for each in self._stretches)

    def _backwards(self) -> Iterator[Records]:
        for each in reversed(self._stretches):
            yield from reversed(list(_pieces(each)))

    # --- what was then

    def model_at(self, time_ns: int) -> Model:
        """Returns the model as it was when all up to this moment, and nothing later, was known."""
        most = self._seen.get(time_ns, _NO_LIMIT)
        kept = [
            each
            for each in self._stretches
            if each.model.now_ns <= time_ns and each.model.events <= most
        ]
        if not kept:
            raise Refused("nothing is kept of that time")
        model = copy.deepcopy(kept[-1].model)
        for fed in kept[-1].fed:
            if isinstance(fed, Status):
                model.apply_status(fed)
                continue
            records = _until(fed, time_ns)[: most - model.events]
            model.feed(records)
            if len(records) < len(fed):
                break
        model.reach(time_ns)
        return model


def _until(records: Records, time_ns: int) -> Records:
    """Returns what comes before the first one that is later."""
    later = records["time"] > time_ns
    return records[: int(later.argmax())] if later.any() else records


def _pieces(stretch: _Stretch) -> Iterator[Records]:
    return (fed for fed in stretch.fed if not isinstance(fed, Status))


@dataclass(frozen=True)
class View:
    """A moment of the past that is shown instead of the present."""

    time_ns: int
    model: Model
    frame: ModelFrame
