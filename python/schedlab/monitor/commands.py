# SPDX-License-Identifier: MIT
"""Performs the commands that pages and terminals send to a session (docs/monitor-protocol.md)."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from schedlab.base.display.names import all_visible
from schedlab.base.toolchain.policies import PolicyChoice, parse_choices, unknown
from schedlab.errors import SchedlabError, WrongUsage
from schedlab.machines import SIMULATOR
from schedlab.monitor import worker
from schedlab.monitor.branching import Change, what_if
from schedlab.monitor.session import Session
from schedlab.monitor.system import Ability, Life, Refused, Setup
from schedlab.monitor.systems.simulator import workload_text
from schedlab.monitor.wait_breakdown import Question
from schedlab.monitor.watched_system import Watched
from schedlab.runs.plan import TICK_NS
from schedlab.runs.request import one_value_per_option
from schedlab.trace.format import AttributeKind
from schedlab.workload.model import ATTRIBUTES

Message = Mapping[str, Any]
Report = Callable[[str], None]

_ALL = "*"
_WINDOW_S = (0.1, 600.0)
_SPEED_MAX = 1e6
_LABEL_MAX = 80
_ACT = re.compile(
    r"\d{1,18} (?:policy [\w:.-]{1,63}|tunable [\w-]{1,63}=-?\d{1,18}|start \d{1,19} [^\n]{1,255}|kill \d{1,9}"
    r"|(?:priority|tickets|weight) \d{1,9} \d{1,9})"
)
_SETTING = re.compile(r"([A-Za-z0-9_-]{1,63})=(-?\d{1,18})")


async def perform(session: Session, message: Message, show: Report = lambda line: None) -> Any:
    """Performs a message's command and returns the result.

    `show` receives progress lines of long commands.

    For a message to one system, returns its result; for several systems, a result for each letter.
    Raises SchedlabError if a system could not perform the command.
    """
    action = _text(message, "do")
    systems = systems_of(session, message)
    if action in _TOGETHER:
        return await _TOGETHER[action](session, systems, message, show)
    if action not in _PER_SYSTEM:
        raise WrongUsage(unknown("command", action, [*_PER_SYSTEM, *_TOGETHER]))
    done = await asyncio.gather(
        *(_PER_SYSTEM[action](session, system, message) for system in systems),
        return_exceptions=True,
    )
    problems = _problems(systems, done)
    if problems:
        raise problems
    if len(done) == 1:
        return done[0]
    return {system.letter: result for system, result in zip(systems, done, strict=True)}


def systems_of(session: Session, message: Message) -> list[Watched]:
    """Returns the systems that a message addresses. Raises WrongUsage if one of them does not exist."""
    letter = message.get("system", _ALL)
    if letter is None or letter == _ALL:
        return list(session.systems.values())
    if str(letter) not in session.systems:
        raise WrongUsage(unknown("system", str(letter), session.systems))
    return [session.systems[str(letter)]]


def _problems(systems: Sequence[Watched], done: Sequence[Any]) -> BaseException | None:
    """Combines the errors of several systems into one; returns None if there were no errors."""
    pairs = zip(systems, done, strict=True)
    wrong = [(system, error) for system, error in pairs if isinstance(error, BaseException)]
    if not wrong:
        return None
    if len(systems) == 1 or not all(isinstance(error, SchedlabError) for _, error in wrong):
        return wrong[0][1]
    return Refused("; ".join(f"{system.letter}: {error}" for system, error in wrong))


# --- what is in a message


def _text(message: Message, key: str) -> str:
    value = message.get(key)
    if not isinstance(value, str) or not value:
        raise WrongUsage(f"{key}: expected a text, not {value!r}")
    return value


def integer(message: Message, key: str) -> int:
    """Returns a 64-bit integer of a message. Raises WrongUsage if the message has no such integer."""
    value = message.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not -(1 << 63) <= value < 1 << 63:
        raise WrongUsage(f"{key}: expected a whole number, not {value!r}")
    return value


def _texts(message: Message, key: str) -> list[str]:
    value = message.get(key)
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise WrongUsage(f"{key}: expected a list of texts, not {value!r}")
    return value


def _number(message: Message, key: str, least: float, most: float) -> float:
    value = message.get(key)
    if (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and least <= value <= most
    ):
        return float(value)
    raise WrongUsage(f"{key}: expected a number from {least:g} to {most:g}, not {value!r}")


def _one_of(message: Message, key: str, known: Sequence[str]) -> str:
    value = _text(message, key)
    if value not in known:
        raise WrongUsage(f"{key}: {unknown(key, value, known)}")
    return value


def _policy_choice(text: str) -> PolicyChoice:
    try:
        choices = parse_choices(text)
    except ValueError as error:
        raise WrongUsage(str(error)) from None
    if len(choices) != 1:
        raise WrongUsage(f"{text}: a system has one policy at a time; give only one")
    return choices[0]


def _pids(message: Message) -> list[int]:
    """Returns the PIDs of a message, which has either `pid` or `pids`."""
    pids = message.get("pids")
    if pids is None:
        return [integer(message, "pid")]
    if not isinstance(pids, list) or not pids:
        raise WrongUsage(f"pids: expected a list of whole numbers, not {pids!r}")
    return [integer({"pids": pid}, "pids") for pid in pids]


# --- of each system


async def _policy(session: Session, target: Watched, message: Message) -> None:
    choice = _policy_choice(_text(message, "policy"))
    async with target.asking(Ability.POLICY) as system:
        session.choices.check_policy(replace(target.setup, policy=choice, settings=()))
        await target.steer(f"policy {choice}", system.set_policy(str(choice)))


async def _tunable(session: Session, target: Watched, message: Message) -> None:
    name, value = _text(message, "name"), integer(message, "value")
    async with target.asking(Ability.POLICY) as system:
        await target.steer(f"tunable {name}={value}", system.set_tunable(name, value))


async def _tunables(session: Session, target: Watched, message: Message) -> list[dict[str, Any]]:
    async with target.asking() as system:
        return [asdict(tunable) for tunable in await system.read_tunables()]


async def _status(session: Session, system: Watched, message: Message) -> dict[str, Any]:
    status = await system.read_status()
    content = {
        "policy": status.policy,
        "changed": dict(status.changed),
        "rows": [asdict(row) for row in status.rows],
        "remark": status.remark,
    }
    return all_visible(content)


async def _attribute(session: Session, system: Watched, message: Message) -> int:
    kind = _one_of(message, "kind", list(ATTRIBUTES))
    limits = ATTRIBUTES[kind]
    value = integer(message, "value")
    if not limits.least <= value <= limits.most:
        raise WrongUsage(f"{kind}: expected {limits.least} to {limits.most}, not {value}")
    return await system.set_attribute(_pids(message), AttributeKind[kind.upper()], value)


async def _start(session: Session, target: Watched, message: Message) -> int:
    name = _text(message, "workload")
    session.choices.check_workloads([name])
    async with target.asking(Ability.START) as system:
        pid = await target.steer(f"start {name}", system.start_workload(name))
    target.started[name] = None
    return pid


async def _kill(session: Session, system: Watched, message: Message) -> int:
    return await system.kill(_pids(message))


async def _pause(session: Session, system: Watched, message: Message) -> None:
    await system.pause()


async def _resume(session: Session, system: Watched, message: Message) -> None:
    await system.resume()


async def _follow(session: Session, system: Watched, message: Message) -> None:
    """Brings a system to the state of the page that plays it, by repeating the page's actions."""
    if not system.is_played_by_page:
        raise Refused("it advances by itself; the page cannot set its time")
    setup = system.setup
    if setup.machine == SIMULATOR:
        setup = replace(_changed(setup, message), settings=_settings(message))
        session.choices.check(setup)
    acts = _texts(message, "acts")
    wrong = [act for act in acts if not _ACT.fullmatch(act)]
    if wrong:
        raise WrongUsage(f"acts: expected texts such as `120000000 tickets 5 77`, not {wrong[0]!r}")
    await system.follow(setup, acts, integer(message, "time_ns"))


