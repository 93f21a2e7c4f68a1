# SPDX-License-Identifier: MIT
"""Tests `./schedlab scx inspect`, and the errors for objects that cannot run."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from schedlab.commands.scx import scx
from schedlab.errors import FileRefused, WrongUsage
from schedlab.sched_ext.extraction import find_object, objects_in
from schedlab.sched_ext.loading import load
from schedlab.sched_ext.user_space import MachineFacts
from scx_objects import compiled, object_bytes, write_object

FOUR = MachineFacts.of_equal_cpus(4)
LACKING = """
#include "scheduler.h"
void scx_bpf_new_thing(u32 cpu) KERNEL;
extern u32 in_another_object(void);
static u64 (*const unknown_helper)(void) = (void *)96;
struct {
    NUMBER(type, 11);
    NUMBER(max_entries, 8);
    NUMBER(key_size, 8);
    NUMBER(value_size, 8);
} trie SECTION(".maps");
CALLBACK(void, lacking_enqueue)
{
    scx_bpf_new_thing((u32)unknown_helper() + in_another_object());
}
SECTION("fentry/do_exit") int traced(void *context)
{
    return (int)unknown_helper() + (int)(u64)context;
}
SECTION(".struct_ops.link")
struct sched_ext_ops lacking = {.enqueue = (void *)lacking_enqueue, .name = "lacking"};
"""


@pytest.fixture(scope="module")
def lacking(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lacking")
    source = folder / "lacking.bpf.c"
    source.write_text(LACKING)
    target = folder / "lacking.bpf.o"
    target.write_bytes(compiled(source))
    return target


def test_a_scheduler_that_runs(tmp_path: Path) -> None:
    path = write_object("five", tmp_path)
    result = CliRunner().invoke(scx, ["inspect", str(path)])
    assert result.exit_code == 0, result.output
    assert "    enqueue: five_enqueue\n" in result.output
    assert "    queues: ARRAY_OF_MAPS, 5 entries, key 4 bytes, value 4 bytes\n" in result.output
    assert "    slice_ns = 20000000\n" in result.output
    assert result.output.endswith("It will run.\n")


def test_missing_parts_are_listed_with_their_programs(lacking: Path) -> None:
    result = CliRunner().invoke(scx, ["inspect", str(lacking)])
    assert result.exit_code == 2
    missing = result.output.split("  missing:\n")[1].splitlines()
    assert [line.strip() for line in missing] == [
        "map type LPM_TRIE, used by map trie",
        "unlinked function in_another_object, used by lacking_enqueue",
        "kernel function scx_bpf_new_thing, used by lacking_enqueue",
        "helper tcp_sock, used by lacking_enqueue, traced",
        "It cannot run: see what is missing.",
    ]
    with pytest.raises(WrongUsage, match="kernel function scx_bpf_new_thing, used by lacking_e"):
        load(str(lacking), FOUR)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"slize_ns": 1}, "no variable slize_ns; did you mean slice_ns"),
        ({"slice_ns": "soon"}, "'soon' is not a number"),
        ({"slice_ns": 1 << 64}, "slice_ns has 8 bytes"),
        ({"slice_ns[0]": 1}, "no variable slice_ns"),
        ({"map.nothing": 1}, "no map nothing"),
        ({"section..bss": 1 << 40}, "larger than 4 GiB"),
    ],
)
def test_settings_that_do_not_fit_are_refused(
    tmp_path: Path, settings: dict[str, object], message: str
) -> None:
    with pytest.raises(WrongUsage, match=message):
        load(str(write_object("vtime", tmp_path)), FOUR, settings)


def test_objects_within_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "scx_embedded"
    other = b"\x7fELF\x02\x01" + bytes(100)
    content = other + b"text" + object_bytes("fifo") + b"\x7fELF\x02\x01" + b"the end"
    program.write_bytes(content)
    program.chmod(0o755)
    assert list(objects_in(content)) == [object_bytes("fifo")]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_object("embedded").content == object_bytes("fifo")
    assert find_object(str(program)).name == "embedded"


def test_what_is_no_object_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = tmp_path / "text.bpf.o"
    text.write_text("no object")
    with pytest.raises(FileRefused, match="contains no BPF object"):
        find_object(str(text))
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "scx_fifos").touch(0o755)
    with pytest.raises(WrongUsage, match="no program scx_fifo is on the PATH; did you mean fifos"):
        find_object("fifo")


def test_names_with_control_characters_are_printed_visibly(tmp_path: Path) -> None:
    content = object_bytes("five")
    for plain, hostile in ((b"five_enqueue", b"f\x1b[31m_enque"), (b"slice_ns", b"sl\x1b[32m_")):
        content = content.replace(plain, hostile)
    path = tmp_path / "hostile.bpf.o"
    path.write_bytes(content)
    result = CliRunner().invoke(scx, ["inspect", str(path)])
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.output
    assert "enqueue: f" in result.output
    assert "[32m_ = 20000000" in result.output
