"""Triton kernels compiled ahead: machine code of Triton's compiler for our executor. Compiling needs no GPU."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from zoi.device.cuda import Cubin, disk_cache
from zoi.device.cuda.arrays import Array
from zoi.kernels.registry import Config, Solution, Workload, parameter

if TYPE_CHECKING:
    from zoi.lab.machine import Bound, Gpu

_TYPES = {"bf16": "*bf16", "f16": "*fp16", "f32": "*fp32", "i8": "*i8", "e4m3": "*fp8e4nv", "i32": "*i32"}
_OPTIONS = ("num_warps", "num_stages")


def arguments(solution: Solution, w: Workload, config: Config, arrays: Mapping[str, Array]) -> dict[str, Any]:
    """Finds every parameter's value by its name; an address is its array."""
    values: dict[str, Any] = {}
    for name in solution.function.arg_names:
        if name in arrays:
            values[name] = arrays[name]
        elif name.startswith("stride_"):
            _, tensor, axis = name.split("_")
            values[name] = arrays[tensor].strides[int(axis)]
        elif name in config:
            values[name] = config[name]
        elif name in w.axes:
            values[name] = w.axes[name]
        elif name == "scale":
            values[name] = float(w.option("scale", w.axes["dim"] ** -0.5 if "dim" in w.axes else 1.0))
        else:
            values[name] = w.option(name, False)
    return values


def compile_triton(
    solution: Solution, w: Workload, config: Config, arrays: Mapping[str, Array], capability: int
) -> tuple[Cubin, dict[str, Any]]:
    """Machine code of a Triton kernel, and what a launch must know: entry, threads, shared memory, parameters."""
    import triton

    function = solution.function
    values = arguments(solution, w, config, arrays)
    signature: dict[str, str] = {}
    constants: dict[str, Any] = {}
    attributes: dict[tuple[int, ...], list[list[Any]]] = {}
    passed = []
    for at, parameter_ in enumerate(function.params):
        name, value = parameter_.name, values[parameter_.name]
        if parameter_.is_constexpr or (not isinstance(value, (Array, float)) and value == 1):
            signature[name], constants[name] = "constexpr", value
            continue
        passed.append(name)
        if isinstance(value, Array):
            signature[name] = _TYPES[value.dtype]
            aligned = value.pointer % 16 == 0
        else:
            signature[name] = "fp32" if isinstance(value, float) else "i64" if abs(value) >= 1 << 31 else "i32"
            aligned = not isinstance(value, float) and value % 16 == 0
        if aligned:
            attributes[(at,)] = [["tt.divisibility", 16]]
    options = {name: config[name] for name in _OPTIONS if name in config}
    text = inspect.getsource(function.fn)
    told = json.dumps([signature, {k: str(v) for k, v in constants.items()}, sorted(map(str, attributes)), options])
    source = hashlib.sha256(f"{text}\n{function.cache_key}".encode()).hexdigest()
    key = hashlib.sha256(f"triton {triton.__version__} sm_{capability}\n{source}\n{told}".encode()).hexdigest()

    def make() -> bytes:
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource

        ast = ASTSource(fn=function, signature=signature, constexprs=constants, attrs=attributes)
        done = triton.compile(ast, target=GPUTarget("cuda", capability, 32), options=options)
        meta = done.metadata
        if getattr(meta, "global_scratch_size", 0):
            raise NotImplementedError(f"{solution.name} needs global scratch memory of Triton's.")
        facts = {"entry": meta.name, "threads": meta.num_warps * 32, "shared": meta.shared}
        head = json.dumps(facts).encode()
        return len(head).to_bytes(4, "little") + head + bytes(done.asm["cubin"])

    kept = disk_cache(key, make)
    size = int.from_bytes(kept[:4], "little")
    facts = json.loads(kept[4 : 4 + size])
    cubin = Cubin(kept[4 + size :], f"sm_{capability}", f"triton {triton.__version__}", source[:16])
    return cubin, {**facts, "passed": passed, "values": values}


def bind_triton(gpu: Gpu, solution: Solution, w: Workload, config: Config, arrays: Mapping[str, Array]) -> Bound:
    """Makes a Triton solution ready to launch."""
    from zoi.lab.machine import Bound

    assert solution.grid
    cubin, facts = compile_triton(solution, w, config, arrays, gpu.machine.capability)
    function, info = gpu.load(cubin, facts["entry"], facts["shared"])
    parameters = []
    for name in facts["passed"]:
        value = facts["values"][name]
        if isinstance(value, Array):
            parameters.append(parameter("Q", value.pointer))
        elif isinstance(value, float):
            parameters.append(parameter("f", value))
        else:
            parameters.append(parameter("q" if abs(value) >= 1 << 31 else "i", value))
    # Triton's own last two: scratch memory, which these kernels do not use, and a profiler's.
    parameters += [parameter("Q", 0), parameter("Q", 0)]
    grid = (*solution.grid(w, config, gpu.machine), 1, 1)[:3]
    launch = gpu.cuda.Launch(function, grid, facts["threads"], parameters, 1)
    return Bound(launch, {**info, "config": dict(config)}, (arrays,))