async def _text_of(session: Session, system: Watched, message: Message) -> str:
    """Returns the text of a workload, for a page that runs it in the browser."""
    name = _text(message, "workload")
    session.choices.check_workloads([name])
    tick_ns = integer(message, "tick_ns")
    if not TICK_NS[0] <= tick_ns <= TICK_NS[1]:
        raise WrongUsage(f"tick_ns: expected {TICK_NS[0]} to {TICK_NS[1]}, not {tick_ns}")
    entry = session.choices.palette[name]
    return await asyncio.to_thread(workload_text, entry, integer(message, "seed"), tick_ns)


async def _restart(session: Session, system: Watched, message: Message) -> None:
    if system.system and Ability.SETUP not in system.system.abilities:
        raise Refused(f"{system.setup.machine} cannot restart as another machine")
    setup = _changed(system.setup, message)
    session.choices.check(setup)
    await system.restart(setup)
    others = [other.common_ns for other in session.systems.values() if other.is_on]
    system.join(min(others, default=0))
    session.announce_change()
    if system.life is Life.FAILED:
        raise Refused(system.message)


def _changed(setup: Setup, message: Message) -> Setup:
    changes: dict[str, Any] = {
        key: integer(message, key)
        for key in ("cpus", "seed", "tick_ns")
        if message.get(key) is not None
    }
    if message.get("policy") is not None:
        changes["policy"] = _policy_choice(_text(message, "policy"))
        # The tunables belong to the policy that they were set for.
        if changes["policy"] != setup.policy:
            changes["settings"] = ()
    if message.get("workloads") is not None:
        changes["workloads"] = tuple(_texts(message, "workloads"))
    return replace(setup, **changes)


async def _perfetto(session: Session, system: Watched, message: Message) -> str:
    return session.publish(await system.export(session.scratch))


