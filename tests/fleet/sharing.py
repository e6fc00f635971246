"""
Scenarios of sharing: any mix of hosts uses what there is, nothing is asked at rest, and the dead
are replaced by their neighbour. How long each takes is measured by tests/bench, rows 23 to 27.
"""
import contextlib
import re
import time

import checker
import zk
from host import LOG_LATE_S, RENEWAL_S, alive, eventually, expect
from scenarios import beside, scenario, servers

LEAST_USED = 0.97  # of a rate

# Any mix.

RATE = 500
CALM_S = 20.0  # over which a mix is judged
MIXED_S = 180.0  # for hangs


def due(fleet, greedy, seconds=3):
    """Returns what the hosts that are not greedy leave, for each that is."""
    others = [host for host in fleet.hosts if host not in greedy]
    return (RATE - (fleet.rate(others, seconds) if others else 0)) / len(greedy)


def has_its_part(fleet, host, greedy):
    return fleet.entitled([host]) >= LEAST_USED * due(fleet, greedy)


def mixed(scene, light, work_us):
    """At default settings: a greedy host, and so many whose reader works for a while."""
    fleet = scene.fleet(light + 1, options=[])
    fleet.limiter(RATE, "auto")
    fleet.load(fleet.hosts[0], files=["l/token"] * 4)
    fleet.load(*fleet.hosts[1:], files=["l/token"], work_us=work_us)
    return fleet


def parts(fleet):
    return ", ".join(f"{host.name} {fleet.entitled([host]):.1f}/s" for host in fleet.hosts)


def used_in_any_mix(scene, light, work_us):
    """
    The entitlement of the greedy host and the tokens of the others come to the rate, as soon as the
    others want the same for a while. The machine may be too busy for the greedy readers to take all
    of it.
    """
    fleet = mixed(scene, light, work_us)
    greedy, others = fleet.hosts[0], fleet.hosts[1:]
    eventually(lambda: has_its_part(fleet, greedy, [greedy])
               and all(fleet.rate([host], 5) > 0 for host in others), lambda: parts(fleet))
    shares = []

    def used():
        begun = time.monotonic()
        entitled = fleet.entitled_in(CALM_S, [greedy])
        ended = time.monotonic()
        time.sleep(LOG_LATE_S)
        tokens = fleet.granted(others, since=begun, until=ended)
        shares.append((entitled + tokens / (ended - begun)) / RATE)
        return shares[-1] >= LEAST_USED
    eventually(used, lambda: f"{[f'{share:.1%}' for share in shares]} is used: {parts(fleet)}",
               MIXED_S)


@beside
def six_hosts_of_which_one_is_greedy_use_what_there_is(scene):
    used_in_any_mix(scene, 5, 400_000)


@beside
def eleven_hosts_of_which_one_is_greedy_use_what_there_is(scene):
    used_in_any_mix(scene, 10, 133_000)


@beside
def a_light_host_that_turns_greedy_gets_an_equal_part(scene):
    fleet = mixed(scene, 5, 400_000)
    first, second = fleet.hosts[:2]
    eventually(lambda: has_its_part(fleet, first, [first]), lambda: parts(fleet))
    fleet.load(second, files=["l/token"] * 4)
    eventually(lambda: all(has_its_part(fleet, host, [first, second])
                                   for host in (first, second)), lambda: parts(fleet))
    second.end_readers()
    fleet.load(second, files=["l/token"], work_us=400_000)
    eventually(lambda: has_its_part(fleet, first, [first]), lambda: parts(fleet))


WORKER_US, WAITED_MOST, WAITED_S = 30_000, 0.3, 15.0
# A host that wants more in vain, by chance, does so again after 30, 60 and 120 s, see appetite.h.
PROBED_S = 400.0


def waited(host, seconds):
    """The part of the next @seconds in which readers of the host wait for tokens."""
    before, begun = float(host.stat()["delayed_seconds"]), time.monotonic()
    time.sleep(seconds)
    return (float(host.stat()["delayed_seconds"]) - before) / (time.monotonic() - begun)


@scenario(beside=True, limit_s=PROBED_S + 200)
def a_worker_that_comes_when_others_are_greedy_hardly_waits(scene):
    """Or for the machine alone: its host may grant more than a worker can ask for."""
    fleet = scene.fleet(6, options=[])
    fleet.limiter(RATE, "auto")
    greedy, worker = fleet.hosts[:4], fleet.hosts[5]
    fleet.load(*greedy, files=["l/token"] * 4)
    eventually(lambda: all(fleet.entitled([host]) > 0.8 * RATE / len(greedy) for host in greedy),
               lambda: parts(fleet))
    fleet.load(worker, files=["l/token"], work_us=WORKER_US)
    eventually(lambda: waited(worker, WAITED_S) <= WAITED_MOST
               or fleet.entitled([worker]) >= 1e6 / WORKER_US,
               lambda: f"{waited(worker, WAITED_S):.0%} of the time is waited: {parts(fleet)}",
               PROBED_S)


