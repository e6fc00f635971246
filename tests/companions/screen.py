"""
screen.py SCENARIO BINARY PATH: a companion on a pseudo-terminal, driven as by a person; fails with
what was on it. The Python is that of Debian, which has pyte.
"""
import errno
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import pyte

LIMIT_S = 20


def set_environment(**environment):
    for name in ("NO_COLOR", "LINES", "COLUMNS", "ESCDELAY"):
        os.environ.pop(name, None)
    os.environ.update(LC_ALL="C.UTF-8", TERM="screen")
    os.environ.update(environment)


class Screen:
    """A program with a terminal of its own, which is its controlling one."""

    def __init__(self, *arguments, rows=24, columns=100, **environment):
        self.text = ""
        self.shown = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.shown)
        self.child, self.terminal = pty.fork()
        if not self.child:
            set_environment(**environment)
            self.terminal = 0
            self.resize(rows, columns)
            os.execv(arguments[0], arguments)

    def resize(self, rows, columns):
        self.shown.resize(rows, columns)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def send(self, text):
        os.write(self.terminal, text.encode())

    def read(self, seconds):
        """Reads the output within this time; False at the end."""
        if not select.select([self.terminal], [], [], seconds)[0]:
            return True
        try:
            piece = os.read(self.terminal, 65536)
        except OSError:
            piece = b""
        self.text += piece.decode(errors="replace")
        self.stream.feed(piece)
        return bool(piece)

    def expect(self, regex):
        """Waits until this is written; earlier output is forgotten."""
        until = time.monotonic() + LIMIT_S
        goes_on = True
        while not (found := re.search(regex, self.text)):
            if not goes_on or time.monotonic() > until:
                sys.exit(f"no {regex!r} on the screen: {self.text!r}")
            goes_on = self.read(0.1)
        self.text = self.text[found.end():]
        return found

    def lines(self):
        return [line.rstrip() for line in self.shown.display]

    def shows(self, regex):
        """Waits until a line of the screen is like this; its match."""
        until = time.monotonic() + LIMIT_S
        while True:
            for line in self.lines():
                if found := re.search(regex, line):
                    return found
            if time.monotonic() > until or not self.read(0.1):
                sys.exit(f"no {regex!r} on the screen: {self.lines()}")

    def waits_for(self, what, state):
        """Waits until state(), of the screen, is true."""
        until = time.monotonic() + LIMIT_S
        while not state():
            if time.monotonic() > until or not self.read(0.1):
                sys.exit(f"{what}: {self.lines()}")

    def end(self):
        """Its status as of os.waitstatus_to_exitcode()."""
        until = time.monotonic() + LIMIT_S
        while self.read(0.05):
            if time.monotonic() > until:
                sys.exit(f"it does not end: {self.text!r}")
        return os.waitstatus_to_exitcode(os.waitpid(self.child, 0)[1])


