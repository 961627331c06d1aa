"""The command ``wavesim``, also as ``python -m wavesim``."""

import signal
import sys

from . import _native


def main():
    # As a program of its own: Ctrl-C and a closed pipe are the command's.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_native.command(["wavesim", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
