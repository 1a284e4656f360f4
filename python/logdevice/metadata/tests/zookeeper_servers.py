"""Real ZooKeeper servers for tests, from the jars that come with pyspark.

Each server is a JVM on free loopback ports with its data in the test's folder. `kill` sends SIGKILL. Without
Java or pyspark the tests fail and say what is missing.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

KEPT_PROCESS = Path(__file__).with_name("kept_process.py")
START_TIMEOUT_S = 60
MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
# Spark brings many more jars; with a short class path the server starts faster.
JARS = (
    "zookeeper*",
    "netty-*",
    "slf4j-api*",
    "log4j-*",
    "metrics-core*",
    "snappy*",
    "audience*",
    "commons-io*",
)
FLAGS = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dzookeeper.admin.enableServer=false")
LOGGING = """<Configuration status="error"><Appenders><Console name="c"/></Appenders>
<Loggers><Root level="warn"><AppenderRef ref="c"/></Root></Loggers></Configuration>"""


def java() -> str:
    found = shutil.which("java")
    assert found, "ZooKeeper's tests need Java 17: install it (Debian: apt install openjdk-17-jre-headless)"
    return found


def class_path() -> str:
    spec = find_spec("pyspark")
    assert spec, "ZooKeeper's tests need pyspark, which brings its jars: run `make setup`"
    folder = Path(str(spec.origin)).parent / "jars"
    jars = sorted(str(jar) for pattern in JARS for jar in folder.glob(pattern + ".jar"))
    assert jars, f"there are no jars in {folder}"
    return ":".join(jars)


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [found.getsockname()[1] for found in sockets]
    for found in sockets:
        found.close()
    return ports


class Server:
    """One ZooKeeper server, alone or one of several."""

    def __init__(self, folder: Path, port: int, others: str = "", number: int = 1) -> None:
        self.port = port
        self._folder = folder
        data = folder / "data"
        data.mkdir(parents=True)
        (data / "myid").write_text(str(number))
        (folder / "log4j2.xml").write_text(LOGGING)
        (folder / "zoo.cfg").write_text(
            f"dataDir={data}\nclientPort={port}\nclientPortAddress=127.0.0.1\ntickTime=200\ninitLimit=50\n"
            f"syncLimit=10\n4lw.commands.whitelist=srvr\nadmin.enableServer=false\n{others}"
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        logging = f"-Dlog4j2.configurationFile={self._folder / 'log4j2.xml'}"
        command = [java(), *FLAGS, logging, "-cp", class_path(), MAIN, str(self._folder / "zoo.cfg")]
        with (self._folder / "output.txt").open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, str(KEPT_PROCESS), *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def kill(self) -> None:
        if self._process and self._process.stdin:
            self._process.stdin.close()
            self._process.wait()
            self._process = None

    def wait_until_it_serves(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self.role():
            ended = self._process is None or self._process.poll() is not None
            if ended or time.monotonic() > deadline:
                raise AssertionError(
                    "ZooKeeper did not start:\n" + (self._folder / "output.txt").read_text()[-4000:]
                )
            time.sleep(0.05)

    def role(self) -> str:
        """The server's role: standalone, leader or follower. Empty while it does not serve."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=2) as connection:
                connection.sendall(b"srvr")
                answer = connection.makefile().read()
        except OSError:
            return ""
        modes = [line for line in answer.splitlines() if line.startswith("Mode: ")]
        return modes[0].removeprefix("Mode: ") if modes else ""


def single_server(folder: Path) -> Server:
    return Server(folder, free_ports(1)[0])


def ensemble(folder: Path) -> list[Server]:
    """Three servers; any two of them can go on without the third."""
    ports = free_ports(9)
    others = "".join(
        f"server.{number}=127.0.0.1:{ports[number]}:{ports[number + 3]}\n" for number in range(3)
    )
    return [Server(folder / str(number), ports[number + 6], others, number) for number in range(3)]
