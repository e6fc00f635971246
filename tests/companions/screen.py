"""
screen.py SCENARIO BINARY PATH: a companion on a pseudo-terminal, driven as by a person; fails with
what was on it.
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

LIMIT_S = 20


class Screen:
    """A program with a terminal of its own, which is its controlling one."""

    def __init__(self, *arguments, rows=24, columns=100):
        self.text = ""
        self.child, self.terminal = pty.fork()
        if not self.child:
            os.environ["LC_ALL"] = "C.UTF-8"
            self.terminal = 0
            self.resize(rows, columns)
            os.execv(arguments[0], arguments)

    def resize(self, rows, columns):
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
        return bool(piece)

    def expect(self, regex):
        """Waits until this comes on the screen; earlier output is forgotten."""
        until = time.monotonic() + LIMIT_S
        goes_on = True
        while not (found := re.search(regex, self.text)):
            if not goes_on or time.monotonic() > until:
                sys.exit(f"no {regex!r} on the screen: {self.text!r}")
            goes_on = self.read(0.1)
        self.text = self.text[found.end():]
        return found

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


def top(binary, path, *options, **size):
    screen = Screen(binary, "top", *options, path, **size)
    screen.expect(ENTER)
    screen.expect("GRANTED/s")
    return screen


def expect_order(screen, first, second):
    """A whole screen with the limiters in this order."""
    screen.expect(rf"(?s)GRANTED/s[^\n]*\n[^\n]* {first}\x1b\[K\r?\n[^\n]* {second}\x1b\[K\x1b\[J")


def quits(binary, path):
    screen = top(binary, path)
    screen.send("q")
    screen.expect(LEAVE)
    check("exit status", screen.end(), 0)


def restores_the_terminal(binary, path):
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    child = os.fork()
    if not child:
        os.login_tty(slave) if hasattr(os, "login_tty") else (
            os.setsid(), fcntl.ioctl(slave, termios.TIOCSCTTY, 0),
            [os.dup2(slave, fd) for fd in range(3)])
        os.execv(binary, [binary, "top", path])
    text = b""
    while b"GRANTED" not in text:
        text += os.read(master, 65536)
    check("echo while it runs", termios.tcgetattr(slave)[3] & termios.ECHO, 0)
    os.write(master, b"q")
    check("status", os.waitpid(child, 0)[1], 0)
    check("terminal", termios.tcgetattr(slave), before)


def refreshes(binary, path):
    screen = top(binary, path, "-d", "100ms")
    for _ in range(5):
        screen.expect("GRANTED/s")
    screen.send("q")
    check("exit status", screen.end(), 0)


def counts_its_tables(binary, path):
    screen = top(binary, path, "-d", "100ms", "-n", "3")
    screen.expect(LEAVE)
    check("exit status", screen.end(), 0)


def sorts_by_keys(binary, path):
    screen = top(binary, path, "-d", "1h")
    for key, first, second in (("n", "a", "b"), ("n", "b", "a"), ("r", "b", "a"),
                               ("r", "a", "b"), ("w", "b", "a")):
        screen.send(key)
        expect_order(screen, first, second)
    screen.send("q")
    check("exit status", screen.end(), 0)


def has_two_tables(binary, path):
    screen = top(binary, path, "-d", "1h")
    screen.send("\t")
    screen.expect("HOLDER +LIMITER")
    screen.expect("0-19")
    screen.send("\t")
    screen.expect("GRANTED/s")
    screen.send("q")
    check("exit status", screen.end(), 0)


def scrolls(binary, path):
    screen = top(binary, path, "-d", "1h", "-s", "limiter")
    screen.send("x")
    expect_order(screen, "a", "b")
    for down, up in (("j", "k"), ("\x1b[B", "\x1b[A"), ("\x1b[6~", "\x1b[5~")):
        screen.send(down)
        screen.expect(r"GRANTED/s[^\n]*\n[^\n]* b(\x1b\[K)?\x1b\[J")
        screen.send(up)
        screen.expect(r"GRANTED/s[^\n]*\n[^\n]* a\x1b\[K")
    screen.send("q")
    check("exit status", screen.end(), 0)


def fits_the_screen(binary, path):
    screen = top(binary, path, "-d", "1h", rows=24, columns=100)
    screen.text = ""
    screen.resize(5, 30)
    found = screen.expect(r"(?s)\x1b\[H(.*?)\x1b\[J")
    lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", found.group(1)).split("\n")
    check("lines", len(lines), 5)
    if max(len(line.rstrip("\r")) for line in lines) > 30:
        sys.exit(f"wider than the screen: {lines}")
    screen.send("q")
    check("exit status", screen.end(), 0)


def ends_on_signals(binary, path):
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        screen = top(binary, path)
        os.kill(screen.child, number)
        screen.expect(LEAVE)
        check("end", screen.end(), -number)
    screen = top(binary, path)
    screen.send("\x03")
    screen.expect(LEAVE)
    check("end", screen.end(), -signal.SIGINT)


def stops_and_goes_on(binary, path):
    screen = top(binary, path, "-d", "1h")
    screen.send("\x1a")
    screen.expect(LEAVE)
    check("stopped", os.WIFSTOPPED(os.waitpid(screen.child, os.WUNTRACED)[1]), True)
    os.kill(screen.child, signal.SIGCONT)
    screen.expect(ENTER)
    screen.expect("GRANTED/s")
    screen.send("q")
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
    screen.expect("\rrecording fake: 2 of 3600 s, Ctrl-C dra\r")
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


globals()[sys.argv[1]](*sys.argv[2:])
