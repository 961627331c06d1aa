# Measures launches by the Python package. xtask/src/launch_overhead.rs runs it.
import time
import numpy, wavesim

launch = wavesim.Device("gfx1100").load("examples/scale.s").scale[1, 32]
x, y, count, least = numpy.ones(32, numpy.float32), numpy.zeros(32, numpy.float32), 500, float("inf")
for _ in range(20):  # the minimum counts: other load makes the rest slower
    start = time.thread_time()
    for _ in range(count):
        launch(x, y, 2.5, 32)
    least = min(least, time.thread_time() - start)
print(f"Python, two arrays   {least / count * 1e6:5.1f} us of the CPU")
