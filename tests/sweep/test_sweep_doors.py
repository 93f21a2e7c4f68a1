# SPDX-License-Identifier: MIT
"""Tests access to a sweep's workers: only the owner can run code in them, on this host and on
a cluster.
"""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import duckdb
import psutil
import pytest

import schedlab
from processes import in_session, is_running, wait_until
from schedlab.base.host.isolated import PYTHON
from schedlab.errors import WrongUsage
from schedlab.runs import certificate, cluster
from schedlab.sweep import command, dataset
from sweeps import SEEDS, SETUPS, assert_same, started, sweep_file

pytestmark = pytest.mark.xdist_group("sweeps")

ATTACK = """
import sys
from pathlib import Path
from distributed import Client, Security

address, place, folder = sys.argv[1:]
own = {}
if folder:
    pem, key = folder + "/certificate.pem", folder + "/key.pem"
    own = {"security": Security(tls_ca_file=pem, tls_client_cert=pem, tls_client_key=key)}
client = Client(address, timeout=3, **own)
client.submit(Path(place).write_text, "it ran").result(timeout=20)
"""
"""A script for another process, which makes the workers run a function."""


@dataclass(frozen=True)
class Door:
    """A socket through which others can contact a process."""

    process: int
    address: str
    port: int


def doors(processes: Iterable[int]) -> list[Door]:
    """Returns all listening sockets of these processes; named Unix sockets have port 0."""
    open_doors = []
    for pid in processes:
        with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            for connection in psutil.Process(pid).net_connections("all"):
                if connection.family == socket.AF_UNIX and connection.laddr:
                    open_doors.append(Door(pid, str(connection.laddr), 0))
                elif (
                    connection.family != socket.AF_UNIX and connection.status == psutil.CONN_LISTEN
                ):
                    open_doors.append(Door(pid, connection.laddr.ip, connection.laddr.port))
    return open_doors


def attack(address: str, path: Path, folder: Path | None = None) -> bool:
    """Returns True if a function ran, as shown by its file."""
    call = [*PYTHON, "-c", ATTACK, address, str(path), str(folder or "")]
    subprocess.run(call, capture_output=True, timeout=120, check=False)
    return path.exists()


# --- this host


def test_doors_are_seen(tmp_path: Path) -> None:
    """Otherwise the next test would prove nothing."""
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(tmp_path / "s"))
        unix.listen()
        open_doors = {(door.address, door.port) for door in doors([os.getpid()])}
        assert {tcp.getsockname(), (str(tmp_path / "s"), 0)} <= open_doors


def test_a_sweep_of_this_host_has_no_door(tmp_path: Path) -> None:
    path, out = sweep_file(tmp_path, SEEDS), tmp_path / "out"
    call = ("schedlab", "sweep", str(path), "--out", str(out), "--jobs", "2")
    with started(*call) as sweep:
        wait_until((out / "runs" / "part-000001.parquet").exists, "nothing is finished", 120)
        sweep.send_signal(signal.SIGSTOP)  # it continues after the inspection
        workers = [pid for pid in in_session(sweep.pid) if pid != sweep.pid]
        assert len(workers) >= 2
        assert doors(in_session(sweep.pid)) == []
        # Its workers end with it, however it ends.
        sweep.kill()
        sweep.send_signal(signal.SIGCONT)
        wait_until(lambda: not any(map(is_running, workers)), "a worker lives on without its sweep")


# --- a cluster


@dataclass(frozen=True)
class Started:
    """A scheduler and workers, each a separate process, as started by hand."""

    address: str
    certificate: Path
    scheduler: subprocess.Popen[str]
    workers: list[subprocess.Popen[str]]

    def processes(self) -> list[subprocess.Popen[str]]:
        return [self.scheduler, *self.workers]


@contextmanager
def processes_of_a_cluster(folder: Path, workers: int) -> Iterator[Started]:
    certificate.create_certificate(folder)
    with ExitStack() as stack:
        options = ("--certificate", str(folder), "--host", "127.0.0.1")
        scheduler = stack.enter_context(
            started("schedlab", "dask", "scheduler", *options, "--port", "0")
        )
        assert scheduler.stdout
        address = ""
        for line in scheduler.stdout:
            if "Scheduler at:" in line:
                address = line.split()[-1]
                break
        one = ("--nthreads", "1", "--no-nanny")
        call = ("schedlab", "dask", "worker", address, *options, *one)
        yield Started(
            address,
            folder,
            scheduler,
            [stack.enter_context(started(*call)) for _ in range(workers)],
        )


@pytest.fixture(scope="module")
def a_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    with processes_of_a_cluster(tmp_path_factory.mktemp("cluster") / "secret", 2) as cluster:
        yield cluster


