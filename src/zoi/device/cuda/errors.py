"""What can go wrong on a GPU, by what to do about it."""

from zoi.errors import ZoiError


class CudaError(ZoiError, RuntimeError):
    """A call to the driver failed."""


class DriverMissing(CudaError):
    """No driver, one too old, or no GPU."""


class UnsupportedDevice(CudaError):
    """The GPU, or its driver, cannot run this kernel."""


class OutOfDeviceMemory(CudaError):
    """The GPU, or pinned host memory, has no room."""


class KernelFault(CudaError):
    """A kernel broke off: a wild address, a trap, a time-out. The process's context is lost."""


class DeviceLost(CudaError):
    """The GPU itself stopped answering."""


class CompileError(CudaError):
    """A kernel's source did not compile; the compiler's words are in the message."""