def check(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: got {got!r}, not {wanted!r}")


ENTER, LEAVE = r"\x1b\[\?1049h", r"\x1b\[\?1049l"
CLEAR = r"\x1b\[J"


def top(binary, path, *options, **size):
    screen = Screen(binary, "top", *options, path, **size)
    screen.expect(ENTER)
    screen.shows("LIMITER")
    return screen


def quit_it(screen):
    screen.send("q")
    screen.expect(LEAVE)
    check("exit status", screen.end(), 0)


def limiters(screen):
    """The names in the table, from the top on."""
    lines = screen.lines()
    title = next((i for i, line in enumerate(lines) if "LIMITER" in line), len(lines))
    at = lines[title].index("LIMITER") if title < len(lines) else 0
    return [line[at:].split()[0] for line in lines[title + 1:] if line[at:].strip()]


def selected(screen):
    """The limiter that keys act on: its line is shown in reverse."""
    for number, line in enumerate(screen.shown.display):
        if screen.shown.buffer[number][0].reverse and line.strip() and "LIMITER" not in line:
            return line.split()[-1]
    return ""


def quits(binary, path):
    quit_it(top(binary, path))


def restores_the_terminal(binary, path):
    for stop in (b"q", b"\x03", b"\x1c"):
        master, slave = pty.openpty()
        before = termios.tcgetattr(slave)
        child = os.fork()
        if not child:
            set_environment()
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            for descriptor in range(3):
                os.dup2(slave, descriptor)
            os.execv(binary, [binary, "top", path])
        text = b""
        while b"GRANTED" not in text:
            text += os.read(master, 65536)
        check("echo while it runs", termios.tcgetattr(slave)[3] & termios.ECHO, 0)
        os.write(master, stop)
        os.waitpid(child, 0)
        check("terminal", termios.tcgetattr(slave), before)
        while b"\x1b[?1049l" not in text:
            text += os.read(master, 65536)


def change_status(path, waiters):
    status = open(f"{path}/status").read()
    with open(f"{path}/new", "w") as new:
        new.write(re.sub(r"waiters \d+", f"waiters {waiters}", status))
    os.rename(f"{path}/new", f"{path}/status")


def waiters_of(path, limiter, count):
    os.makedirs(f"{path}/{limiter}", exist_ok=True)
    with open(f"{path}/{limiter}/waiters", "w") as waiters:
        waiters.write("# pid uid tokens waited left command\n")
        waiters.writelines(f"{1000 + i} 0 1 0.5 1.5 cat\n" for i in range(count))


def opened_by_reader(fifo):
    """The end to write to, once another program has opened it."""
    until = time.monotonic() + LIMIT_S
    while time.monotonic() < until:
        try:
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
        time.sleep(0.01)
    sys.exit(f"no reader of {fifo}")


def refreshes(binary, path):
    screen = top(binary, path, "-d", "100ms")
    for waiters in (7, 8, 9):
        change_status(path, waiters)
        screen.shows(f"^h  s  2 limiters  {waiters} wait  up 8m20s$")
    quit_it(screen)


def counts_its_tables(binary, path):
    screen = top(binary, path, "-d", "100ms", "-n", "3")
    screen.expect(LEAVE)
    check("exit status", screen.end(), 0)


def sorts_by_keys(binary, path):
    screen = top(binary, path, "-d", "1h", columns=200)
    screen.shows(">GRANTED/s")
    for key, mark, order in (("n", ">LIMITER", ["a", "b"]), ("n", "<LIMITER", ["b", "a"]),
                             ("r", ">RATE/s", ["b", "a"]), ("r", "<RATE/s", ["a", "b"]),
                             ("w", ">WAITING", ["b", "a"]), ("b", ">BELOW", ["a", "b"])):
        screen.send(key)
        screen.shows(mark)
        screen.waits_for(f"order after {key}", lambda: limiters(screen) == order)
        screen.waits_for("one column is marked",
                         lambda: len(re.findall("[<>]", "".join(screen.lines()))) == 1)
    quit_it(screen)


def has_two_tables(binary, path):
    screen = top(binary, path, "-d", "1h", columns=80)
    screen.send("\t")
    screen.shows("HOLDER +LIMITER +MAP")
    screen.shows("^ +100 +- +20 h1 +a +#{20}$")
    screen.send("\t")
    screen.shows("GRANTED/s")
    quit_it(screen)


def scrolls_through_holders(binary, path):
    for i in range(100):
        os.makedirs(f"{path}/a/partitions/{i}", exist_ok=True)
        with open(f"{path}/a/partitions/{i}/holder", "w") as holder:
            holder.write(f"h{i:03}\n")
    screen = top(binary, path, "-d", "1h", "-s", "limiter")
    screen.send("\t")
    for key, first in (("", 0), ("j", 1), ("\x1b[4~", 79), ("k", 78), ("\x1b[1~", 0)):
        screen.send(key)
        screen.waits_for(f"{first} is first after {key!r}",
                         lambda: f" h{first:03} " in screen.lines()[3])
    quit_it(screen)


def many(path, count):
    with open(f"{path}/new", "w") as metrics:
        for i in range(count):
            metrics.write(f'ratefs_waiting{{limiter="limiter{i:05}"}} 0\n')
    os.rename(f"{path}/new", f"{path}/metrics")


def moves(binary, path):
    many(path, 2000)
    screen = top(binary, path, "-d", "1h", "-s", "limiter", rows=23)
    screen.waits_for("20 lines", lambda: len(limiters(screen)) == 20)
    for keys, at, first in (("", 0, 0), ("j", 1, 0), ("\x1b[B", 2, 0), ("k", 1, 0),
                            ("\x1b[A", 0, 0), ("k", 0, 0), ("\x1b[6~" * 2, 22, 3),
                            ("\x1b[5~", 11, 3), ("\x1b[4~", 1999, 1980),
                            ("j", 1999, 1980), ("\x1b[1~", 0, 0)):
        screen.send(keys.replace("\x1b[A", "\x1bOA").replace("\x1b[B", "\x1bOB"))
        screen.waits_for(f"{keys!r} selects {at}, below {first}",
                         lambda: selected(screen).startswith(f"limiter{at:05}") and
                         limiters(screen)[:1] == [f"limiter{first:05}"])
    screen.send("\x1b[4~\t")
    screen.shows("HOLDER")
    screen.send("\t")
    screen.waits_for("the end", lambda: limiters(screen)[:1] == ["limiter01980"])
    quit_it(screen)


def fits_the_screen(binary, path):
    screen = top(binary, path, "-d", "1h", rows=24, columns=100)
    screen.shows("WHY$")
    for rows, columns in ((5, 30), (1, 1), (2, 10), (50, 300), (24, 40)):
        screen.text = ""
        screen.resize(rows, columns)
        screen.expect(CLEAR)
        if columns >= 30:
            screen.waits_for("both limiters", lambda: limiters(screen) == ["a", "b"])
        if columns == 10:
            screen.waits_for("two lines", lambda: screen.lines() == ["h  s  2 li", "q quit  ?"])
        if columns == 300:
            screen.shows("REFUSED/s +MIN/s LIMITER +WHY$")
    for line in ("GRANTED/s WAITING    WAIT LIMITER", "^h  s  2 limiters  3 wait  up 8m20s$"):
        screen.shows(line)
    quit_it(screen)


def filters(binary, path):
    many(path, 2000)
    screen = top(binary, path, "-d", "100ms", "-s", "limiter")
    screen.send("/q1R")
    screen.shows("^/q1R_  0 of 2000$")
    screen.send("\x7f" * 3 + "R00123\n")
    screen.shows("^/R00123  1 of 2000$")
    screen.waits_for("one limiter", lambda: limiters(screen) == ["limiter00123"])
    screen.send("\x1b")
    screen.waits_for("all limiters", lambda: limiters(screen)[:2] == ["limiter00000",
                                                                    "limiter00001"])
    screen.send("\x1b[4~/0001\n")
    screen.waits_for("all that match", lambda: limiters(screen) == [
        f"limiter{i:05}" for i in range(2000) if "0001" in f"{i:05}"])
    quit_it(screen)


def filters_where_it_is_seen(binary, path):
    waiters_of(path, "a", 1)
    waiters_of(path, "b", 1)
    screen = top(binary, path, "-d", "1h")
    for page, seen in (("?", "q +quit"), ("\n", ": waiters"), ("\t", "HOLDER")):
        screen.send(page)
        screen.shows(seen)
        screen.send("/b")
        screen.shows("^/b_  1 of 2$")
        screen.send("\n\x1b\x1b")
        screen.waits_for("both limiters", lambda: sorted(limiters(screen)) == ["a", "b"])
    quit_it(screen)


def has_no_waiters_of_nothing(binary, path):
    waiters_of(path, "a", 1)
    waiters_of(path, "b", 1)
    screen = top(binary, path, "-d", "1h")
    screen.send("j/zzz\n")
    screen.shows("^/zzz  0 of 2$")
    screen.send("\nn")
    screen.shows(">LIMITER")
    screen.waits_for("no limiters", lambda: not limiters(screen))
    quit_it(screen)


def sorts_what_is_seen(binary, path):
    waiters_of(path, "b", 1)
    screen = top(binary, path, "-d", "1h", "-s", "waiting")
    for page, seen in (("?", "q +quit"), ("\n", "b: waiters")):
        screen.send(page)
        screen.shows(seen)
        screen.send("nj" + page)
        screen.shows(">WAITING")
        screen.waits_for("b is selected", lambda: selected(screen) == "b")
    quit_it(screen)


def stops_while_it_waits(binary, path):
    """The signal comes during a refresh, whose table is drawn before the screen is left."""
    screen = top(binary, path, "-d", "100ms")
    metrics = f"{path}/metrics"
    os.rename(metrics, f"{path}/kept")
    os.mkfifo(f"{path}/fifo")
    os.rename(f"{path}/fifo", metrics)
    writer = opened_by_reader(metrics)
    os.rename(f"{path}/kept", metrics)
    change_status(path, 77)
    os.kill(screen.child, signal.SIGTSTP)
    os.write(writer, open(metrics, "rb").read())
    os.close(writer)
    screen.expect(f"(?s)77.*{LEAVE}")
    screen.expect(ENTER)
    quit_it(screen)


def tells_its_keys(binary, path):
    screen = top(binary, path, "-d", "1h", columns=40)
    screen.send("?")
    screen.shows("Enter +waiters of the limiter")
    screen.shows("u use")
    screen.send("?")
    screen.shows("LIMITER")
    quit_it(screen)


def shows_waiters(binary, path):
    waiters_of(path, "b", 1000)
    screen = top(binary, path, "-d", "1h", "-s", "waiting")
    screen.send("\n")
    screen.shows("b: waiters")
    screen.shows("^ +pid +uid +tokens +waited +left +command$")
    screen.shows("^ +1000 +0 +1 +0.5 +1.5 +cat$")
    screen.send("\x1b[4~")
    screen.shows("^ +1999 ")
    screen.send("\x1b[1~")
    screen.shows("^ +1000 ")
    os.unlink(f"{path}/b/waiters")
    screen.send("j")
    screen.shows("b: No such file")
    screen.send("\x1b")
    screen.waits_for("limiters", lambda: limiters(screen) == ["b", "a"])
    quit_it(screen)


def slots(path, used):
    with open(f"{path}/new", "w") as metrics:
        metrics.write(f'ratefs_slots{{limiter="a"}} 100\nratefs_slots_used{{limiter="a"}} {used}\n')
    os.rename(f"{path}/new", f"{path}/metrics")


def draws(screen, line, colors, weights):
    """Waits until a line like this has these colours and weights but for its look as a whole."""
    def state():
        for number, text in enumerate(screen.shown.display):
            if re.search(line, text.rstrip()):
                cells = [screen.shown.buffer[number][i] for i in range(80)]
                return {cell.fg for cell in cells} == colors and \
                       {cell.bold for cell in cells} == weights
        return False
    screen.waits_for(f"{line} in {colors}", state)


def draws_a_bar(binary, path):
    slots(path, 42)
    screen = top(binary, path, "-d", "100ms", "-s", "limiter", TERM="screen-256color")
    draws(screen, r" 42 \|\|   .* a$", {"default"}, {False})
    slots(path, 89)
    draws(screen, r" 89 \|\|\|\|", {"default"}, {False})
    slots(path, 90)
    draws(screen, r" 90 \|\|\|\|\| ", {"default", "red"}, {False, True})
    quit_it(screen)


def has_no_color(binary, path):
    slots(path, 95)
    screen = top(binary, path, "-d", "1h", TERM="screen-256color", NO_COLOR="1")
    draws(screen, r" 95 \|", {"default"}, {False, True})
    quit_it(screen)


def is_a_text_when_dumb(binary, path):
    for term in ("dumb", "no-such-terminal"):
        screen = Screen(binary, "top", "-d", "100ms", path, TERM=term)
        check(f"exit status on {term}", screen.end(), 0)
        screen.shows("GRANTED/s .* LIMITER")
        check("escapes", "\x1b" in screen.text, False)


def is_refused_without_ncurses(binary, path):
    screen = Screen(binary, "top", path)
    screen.shows("built without ncurses .*there is only 'ratefs top -b'")
    check("exit status", screen.end(), 1)


def ends_on_signals(binary, path):
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        screen = top(binary, path)
        os.kill(screen.child, number)
        screen.expect(LEAVE)
        check("end", screen.end(), -number)
    screen = top(binary, path, "-d", "1h")
    screen.send("\x03")
    screen.expect(LEAVE)
    check("end", screen.end(), -signal.SIGINT)


def stops_and_goes_on(binary, path):
    # A shell with job control is what can go on with it.
    screen = Screen("/bin/bash", "-c", f"set -m; {binary} top -d 1h {path}; stty -a; read -r; fg")
    screen.expect(ENTER)
    screen.shows("LIMITER")
    screen.send("\x1a")
    screen.expect(LEAVE)
    screen.expect(r" echo ")
    screen.resize(30, 200)
    screen.send("\n")
    screen.expect(ENTER)
    screen.shows("MIN/s LIMITER +WHY$")
    screen.send("q")
    screen.expect(LEAVE)
    check("exit status", screen.end(), 0)


def ends_with_the_tree(binary, path):
    screen = top(binary, path, "-d", "100ms")
    os.rename(f"{path}/metrics", f"{path}/gone")
    screen.expect(LEAVE)
    screen.expect("not a mounted tree")
    check("exit status", screen.end(), 1)


def interrupt_once(binary, path):
    """Control-C goes to the command and to run, which must not pass it on a second time."""
    script = ("trap 'echo caught' INT; echo ready; "
              "for i in 1 2 3 4 5 6 7 8 9; do sleep 0.1; done; echo over")
    screen = Screen(binary, "run", path, "--", "bash", "-c", script)
    screen.expect("ready")
    screen.send("\x03")
    screen.expect("caught")
    found = screen.expect(r"(?s)^(.*)over")
    check("caught again", found.group(1).count("caught"), 0)
    check("exit status", screen.end(), 0)


def plot(binary, path, *options, **size):
    """With two samples at least, to be drawn in an hour."""
    screen = Screen(binary, "plot", path, "-t", "1h", "-d", "50ms", "-o", "image.svg", **size)
    screen.expect("1 of 3600 s")
    return screen


def takes_image():
    check("end of the image", open("image.svg", encoding="utf-8").read()[-8:], "</svg>\n\n")
    os.remove("image.svg")


def draws_on_signals(binary, path):
    screen = plot(binary, path)
    screen.send("\x03")
    check("status after Control-C", screen.end(), 0)
    takes_image()
    for number in (signal.SIGINT, signal.SIGTERM):
        screen = plot(binary, path)
        os.kill(screen.child, number)
        check("status after a signal", screen.end(), 0)
        takes_image()


def tells_progress(binary, path):
    screen = Screen(binary, "plot", path, path, "-t", "1h", "-o", "image.svg")
    screen.expect("\rrecording 2 limiters: 0 of 3600 s, Ctrl-C draws now\r")
    screen.send("\x03")
    screen.end()
    screen = plot(binary, path, columns=40)
    screen.expect("\rrecording fake: 2 of 3600 s, Ctrl-C d\r")
    screen.send("\x03")
    screen.end()
    check("line at the end", screen.text[-41:], f"\r{'':39}\r")


def ends_at_once(binary, path):
    screen = plot(binary, path)
    screen.send("\x03")
    screen.expect("script")
    screen.send("\x03")
    check("status", screen.end(), -signal.SIGINT)


def draws_what_went_away(binary, path):
    screen = plot(binary, path)
    os.rmdir(path)
    screen.expect(r"\r +\rratefs plot: .*orders: No such .*; it was recorded for \d+\.\d s\r")
    check("status", screen.end(), 1)
    takes_image()


def announces_a_long_wait(binary, path):
    """Of one token the eta is 5 s, and of two less."""
    for tokens, words in (("1", "ratefs run: waiting for 1 token of .*, about 5.0 s"), ("2", "")):
        screen = Screen(binary, "run", path, "-n", tokens, "echo", "over")
        found = screen.expect(r"(?s)^(.*)over")
        check("announced", bool(re.fullmatch(words, found.group(1).strip())), True)
        check("exit status", screen.end(), 0)


def tells_of_a_slot(binary, path):
    with open(path + "/slot", encoding="ascii") as slot:
        screen = Screen(binary, "run", path, "--slot", "echo", "over")
        screen.expect(r"waiting for a slot of .*: orders slots 1 of 1: pid "
                      f"{os.getpid()} on host .* for [0-9.]+ s")
        check("the slot", len(slot.read()) > 0, True)
    screen.expect("over")
    check("exit status", screen.end(), 0)


def draws_in_signs(binary, path):
    for columns in (40, 100):
        screen = Screen(binary, "plot", path, "-t", "1h", "-d", "50ms", columns=columns)
        screen.expect("1 of 3600 s")
        screen.text = ""
        screen.send("\x03")
        check("status", screen.end(), 0)
        picture = screen.text[screen.text.index("\r* ") + 1:]
        for words in ("* fake\r\n", "tokens granted a second", "readers that wait", " seconds "):
            check(words, picture.count(words), 1)
        for sign in ("+.", "*"):
            check("line of " + sign, bool(re.search(f"[{sign}]{{9}}", picture)), True)
        check("widest line", max(map(len, re.split(r"[\r\f]\n?", picture))), columns - 1)


def draws_many_in_signs(binary, path):
    screen = Screen(binary, "plot", "--from", path, rows=60)
    check("status", screen.end(), 0)
    lines = re.split(r"[\r\f]\n?", screen.text)
    check("names", [line for line in lines if re.fullmatch(r". m\d", line)],
          [f"{sign} m{i + 1}" for i, sign in enumerate("*#$%@&=*")])
    panel = lines[:next(i for i, line in enumerate(lines) if "readers that wait" in line)]
    drawn = [match[1] for line in panel if (match := re.search(r"([*#$%@&=])\1{20}", line))]
    check("signs from above", drawn[:7], list("*=&@%$#"))


def copy(binary, path, **size):
    """A copy of the file `in` by a limiter, with its progress."""
    return Screen("/bin/sh", "-c", 'exec "$0" pipe --progress "$1" < in > out', binary, path,
                  **size)


def renews_its_line(binary, path):
    """The rate is that of the last ten seconds: after them it does not know what is left."""
    screen = copy(binary, path)
    screen.shows(r"^5000 bytes \(62 %\) copied, \d\S*s, \S+ k?B/s, \S+ left$")
    screen.shows(r"^5000 bytes \(62 %\) copied, \d\ds, 0 B/s$")
    check("other lines", [line for line in screen.lines()[1:] if line], [])
    screen.send("\x03")
    screen.end()


def ends_its_line(binary, path):
    for columns in (100, 40):
        screen = copy(binary, path, columns=columns)
        screen.shows(r"^5000 bytes|^0 bytes")
        screen.send("\x03")
        check("exit status", screen.end(), -signal.SIGINT)
        check("screen", bool(re.fullmatch(r"\d+ bytes \(\d+ %\) copied, \S+, \S+ k?B/s",
                                          "".join(screen.lines()))), True)
        check("column of the cursor", screen.shown.cursor.x, 0)


def fill(terminal, count=1 << 20):
    """Writes as many bytes as it takes, count at most; how many."""
    written = 0
    os.set_blocking(terminal, False)
    try:
        while written < count:
            written += os.write(terminal, b"x" * min(16, count - written))
    except BlockingIOError:
        pass
    os.set_blocking(terminal, True)
    return written


def ends_on_a_full_terminal(binary, path):
    """The terminal has room for a part of its line."""
    most = fill(pty.openpty()[1])
    for room in range(0, 400, 16):
        reader, terminal = pty.openpty()
        fill(terminal, most - room)
        copy = subprocess.Popen([binary, "pipe", "--progress", path], stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=terminal)
        try:
            check("exit status", copy.wait(LIMIT_S), 0)
        except subprocess.TimeoutExpired:
            copy.kill()
            sys.exit(f"it does not end, with room for {room}")
        os.close(reader)
        os.close(terminal)


def tells_below_its_line(binary, path):
    os.remove("in")
    os.mkfifo("in")
    screen = copy(binary, path)
    with open("in", "wb", buffering=0) as fifo:
        fifo.write(bytes(5000))
        screen.shows("^5000 bytes copied, ")
        os.rmdir(path)
        fifo.write(b"more")
        check("exit status", screen.end(), 1)
    lines = screen.lines()
    check("first line", lines[0][:19], "5000 bytes copied, ")
    check("second line", lines[1], f"ratefs pipe: {path}: the limiter is gone")


globals()[sys.argv[1]](*sys.argv[2:])
