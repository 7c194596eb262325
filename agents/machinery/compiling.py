"""From plain functions over arrays to machine code, which is found again by its content.

Rules and losses are classes whose functions act on a *state*, arrays and numbers by name.  Here
each function becomes a pointer with one signature, integers in and a verdict out, so that the
engines' loops, compiled once, can call any of them:

    verdict = invoke(pointer, address of the state's record, i, k, address, address)

A state's record holds its numbers and the addresses of its arrays (``Layout``); a generated
wrapper makes a named tuple of arrays from it, which is the ``s`` that the function sees, and
turns an exception into a verdict, because there is nobody to catch it inside the loop.

What was compiled is kept by ``agents.machinery.code_cache``.  With ``NUMBA_DISABLE_JIT=1`` nothing
is compiled and the functions run as they stand.
"""
# mypy: disallow_untyped_decorators=False

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import sys
import tempfile
import warnings
from collections import namedtuple
from collections.abc import Callable, Mapping
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, cast

import numpy as np
from numba import cfunc, config, njit, types  # type: ignore[attr-defined, unused-ignore]
from numba.core.errors import NumbaError, NumbaWarning
from numpy.typing import NDArray

from agents.machinery.code_cache import (
    CHECKED,
    cache_folder,
    cached_in,
    folder_of,
    is_ours,
    source_of,
)
from agents.machinery.code_errors import CodeError, code_of, place_of
from agents.machinery.intrinsics import array_at, invoke

#: Is anything compiled at all?
JIT: bool = not config.DISABLE_JIT  # type: ignore[attr-defined, unused-ignore]
#: What a pointer answers.
FINE, FAILED, INEXACT = range(3)


#: What need not be compiled: a way to call a function by its address, and one from Python.
_NO_ADDRESS: Any = {"no_cfunc_wrapper": True}
_FROM_COMPILED_CODE_ONLY: Any = {"no_cpython_wrapper": True, **_NO_ADDRESS}
#: What divides by zero gets an infinity, as in NumPy: a check at each division would keep loops
#: from vectors.
_OURS: Any = {"boundscheck": CHECKED, "error_model": "numpy"}
#: A plugin's: what it gets wrong is noticed.  Both are said, or a caller's would hold.
_OTHERS: Any = {"boundscheck": True, "error_model": "python"}


def kernel(function: Callable[..., Any]) -> Any:
    """A function that compiled code calls: compiled with its caller, and not kept by itself.

    Python can't call it: the way from there would double what there is to compile.
    """
    return _internal(function, **_OURS)


def inlined(function: Callable[..., Any]) -> Any:
    """A kernel that becomes part of its callers: small, and called so often that a call counts."""
    return _internal(function, forceinline=True, **_OURS)


def inlined_of_others(function: Callable[..., Any]) -> Any:
    """The same of a plugin's: what it gets wrong is noticed."""
    return _internal(function, forceinline=True, **_OTHERS)


def _internal(function: Callable[..., Any], **options: Any) -> Any:
    """Compile it once for all whole numbers, not once more for each constant that it is given."""
    dispatcher: Any = njit(**options, **_FROM_COMPILED_CODE_ONLY)(function)
    if JIT:
        template, unliteral = dispatcher.get_call_template, cast("Any", types.unliteral)
        dispatcher.get_call_template = lambda args, kws: template(
            tuple(map(unliteral, args)), {name: unliteral(kind) for name, kind in kws.items()}
        )
    return dispatcher


def entry(function: Callable[..., Any], folder: Path | None = None) -> Any:
    """A compiled function that Python calls; what it compiles to is kept."""
    if not JIT:
        return function
    with cached_in(folder or folder_of(function)):
        return njit(cache=True, boundscheck=CHECKED, **_NO_ADDRESS)(function)


# --- addresses and pointers -----------------------------------------------------------------------
def as_array(address: int, shape: Any) -> NDArray[np.float64]:
    """The floats at an address, as an array in Python."""
    shape = shape if isinstance(shape, tuple) else (shape,)
    count = int(np.prod(shape))
    if count == 0:
        return np.empty(shape)
    buffer: Any = (ctypes.c_double * count).from_address(int(address))
    return np.frombuffer(buffer, dtype=np.float64).reshape(shape)


def _floats(address: int, shape: Any) -> Any:
    return array_at(address, shape, np.float64)


#: The floats at an address, as an array in compiled code.
floats = kernel(_floats) if JIT else as_array


def address_of(function: Callable[..., int], folder: Path | None = None) -> int:
    """The address of a function int64 × 5 → int64, which is compiled when it is first asked for."""
    if function not in _pointers:
        with cached_in(folder or folder_of(function)):
            _pointers[function] = cfunc(types.int64(*[types.int64] * 5), cache=True)(function)
    return int(_pointers[function].address)


