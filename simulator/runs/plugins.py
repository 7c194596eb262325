"""What the user adds: Python files, modules or classes with kinds of their own.

Importing a file runs the user's code: that is why a plugin is named on the command line or from
Python, and can never be named in a scenario file.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import math
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from agents.losses import LOSSES
from agents.losses.loss import Loss
from agents.machinery import code_cache, discovery
from agents.machinery.code_errors import RAISED, frames_in, place_of, told
from agents.parameters import TradeOff
from agents.protocol import Protocol
from agents.protocols import PROTOCOLS, protocol_of, protocols_of
from agents.rule import Array, Rule
from agents.rules import RULES
from simulator.errors import SimulatorError
from simulator.problem.graphs import GRAPHS
from simulator.problem.tasks import TASKS
from simulator.scenario.algorithm import Algorithm, blocks
from simulator.scenario.kinds import BASES, Kinds, Task
from simulator.scenario.laws import LAWS
from simulator.scenario.schema import Scenario, scenario_type
from simulator.shipped import found as shipped
from simulator.theory.metrics import METRICS
from simulator.theory.objectives import OBJECTIVES

#: All kinds that are built in.
BUILT_IN = Kinds(
    tasks=tuple(TASKS.values()),
    graphs=tuple(GRAPHS.values()),
    rules=tuple(RULES.values()),
    losses=tuple(LOSSES.values()),
    laws=tuple(LAWS.values()),
    metrics=tuple(METRICS.values()),
    protocols=tuple(PROTOCOLS.values()),
)
#: How a plugin may be given: a file, a module (or its name), or a class.
Reference = str | Path | ModuleType | type


@dataclass(frozen=True)
class Plugins:
    """What plugins bring, and the files behind it."""

    kinds: Kinds = field(default_factory=Kinds)
    #: As they were given, for messages.
    references: tuple[str, ...] = ()
    #: Name and content of every file, for workers; None where a class has no file of its own.
    files: tuple[tuple[str, bytes], ...] | None = ()
    sha256: str | None = field(default=None)

    def __bool__(self) -> bool:
        return bool(self.references)


#: How plugins may be given to a function.
Given = Plugins | Iterable[Reference] | Reference | None


@cache
def schema_for(plugins: Plugins | None = None) -> type[Scenario]:
    """The class of scenarios that may name all built-in kinds and those of the plugins."""
    plugins = plugins or None
    return scenario_type(BUILT_IN if plugins is None else BUILT_IN + plugins.kinds, plugins)


def load_plugins(references: Given) -> Plugins | None:
    """Import plugins and take the kinds that they define; None where there are none."""
    if references is None or isinstance(references, Plugins):
        return references
    alone = isinstance(references, Reference) or not isinstance(references, Iterable)
    given: list[Any] = [references] if alone else list(references)  # type: ignore[arg-type]
    for reference in given:
        if not isinstance(reference, Reference):
            what = "must be files, modules or their names, or classes"
            raise SimulatorError(f"plugins: {what} (got {reference!r:.60})")
    if not given:
        return None
    found: dict[str, dict[str, type]] = {family: {} for family in BASES}
    files: dict[str, bytes] = {}
    digest = hashlib.sha256()
    movable = True
    for reference in given:
        name = _shown(reference)
        classes, sources = _classes(reference, name)
        movable = movable and not isinstance(reference, type | ModuleType)
        for path, content in sources.items():
            digest.update(path.encode() + b"\0" + hashlib.sha256(content).digest())
            if files.setdefault(path, content) != content:
                raise SimulatorError(f"--plugin {name}: two different files are called {path}")
        for family, thing in classes:
            _add(found, family, thing, name)
    return Plugins(
        Kinds(**{family: tuple(kinds.values()) for family, kinds in found.items()}),
        tuple(map(_shown, given)),
        tuple(files.items()) if movable else None,
        digest.hexdigest(),
    )


def _shown(reference: Reference) -> str:
    return getattr(reference, "__name__", None) or str(reference)


def _classes(reference: Reference, name: str) -> tuple[list[tuple[str, type]], dict[str, bytes]]:
    """The classes of a plugin with their families, and the files that its code comes from."""
    if isinstance(reference, type):
        family = _family(reference)
        if family is None:
            raise SimulatorError(f"--plugin {name}: not a subclass of {_bases()}")
        sources = {f"{name}.class": code_cache.source_of(reference)}
        return [(family, reference)], sources
    module, sources = (
        _import(str(reference), name)
        if isinstance(reference, str | Path)
        else (reference, _sources_of(reference))
    )
    content = b"".join(sources[path] for path in sorted(sources))
    classes = []
    for thing in vars(module).values():
        if inspect.isclass(thing) and thing.__module__ == module.__name__:
            family = _family(thing)
            if family is not None and discovery.kind_of(thing) is not None:
                classes.append((family, thing))
    for thing_module in {thing.__module__ for _, thing in classes}:
        code_cache.register_sources(thing_module, content)
    if not classes:
        raise SimulatorError(
            f"--plugin {name}: it defines no class with a kind; expected a subclass of {_bases()}"
        )
    return classes, sources


def _bases() -> str:
    return ", ".join(base.__name__ for base in BASES.values())


def _family(thing: type) -> str | None:
    return next((family for family, base in BASES.items() if issubclass(thing, base)), None)


def _add(found: dict[str, dict[str, type]], family: str, thing: type, name: str) -> None:
    """Take a class in, if there is nothing wrong with it and its name is free."""
    kind = str(discovery.kind_of(thing))
    place = f"--plugin {name}: {thing.__name__}"
    ours = blocks(BUILT_IN.rules) if family == "rules" else _names(family)
    if kind in ours:
        raise SimulatorError(f"{place}: {kind!r} is the name of a built-in one")
    if kind in found[family]:
        raise SimulatorError(f"{place}: {kind!r} is the name of another plugin's")
    _check_declared(thing, place)
    found[family][kind] = thing


def _names(family: str) -> set[str]:
    return {str(discovery.kind_of(thing)) for thing in getattr(BUILT_IN, family)}


# --- importing ----------------------------------------------------------------------------------
def _import(reference: str, name: str) -> tuple[ModuleType, dict[str, bytes]]:
    """A module by its file or name, and the files that came with it from the same folder."""
    path = shipped(Path(reference))
    try:
        if path.suffix != ".py":
            module = importlib.import_module(reference)
            return module, _sources_of(module)
        return _import_file(path)
    except RAISED as error:
        frames = frames_in((reference, _module_name(path)), error)
        place = "".join(f" ({place_of(frame.f_code, line)})" for frame, line in frames[-1:])
        raise SimulatorError(
            f"--plugin {name}: cannot be imported{place}: {told(error)}"
        ) from error


def _module_name(path: Path) -> str:
    return f"murmuration_plugin_{path.stem}"


def _import_file(path: Path) -> tuple[ModuleType, dict[str, bytes]]:
    """Run a file as a module with a stable name; its folder's other files can be imported."""
    content, folder = path.read_bytes(), path.resolve().parent
    name = _module_name(path)
    # Files beside it are read anew: they may have changed since, or be another folder's.
    aside = {old: sys.modules.pop(old, None) for old in {*_files_below(folder), *_HELPERS}}
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # before it runs: dataclasses and compiled code look it up there
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.path.remove(str(folder))
        helpers = _files_below(folder)
        sys.modules.update({old: one for old, one in aside.items() if one} | sys.modules)
    helpers.pop(name)
    _HELPERS.update(helpers)
    files = {file.relative_to(folder).as_posix(): file.read_bytes() for file in helpers.values()}
    return module, {path.name: content} | dict(sorted(files.items()))


