"""Hosts of a fleet: a daemon and its mount in a network namespace each, and what reads there."""
import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import threading
import time

import checker
import deaths
from links import Place, command

# Short, so that a fault is over soon; a right longer than a session, so that safety needs all
# rules.
RIGHT_S, SESSION_S = 5.0, 3.0
RENEWAL_S, TICK_S = 1.5, 1.0
DEFAULT_RIGHT_S = 8.0
# For hangs. How long something takes is measured by tests/bench, and held to by traces of the
# simulator, whose time no machine makes longer.
HANG_S = 90.0


def quarantine_s(right_s=RIGHT_S):
    return right_s * 1.01 + 0.25


LOG_LATE_S = 3.0  # how late a line of the log is at most; figures depend on it, no check
PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17


class Failed(Exception):
    """An expectation does not hold."""


def expect(holds, what):
    if not holds:
        raise Failed(what)


def eventually(holds, what, limit_s=HANG_S):
    """Tries until holds() is true; returns how long that took."""
    begun = time.monotonic()
    while True:
        if holds():
            return time.monotonic() - begun
        if time.monotonic() - begun > limit_s:
            raise Failed(f"not within {limit_s:g} s: {what() if callable(what) else what}")
        time.sleep(0.1)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def gone(pid, limit_s):
    until = time.monotonic() + limit_s
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.01)
    return not alive(pid)


class Answer:
    """
    Of one request to a mount: OK, an errno's name, or TIMEOUT without an answer; text, seconds.
    """

    def __init__(self, client, limit_s, *words):
        process = subprocess.Popen([client, *words], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, text=True)
        try:
            out, _ = process.communicate(timeout=limit_s)
            first, _, self.text = out.partition("\n")
            nanoseconds, self.result = first.split()
            self.seconds = int(nanoseconds) / 1e9
        except (subprocess.TimeoutExpired, ValueError):
            self.result, self.text, self.seconds = "TIMEOUT", "", limit_s
            process.kill()

    @property
    def ok(self):
        return self.result == "OK"