# At rest.

REST_HOSTS, REST_LIMITERS, REST_S, LOOK_S = 5, 100, 30.0, 5.0
REST_LIMIT_S = 300.0  # for hangs; where a machine is busy it takes long until nothing changes


def asked(fleet):
    """When, and the reads and listings of each host until then."""
    statuses = [host.status() for host in fleet.hosts]
    return time.monotonic(), [int(status["reads"]) + int(status["lists"]) for status in statuses]


def asked_at_rest(looks):
    """The reads and listings of each host in the latest REST_S, and how many there may be."""
    then, before = next(look for look in reversed(looks) if look[0] <= looks[-1][0] - REST_S)
    now, after = looks[-1]
    return ([end - begin for begin, end in zip(before, after)], (now - then) / RENEWAL_S + 1)


@scenario(beside=True, limit_s=REST_LIMIT_S + 60)
def hosts_that_lack_nothing_read_once_a_renewal_at_most(scene):
    fleet = scene.fleet(REST_HOSTS, options=[])
    names = [f"l{index}" for index in range(REST_LIMITERS)]
    for index, name in enumerate(names):
        fleet.make(name, host=fleet.hosts[index % REST_HOSTS], rate="20/s")
    for host in fleet.hosts:
        eventually(lambda: all(host.there(f"{name}/rate") for name in names),
                   f"{host.name} sees all limiters")
        host.loop(*(f"{name}/token" for name in names), work_us=2_000_000)
    eventually(lambda: all(fleet.rate([host], 5, limiter=names[-1]) > 0
                                   for host in fleet.hosts), "all are used on all hosts")
    looks, rested = [asked(fleet)], set()

    def at_rest():
        """Each host was, if not all at the same time."""
        time.sleep(LOOK_S)
        looks.append(asked(fleet))
        if looks[-1][0] - looks[0][0] < REST_S:
            return False
        reads, most = asked_at_rest(looks)
        rested.update(host.name for host, read in zip(fleet.hosts, reads) if read <= most)
        return len(rested) == len(fleet.hosts)
    eventually(at_rest, lambda: "reads and listings of each host in {}, of {:.0f}; {} were at rest"
               .format(*asked_at_rest(looks), rested), REST_LIMIT_S)


# The dead, and their neighbours.

# A session lasts as long as the servers allow, so that its end comes long after the neighbour.
NEIGHBOUR = ["right=3s", "session=20s"]


def await_ends(fleet, hosts):
    """
    A neighbour notes in /d that a host's right is over, in the transaction that deletes the host's
    node. Where the session ends before that, the node is gone and no note is made.
    """
    names = {re.findall(r"joined as \S+ \((\w+)\)", host.said())[-1] for host in hosts}
    seen = set()

    def ended():
        seen.update(name.partition("+")[0] for name in client.children(f"{fleet.path}/d"))
        return names <= seen
    with fleet.ensemble.client() as client:
        eventually(ended, lambda: f"a neighbour ends the rights of {names}, and of {seen}")


def lost(scene, victims, lose, find=None):
    """
    The hosts @victims are lost while all hosts are greedy. The others have everything, since the
    rights of these were ended before their sessions, and the lost ones grant nothing by a session
    that is over.
    """
    fleet = scene.loaded(victims + 2, options=NEIGHBOUR, lease="2s")
    gone, others = fleet.hosts[:victims], fleet.hosts[victims:]
    eventually(lambda: all(fleet.rate([host]) > 10 for host in fleet.hosts), fleet.where)
    sessions = [host.status()["session"] for host in gone]
    for host in gone:
        lose(host)
    await_ends(fleet, gone)
    fleet.await_rate(100, others, share=0.9)
    if not find:
        return
    healed = time.monotonic()
    for host in gone:
        find(host)
    for host, session in zip(gone, sessions):
        grants_nothing_by(fleet, host, session, healed)
    eventually(lambda: all(fleet.rate([host]) > 10 for host in gone),
               lambda: f"they take part again: {fleet.where()}")


def grants_nothing_by(fleet, host, session, since):
    """Until the host knows that its @session is over; reads issued @since then."""
    before = since

    def knows():
        nonlocal before
        asking = time.monotonic()
        answer = host.ask("read", "status")
        if not answer.ok or f"session {session}\n" not in answer.text:
            return True
        before = asking
        return False
    eventually(knows, f"{host.name} finds out that its session is over")
    time.sleep(LOG_LATE_S)
    early = [grant for grant in fleet.grants() if grant.host == host.name
             and grant.issued > since * checker.SECOND and grant.returned < before * checker.SECOND]
    expect(not early, f"{host.name} granted {len(early)} tokens by a session that was over")


