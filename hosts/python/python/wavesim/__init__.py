"""wavesim: run and check AMD GPU kernels without a GPU.

    import numpy as np, wavesim

    device = wavesim.Device("gfx1100")
    kernel = device.load("scale.s").scale
    x, y = np.arange(50, dtype=np.float32), np.zeros(50, np.float32)
    kernel[2, 32](x, y, 2.5, 50)

Kernels access the arrays in place. `wavesim.run` runs a text kernel, and `wavesim.debug` steps through one.
`import wavesim.triton` runs Triton kernels, and `import wavesim.tinygrad` provides tinygrad's AMD device.
"""

from ._arrays import Pointer
from ._device import Device, Kernel, Local, Module
from ._native import VARIABLES, Error, Exploration, Fault, Finding, Outcome, __version__
from ._text import (
    Debugger,
    Instruction,
    Profile,
    Report,
    Result,
    assemble,
    debug,
    disassemble,
    explore,
    observe,
    run,
)

__all__ = [
    "VARIABLES",
    "Debugger",
    "Device",
    "Error",
    "Exploration",
    "Fault",
    "Finding",
    "Instruction",
    "Kernel",
    "Local",
    "Module",
    "Outcome",
    "Pointer",
    "Profile",
    "Report",
    "Result",
    "__version__",
    "assemble",
    "debug",
    "disassemble",
    "explore",
    "observe",
    "run",
]
