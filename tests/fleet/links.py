"""
Namespaces of a run's own: a network whose links can be cut each way, processes that end with it.
"""
import contextlib
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import deaths

NETWORK = "10.77.0"
CENTRE = f"{NETWORK}.1"
# A bridge without an address of its own has the lowest one of its links. A link that comes or goes
# may change that, and then the centre does not hear a place that knows the old one.
CENTRE_LINK = "02:00:00:00:00:01"
NOBODY = f"{NETWORK}.250"  # an address that answers nothing
INSIDE = "RATEFS_FLEET_SCRATCH"
FILTER = """
table bridge cut {
	set pairs { type ipv4_addr . ipv4_addr; }
	chain forward { type filter hook forward priority 0; ip saddr . ip daddr @pairs drop; }
}
"""


def enter():
    """
    Runs this program again in namespaces of its own and returns there, with the path of a new empty
    directory. Whatever happens, its processes, mounts, networks and files are gone in the end.
    """
    if INSIDE not in os.environ:
        def ended(*_):
            raise SystemExit(130)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, ended)
        scratch = tempfile.mkdtemp(prefix="ratefs-fleet.")
        child = None
        try:
            child = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--mount", "--propagation",
                 "private", "--pid", "--fork",
                 "--kill-child",
                 "--mount-proc", sys.executable, "-B", *sys.argv],
                 env={**os.environ, INSIDE: scratch, "LC_ALL": "C"})
            status = child.wait()
        finally:
            if child and child.poll() is None:
                child.kill()
                child.wait()
            shutil.rmtree(scratch, ignore_errors=True)
        sys.exit(status if status >= 0 else 1)
    scratch = os.environ[INSIDE]
    command("mount", "-t", "tmpfs", "none", "/run")
    os.mkdir("/run/netns")
    for name, lines in {"hosts": ["127.0.0.1 localhost"] + [f"{NETWORK}.{10 + n} zk{n}"
                                                            for n in (1, 2, 3)],
                        "resolv.conf": [f"nameserver {NOBODY}",
                                        "options timeout:1 attempts:1"]}.items():
        with open(f"/run/{name}", "w") as file:
            file.writelines(line + "\n" for line in lines)
        command("mount", "--bind", f"/run/{name}", os.path.realpath(f"/etc/{name}"))
    if not os.path.ismount("/sys/fs/fuse/connections"):
        command("mount", "-t", "fusectl", "none", "/sys/fs/fuse/connections")
    for words in ("link set lo up", f"link add centre address {CENTRE_LINK} type bridge",
                  "link set centre up", f"addr add {CENTRE}/24 dev centre"):
        command("ip", *words.split())
    command("nft", "-f", "-", given=FILTER)
    return scratch


def build_client(folder):
    """The path of the program that reads and writes mounts; also makes what tells of deaths."""
    deaths.build(folder)
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "client.c")
    command("cc", "-std=gnu11", "-O1", "-pthread", "-o", f"{folder}/client", source)
    return f"{folder}/client"


def command(*words, given=None, limit_s=60):
    done = subprocess.run(words, input=given, text=True, timeout=limit_s, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT,
                          stdin=None if given else subprocess.DEVNULL)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stdout.strip()}")
    return done.stdout


class Place:
    """A network namespace with one address, linked to all others."""
    lock = threading.Lock()
    used = set()
    numbers = range(20, 220)  # those that this process may use

    def __init__(self, number=None):
        with Place.lock:
            self.number = number or next(n for n in Place.numbers if n not in Place.used)
            Place.used.add(self.number)
        self.address = f"{NETWORK}.{self.number}"
        self.name = f"p{self.number}"
        self.cuts = set()
        command("ip", "netns", "add", self.name)
        command("ip", "link", "add", self.name, "type", "veth", "peer", "name", "eth0", "netns",
                self.name)
        command("ip", "link", "set", self.name, "master", "centre", "up")
        for words in ("link set lo up", f"addr add {self.address}/24 dev eth0",
                      "link set eth0 up"):
            command("ip", "-n", self.name, *words.split())

    def within(self, *words):
        """The command that runs @words here."""
        return ["nsenter", f"--net=/run/netns/{self.name}", *words]

    def cut(self, *others, out=True, back=True):
        """Loses what goes @out to others, what comes @back from them, or both."""
        pairs = [pair for other in others for pair,
                 lost in (((self.address, other.address), out),
                          ((other.address, self.address), back)) if lost]
        self.cuts.update(pairs)
        command("nft", "add", "element", "bridge", "cut", "pairs", "{",
                ", ".join(" . ".join(p) for p in pairs), "}")

    def heal(self):
        if self.cuts:
            command("nft", "delete", "element", "bridge", "cut", "pairs", "{",
                    ", ".join(" . ".join(p) for p in self.cuts), "}")
        self.cuts = set()

    def remove(self):
        with contextlib.suppress(RuntimeError):
            self.heal()
        with contextlib.suppress(RuntimeError):
            command("ip", "link", "del", self.name)
        with contextlib.suppress(RuntimeError):
            command("ip", "netns", "del", self.name)
        with Place.lock:
            Place.used.discard(self.number)


class Quiet:
    """A network namespace with a loopback alone: no link comes or goes there."""

    def __init__(self, name):
        self.name = name
        command("ip", "netns", "add", name)
        command("ip", "-n", name, "link", "set", "lo", "up")

    def within(self, *words):
        """The command that runs @words here."""
        return ["nsenter", f"--net=/run/netns/{self.name}", *words]

    def remove(self):
        command("ip", "netns", "del", self.name)


class Proxy:
    """
    A relay at the centre to (address, port): answers and requests each pass, come `delay_s` late,
    or are lost; `drop()` cuts the connections that there are; `refuse` accepts no new ones.
    """

    def __init__(self, target):
        self.target = target
        self.delay_s = 0.0
        self.lose_answers = self.lose_requests = self.refuse = self.closed = False
        self.pairs = set()
        self.listener = socket.create_server((CENTRE, 0))
        self.address = self.listener.getsockname()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while not self.closed:
            try:
                client, _ = self.listener.accept()
            except OSError:
                continue
            if self.refuse:
                client.close()
                continue
            # A server that is slow to accept keeps no later client waiting.
            threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client):
        try:
            server = socket.create_connection(self.target, 2)
        except OSError:
            client.close()
            return
        pair = (client, server)
        self.pairs.add(pair)
        threading.Thread(target=self._relay, args=(pair, client, server, False),
                         daemon=True).start()
        self._relay(pair, server, client, True)

    def _relay(self, pair, source, sink, answers):
        queue = []  # (due, bytes), oldest first
        poll = select.poll()  # select() knows no descriptor above 1023
        try:
            poll.register(source, select.POLLIN)
            while True:
                wait = max(0.0, queue[0][0] - time.monotonic()) if queue else None
                if poll.poll(None if wait is None else 1000 * wait):
                    data = source.recv(65536)
                    if not data:
                        break
                    self.hear(data)
                    if not (self.lose_answers if answers else self.lose_requests):
                        queue.append((time.monotonic() + self.delay_s, data))
                while queue and queue[0][0] <= time.monotonic():
                    sink.sendall(queue.pop(0)[1])
        except (OSError, ValueError):
            pass
        self._end(pair)

    def _end(self, pair):
        self.pairs.discard(pair)
        for end in pair:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def hear(self, data):
        """Is told of all that comes."""

    def drop(self):
        for pair in list(self.pairs):
            self._end(pair)

    def close(self):
        self.closed = True
        self.listener.close()
        self.drop()
