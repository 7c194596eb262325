"""What Numba has no words for: memory at an address, functions at an address, memory ahead of time.

Each is a function of compiled code only.
"""

from __future__ import annotations

from typing import Any

from numba import types  # type: ignore[attr-defined, unused-ignore]
from numba.extending import intrinsic


@intrinsic
def _array_at(typing_context: Any, address: Any, shape: Any, dtype: Any) -> Any:
    """The array of a shape and a type that lies at an address.

    ``numba.carray`` does the same by a function of its own for each type, which costs a second of
    compilation in all.
    """
    from numba.np import arrayobj

    make: Any = arrayobj.np_cfarray
    axes = len(shape) if isinstance(shape, types.BaseTuple) else 1
    result = types.Array(dtype.dtype, axes, "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = builder.inttoptr(arguments[0], context.get_value_type(types.voidptr))
        return make(context, builder, signature, (place, arguments[1]))

    return result(types.int64, shape, dtype), generate


def _call(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Call the function at an address, the first of the arguments, with the others."""
    from llvmlite import ir

    result, _, *taken = map(context.get_value_type, (signature.return_type, *signature.args))
    kind = ir.FunctionType(result, taken)
    return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])


@intrinsic
def _invoke(typing_context: Any, function: Any, s: Any, i: Any, k: Any, a: Any, b: Any) -> Any:
    """Call the function at an address, int64 × 5 → int64."""
    return types.int64(*[types.int64] * 6), _call


@intrinsic
def _next_double(typing_context: Any, function: Any, state: Any) -> Any:
    """Call NumPy's ``double next_double(void *)`` of a bit generator."""
    return types.float64(types.int64, types.int64), _call


@intrinsic
def _draw_double(typing_context: Any, function: Any, generator: Any, a: Any, b: Any) -> Any:
    """Call NumPy's ``double random_…(bitgen_t *, double, double)``; of one number b is ignored."""
    return types.float64(types.int64, types.int64, types.float64, types.float64), _call


@intrinsic
def _prefetch(typing_context: Any, address: Any) -> Any:
    """Ask for the line of memory at an address, which will be needed soon; do not wait for it."""
    from llvmlite import ir

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place, flag, flag, flag])
        function = builder.module.declare_intrinsic("llvm.prefetch", (place,), kind)
        write, keep, data = flag(1), flag(3), flag(1)
        builder.call(function, [builder.inttoptr(arguments[0], place), write, keep, data])
        return context.get_dummy_value()

    return types.void(types.int64), generate


#: As compiled code calls them, without the typing context.
array_at: Any = _array_at
invoke: Any = _invoke
next_double: Any = _next_double
draw_double: Any = _draw_double
prefetch: Any = _prefetch