@beside
def the_share_of_a_killed_host_is_granted_elsewhere_before_its_session_ends(scene):
    lost(scene, 1, lambda host: host.kill())


@beside
def the_shares_of_two_neighbours_killed_at_once_are_granted_elsewhere(scene):
    lost(scene, 2, lambda host: host.kill())


@beside
def a_frozen_host_is_replaced_and_grants_nothing_before_it_has_found_out(scene):
    lost(scene, 1, lambda host: host.freeze(), lambda host: host.thaw())


@beside
def two_hosts_frozen_at_once_are_replaced_and_grant_nothing_before_they_have_found_out(scene):
    lost(scene, 2, lambda host: host.freeze(), lambda host: host.thaw())


def lost_by_a_cut(scene, **ways):
    lost(scene, 1, lambda host: host.place.cut(*servers(scene), **ways),
         lambda host: host.place.heal())


@beside
def a_host_cut_off_is_replaced_and_grants_nothing_before_it_has_found_out(scene):
    lost_by_a_cut(scene)


@beside
def a_host_whose_requests_are_lost_is_replaced_before_its_session_ends(scene):
    lost_by_a_cut(scene, back=False)


@beside
def a_host_whose_answers_are_lost_is_replaced_before_its_session_ends(scene):
    lost_by_a_cut(scene, out=False)


@beside
def hosts_get_over_the_deletion_of_the_notes_that_a_right_is_over(scene):
    fleet = scene.loaded(3, options=NEIGHBOUR)
    fleet.hosts[0].kill()
    over = f"{fleet.path}/d"
    with scene.ensemble.client() as client:
        eventually(lambda: client.children(over), "a neighbour ends its right")
        for name in client.children(over):
            with contextlib.suppress(zk.Refused):
                client.delete(f"{over}/{name}")
    fleet.await_rate(100, fleet.hosts[1:])


# A fleet of the layout before.

OWNER, HID = "owner=0 0 755\nsaved=1\nsettings:\n", "5m7rop3vithpf"
OLD_NODES = {
    "": "", "/c": "", "/f": "", "/h": "", "/l": "", "/w": "", "/l/1": "", "/w/1": "", "/l/2": "",
    "/w/2": "", "/v": "ratefs 3\n",
    "/g": "renewal=1250ms\nright=5s\nquarantine=5300ms\nsession=3s\nlast=2\nrecent=1:1 2:1 6:2\n",
    "/c/1": f"name=l\nparent=0\ngeneration=5\nwriter={HID}\n{OWNER}rate=100/s\nburst=1\n"
            "partitions.count=4\npartitions.lease=3s\nkey_burst=1\n",
    "/c/2": f"name=below\nparent=1\ngeneration=1\nwriter={HID}\n{OWNER}rate=max\nburst=1\n"
            "partitions.count=auto\nkey_burst=1\n",
    "/f/1": "", "/f/1/2": "1 0.000010700", "/f/1/3": "", "/f/1/17": "", "/f/2": "", "/f/2/0": ""}
OLD_HOSTS = {f"/h/{HID}": "name=older\nweight=1\nheld=2\n", "/l/1/0": HID, "/l/1/1": HID}


def contents(client, fleet):
    return {node: client.get(node)[0] for node in client.tree(fleet.path)}


@beside
def a_fleet_of_the_layout_before_is_refused_while_it_is_mounted_and_then_turned_over(scene):
    fleet = scene.fleet()
    host = fleet.host(start=False)
    with scene.ensemble.client(session_s=20) as older:
        for path, text in (OLD_NODES | OLD_HOSTS).items():
            older.create(fleet.path + path, text.encode(), ephemeral=path in OLD_HOSTS)
        before = contents(older, fleet)
        host.launch()
        # A session is kept by what is asked.
        eventually(lambda: older.exists(f"{fleet.path}/h/{HID}") and not alive(host.daemon.pid),
                   "the new host is refused")
        status = host.refused()
        expect(status == 1 and "mounted whose layout is the version before" in host.said(),
               f"exit status {status}: {host.said()[-300:]}")
        expect(contents(older, fleet) == before, "it has changed something all the same")
    host.start()
    for file, text in (("rate", "100/s"), ("partitions/count", "4"), ("below/rate", "max")):
        expect(host.read(f"l/{file}") == text, f"{file}: {host.read(f'l/{file}')}")
    fleet.bounds["l"] = checker.Bound(100, 4)
    fleet.load()
    fleet.await_rate(100)

    def swept():
        with scene.ensemble.client() as client:
            return not any(client.exists(f"{fleet.path}/{name}") for name in "fl")
    eventually(swept, "the nodes of the layout before are gone")
