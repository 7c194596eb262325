"""Rules of the user's own: a Python file or module with ``RULES = {"name": class}``."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from agents.rule import Rule
from simulator.errors import SimulatorError
from simulator.scenario.schema import BUILT_IN


@dataclass(frozen=True)
class Plugin:
    """The rules of one file or module, and the SHA-256 of its source."""

    reference: str
    rules: dict[str, type[Rule]]
    sha256: str


def load_plugin(reference: str) -> Plugin:
    """Import ``FILE.py`` or ``package.module`` and take its ``RULES``.

    Importing runs the user's code: that is why a plugin is named on the command line and can
    never be named in a scenario file.
    """
    try:
        module = _import(reference)
    except Exception as error:
        raise SimulatorError(
            f"--plugin {reference}: cannot be imported: {type(error).__name__}: {error}"
        ) from error
    rules = getattr(module, "RULES", None)
    if not isinstance(rules, dict) or not rules:
        raise SimulatorError(f'--plugin {reference}: it must define RULES = {{"name": class, …}}')
    for name, rule in rules.items():
        if not (isinstance(rule, type) and issubclass(rule, Rule)):
            raise SimulatorError(f"--plugin {reference}: RULES[{name!r}] is not a subclass of Rule")
        if name in BUILT_IN:
            raise SimulatorError(f"--plugin {reference}: {name!r} is the name of a built-in rule")
    source = Path(module.__file__).read_bytes() if module.__file__ else b""
    return Plugin(reference, dict(rules), hashlib.sha256(source).hexdigest())


def _import(reference: str) -> ModuleType:
    path = Path(reference)
    if path.suffix != ".py":
        return importlib.import_module(reference)
    spec = importlib.util.spec_from_file_location(f"murmuration_plugin_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