async def _blame(session: Session, system: Watched, message: Message) -> dict[str, Any]:
    kinds = _texts(message, "kinds")
    time_ns = min(max(integer(message, "time_ns"), 0), system.now_ns)
    at_ns = None if message.get("at_ns") is None else integer(message, "at_ns")
    begin_ns = max(time_ns - session.window_ns, 0)
    question = Question(integer(message, "pid"), kinds, time_ns, begin_ns, at_ns)
    explanation = await system.blame(session.scratch, question, session.choices.catalogue)
    return all_visible(explanation)


_PER_SYSTEM: dict[str, Callable[[Session, Watched, Message], Awaitable[Any]]] = {
    "policy": _policy,
    "tunable": _tunable,
    "tunables": _tunables,
    "status": _status,
    "attribute": _attribute,
    "start": _start,
    "kill": _kill,
    "pause": _pause,
    "resume": _resume,
    "follow": _follow,
    "text": _text_of,
    "restart": _restart,
    "perfetto": _perfetto,
    "blame": _blame,
}


# --- of the session


async def _pace(
    session: Session, systems: Sequence[Watched], message: Message, report: Report
) -> None:
    speed = _number(message, "speed", 0, _SPEED_MAX)
    played = [system for system in systems if system.is_played]
    if not played:
        raise Refused("pace: this machine runs in real time; its pace cannot be set")
    session.pace = speed
    for system in played:
        system.played.speed = speed


async def _window(
    session: Session, systems: Sequence[Watched], message: Message, report: Report
) -> None:
    session.window_ns = int(_number(message, "seconds", *_WINDOW_S) * 1e9)
    session.announce_change()


async def _record(
    session: Session, systems: Sequence[Watched], message: Message, show: Report
) -> Any:
    on = message.get("on")
    if not isinstance(on, bool):
        raise WrongUsage(f"on: expected true or false, not {on!r}")
    if on:
        label = message.get("label") or ""
        if not isinstance(label, str) or len(label) > _LABEL_MAX:
            raise WrongUsage(f"label: expected a text of at most {_LABEL_MAX} characters")
        session.start_recording(systems, label)
        return None
    show("the metrics of the recording")
    folders = await stop_recording(session, systems)
    if len(systems) == 1:
        return folders[systems[0].letter]
    return folders


async def stop_recording(session: Session, systems: Sequence[Watched]) -> dict[str, str]:
    """Ends all recordings and returns their run folders by system letter.

    Raises Refused if nothing was being recorded.
    """
    on = [system for system in systems if system.recording]
    if not on:
        raise Refused("no recording is in progress; start one first")
    done = await asyncio.gather(*(system.stop_recording() for system in on), return_exceptions=True)
    folders = {
        system.letter: folder
        for system, folder in zip(on, done, strict=True)
        if isinstance(folder, Path)
    }
    session.recorded += folders.values()
    problem = _problems(on, done)
    if problem:
        raise problem
    return {letter: str(folder) for letter, folder in folders.items()}


async def _report(
    session: Session, systems: Sequence[Watched], message: Message, show: Report
) -> str:
    """Ends recordings in progress and writes one report of all recorded runs."""
    async with session.reporting:
        return await _make_report(session, show)


async def _make_report(session: Session, show: Report) -> str:
    if any(system.recording for system in session.systems.values()):
        show("the metrics of the recording")
        await stop_recording(session, list(session.systems.values()))
    if not session.recorded:
        raise Refused("nothing is recorded; start a recording first")
    out = session.recorded[0].parent / "report"
    return session.publish(await worker.report(session.recorded, out, show))


async def _branch(
    session: Session, systems: Sequence[Watched], message: Message, show: Report
) -> dict[str, str]:
    system = systems[0]
    policy = message.get("policy") or ""
    if policy:
        choice = _policy_choice(_text(message, "policy"))
        session.choices.check_policy(replace(system.setup, policy=choice, settings=()))
    settings = one_value_per_option("settings", _settings(message))
    if not policy and not settings:
        raise WrongUsage("branch: nothing to change; choose a policy or set a tunable")
    at_ns = integer(message, "time_ns")
    return await what_if(session, system, at_ns, Change(policy, settings), show)


def _settings(message: Message) -> tuple[tuple[str, int], ...]:
    """Parses settings such as {"settings": "slice=3 boost=100"}."""
    text = message.get("settings", "")
    if not isinstance(text, str):
        raise WrongUsage(f"settings: expected a text, not {text!r}")
    matches = [_SETTING.fullmatch(word) for word in text.replace(",", " ").split()]
    pairs = [(match[1], int(match[2])) for match in matches if match]
    if len(pairs) < len(matches):
        raise WrongUsage(f"settings: {text}: expected NAME=NUMBER, such as slice=3")
    return tuple(pairs)


_TOGETHER: dict[str, Callable[[Session, Sequence[Watched], Message, Report], Awaitable[Any]]] = {
    "pace": _pace,
    "window": _window,
    "record": _record,
    "report": _report,
    "branch": _branch,
}
