"""Runs a command for as long as standard input is open: python kept_process.py COMMAND...

When the tests end, even by kill -9, the pipe to this process closes, and it kills the command. So no server
outlives the tests that started it.
"""

from __future__ import annotations

import subprocess
import sys
import threading


def main(command: list[str]) -> int:
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)

    def kill_when_input_ends() -> None:
        sys.stdin.buffer.read()
        process.kill()

    threading.Thread(target=kill_when_input_ends, daemon=True).start()
    return process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
