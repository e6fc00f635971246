"""Three ZooKeeper servers on loopback, for the rows about a fleet."""
import contextlib
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

from daemons import Unmeasured

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "fleet"))
import zk

JAR = "/usr/share/java/zookeeper.jar"
SERVERS = 3
READY_S = 60
MULTI, CHECK = 14, 13  # of ZooKeeper's requests, beside those in zk
CONFIG = """tickTime=1000
initLimit=10
syncLimit=4
admin.enableServer=false
4lw.commands.whitelist=*
maxClientCnxns=0
clientPortAddress=127.0.0.1
"""


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def serves(address):
    return zk.figures(address).get("zk_server_state") in ("leader", "follower")


class Ensemble:
    """Started when made; `names` is for a source."""

    def __init__(self, log):
        if not os.path.exists(JAR) or not shutil.which("java"):
            raise Unmeasured("no ZooKeeper server here (Debian: zookeeper)")
        self.log = log
        self.folder = tempfile.mkdtemp(prefix="ratefs-bench-zookeeper-")
        self.processes = {}
        ports = free_ports(3 * SERVERS)
        self.addresses = [("127.0.0.1", port) for port in ports[:SERVERS]]
        self.names = ",".join(f"{host}:{port}" for host, port in self.addresses)
        with open(os.path.join(self.folder, "log4j.properties"), "w") as file:
            file.write("log4j.rootLogger=OFF\n")
        quorum = "".join(f"server.{n + 1}=127.0.0.1:{ports[SERVERS + n]}:{ports[2 * SERVERS + n]}\n"
                         for n in range(SERVERS))
        for n in range(SERVERS):
            data = os.path.join(self.folder, f"data{n}")
            os.mkdir(data)
            with open(os.path.join(data, "myid"), "w") as file:
                file.write(f"{n + 1}\n")
            with open(self.config(n), "w") as file:
                file.write(f"{CONFIG}dataDir={data}\nclientPort={ports[n]}\n{quorum}")
        try:
            self.start()
            self.await_quorum()
        except BaseException:
            self.remove()
            raise

    def config(self, number):
        return os.path.join(self.folder, f"config{number}")

    def start(self):
        for n in range(SERVERS):
            self.processes[n] = subprocess.Popen(
                ["java", "-Xmx128m", "-XX:+UseSerialGC", "-Dzookeeper.preAllocSize=1024",
                 "-Dzookeeper.jmx.log4j.disable=true", "-cp", f"{self.folder}:{JAR}",
                 "org.apache.zookeeper.server.quorum.QuorumPeerMain", self.config(n)],
                stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def serve_all(self):
        return (all(process.poll() is None for process in self.processes.values()) and
                all(serves(address) for address in self.addresses))

    def kill(self):
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()
        self.processes = {}

    def await_quorum(self, size=SERVERS):
        """@size servers serve, and a write is taken; tells when (time.monotonic())."""
        until = time.monotonic() + READY_S
        while time.monotonic() < until:
            serving = [address for address in self.addresses if serves(address)]
            if len(serving) >= size:
                with contextlib.suppress(OSError, zk.Refused), zk.Client(serving[0]) as client:
                    client.ensure("/quorum")
                    client.set("/quorum", b"")
                    return time.monotonic()
            time.sleep(0.02)
        raise Unmeasured("the ZooKeeper servers found no quorum")

    def remove(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class Taker(zk.Client):
    """Sends the transaction that takes a lease and nothing else: the least cost of that."""

    def __init__(self, address, path):
        super().__init__(address, session_s=30)
        self.path, self.version = path, 0
        self.ensure(path)
        for name in ("g", "h", "t"):
            self.ensure(f"{path}/{name}")

    def _multi(self, *operations):
        body = b"".join(struct.pack(">i?i", kind, False, -1) + operation
                        for kind, operation in operations)
        self._ask(MULTI, "multi", body + struct.pack(">i?i", -1, True, -1))

    def take(self):
        """A tile in one transaction: check, set, delete, create; returns seconds."""
        free, taken = (f"{self.path}/t/{self.version}{state}" for state in ("+1+1", ".taker"))
        self.create(free)
        begun = time.monotonic()
        self._multi(
            (CHECK, zk.text(f"{self.path}/g") + struct.pack(">i", 0)),
            (zk.SET, zk.text(f"{self.path}/h") + zk.buffer(b"") + struct.pack(">i", self.version)),
            (zk.DELETE, zk.text(free) + struct.pack(">i", -1)),
            (zk.CREATE, zk.text(taken) + zk.buffer(b"") + zk.acl_text(zk.ANYONE) +
             struct.pack(">i", 0)))
        seconds = time.monotonic() - begun
        self.version += 1
        if not self.exists(taken):
            raise Unmeasured("ZooKeeper did not execute a transaction")
        return seconds
