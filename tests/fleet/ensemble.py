"""Real ZooKeeper servers, each in a network namespace of its own."""
import contextlib
import os
import shutil
import signal
import subprocess
import time

import zk
from links import NETWORK, Place

JAVA = ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
        "-Dzookeeper.4lw.commands.whitelist=*",
        "-Dzookeeper.admin.enableServer=false", "-Dzookeeper.preAllocSize=1024",
        "-Dzookeeper.jmx.log4j.disable=true",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp",
        # TLS needs the last two, which Debian 12's zookeeper.jar does not name.
        ":".join(f"/usr/share/java/{jar}.jar" for jar in ("zookeeper", "slf4j-simple",
                                                          "netty-codec", "netty-resolver")),
        "org.apache.zookeeper.server.quorum.QuorumPeerMain"]
PORT = 2181
TICK_S = 1.0
READY_S = 120  # for hangs


class Server:
    """
    Server @number of @count, with @more in its settings; `process` is None while it is down.
    """

    def __init__(self, folder, number, count, first=11, more=""):
        self.folder = f"{folder}/server{first - 11 + number}"
        self.number = number
        self.place = Place(first + number - 1)
        self.address = (self.place.address, PORT)
        self.process = None
        self.frozen = False
        os.makedirs(f"{self.folder}/data")
        with open(f"{self.folder}/data/myid", "w") as file:
            file.write(str(number))
        with open(f"{self.folder}/config", "w") as file:
            file.write(f"tickTime=1000\ninitLimit=10\nsyncLimit=4\ndataDir={self.folder}/data\n"
                       f"clientPort={PORT}\nmaxClientCnxns=0\n{more}")
            if count > 1:
                file.writelines(f"server.{n}={NETWORK}.{first + n - 1}:2888:3888\n"
                                for n in range(1, count + 1))

    def start(self):
        if self.process is None:
            with open(f"{self.folder}/log", "ab") as log:
                self.process = subprocess.Popen(self.place.within(*JAVA, f"{self.folder}/config"),
                                                stdin=subprocess.DEVNULL,
                                                stdout=log, stderr=log)

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
        self.process, self.frozen = None, False

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)
        self.frozen = True

    def thaw(self):
        if self.process:
            self.process.send_signal(signal.SIGCONT)
        self.frozen = False

    def mode(self):
        """'leader', 'follower', 'standalone', or '' without a quorum."""
        return zk.figures(self.address).get("zk_server_state", "") if self.process else ""

    def client(self, **options):
        return zk.Client(self.address, **options)

    def remove(self):
        self.kill()
        self.place.remove()


class Ensemble:
    def __init__(self, folder, count=3, first=11, more=lambda number: ""):
        """@more: the other settings of a server, by its number."""
        self.servers = [Server(folder, n, count, first, more(n)) for n in range(1, count + 1)]

    def __iter__(self):
        return iter(self.servers)

    @property
    def names(self):
        """For a connection string."""
        return ",".join(f"{server.place.address}:{PORT}" for server in self.servers)

    def running(self):
        return all(server.process for server in self.servers)

    def restore(self):
        """All servers run, unhindered, with a quorum."""
        for server in self.servers:
            server.place.heal()
            if server.process and server.process.poll() is not None:
                server.process = None
            server.thaw()
            server.start()
        self.await_quorum(len(self.servers))

    def await_quorum(self, size=None):
        """@size servers (default: most) serve one leader, and it takes writes."""
        until = time.monotonic() + READY_S
        size = size or len(self.servers) // 2 + 1
        while time.monotonic() < until:
            serving = [s for s in self.servers if not s.frozen and s.mode()]
            leader = [s for s in serving if s.mode() in ("leader", "standalone")]
            if len(serving) >= size and len(leader) == 1:
                with contextlib.suppress(OSError, zk.Refused), leader[0].client() as client:
                    client.ensure("/quorum")
                    client.set("/quorum", b"")
                    return
            time.sleep(0.1)
        modes = ", ".join(f"server {s.number} {s.mode() or 'serves nobody'}" for s in self.servers)
        raise RuntimeError(f"the ensemble does not come up: {modes}")

    def leader(self):
        return next(s for s in self.servers if not s.frozen
                    and s.mode() in ("leader", "standalone"))

    def followers(self):
        return [s for s in self.servers if not s.frozen and s.mode() == "follower"]

    def cut_off(self, server, **ways):
        """From the other servers; clients still reach it."""
        server.place.cut(*(other.place for other in self.servers if other is not server), **ways)

    def client(self, **options):
        """A session with any server that serves."""
        for server in self.servers:
            if server.process and not server.frozen:
                with contextlib.suppress(OSError, zk.Refused):
                    return server.client(**options)
        raise RuntimeError("no server takes a session")

    def keep(self, name):
        """Copies what the servers have on disk, while they are down."""
        for server in self.servers:
            shutil.copytree(f"{server.folder}/data", f"{server.folder}/{name}")

    def bring_back(self, name):
        for server in self.servers:
            shutil.rmtree(f"{server.folder}/data")
            shutil.copytree(f"{server.folder}/{name}", f"{server.folder}/data")

    def remove(self):
        for server in self.servers:
            server.remove()