def test_a_stranger_is_refused_by_a_cluster(tmp_path: Path, a_cluster: Started) -> None:
    other = tmp_path / "other"
    certificate.create_certificate(other)
    plain = a_cluster.address.replace("tls://", "tcp://")
    assert not attack(plain, tmp_path / "plain")
    assert not attack(a_cluster.address, tmp_path / "with-another", other)
    assert attack(a_cluster.address, tmp_path / "with-its-own", a_cluster.certificate)


def test_a_cluster_scores_policies(a_cluster: Started) -> None:
    """Results arrive in order, although one policy needs no compilation."""
    sources = ["int first;\n", "int second;\n"]
    with cluster.executor(a_cluster.address, a_cluster.certificate) as executor:
        scores = [*schedlab.score_many(sources, executor, trusted=True)]
    assert scores == [schedlab.score(source, trusted=True) for source in sources]


def test_all_doors_of_a_cluster_are_locked_or_lead_nowhere(a_cluster: Started) -> None:
    """Sockets that require no certificate are limited to this host, and serve nothing."""
    all_doors = {
        door for process in a_cluster.processes() for door in doors(in_session(process.pid))
    }
    assert {door.address for door in all_doors} == {"127.0.0.1"}
    open_ones = {door for door in all_doors if answer(door, "")}
    for door in open_ones:
        for path in ("", "info/main/workers.html", "json/counts.json", "status", "metrics"):
            assert answer(door, path).startswith("HTTP/1.1 404 ")
    locked = all_doors - open_ones
    assert len(locked) == len(
        [process for process in a_cluster.processes() if process.poll() is None]
    )
    assert all(asks_for_a_certificate(door) for door in locked)


def answer(door: Door, path: str) -> str:
    """Returns the answer to an HTTP request; "": the peer speaks another protocol."""
    with socket.create_connection((door.address, door.port), timeout=30) as connection:
        connection.sendall(f"GET /{path} HTTP/1.0\r\n\r\n".encode())
        try:
            return connection.recv(100).decode("latin-1")
        except ConnectionResetError:
            return ""


def asks_for_a_certificate(door: Door) -> bool:
    """Returns True if it speaks TLS and refuses peers without a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with socket.create_connection((door.address, door.port), timeout=30) as plain:
        try:
            with context.wrap_socket(plain) as wrapped:
                wrapped.recv(1)
        except ssl.SSLError as error:
            return "CERTIFICATE_REQUIRED" in str(error)
    return False


def test_a_worker_of_a_cluster_is_killed_and_nothing_is_lost_or_twice(
    tmp_path: Path, a_cluster: Started
) -> None:
    seeds = 2 * SEEDS  # it takes seconds, so that it can be interrupted
    path, out = sweep_file(tmp_path, seeds), tmp_path / "out"
    workers = a_cluster.workers
    options = ("--scheduler", a_cluster.address, "--certificate", str(a_cluster.certificate))
    with started("schedlab", "sweep", str(path), *options, "--out", str(out)) as sweep:
        wait_until((out / "runs" / "part-000001.parquet").exists, "nothing is finished", 120)
        workers[1].send_signal(signal.SIGKILL)
        finished = len(dataset.read_statuses(out))
        text, _ = sweep.communicate(timeout=120)
    assert sweep.returncode == 0, text
    assert workers[1].wait() == -signal.SIGKILL
    assert workers[0].poll() is None
    assert 0 < finished < seeds * SETUPS, "it was not killed in the middle"
    counted = duckdb.execute(
        f"SELECT count(*), count(DISTINCT key), count(*) FILTER (status = 'success')"
        f" FROM read_parquet('{out}/runs/*.parquet')"
    ).fetchone()
    assert counted == (seeds * SETUPS,) * 3
    command.execute_plan(
        command.plan_sweep(path, {}), command.ExecutionOptions(tmp_path / "here", workers=1)
    )
    assert_same(out, tmp_path / "here")


# --- refusals


def test_a_scheduler_without_tls_or_with_a_readable_key_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "secret"
    for address in ("tcp://10.0.0.1:8786", "10.0.0.1:8786", "xyz://127.0.0.1:9"):
        with pytest.raises(WrongUsage, match="use an address such as tls://"):
            certificate.certificate_for(address, folder)
    with pytest.raises(WrongUsage, match=r"create one with \./schedlab dask certificate FOLDER"):
        certificate.certificate_for("tls://10.0.0.1:8786", None)
    with pytest.raises(WrongUsage, match=r"contains no certificate\.pem"):
        certificate.certificate_for("tls://10.0.0.1:8786", folder)
    certificate.create_certificate(folder)
    assert folder.stat().st_mode & 0o077 == 0
    with pytest.raises(WrongUsage, match="exists already"):
        certificate.create_certificate(folder)
    credentials = certificate.certificate_for("tls://10.0.0.1:8786", folder)
    credentials.key.chmod(0o640)
    with pytest.raises(WrongUsage, match=r"other users can read key\.pem"):
        certificate.certificate_for("tls://10.0.0.1:8786", folder)
