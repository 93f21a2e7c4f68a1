# SPDX-License-Identifier: MIT
"""Published sched_ext schedulers as policies: on Linux, and as BPF objects in the simulator.

The policy `scx:rusty` is the installed program scx_rusty; `scx:./my.bpf.o` is an object.
"""

import hashlib
from collections.abc import Iterable
from functools import cache

from schedlab.base.display.names import visible_line
from schedlab.base.toolchain.policies import Policy, PolicyChoice, attributes_ignored
from schedlab.errors import WrongUsage, format_parameter
from schedlab.machines.spec import RunSpec
from schedlab.sched_ext.extraction import find_object
from schedlab.sched_ext.kernel import DEFAULT_PROFILE, PROFILES
from schedlab.sched_ext.loading import Scheduler, load
from schedlab.sched_ext.user_space import MachineFacts

PUBLISHED_POLICY = Policy(
    "scx",
    "scx:NAME, the published scheduler scx_NAME: a program that is installed on this host; in the simulator also"
    " scx:FILE, a BPF object",
    "programs of the sched_ext project, and others like them",
    number=None,
)
"""A placeholder policy without a C file; the available programs depend on the host."""
_ATTRIBUTES_KNOWN_TO_LINUX = ("nice", "taskgroup")
"""The attributes that a sched_ext scheduler can see, as weights of tasks and of control groups."""
KERNEL_SETTING = "kernel"
"""The setting that chooses the version of Linux, as a number such as 612."""
IMAGE_FILE = "scheduler.image"
"""The file in a run's folder that the simulator reads."""


def is_published(policy: PolicyChoice) -> bool:
    """Returns whether a policy is a sched_ext scheduler."""
    return policy.name == PUBLISHED_POLICY.name


def object_sha256(policy: PolicyChoice) -> str:
    """Returns the hash of a scheduler's object. Raises WrongUsage if the object is missing."""
    return hashlib.sha256(find_object(policy.preset).content).hexdigest()


def ignored_attributes(run: RunSpec, given: Iterable[str]) -> list[str]:
    """Returns which of the given attributes the policy of a run ignores; none if that is unknown."""
    if is_published(run.policy):
        return [name for name in given if name not in _ATTRIBUTES_KNOWN_TO_LINUX]
    return attributes_ignored(run.policy, run.settings, given)


def load_run_scheduler(run: RunSpec) -> Scheduler:
    """Returns the scheduler of a run, loaded for its machine.

    Raises WrongUsage if it is missing or cannot run there.
    """
    return _load_scheduler(run.policy.preset, machine_facts(run), run.settings)


@cache
def _load_scheduler(
    selection: str, machine: MachineFacts, settings: tuple[tuple[str, int], ...]
) -> Scheduler:
    """Returns the same scheduler for all runs of a command, even if its file changes."""
    values = dict(settings)
    values.pop(KERNEL_SETTING, None)
    return load(selection, machine, values, _kernel_version(settings))


def _kernel_version(settings: Iterable[tuple[str, int]]) -> str:
    """Returns the version of Linux whose functions a scheduler has. Raises WrongUsage if it is unknown."""
    number = dict(settings).get(KERNEL_SETTING)
    if number is None:
        return DEFAULT_PROFILE
    for name, known in PROFILES.items():
        if known == number:
            return name
    raise WrongUsage(
        "unknown version of Linux",
        what=format_parameter("settings", {KERNEL_SETTING: number}),
        fix=f"choose from {', '.join(map(str, PROFILES.values()))}",
    )


def machine_facts(run: RunSpec) -> MachineFacts:
    """Returns what a scheduler's user space would find on a run's machine."""
    hz = max(1, 1_000_000_000 // run.tick_ns)
    if not run.shape:
        return MachineFacts.of_equal_cpus(run.cpus, hz)
    shape = run.shape
    capacity = tuple(shape.kinds[kind][0] for kind in shape.kind)
    return MachineFacts(shape.core, shape.cache, shape.node, capacity, hz)


def scheduler_comment(run: RunSpec) -> str:
    """Returns a shell comment that identifies a run's scheduler.

    It has the scheduler's name, its object's hash, the kernel and the settings.
    """
    scheduler = load_run_scheduler(run)
    texts = (
        scheduler.name,
        f"SHA-256 {scheduler.sha256}",
        f"Linux {_kernel_version(run.settings)}",
        *(f"{name}={value}" for name, value in run.settings if name != KERNEL_SETTING),
    )
    return visible_line(f" # {', '.join(texts)}")
