"""The command ``wavesim``, also as ``python -m wavesim``."""

import os
import signal
import sys
import sysconfig

from . import _native


def main():
    # As a program of its own: Ctrl-C and a closed pipe are the command's.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # What pip installs beside this command, such as a solver, is found though the environment may not be activated.
    folders = [os.environ.get("PATH"), sysconfig.get_path("scripts")]
    os.environ["PATH"] = os.pathsep.join(folder for folder in folders if folder)
    sys.exit(_native.command(["wavesim", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
