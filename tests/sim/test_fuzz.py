# SPDX-License-Identifier: MIT
"""libFuzzer over the workload reader and over machines, with a fixed number of inputs.

Each run tries the same inputs: the seed and the initial inputs are fixed. `make fuzz` runs for
longer.
"""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path

from schedlab.workload.binary_steps import encode_workload_text
from simulator_command import built, simulate

TEXT = """
channel c 1
program root # the first
  fork a
  loop 3
    run 1ms
    take c releasing d
  end
  kill a
  meet d 3
  timer 0 3ticks absolute
  timer beat 3us
program a
  priority 3 root
  tickets 4
  weight 2
  give c all
  give d waiting
  sleep until 3s
  run until 2ticks
  mark note 3
  mark begin
  group abc
  policy rr:table-scan
  set slice=3
  yield
  wait
  exit 3
"""


def fuzz(
    folder: Path, program: str, inputs: list[bytes], runs: int, length: int
) -> subprocess.CompletedProcess[str]:
    """Runs this number of inputs, made from the given ones; an input that takes a minute is a
    failure.
    """
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, content in enumerate(inputs):
        (corpus / f"{number:03}").write_bytes(content)
    options = (f"-runs={runs}", "-seed=1", "-len_control=0", f"-max_len={length}", "-timeout=60")
    return subprocess.run(
        [built(f"sim-fuzz/{program}"), *options, f"-artifact_prefix={folder}/", corpus],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=600,
        check=False,
    )


def random_inputs(seed: int = 1) -> list[bytes]:
    generator = random.Random(seed)
    return [generator.randbytes(300) for _ in range(200)]


def check_clean(done: subprocess.CompletedProcess[str], runs: int) -> None:
    assert done.returncode == 0, done.stderr[-6000:]
    match = re.search(r"^Done (\d+) runs", done.stderr, re.MULTILINE)
    assert match and int(match[1]) >= runs, done.stderr[-6000:]


def test_any_file_is_read_or_refused(tmp_path: Path) -> None:
    file = encode_workload_text(TEXT, 1_000_000)
    check_clean(fuzz(tmp_path, "fuzz_workload", [file], 10_000, 2 * len(file)), 10_000)


def test_no_program_and_no_act_from_outside_breaks_a_machine(tmp_path: Path) -> None:
    check_clean(fuzz(tmp_path, "fuzz_machine", random_inputs(), 2_000, 400), 2_000)


CHECKPOINT = """
channel c 1
program root
  fork a
  loop 3
    run 1ms
    take c releasing c
  end
  policy rr:table-scan
  wait
program a
  priority 3
  timer beat 3us
  give c all
  run 300us
"""
REPORTED_FROM = 96
"""Bytes of a checkpoint's header that the fuzzer computes itself, except the last 8."""


def checkpoints(folder: Path) -> list[bytes]:
    """Returns inputs for fuzz_checkpoint, from some policies, without the fields that it
    computes.
    """
    snapshots = []
    for number, policy in enumerate(("rr", "mlfq", "lottery", "stride")):
        options = ("--policy", policy, "--cpus", str(1 + number), "--processes", "64")
        stop = ("--no-trace", "--save", str(folder / "saved"), "--at", "2000000")
        result = simulate(folder, CHECKPOINT, *options, *stop)
        assert result.returncode == 0, result.stderr
        content = (folder / "saved").read_bytes()
        header_bytes = int.from_bytes(content[12:16], "little")
        snapshots.append(content[REPORTED_FROM : header_bytes - 8] + content[header_bytes:])
    return snapshots


def test_no_checkpoint_that_was_made_up_breaks_the_simulator(tmp_path: Path) -> None:
    inputs = checkpoints(tmp_path)
    check_clean(fuzz(tmp_path, "fuzz_checkpoint", inputs, 4_000, 4_000), 4_000)


def test_occasionally_wrong_policy_is_detected(tmp_path: Path) -> None:
    """Without this, the other test proves nothing."""
    under_the_first_policy = [bytes(3) + content for content in random_inputs(2)]
    done = fuzz(tmp_path, "broken", under_the_first_policy, 20_000, 400)
    assert done.returncode != 0
    assert re.search(r"^rr\S*: (policy rr|.* by the count)", done.stderr, re.MULTILINE)
    (crash,) = tmp_path.glob("crash-*")
    again = subprocess.run(
        [built("sim-fuzz/broken"), crash], capture_output=True, text=True, check=False, timeout=60
    )
    assert re.search(r"^rr\S*: ", again.stderr, re.MULTILINE)
