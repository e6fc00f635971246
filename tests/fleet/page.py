"""
The page of `ratefs serve` on a fleet, in a headless Chromium.
"""
import os
import socket
import subprocess
import sys
import threading

from host import HANG_S, eventually, expect
from links import Quiet
from scenarios import beside

sys.path.insert(0, f"{os.path.dirname(os.path.abspath(__file__))}/../companions")
from browser import Browser  # noqa: E402

# The holders of the chosen limiter, as the table of the hosts has them: name and part in per cent.
SHARES = """Object.fromEntries([...document.querySelectorAll("#hosts tbody tr")].map(
    row => [row.cells[0].textContent, parseFloat(row.cells[1].textContent)]))"""
# The newest layers of the chart of shares: its legend names each holder.
LEGEND = """[...document.querySelectorAll(".chart")].find(
    chart => chart.textContent.startsWith("Share of each host")).querySelector("ul").textContent"""


def browse(scene, host):
    """Serves the mount of @host and opens its page, both where no link comes or goes."""
    address, socket = "127.0.0.1:7283", f"{host.folder}/serve.sock"
    quiet = Quiet("page")
    scene.ends.append(quiet.remove)
    server = subprocess.Popen(quiet.within(scene.binary, "serve", "-l", address, "-l", socket,
                                           host.mount), stdin=subprocess.DEVNULL)

    def end():
        server.terminate()
        server.wait(HANG_S)
    scene.ends.append(end)
    browser = Browser(host.folder, quiet.within())
    scene.ends.append(browser.close)
    eventually(lambda: os.path.exists(socket), "it is served")
    browser.open(f"http://{address}/")
    return browser


@beside
def the_page_shows_the_share_of_a_killed_host_go_to_the_others(scene):
    fleet = scene.loaded(3)
    browser = browse(scene, fleet.hosts[0])

    def shares(wanted):
        """The parts of those hosts, which have all of the limiter between them."""
        def are_shown():
            parts = [browser.value(SHARES).get(name, 0) for name in wanted]
            return all(parts) and sum(parts) >= 99
        eventually(are_shown, lambda: f"{wanted} have all of it: {browser.value(SHARES)}")
    browser.until("document.getElementById('state').textContent", "live")
    shares(["h1", "h2", "h3"])
    fleet.hosts[2].kill()
    shares(["h1", "h2"])
    eventually(lambda: "h3" not in browser.value(SHARES), "the host that was killed is not listed")
    expect("h3" in browser.value(LEGEND), "the chart has the share that it had")
    expect(not browser.complaints, f"the console: {browser.complaints}")


def listen(path, limiter, messages):
    """A viewer of @limiter: appends the name of each message that it gets to @messages."""
    viewer = socket.socket(socket.AF_UNIX)
    viewer.connect(path)
    viewer.sendall(f"GET /v1/events/{limiter} HTTP/1.1\r\nHost: x\r\n\r\n".encode())

    def read():
        with viewer.makefile("rb") as lines:
            messages.extend(iter(lambda: next((line[7:].strip().decode() for line in lines
                                               if line.startswith(b"event: ")), None), None))
    threading.Thread(target=read, daemon=True).start()
    return viewer


@beside
def a_look_reads_files_of_4096_partitions_and_the_next_one_those_of_others(scene):
    fleet = scene.fleet(1)
    names = ("a", "b", "c")
    for name in names:
        fleet.limiter(rate=1, count=4096, name=name)
    path = f"{fleet.hosts[0].folder}/serve.sock"
    server = subprocess.Popen((scene.binary, "serve", "-l", path, fleet.hosts[0].mount),
                              stdin=subprocess.DEVNULL)
    scene.ends.append(lambda: (server.terminate(), server.wait(HANG_S)))
    eventually(lambda: os.path.exists(path), "it is served")
    told = {name: [] for name in names}
    viewers = [listen(path, name, told[name]) for name in names]
    scene.ends.append(lambda: [viewer.close() for viewer in viewers])
    eventually(lambda: all(messages.count("holders") >= 3 for messages in told.values()),
               lambda: f"each is told of its holders three times: {told}")
    for messages in told.values():
        # A look is a message of changes, or of all where many were missed; one of three has holders
        # of this limiter.
        between = "".join(name[0] for name in messages).split("h")[1:-1]
        expect(all(len(one) >= 2 for one in between), f"in turn: {messages}")