#: The modules of all files that were imported beside plugins.
_HELPERS: set[str] = set()


def _files_below(folder: Path) -> dict[str, Path]:
    """The files below a folder that are imported, by module; not those of libraries, nor ours."""
    libraries = tuple(sysconfig.get_paths().values())
    found = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not file or not file.endswith(".py") or file.startswith(libraries):
            continue
        if name.split(".")[0] not in ("agents", "simulator", "__main__"):
            path = Path(file).resolve()
            if folder in path.parents:
                found[name] = path
    return found


def _sources_of(module: ModuleType) -> dict[str, bytes]:
    """The files of an importable module and of its package."""
    if not module.__file__:
        return {}
    path = Path(module.__file__)
    root = module.__name__.split(".")[0]
    if root == module.__name__ and path.name != "__init__.py":
        return {path.name: path.read_bytes()}
    home = Path(str(sys.modules[root].__file__)).parent
    return {
        f"{root}/{file.relative_to(home).as_posix()}": file.read_bytes()
        for file in sorted(home.rglob("*.py"))
    }


def unpack(files: Iterable[tuple[str, bytes]], references: Iterable[str], folder: Path) -> Any:
    """Write a plugin's files into a folder and load it from there, as a worker does."""
    for name, content in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    names = [folder / Path(r).name if r.endswith(".py") else r for r in references]
    sys.path.insert(0, str(folder))
    try:
        return load_plugins(names)
    finally:
        sys.path.remove(str(folder))


# --- what classes declare -------------------------------------------------------------------------
_STARTS = (*Rule.starts, "mp", "private")


def _check_declared(thing: type, place: str) -> None:
    """Raise SimulatorError for what a class says of itself and can't be; ``place`` names it."""
    if issubclass(thing, Rule):
        _check_protocols(thing, place)
    if issubclass(thing, Protocol):
        _check_protocol(thing, place)
    for fault in _faults(thing):
        raise SimulatorError(f"{place}{fault}")