class Host:
    def __init__(self, fleet, name):
        self.fleet, self.name, self.called = fleet, name, name
        self.folder = f"{fleet.folder}/{name}"
        self.mount = f"{self.folder}/mount"
        self.log = f"{self.folder}/log"
        self.place = Place()
        self.daemon = None
        self.frozen = False
        self.readers = []
        self.source = None  # instead of the fleet's servers and path
        os.makedirs(self.mount)
        self.watch = deaths.Watch(fleet.library, f"{self.folder}/watch")

    def command(self, *options, source=None):
        words = ["-o", f"host={self.called}"]
        for option in options:
            words += ["-o", option]
        return self.place.within(self.fleet.binary, "-f", *words,
                                 source or self.source or self.fleet.source, self.mount)

    def launch(self, *options, source=None):
        """Starts the daemon and does not wait for the mount."""
        options = (*self.fleet.options, *options)
        with open(self.log, "ab") as log:
            self.daemon = subprocess.Popen(self.command(*options, source=source),
                                           stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                           env=self.watch.environment)

    def start(self, *options, source=None):
        self.launch(*options, source=source)
        eventually(lambda: self.mounted() or self.daemon.poll() is not None,
                   f"{self.name} mounts")
        expect(self.mounted(),
               f"{self.name} does not mount: status {self.daemon.poll()}, {self.said()[-400:]}")

    def said(self):
        try:
            with open(self.log, errors="replace") as file:
                return file.read()
        except OSError:
            return ""

    def connection(self):
        with open("/proc/self/mountinfo") as file:
            for line in file:
                fields = line.split()
                if fields[4] == self.mount and " - fuse" in line:
                    return fields[2].partition(":")[2]
        return None

    def mounted(self):
        return self.connection() is not None

    def processes(self):
        """The daemon and all that it has started."""
        children = {}
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                with contextlib.suppress(OSError), open(f"/proc/{entry}/stat") as file:
                    children.setdefault(int(file.read().rpartition(")")[2].split()[1]),
                                        []).append(int(entry))
        todo, found = [self.daemon.pid] if self.daemon else [], []
        while todo:
            found.append(todo.pop())
            todo += children.get(found[-1], [])
        return found

    @property
    def server(self):
        """The process that does the work, below the keeper."""
        return self.processes()[-1]

    def signal(self, number):
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def freeze(self):
        self.signal(signal.SIGSTOP)
        self.frozen = True

    def thaw(self):
        self.signal(signal.SIGCONT)
        self.frozen = False

    def kill_server(self):
        """The server alone; another one answers when this returns."""
        victim = int(self.status()["server"])
        self.watch.death(f"{victim} signal 9")
        os.kill(victim, signal.SIGKILL)
        eventually(lambda: int(self.status()["server"]) != victim,
                   f"{self.name} has another server")

    @contextlib.contextmanager
    def without_server(self):
        """Killed, and no other one until the end of the block."""
        victim = int(self.status()["server"])
        self.watch.death(f"{victim} signal 9")
        os.kill(self.daemon.pid, signal.SIGSTOP)
        os.kill(victim, signal.SIGKILL)
        yield
        os.kill(self.daemon.pid, signal.SIGCONT)

    def kill(self):
        """
        As a power failure does: a server whose keeper dies before it would leave. The mount is dead
        and is taken away.
        """
        if self.daemon:
            self.signal(signal.SIGSTOP)
            self.signal(signal.SIGKILL)
            self.daemon.wait()
        self.daemon, self.frozen = None, False
        self.unmount()

    def unmount(self):
        while connection := self.connection():
            with contextlib.suppress(OSError), open(f"/sys/fs/fuse/connections/{connection}/abort",
                                                    "w") as file:
                file.write("1")
            with contextlib.suppress(RuntimeError, subprocess.TimeoutExpired):
                command("umount", "-l", self.mount)

    def stop(self, limit_s=HANG_S):
        """Ends the daemon as an operator does; returns how long that took."""
        begun = time.monotonic()
        self.daemon.terminate()
        return self.ended(limit_s, begun)

    def ended(self, limit_s=HANG_S, begun=None):
        begun = begun or time.monotonic()
        expect(gone(self.daemon.pid, limit_s),
               f"{self.name} still runs {limit_s} s after its end was asked for")
        status = self.daemon.wait()
        self.daemon = None
        expect(status == 0, f"{self.name} ends with status {status}: {self.said()[-400:]}")
        expect(not self.mounted(), f"{self.name} has ended and is still mounted")
        return time.monotonic() - begun

    def refused(self, limit_s=HANG_S):
        """The exit status of a daemon that was launched and does not mount."""
        expect(gone(self.daemon.pid, limit_s), f"{self.name} neither mounts nor ends")
        status = self.daemon.wait()
        self.daemon = None
        return status

    def running(self):
        return self.daemon is not None and self.daemon.poll() is None

    def freeze_thread(self, seconds):
        """Stops all threads but the first one for so long."""
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        server = self.server
        threads = [int(t) for t in os.listdir(f"/proc/{server}/task") if int(t) != server]
        expect(threads, f"{self.name} has threads")
        for thread in threads:
            expect(libc.ptrace(PTRACE_SEIZE, thread, None, None) == 0,
                   f"ptrace: {os.strerror(ctypes.get_errno())}")
            libc.ptrace(PTRACE_INTERRUPT, thread, None, None)
            os.waitpid(thread, 0x40000000)  # __WALL
        time.sleep(seconds)
        for thread in threads:
            libc.ptrace(PTRACE_DETACH, thread, None, None)

    # Files.

    def ask(self, *words, limit_s=HANG_S):
        return Answer(self.fleet.client_program, limit_s, words[0], f"{self.mount}/{words[1]}",
                      *words[2:])

    def read(self, file, limit_s=HANG_S):
        answer = self.ask("read", file, limit_s=limit_s)
        expect(answer.ok, f"{self.name}: reading {file}: {answer.result}")
        return answer.text.strip()

    def insist(self, *words, unknown=False):
        """
        As an operator does: a change that was not acknowledged may have been done, and is
        repeated; with UNKNOWN it was asked for before.
        """
        until = time.monotonic() + HANG_S
        while True:
            answer = self.ask(*words)
            if answer.ok or (unknown and answer.result in ("EEXIST", "ENOENT")):
                return
            unknown = unknown or answer.result == "ETIMEDOUT"
            if answer.result not in ("EHOSTUNREACH", "ETIMEDOUT") or time.monotonic() > until:
                why = self.ask("read", "last_error").text.strip()
                raise Failed(f"{self.name}: {' '.join(words)}: {answer.result} {why}")
            time.sleep(0.1)

    def write(self, file, text):
        self.insist("write", file, text)

    def mkdir(self, path):
        self.insist("mkdir", path)

    def there(self, path):
        return os.access(f"{self.mount}/{path}", os.F_OK)

    def status(self, limit_s=HANG_S):
        """The lines of `status`: a dict of name and value."""
        return dict((line.split(" ", 1) + [""])[:2]
                    for line in self.read("status", limit_s).splitlines())

    def stat(self, limiter="l"):
        return dict(line.split(" ", 1) for line in self.read(f"{limiter}/stat").splitlines())

    def held(self, limiter="l"):
        return self.read(f"{limiter}/partitions/held").split()

    # Readers.

    def loop(self, *files, work_us=0):
        """Reads each of the files in a loop from now on."""
        return self.use("loop", self.fleet.log, (work_us,), files)

    def bursts(self, *files, on_s, off_s):
        """Reads each of the files in a loop for so long, pauses for so long, and so on."""
        return self.use("bursts", self.fleet.log, (round(1000 * on_s), round(1000 * off_s)), files)

    def hold(self, *files, log, held_us):
        """Holds a slot by each of the files for so long, again and again; notes it in @log."""
        return self.use("hold", log, (held_us,), files)

    def use(self, how, log, numbers, files):
        process = subprocess.Popen([self.fleet.client_program, how, log, self.name,
                                    *(str(number) for number in numbers),
                                    *(f"{self.mount}/{file}" for file in files)],
                                   stdin=subprocess.DEVNULL)
        self.readers.append(process)
        return process

    def follow(self, file):
        """Copies what @file tells from now on; returns where to."""
        copy = f"{self.folder}/{file}"
        with open(copy, "wb") as out:
            self.readers.append(subprocess.Popen(["cat", f"{self.mount}/{file}"],
                                                 stdin=subprocess.DEVNULL, stdout=out))
        return copy

    def end_readers(self, limit_s=HANG_S):
        for process in self.readers:
            process.kill()
        for process in self.readers:
            expect(gone(process.pid, limit_s),
                   f"{self.name}: a blocked reader is not gone {limit_s} s after SIGKILL")
            process.wait()
        self.readers = []

    def remove(self):
        if self.frozen:
            self.thaw()
        self.kill()
        for process in self.readers:
            process.kill()
            gone(process.pid, 5)
            process.poll()
        self.place.remove()


