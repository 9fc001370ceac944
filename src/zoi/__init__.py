"""An ONNX file in, a faster answer out: small neural networks at the latency that the hardware allows.

plan = zoi.compile("m.onnx", shapes={"x": (1, 3, 224, 224)}, fix={"sr": 16000})
plan.save("m.zoi")
s = zoi.Session(plan, cores=[1])
s.inputs["x"][...] = a
s.run()
s.outputs["y"]
"""

from zoi.compiler import compile, load
from zoi.errors import InputError, ModelError, UnsupportedOperator, ZoiError
from zoi.plan import Memory, Plan, TensorSpec
from zoi.session import Session

__all__ = [
    "InputError",
    "Memory",
    "ModelError",
    "Plan",
    "Session",
    "TensorSpec",
    "UnsupportedOperator",
    "ZoiError",
    "compile",
    "load",
]
__version__ = "0.1.0"
