# SPDX-License-Identifier: MIT
"""Generates the reference of the Python API, docs/api.md, from signatures and docstrings."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

from schedlab import api
from schedlab.analysis.tables import Run
from schedlab.courses.scoring.candidate import score, score_many
from schedlab.paths import ROOT

DOCUMENT = ROOT / "docs" / "api.md"

_HEAD = """# The Python API

`import schedlab` provides the functions below. [tutorial.ipynb](tutorial.ipynb) is a tutorial.

```python
import schedlab

runs = schedlab.run("mixed", "rr,mlfq", cpus=2, seeds=5)
print(runs.summary.select("policy", "seed", "turnaround_mean_ns"))
runs.report("report")
```

`./schedlab python FILE` runs a script or a notebook with this API. To use your own Jupyter, install
`python/requirements.lock` and add `python/` and `sim/python/` to the path.

A failure raises `schedlab.errors.SchedlabError`. The subclass `WrongUsage` means that an argument is wrong.
`str(error)` is `what: why; fix`, from these fields:

| field | content |
|---|---|
| `what` | The parameter or file, such as `` `cpus=500` ``, or "". |
| `why` | What is wrong. |
| `fix` | What to do, or "". |

Messages name parameters in backquotes, as in a call. The command line shows the option instead.

`./schedlab dev docs api` generates this page from docstrings.
"""


def text() -> str:
    """Returns the document."""
    functions = {name: getattr(api, name) for name in api.__all__ if name != "Runs"}
    functions |= {"score": score, "score_many": score_many}
    functions_text = [_function(name, function) for name, function in functions.items()]
    classes = (*_class("schedlab.Runs", api.Runs), *_class("Run, from open()", Run))
    return "\n\n".join([_HEAD.rstrip(), *classes, *functions_text]) + "\n"


def _function(name: str, function: Any) -> str:
    """Returns the section of a function: its call and its description."""
    called = "open" if name == "open_run" else name
    return f"## schedlab.{called}\n\n```python\n{_signature(called, function)}\n```\n\n{_prose(function)}"


def _class(title: str, documented: type) -> Iterator[str]:
    """Yields a class and its public members."""
    yield f"## {title}\n\n{_prose(documented)}"
    rows = [
        f"| `{name}` | {_prose(member).splitlines()[0]} |"
        for name, member in vars(documented).items()
        if not name.startswith("_")
    ]
    yield "\n".join(["| member | content |", "|---|---|", *rows])


def _signature(name: str, function: Any) -> str:
    """Returns the call with its parameters, one per line if there are many."""
    signature = inspect.signature(function)
    parameters = [
        re.sub(r": '([^']*)'", r": \1", str(parameter))
        for parameter in signature.parameters.values()
    ]
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    if inspect.Parameter.KEYWORD_ONLY in kinds:
        parameters.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    returned = re.sub(r"'", "", str(signature.return_annotation))
    line = f"{name}({', '.join(parameters)}) -> {returned}"
    if len(line) <= 90:
        return line
    return "\n".join(
        [f"{name}(", *(f"    {parameter}," for parameter in parameters), f") -> {returned}"]
    )


def _prose(documented: Any) -> str:
    """Returns a docstring, with links to the documents that it names."""
    return re.sub(r"docs/([\w-]+\.md)", r"[\1](\1)", inspect.getdoc(documented) or "")