class Fleet:
    """
    Hosts that share one path of an ensemble, what their readers logged, what they may have got.
    """
    numbers = iter(range(1, 1000))
    lock = threading.Lock()

    def __init__(self, folder, binary, client_program, ensemble, options=None, path=None,
                 right_s=RIGHT_S, session_s=SESSION_S):
        with Fleet.lock:
            number = next(Fleet.numbers)
        self.folder = f"{folder}/fleet{number}"
        self.path = path or f"/fleet{number}"
        self.binary, self.client_program, self.ensemble = binary, client_program, ensemble
        self.source = f"zk://{ensemble.names}{self.path}"
        self.quarantine_s = quarantine_s(right_s)
        self.options = [f"right={right_s:g}s",
                        f"session={session_s:g}s"] if options is None else options
        self.library = deaths.library(folder)
        self.log = f"{self.folder}/grants"
        self.hosts = []
        self.bounds = {}  # by limiter
        self.shares = {}  # by limiter: rate and number of partitions, if single ones are checked
        self.seen, self.failed, self.offset = [], [], 0
        os.makedirs(self.folder)
        open(self.log, "w").close()

    def host(self, name=None, *options, start=True, source=None):
        name = name or f"h{len(self.hosts) + 1}"
        if any(h.name == name for h in self.hosts) or os.path.exists(f"{self.folder}/{name}"):
            raise ValueError(name)
        host = Host(self, name)
        host.source = source
        self.hosts.append(host)
        if start:
            host.start(*options)
        return host

    def limiter(self, rate=100, count=10, burst=1, name="l", lease="3s", more=(), host=None,
                shares=False):
        """Made on one host, then seen on all that run; its bound is checked from then on."""
        host = host or self.hosts[0]
        host.mkdir(name)
        for file, value in (("burst", f"{burst}"), ("partitions/lease", lease),
                            ("partitions/count", f"{count}"), *more, ("rate", f"{rate}/s")):
            host.write(f"{name}/{file}", value)
        self.bounds[name] = checker.Bound(rate, self.burst(burst, count), self.quarantine_s)
        if shares:
            self.shares[name] = (rate, count)
        for other in self.hosts:
            if other.running():
                eventually(lambda: other.there(f"{name}/rate")
                           and other.ask("read", f"{name}/rate").text.strip() == f"{rate}/s",
                           f"{other.name} sees the rate of {name}")

    def burst(self, burst, count):
        """Of all hosts together: a token more for each whose part of it is less than one."""
        return burst + len(self.hosts) if count == "auto" else max(burst, count)

    def make(self, name, host=None, **settings):
        """A limiter at once, with nothing waited for."""
        host = host or self.hosts[0]
        host.mkdir(name)
        host.write(f"{name}/config", "".join(f"{key}={text}\n" for key, text in settings.items()))

    def takes(self, tokens, name="l"):
        """Takes of so many may be under way on every host; each saves them up for itself."""
        self.bounds[name].burst += tokens * len(self.hosts)

    def set_rate(self, host, rate, name="l"):
        """Writes it and lets the checker know; returns the answer."""
        issued = time.monotonic_ns()
        answer = host.ask("write", f"{name}/rate", f"{rate}/s")
        # A refused write has changed nothing; one that timed out may have.
        if answer.ok or answer.result in ("ETIMEDOUT", "TIMEOUT", "EINTR"):
            self.bounds[name].set(rate, issued, time.monotonic_ns() if answer.ok else None)
        return answer

    def insist_on_rate(self, host, rate):
        """As Host.insist(): a host that is back may not have joined yet."""
        until = time.monotonic() + HANG_S
        while not (answer := self.set_rate(host, rate)).ok:
            expect(answer.result in ("EHOSTUNREACH", "ETIMEDOUT") and time.monotonic() < until,
                   f"{host.name}: writing the rate: {answer.result}")
            time.sleep(0.1)

    def load(self, *hosts, files=("l/token", "l/token"), work_us=0):
        for host in hosts or self.hosts:
            host.loop(*files, work_us=work_us)

    def grants(self):
        """All that readers have logged so far."""
        with Fleet.lock, open(self.log, "rb") as file:
            file.seek(self.offset)
            lines = file.read().decode().splitlines(True)
            if lines and not lines[-1].endswith("\n"):
                lines.pop()
            self.offset += sum(len(line) for line in lines)
            grants, failures = checker.parse(lines)
            self.seen += grants
            self.failed += failures
        return self.seen

    def failures(self):
        self.grants()
        return self.failed

    def granted(self, hosts=None, seconds=None, since=None, until=None, limiter="l"):
        """Tokens that @hosts (default: all) got in the last @seconds, or between two instants."""
        until = until or time.monotonic()
        since = until - seconds if seconds else since
        names = {host.name for host in hosts or self.hosts}
        tokens = 0
        for grant in reversed(self.grants()):
            if grant.returned < (since - LOG_LATE_S) * checker.SECOND:
                break
            inside = since * checker.SECOND <= grant.returned <= until * checker.SECOND
            if inside and grant.host in names and checker.belongs(grant.file, limiter):
                tokens += grant.tokens
        return tokens

    def rate(self, hosts=None, seconds=1.5, limiter="l"):
        return self.granted(hosts, seconds, limiter=limiter) / seconds

    def await_rate(self, rate, hosts=None, limiter="l", what="capacity in use", share=0.85):
        """Until @hosts get @share of @rate between them."""
        return eventually(lambda: self.rate(hosts, limiter=limiter) >= share * rate,
                          lambda: f"{what}: {self.rate(hosts, limiter=limiter):.0f}/s "
                                  f"of {rate:g}/s, {self.where()}")

    def entitled(self, hosts=None, limiter="l"):
        """Tokens a second that @hosts (default: all that run) may grant now, by their own word."""
        hosts = [host for host in hosts or self.hosts if host.running()]
        return sum(float(host.stat(limiter)["effective_rate"]) for host in hosts)

    def entitled_in(self, seconds, hosts=None):
        """The mean of that over so many seconds."""
        looks, until = [], time.monotonic() + seconds
        while time.monotonic() < until:
            looks.append(self.entitled(hosts))
            time.sleep(0.2)
        return sum(looks) / len(looks)

    def where(self):
        """The holder of each partition, for the report of a failure."""
        lines = []
        for host in self.hosts:
            if host.running() and not host.frozen:
                status = host.ask("read", "status", limit_s=1).text.split("\n")
                state = " ".join(line for line in status
                                 if line.startswith(("coordinator", "session", "right")))
                held = host.ask("read", "l/partitions/held", limit_s=1).text.strip()
                lines.append(f"{host.name}: {state} holds [{held}]")
        return "; ".join(lines)

    def violations(self, grants=None):
        """The worst window of each limiter and partition that granted too much, by name."""
        grants = self.grants() if grants is None else grants
        found = {}
        for name, bound in self.bounds.items():
            excess = checker.violation([g for g in grants if checker.belongs(g.file, name)], bound)
            if excess:
                found[name] = excess
        for name, (rate, count) in self.shares.items():
            bound = checker.Bound(rate / count, 1)
            for index in range(count):
                excess = checker.violation([g for g in grants
                                            if checker.partition(g.file) == (name, str(index))],
                                            bound)
                if excess:
                    found[f"{name}/partitions/{index}"] = excess
        return found

    def check(self):
        found = self.violations()
        expect(not found, "more was granted than may be: " + "; ".join(checker.describe(*entry)
                                                                       for entry in found.items()))

    def remove(self):
        for host in self.hosts:
            with contextlib.suppress(Exception):
                host.remove()
        shutil.rmtree(self.folder, ignore_errors=True)
