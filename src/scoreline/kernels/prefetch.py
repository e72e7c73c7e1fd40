"""Asking the processor to fetch entries that a kernel will read soon, where it could not guess them.

Rows of a list lie apart, so the processor waits for the memory at each of them. The loops of requests stand in the kernels
themselves: in a function of their own they took longer than the product.
"""

import numpy as np
from numba import types
from numba.core import config
from numba.extending import intrinsic

AHEAD = np.uint64(12)  # listed rows between a request and its use
MOST_ENTRIES = np.uint64(64)  # of a row that are requested: the processor guesses the rest of long rows
PER_LINE = np.uint64(8)  # entries, at most, of float64 in a line of the cache


@intrinsic
def _request(typing_context, array, index):
    """Emit the processor's instruction: data that will be read, to be kept in all caches."""
    from llvmlite import ir

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address.type, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [address.type], kind)
        builder.call(function, [address, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, index), generate


def _do_nothing(array, index):
    """Stand in for the request where kernels run without the compiler."""


fetch_soon = _do_nothing if getattr(config, "DISABLE_JIT", False) else _request
