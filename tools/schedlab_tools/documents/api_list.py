# SPDX-License-Identifier: MIT
"""The reference of the Python API, docs/api.md: made of signatures and docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

from schedlab import api
from schedlab.courses.scoring.candidate import score
from schedlab.paths import ROOT

DOCUMENT = ROOT / "docs" / "api.md"

_HEAD = """# The Python API

`import schedlab` gives the functions below. [tutorial.ipynb](tutorial.ipynb) is a tour of them.

```python
import schedlab

runs = schedlab.run("mixed", "rr,mlfq", cpus=2, seeds=5)
print(runs.summary.select("policy", "seed", "turnaround_mean_ns"))
runs.report("report")
```

`./schedlab python FILE` runs a script or a notebook with this API. In a Jupyter of your own, install
`python/requirements.lock` and add `python/` and `sim/python/` to the path.

A failure raises `schedlab.errors.SchedlabError`; its subclass `WrongUsage` means that the caller can fix the call.
An error has three fields, and `str(error)` is `what: why; fix`:

| field | |
|---|---|
| `what` | The parameter or the file that the error is about, such as `` `cpus=500` ``; "" if it is about none. |
| `why` | What is wrong. |
| `fix` | What to do; "" if that is plain. |

Messages name parameters of the library in backquotes, as a call has them. The command line shows its options instead.

This page is made of the docstrings: `./schedlab dev docs api` writes it anew.
"""


def text() -> str:
    """Returns the document."""
    functions = {name: getattr(api, name) for name in api.__all__ if name != "Runs"}
    parts = [_function(name, each) for name, each in {**functions, "score": score}.items()]
    return "\n\n".join([_HEAD.rstrip(), *_runs(), *parts]) + "\n"


def _function(name: str, function: Any) -> str:
    called = "open" if name == "open_run" else name
    return f"## schedlab.{called}\n\n```python\n{_signature(called, function)}\n```\n\n{_prose(function)}"


def _runs() -> Iterator[str]:
    """The class of results, and its public members."""
    yield f"## schedlab.Runs\n\n{_prose(api.Runs)}"
    rows = [
        f"| `{name}` | {_prose(member).splitlines()[0]} |"
        for name, member in vars(api.Runs).items()
        if not name.startswith("_")
    ]
    yield "\n".join(["| member | |", "|---|---|", *rows])


def _signature(name: str, function: Any) -> str:
    """Returns the call with its parameters, one a line if they are many."""
    signature = inspect.signature(function)
    parameters = [re.sub(r"'", "", str(each)) for each in signature.parameters.values()]
    kinds = [each.kind for each in signature.parameters.values()]
    if inspect.Parameter.KEYWORD_ONLY in kinds:
        parameters.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    returned = re.sub(r"'", "", str(signature.return_annotation))
    line = f"{name}({', '.join(parameters)}) -> {returned}"
    if len(line) <= 90:
        return line
    return "\n".join([f"{name}(", *(f"    {each}," for each in parameters), f") -> {returned}"])


def _prose(documented: Any) -> str:
    return inspect.getdoc(documented) or ""