def _faults(thing: type) -> Iterator[str]:
    """What is wrong, as it follows the name of the class."""
    if issubclass(thing, Rule):
        yield from _rule_faults(thing)
    if issubclass(thing, Loss):
        bound: Any = thing.curvature
        known = bound is None or isinstance(bound, property)
        if not known and not (isinstance(bound, int | float) and 0 <= bound < math.inf):
            what = "it must be a finite number from 0, or None where the loss has kinks"
            yield f".curvature is {bound!r}; {what}"
    if issubclass(thing, Task) and not (hasattr(thing, "loss") or "loss" in thing.model_fields):
        yield " must have a loss, as a key or for all: loss: ClassVar = Quadratic()"


def _rule_faults(rule: type[Rule]) -> Iterator[str]:
    from agents.running import RESERVED  # Numba, which only those who bring code need this early

    def fault(name: str, what: str) -> str:
        return f".{name} is {getattr(rule, name)!r}; {what}"

    objectives = (None, *OBJECTIVES, "consensus")
    if rule.objective not in objectives:
        yield fault("objective", f"allowed: {', '.join(map(repr, objectives))}")
    for name, allowed in (("modes", Rule.modes), ("starts", _STARTS)):
        words: Any = getattr(rule, name)
        if not (isinstance(words, tuple) and words and all(word in allowed for word in words)):
            yield fault(name, f"allowed: a tuple of some of {', '.join(map(repr, allowed))}")
    missing = [name for name in ("absorb", "solve") if getattr(rule, name) is getattr(Rule, name)]
    if missing:
        yield f" must implement {', '.join(missing)}"
    protocol = protocol_of(rule)
    if protocol.rounds is None and "sync" in rule.modes:
        what = f"the protocol {protocol.kind!r} has no rounds; modes must be ('async',)"
        yield fault("modes", what)
    if rule.objective in OBJECTIVES and not issubclass(rule.Parameters, TradeOff):
        yield fault("objective", "the class Parameters must derive from TradeOff or Collaborative")
    for name, least in (("vectors", 1), ("extras", 0)):
        number = getattr(rule, name)
        if not (isinstance(number, int) and number >= least):
            yield fault(name, f"it must be a number from {least}")
    if not rule.tells_models() and rule.tell is Rule.tell:
        what = f"{rule.vectors} vectors and {rule.extras} extras"
        yield f": a message of {what} needs a tell of its own"
    if rule.stateful and (rule.modes != ("async",) or rule.same_for_all):
        yield fault("stateful", "then modes must be ('async',) and same_for_all False")
    # Arrays and parameters share ``s`` with what every rule has.
    parameters = rule.Parameters.model_fields
    keys = {*Algorithm.model_fields, *RESERVED} - {*TradeOff.model_fields}
    for what, names in (("array", rule.arrays), ("parameter", parameters)):
        for name in keys.intersection(names):
            yield f": the name of the {what} {name!r} is taken"
    for name in parameters.keys() & rule.arrays.keys():
        yield f": {name!r} is both an array and a parameter"
    yield from _array_faults(rule.arrays)


def _array_faults(arrays: Mapping[str, Array]) -> Iterator[str]:
    for name, array in arrays.items():
        for axis in array.shape:
            if not (axis == "p" or (isinstance(axis, int) and axis >= 1)):
                yield f".{name} has the shape {axis!r}; allowed: 'p' or a number from 1"
        if array.dtype not in (int, float):
            yield f".{name} has the dtype {array.dtype!r}; allowed: float, int"


def _check_protocols(rule: type[Rule], place: str) -> None:
    """The protocols that a rule names: kinds of ours, or classes of anybody's."""
    named: Any = rule.protocols
    if not (isinstance(named, tuple) and named):
        raise SimulatorError(f"{place}.protocols is {named!r}; it must be a tuple of some")
    for each in named:
        if isinstance(each, type) and issubclass(each, Protocol):
            _check_protocol(each, f"{place}: {each.__name__}")
        elif each not in PROTOCOLS:
            allowed = f"{', '.join(map(repr, PROTOCOLS))}, or a class of Protocol"
            raise SimulatorError(f"{place}.protocol is {each!r}; allowed: {allowed}")
    if len(protocols_of(rule)) < len(named):
        raise SimulatorError(f"{place}.protocols: two of them have the same kind")


def _check_protocol(protocol: type[Protocol], place: str) -> None:
    if code_cache.is_ours(protocol):
        return
    from simulator.runs.plugin_protocols import check_protocol  # Numba, which few need

    check_protocol(protocol, place)
    for fault in _array_faults(protocol.arrays):
        raise SimulatorError(f"{place}{fault}")
