"""NVIDIA GPUs through the driver alone: compile, load, launch. No framework and no toolkit is needed to run."""

from zoi.device.cuda.compiler import Cubin, compile_cuda, disk_cache
from zoi.device.cuda.errors import (
    CompileError,
    CudaError,
    DeviceLost,
    DriverMissing,
    KernelFault,
    OutOfDeviceMemory,
    UnsupportedDevice,
)

__all__ = [
    "CompileError",
    "Cubin",
    "CudaError",
    "DeviceLost",
    "DriverMissing",
    "KernelFault",
    "OutOfDeviceMemory",
    "UnsupportedDevice",
    "compile_cuda",
    "disk_cache",
    "unavailable",
]


def unavailable() -> str | None:
    """Why there is no GPU to run on, or nothing where there is one."""
    try:
        from zoi import _cuda

        _cuda.device(0)
    except ImportError:
        return "this build of zoi has no CUDA executor"
    except CudaError as error:
        return str(error)
    return None
