# SPDX-License-Identifier: MIT
"""Batches of a cluster, as Dask tells of their ends: some that had ended begin anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import ANY

import pytest
from distributed import CancelledError, KilledWorker

from schedlab.errors import SchedlabError
from schedlab.sweep.cluster import Cluster
from schedlab.sweep.crew import Ended

RESULT = ["a result"]


class Batch:
    """A future with these states, one after the other, which is told to have ended at once."""

    def __init__(self, *states: str, error: Exception | None = None) -> None:
        self.states = list(states)
        self.error = error
        self.released = False

    @property
    def status(self) -> str:
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]

    def add_done_callback(self, call: Callable[[Any], None]) -> None:
        call(self)

    def result(self) -> list[str]:
        if self.error:
            raise self.error
        return RESULT

    def release(self) -> None:
        self.released = True


class Client:
    def __init__(self, batch: Batch) -> None:
        self.batch = batch

    def submit(self, *_: object, **__: object) -> Batch:
        return self.batch


def cluster_with(batch: Batch) -> Cluster:
    cluster = Cluster(Client(batch))  # type: ignore[arg-type]
    cluster.give("1", ())
    return cluster


def test_a_batch_that_ended_and_was_lost_with_its_worker_is_waited_for() -> None:
    batch = Batch("lost", "pending", "finished")
    cluster = cluster_with(batch)
    assert cluster.ended(0.01) == []
    assert not batch.released
    assert cluster.ended(0.01) == [Ended("1", (*RESULT,))]  # type: ignore[arg-type]
    assert batch.released
    assert cluster.ended(0.01) == []


@pytest.mark.parametrize(
    ("error", "ended"),
    [
        (CancelledError("gone"), Ended("1", None)),
        (KilledWorker("1", ANY, 3), Ended("1", None, died=True)),
    ],
)
def test_a_batch_whose_worker_is_gone_is_given_again(error: Exception, ended: Ended) -> None:
    assert cluster_with(Batch("error", error=error)).ended(0.01) == [ended]


def test_what_no_run_did_ends_the_sweep() -> None:
    cluster = cluster_with(Batch("error", error=ValueError("x")))
    with pytest.raises(SchedlabError, match="not because of a run: ValueError: x"):
        cluster.ended(0.01)
