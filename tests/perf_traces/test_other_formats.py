# SPDX-License-Identifier: MIT
"""Tests compressed or archived recordings, and output of other tools: read, or refused with
advice.
"""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perf_recordings import TICK_NS
from schedlab import trace
from schedlab.base.files import compressed
from schedlab.errors import WrongUsage
from schedlab.recordings.convert import convert
from schedlab.recordings.reader import read

TEXT = """\
 a 5 [000] 1.000000: sched_switch: a:5 [120] S ==> b:6 [120]
 b 6 [000] 1.001000: sched_waking: comm=a pid=5 prio=120 target_cpu=000
 b 6 [000] 1.002000: sched_switch: b:6 [120] S ==> a:5 [120]
"""
LTTNG = """\
[23:59:59.999000000] (+?.?????????) host sched_switch: { cpu_id = 1 }, { prev_comm = "a \\"x\\"", prev_tid = 5, \
prev_prio = 20, prev_state = ( "TASK_INTERRUPTIBLE" : container = 1 ), next_comm = "b", next_tid = 6, next_prio = 25 }
[00:00:00.000000000] (+0.001) host sched_waking: { cpu_id = 1 }, { comm = "a", tid = 5, prio = 20, target_cpu = 1 }
[00:00:00.000000500] (+0.000000500) host irq_handler_entry: { cpu_id = 1 }, { irq = 7, name = "disk" }
[00:00:00.001000000] (+0.000999500) host sched_switch: { cpu_id = 1 }, { prev_comm = "b", prev_tid = 6, \
prev_prio = 25, prev_state = 1, next_comm = "a", next_tid = 5, next_prio = 20 }
"""


def tar(mode: str = "w:gz", **files: bytes) -> bytes:
    """Returns an archive of some files; `/` is `__` in their names."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode=mode) as members:  # type: ignore[call-overload]
        for name, content in files.items():
            member = tarfile.TarInfo(name.replace("__", "/"))
            member.size = len(content)
            members.addfile(member, io.BytesIO(content))
    return archive.getvalue()


@pytest.mark.parametrize(
    "pack",
    [
        gzip.compress,
        lzma.compress,
        lambda text: tar(folder__perf=text),
        lambda text: tar("w:xz", **{"..__..__perf": text}),
    ],
)
def test_what_is_compressed_is_read(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    plain, packed = tmp_path / "plain.txt", tmp_path / "packed.gz"
    plain.write_text(TEXT)
    packed.write_bytes(pack(TEXT.encode()))
    assert read(packed).events == read(plain).events
    made = convert(packed, tmp_path / "run", "fair", TICK_NS)
    assert made.manifest["recording"]["file"] == "packed.gz"
    assert {path.name for path in tmp_path.iterdir()} == {"plain.txt", "packed.gz", "run"}


def refusal(content: bytes, folder: Path) -> str:
    path = folder / "file.packed"
    path.write_bytes(content)
    with pytest.raises(WrongUsage) as error:
        read(path)
    assert str(path) in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    ("content", "advice"),
    [
        (b"\x28\xb5\x2f\xfd" + bytes(20), "zstd -d file.packed"),
        (b"PK\3\4" + bytes(20), "unzip file.packed"),
        (tar(a=b"1", b=b"2"), "tar xf file.packed"),
        (tar(metadata__textproto=b"", traces__cpu0=b"", formats__x=b""), "trace-cmd record"),
        (b"\xc1\x1f\xfc\xc1" + bytes(20), "babeltrace2"),
        (b"Attaching 3 probes...\n@[1]: 5\n", "bpftrace"),
        (gzip.compress(TEXT.encode())[:-20], "damaged or incomplete"),
        (b"BZh9" + bytes(30), "damaged"),
        (gzip.compress(tar("w", a=TEXT.encode())[:700]), "damaged or incomplete"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_unreadable_formats_name_an_alternative(
    content: bytes, advice: str, tmp_path: Path
) -> None:
    assert advice in refusal(content, tmp_path)


@pytest.mark.parametrize("pack", [gzip.compress, lambda data: tar(data=data)])
def test_what_unpacks_to_too_much_is_refused(
    pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(compressed, "_SMALL_BYTES", 1 << 20)
    limits: list[int] = []
    copy = compressed._copy_limited

    def noted(path: Path, source: Any, place: Path, limit: int) -> None:
        limits.append(limit)
        copy(path, source, place, limit)

    monkeypatch.setattr(compressed, "_copy_limited", noted)
    assert "1 MiB" in refusal(pack(bytes(5 << 20)), tmp_path)
    assert limits == [1 << 20]


def test_links_in_an_archive_are_not_followed(tmp_path: Path) -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as members:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE):
            member = tarfile.TarInfo("link")
            member.type, member.linkname = kind, "/etc/passwd"
            members.addfile(member)
    assert "0 files" in refusal(archive.getvalue(), tmp_path)


def test_the_text_of_babeltrace_is_read(tmp_path: Path) -> None:
    path = tmp_path / "lttng.txt"
    path.write_text(LTTNG)
    made = convert(path, tmp_path / "run", "fair", TICK_NS)
    trace.validate(trace.read(made.folder / "trace.bin"))
    assert made.metrics is not None
    rows = {row["pid"]: row for row in made.metrics.processes.to_dicts()}
    assert rows[5]["name"] == "a"  # its last one
    assert rows[6]["running_ns"] == 2_000_000  # over midnight
    assert rows[5]["wakeup_latency_max_ns"] == 1_000_000
    assert rows[6]["weight"] == 335  # nice 5