#: The compiled functions that have an address, which must be kept alive.
_pointers: dict[Callable[..., int], Any] = {}


@entry
def call(function: int, s: int, i: int, k: int, a: int, b: int) -> int:
    """Call the function at an address from Python."""
    return invoke(function, s, i, k, a, b)


def direct(function: Any, arguments: int) -> Any:
    """A compiled function of so many integers, without the dispatcher that looks at their types.

    That look costs more than most of the functions here.
    """
    signature = (types.int64,) * arguments
    function.compile(signature)
    return function.overloads[signature].entry_point


# --- states ---------------------------------------------------------------------------------------
class Layout:
    """The names, types and shapes of a state: its numbers, and its arrays in terms of them."""

    def __init__(
        self,
        numbers: Mapping[str, type],
        arrays: Mapping[str, tuple[type, tuple[int | str, ...]]],
        extra: Mapping[str, tuple[str, ...]] | None = None,
    ):
        self.numbers, self.arrays = dict(numbers), dict(arrays)
        #: Fields that are named tuples of addresses, e.g. those of a loss.
        self.extra = dict(extra or {})
        self.names = [*self.numbers, *self.arrays, *self.extra]
        fields: list[tuple[str, Any]] = [
            (name, np.float64 if kind is float else np.int64) for name, kind in self.numbers.items()
        ]
        fields += [(name, np.int64) for name in self.arrays]
        fields += [(f"{name}_{part}", np.int64) for name in self.extra for part in self.extra[name]]
        self.dtype = np.dtype(fields)

    def shape(self, name: str, numbers: Mapping[str, Any]) -> tuple[int, ...]:
        """The shape of an array, given the state's numbers."""
        return tuple(
            axis if isinstance(axis, int) else int(numbers[axis]) for axis in self.arrays[name][1]
        )

    def check(self, name: str, array: Any, numbers: Mapping[str, Any]) -> NDArray[Any]:
        """The array, if it is what was declared; compiled code would not notice."""
        expected, kind = self.shape(name, numbers), np.dtype(self.arrays[name][0])
        if not isinstance(array, np.ndarray) or array.shape != expected or array.dtype != kind:
            got = (
                f"{array.dtype} {array.shape}"
                if isinstance(array, np.ndarray)
                else type(array).__name__
            )
            raise TypeError(f"{name} must be an array of {kind} with shape {expected}, got {got}")
        return np.ascontiguousarray(array)

    def record(self, numbers: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Any:
        """The record (1,) of the numbers and the arrays' addresses; the caller keeps the arrays."""
        record = np.zeros(1, self.dtype)
        for name in self.numbers:
            record[name] = numbers[name]
        for name in self.arrays:
            array = self.check(name, arrays[name], numbers)
            assert array is arrays[name] or array.flags.c_contiguous, name
            record[name] = array.ctypes.data
        return record

    def source(self) -> str:
        """The text of ``view(address)``: the state as a named tuple, in compiled code."""
        values = [f"r.{name}" for name in self.numbers]
        for name, (kind, shape) in self.arrays.items():
            axes = "".join(f"{a}, " if isinstance(a, int) else f"r.{a}, " for a in shape)
            dtype = "np.float64" if kind is float else "np.int64"
            values.append(f"array_at(r.{name}, ({axes}), {dtype})")
        for name, parts in self.extra.items():
            arguments = ", ".join(f"r.{name}_{part}" for part in parts)
            values.append(f"{name.capitalize()}({arguments})")
        joined = ",\n        ".join(values)
        return (
            "def view(address):\n"
            "    r = array_at(address, 1, RECORD)[0]\n"
            f"    return State(\n        {joined},\n    )\n"
        )


# --- generated modules ----------------------------------------------------------------------------
def wrap_for(thing: type) -> Callable[[Callable[..., Any]], Any]:
    """What prepares a class's functions for the wrappers: others' always check their indices.

    Their names get a hash of what they are made of.  Compiled code finds a function by its name,
    its types and a number that each process counts for itself: code kept by one process would find
    another function of the same name in the next.  They are part of their wrappers, because a
    call would copy the whole state.
    """
    options = _OURS if is_ours(thing) else _OTHERS
    content = hashlib.sha256(source_of(thing)).hexdigest()[:16]
    return lambda function: _internal(bind(function, content), forceinline=True, **options)


class Functions:
    """The functions of a class over a layout, each compiled when it is first asked for.

    ``bodies`` says what each wrapper does, given the state ``s`` and the addresses a and b, with
    the class's functions at hand as f_….  ``content`` is what the class's code depends on besides
    our own sources.
    """

    def __init__(
        self,
        name: str,
        layout: Layout,
        functions: Mapping[str, Callable[..., Any]],
        bodies: Mapping[str, str],
        content: bytes,
        more: Mapping[str, Any] | None = None,
    ):
        self.name, self.layout = name, layout
        self.functions, self.bodies = dict(functions), dict(bodies)
        text = _HEAD + layout.source() + "".join(map(_wrapper, bodies, bodies.values()))
        key = hashlib.sha256(text.encode() + content).hexdigest()[:16]
        self._folder = cache_folder(content)
        path = self._folder / f"{name}_{key}.py"
        module = ModuleType(f"murmuration_generated_{name}_{key}")
        tuples = {"State": layout.names}
        tuples |= {each.capitalize(): list(parts) for each, parts in layout.extra.items()}
        for each, fields in tuples.items():
            setattr(module, each, namedtuple(each, fields, module=module.__name__))
        self.state: Any = module.State
        sys.modules[module.__name__] = module
        self._module = module
        if not JIT:
            return
        if not path.exists():
            _write(path, text)
        module.__dict__.update(
            RECORD=layout.dtype,
            **{f"f_{label}": function for label, function in functions.items()},
            **(more or {}),
        )
        exec(compile(text, str(path), "exec"), module.__dict__)  # noqa: S102 - our own text
        module.view = kernel(module.view)  # type: ignore[attr-defined]

    def address(self, label: str, written: Callable[..., Any] | None = None) -> int:
        """The pointer of a function; ``written`` is what its author wrote, for messages."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NumbaWarning)
            try:
                return address_of(getattr(self._module, f"p_{label}"), self._folder)
            except (OSError, MemoryError):
                raise
            except Exception as error:  # Numba's own, and whatever else happens inside it
                raise CompilationError(self.name, label, error, written) from error


_HEAD = '''"""Generated: wrappers around the functions of one class."""
import numpy as np
from agents.machinery.compiling import floats
from agents.machinery.intrinsics import array_at


'''


def _wrapper(label: str, body: str) -> str:
    return (
        f"\n\ndef p_{label}(address, i, k, a, b):\n"
        "    verdict = 0\n"
        "    try:\n"
        "        s = view(address)\n"
        f"        {body}\n"
        "    except Exception:\n"
        "        verdict = 1\n"
        "    return verdict\n"
    )


def _write(path: Path, text: str) -> None:
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
        file.write(text)
    os.replace(file.name, path)


def bind(function: Callable[..., Any], label: str, **names: Any) -> Callable[..., Any]:
    """A function with a label to its name, and other things in the place of some global names.

    A closure or a function passed as an argument would do the same, and would never be found in
    the cache.
    """
    assert isinstance(function, FunctionType)
    scope = {**function.__globals__, **names} if names else function.__globals__
    rest = function.__name__, function.__defaults__, function.__closure__
    bound = FunctionType(function.__code__, scope, *rest)
    bound.__qualname__ = f"{function.__qualname__}_{label}"
    return bound


def bound_for(
    function: Callable[..., Any], label: str, swap: dict[Any, Any], make: Callable[..., Any]
) -> Callable[..., Any]:
    """A function with others in the place of the plain ones that it calls, and of those they call.

    ``swap`` says what takes the place of which; what it does not name is made anew, and added.
    """
    names = {}
    for name in names_in(function.__code__):
        thing = function.__globals__.get(name)
        if isinstance(thing, FunctionType):
            if thing not in swap:
                swap[thing] = make(bound_for(thing, label, swap, make))
            names[name] = swap[thing]
    return bind(function, label, **names)


def names_in(code: CodeType) -> set[str]:
    """The global names, and those of attributes, that code mentions."""
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*map(names_in, inner))


class CompilationError(CodeError):
    """A function that Python can run and the compiler can't."""

    def __init__(self, name: str, label: str, error: Exception, written: Callable[..., Any] | None):
        text = str(error)
        places = re.findall(r'File "([^"]+)", line (\d+)| at (/\S+\.py) \((\d+)\)', text)
        own = [
            f" ({Path(a or b).name}:{line or number})"
            for a, line, b, number in places
            if not any(part in (a or b) for part in ("site-packages", "__pycache__"))
            and Path(a or b).parent not in Path(__file__).parents[:2]  # what calls it
        ]
        own += [] if written is None else [f" ({place_of(code_of(written))})"]
        lines = [line.strip() for line in re.split("There are|\nFile ", text)[0].splitlines()]
        told = [line for line in lines if line and not line.startswith(("During:", "Failed in"))]
        reason, who = " ".join(told[:2])[:250], name.replace("_", " ", 1)
        if not isinstance(error, NumbaError):
            reason = f"{type(error).__name__}: {reason}"
        super().__init__(f"{who}: {label} can't be compiled{(own or [''])[0]}: {reason}")
