"""
Scenarios of order over hosts: siblings have what their weights, minima and classes say, whatever
hosts their readers are on.

Nothing here is held to a time: a busy machine delays readers and hosts alike. A wait is counted in
tokens that the others were granted meanwhile. Parts are looked at until they are as they should be,
since for some seconds a machine may keep a host from granting what it is entitled to; hosts that
divide otherwise never come to them.
"""
import statistics

import checker
from host import eventually
from scenarios import beside, scenario

WITHIN = 0.05  # of a part
LOOK_S = 6.0   # over which parts are looked at


def family(scene, hosts, rate, children):
    fleet = scene.fleet(hosts, options=[])
    fleet.limiter(rate, "auto")
    for name in children:
        fleet.make(f"l/{name}", rate="max")
    for host in fleet.hosts:
        eventually(lambda: all(host.there(f"l/{name}/token") for name in children),
                   f"{host.name} sees the children")
    return fleet


def part(fleet, name):
    """The part of all tokens of late that was granted in that child."""
    tokens = fleet.granted(seconds=LOOK_S)
    return fleet.granted(seconds=LOOK_S, limiter=f"l/{name}") / tokens if tokens else 0


def come_to(fleet, parts):
    """The children come to these parts."""
    eventually(lambda: all(abs(part(fleet, name) - wanted) <= WITHIN * wanted
                           for name, wanted in parts.items()),
               lambda: "; ".join(f"{name} has {part(fleet, name):.1%} of {wanted:.1%}"
                                 for name, wanted in parts.items()))


# Waits.

BATCH = 500
REQUESTS = 30
PASSED, PASSED_MOST = 2, 25  # tokens: the median, and the most, where a machine stands still
WAITED_S = 150.0             # for hangs


def passed(fleet, host, count):
    """
    For each of the last @count tokens that readers of l/online on @host had: how many the batch was
    granted between their asking and their getting it.
    """
    grants = fleet.grants()
    others = [grant.returned for grant in grants if checker.belongs(grant.file, "l/batch")]
    online = [grant for grant in grants
              if grant.host == host.name and checker.belongs(grant.file, "l/online")]
    return [sum(grant.issued < returned < grant.returned for returned in others)
            for grant in online[-count:]]


def asked_in_turn(fleet, host):
    """So many requests from now on, of which hardly one lets the batch pass."""
    begun = len(passed(fleet, host, 10**9))

    def asked():
        return len(passed(fleet, host, 10**9)) - begun
    eventually(lambda: asked() >= REQUESTS
               and statistics.median(passed(fleet, host, REQUESTS)) <= PASSED
               and max(passed(fleet, host, REQUESTS)) <= PASSED_MOST,
               lambda: f"{asked()} requests, the last ones behind {passed(fleet, host, REQUESTS)}",
               WAITED_S)


@scenario(beside=True, limit_s=4 * WAITED_S)
def an_online_reader_hardly_waits_for_a_batch_of_500_on_another_host(scene):
    """By class, by min, and by weight where it wants less than its part: 2 tokens at most."""
    fleet = family(scene, 2, 10, ("batch", "online"))
    batch, online = fleet.hosts
    fleet.load(batch, files=["l/batch/token"] * BATCH)
    eventually(lambda: fleet.rate(limiter="l/batch") > 0, "the batch has begun")
    fleet.load(online, files=["l/online/token"], work_us=1_000_000)
    for setting in ("priority=1\nmin=none\n", "priority=0\nmin=2/s\n", "priority=0\nmin=none\n"):
        batch.write("l/online/config", setting)
        asked_in_turn(fleet, online)


# Parts.

RATE = 100


@scenario(beside=True, limit_s=600)
def children_flooded_on_different_hosts_have_what_their_settings_say(scene):
    """Readers are no share: one child has ten times as many as the other."""
    fleet = family(scene, 3, RATE, ("a", "b"))
    first, second, third = fleet.hosts
    fleet.load(first, files=["l/a/token"] * 50)
    fleet.load(second, files=["l/b/token"] * 5)
    come_to(fleet, {"a": 0.5, "b": 0.5})
    first.write("l/b/weight", "300")
    come_to(fleet, {"a": 0.25, "b": 0.75})
    # Hosts are no share, either.
    fleet.load(third, files=["l/a/token"] * 5)
    eventually(lambda: fleet.rate([third], LOOK_S) > 0, "the third host has some")
    come_to(fleet, {"a": 0.25, "b": 0.75})
    second.write("l/b/weight", "100")
    come_to(fleet, {"a": 0.5, "b": 0.5})
    third.write("l/b/priority", "1")
    eventually(lambda: part(fleet, "b") >= 1 - WITHIN, lambda: f"b has {part(fleet, 'b'):.1%}")
    first.write("l/a/min", "20/s")
    come_to(fleet, {"a": 0.2, "b": 0.8})


@beside
def a_child_on_two_hosts_and_its_sibling_on_one_of_them_have_half_each(scene):
    fleet = family(scene, 2, RATE, ("a", "b"))
    first, second = fleet.hosts
    fleet.load(first, files=["l/a/token"] * 5 + ["l/b/token"] * 5)
    fleet.load(second, files=["l/a/token"] * 5)
    come_to(fleet, {"a": 0.5, "b": 0.5})
    eventually(lambda: fleet.entitled() >= (1 - WITHIN) * RATE,
               lambda: f"{fleet.entitled():.1f}/s are granted")
