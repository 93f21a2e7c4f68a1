# SPDX-License-Identifier: MIT
"""Tests which compiler builds what, the pinned or a named one, and what is reported about it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from schedlab.base.toolchain import tools, versions
from schedlab.base.toolchain.tools import find_compiler, find_system_compiler, require_compiler
from schedlab.environment import read_extra_libraries
from schedlab.errors import BuildFailed, RuleBroken
from schedlab.machines import checked_simulator
from schedlab.paths import ROOT

Programs = Callable[[str, str], Path]


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    caches = (find_compiler, find_system_compiler, checked_simulator.has_sanitizers)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


def test_the_lock_file_pins_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCHEDLAB_CLANG", raising=False)
    toolchain = require_compiler()
    assert toolchain.is_pinned
    (pinned,) = re.findall(
        r"^ziglang==(\S+)", read_extra_libraries(tools.BUILD_EXTRA), re.MULTILINE
    )
    version = subprocess.run(
        [toolchain.clang[0], "version"], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert version == pinned
    # Anyone who builds the wheel uses the same compiler.
    assert f'"ziglang=={pinned}"' in (ROOT / "pyproject.toml").read_text()
    assert versions.process_facts()["compiler"] == f"clang {toolchain.release}, pinned"


def test_a_user_names_another(program: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    clang = program("clang-18", "echo clang version 18.1.3")
    program("ld.lld-18", "")
    monkeypatch.setenv("SCHEDLAB_CLANG", str(clang))
    monkeypatch.setenv("PATH", f"{clang.parent}:/usr/bin:/bin")
    toolchain = require_compiler()
    assert (toolchain.is_pinned, toolchain.release) == (False, "18.1.3")
    assert (toolchain.host, toolchain.linker) == ((str(clang),), ("ld.lld-18",))
    assert versions.process_facts()["compiler"] == "clang 18.1.3, named by the user"


def test_what_is_no_compiler_is_refused(program: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCHEDLAB_CLANG", str(program("clang", "exit 1")))
    with pytest.raises(BuildFailed, match=r"SCHEDLAB_CLANG: .* does not print a version"):
        require_compiler()


def test_a_folder_of_any_name_is_one_word_of_make(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCHEDLAB_CLANG", raising=False)
    toolchain = tools._pinned_compiler(Path("/a $home/it's/zig"))
    assert toolchain.variables()["ARCHIVER"] == "'/a $$home/it'\"'\"'s/zig' ar"


def test_what_it_makes_needs_no_headers_of_the_system(tmp_path: Path) -> None:
    source, made = tmp_path / "hello.c", tmp_path / "hello"
    source.write_text('#include <stdio.h>\nint main(void) { return puts("hello") < 0; }\n')
    result = subprocess.run(
        [*require_compiler().host, "-H", source, "-o", made],
        capture_output=True,
        text=True,
        check=True,
    )
    headers = re.findall(r"^\.+ (/\S+)", result.stderr, re.MULTILINE)
    assert headers
    assert not [name for name in headers if name.startswith("/usr/include")]
    assert subprocess.run([made], capture_output=True, text=True, check=True).stdout == "hello\n"


BREAKS = {
    "*(volatile int *)0 = 1;": "reads or writes memory that is not there",
    "{ volatile int none = 0, all = 5; all /= none; }": "does what C leaves undefined",
    "for (volatile int i = 0;; i = i) { }": "does not end",
}


@pytest.mark.parametrize("breaks", BREAKS, ids=BREAKS.get)
def test_without_sanitizers_policies_are_checked_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, breaks: str
) -> None:
    """Rules are still checked, and a message names the missing checks."""
    monkeypatch.setattr(checked_simulator, "has_sanitizers", lambda: False)
    assert "are not checked" in checked_simulator.describe_missing_checks()
    text = (ROOT / "policies" / "rr.c").read_text()
    hook = re.search(r"POLICY_FUNCTION void rr_enqueue\([^{]*\{\n", text)
    assert hook
    source = tmp_path / "rr.c"
    source.write_text(f"{text[: hook.end()]}    {breaks}\n{text[hook.end() :]}")
    with pytest.raises(RuleBroken, match=re.escape(f"enqueue() {BREAKS[breaks]}")):
        checked_simulator.check(source)
