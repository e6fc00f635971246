"""
Scenarios of sharing: any mix of hosts uses what there is, nothing is asked at rest, and the dead
are replaced by their neighbour. How long each takes is measured by tests/bench, rows 23 to 27.
"""
import time

import checker
from host import LOG_LATE_S, RENEWAL_S, SLACK_S, eventually, expect
from scenarios import BACK_S, beside, scenario, servers

HANG_S = 60.0  # for hangs
LEAST_USED = 0.97  # of a rate

# Any mix.

RATE = 500
CALM_S = 20.0  # over which a mix is judged


def effective(host, limiter="l"):
    """Tokens a second that the host is entitled to."""
    return float(host.stat(limiter)["effective_rate"])


def due(fleet, greedy, seconds=3):
    """Returns what the hosts that are not greedy leave, for each that is."""
    others = [host for host in fleet.hosts if host not in greedy]
    return (RATE - (fleet.rate(others, seconds) if others else 0)) / len(greedy)


def has_its_part(fleet, host, greedy):
    return effective(host) >= LEAST_USED * due(fleet, greedy)


def mixed(scene, light, work_us):
    """At default settings: a greedy host, and so many whose reader works for a while."""
    fleet = scene.fleet(light + 1, options=[])
    fleet.limiter(RATE, "auto")
    fleet.load(fleet.hosts[0], files=["l/token"] * 4)
    fleet.load(*fleet.hosts[1:], files=["l/token"], work_us=work_us)
    return fleet


def parts(fleet):
    return ", ".join(f"{host.name} {effective(host):.1f}/s" for host in fleet.hosts)


def used_in_any_mix(scene, light, work_us):
    """
    The entitlement of the greedy host and the tokens of the others come to the rate. The machine
    may be too busy for the greedy readers to take all of it.
    """
    fleet = mixed(scene, light, work_us)
    greedy, others = fleet.hosts[0], fleet.hosts[1:]
    eventually(HANG_S, lambda: has_its_part(fleet, greedy, [greedy])
               and all(fleet.rate([host], 5) > 0 for host in others), lambda: parts(fleet))
    looks, begun = [], time.monotonic()
    while time.monotonic() < begun + CALM_S:
        looks.append(effective(greedy))
        time.sleep(0.5)
    ended = time.monotonic()
    time.sleep(LOG_LATE_S)
    tokens = fleet.granted(others, since=begun, until=ended)
    share = (sum(looks) / len(looks) + tokens / (ended - begun)) / RATE
    expect(share >= LEAST_USED, f"{share:.1%} is used: {parts(fleet)}")


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
    eventually(HANG_S, lambda: has_its_part(fleet, first, [first]), lambda: parts(fleet))
    fleet.load(second, files=["l/token"] * 4)
    eventually(HANG_S, lambda: all(has_its_part(fleet, host, [first, second])
                                   for host in (first, second)), lambda: parts(fleet))
    second.end_readers()
    fleet.load(second, files=["l/token"], work_us=400_000)
    eventually(HANG_S, lambda: has_its_part(fleet, first, [first]), lambda: parts(fleet))


# At rest.

REST_HOSTS, REST_LIMITERS, REST_S = 5, 100, 30.0


def asked(fleet):
    """The reads and listings of each host."""
    return [sum(int(status[name]) for name in ("reads", "lists"))
            for status in (host.status() for host in fleet.hosts)]


@beside
def hosts_that_lack_nothing_read_once_a_renewal_at_most(scene):
    fleet = scene.fleet(REST_HOSTS, options=[])
    names = [f"l{index}" for index in range(REST_LIMITERS)]
    for index, name in enumerate(names):
        fleet.make(name, host=fleet.hosts[index % REST_HOSTS], rate="20/s")
    for host in fleet.hosts:
        eventually(HANG_S, lambda: all(host.there(f"{name}/rate") for name in names),
                   f"{host.name} sees all limiters")
        host.loop(*(f"{name}/token" for name in names), work_us=2_000_000)
    eventually(HANG_S, lambda: all(fleet.rate([host], 5, limiter=names[-1]) > 0
                                   for host in fleet.hosts), "all are used on all hosts")
    reads = []

    def at_rest():
        before, begun = asked(fleet), time.monotonic()
        time.sleep(REST_S)
        after, took = asked(fleet), time.monotonic() - begun
        reads[:] = [end - begin for begin, end in zip(before, after)]
        return max(reads) <= took / RENEWAL_S + 1
    eventually(3 * REST_S, at_rest,
               lambda: f"reads and listings of each host in {REST_S:.0f} s: {reads}")


# The dead, and their neighbours.

# A session lasts as long as the servers allow, so that its end comes long after the neighbour.
NEIGHBOUR = ["right=3s", "session=20s"]
SESSION_S = 20.0


def lost(scene, victims, lose, find=None):
    """
    The hosts @victims are lost while all hosts are greedy. The others have everything long before
    the sessions end, and the lost ones grant nothing by a session that is over.
    """
    fleet = scene.loaded(victims + 2, options=NEIGHBOUR, lease="2s")
    gone, others = fleet.hosts[:victims], fleet.hosts[victims:]
    eventually(HANG_S, lambda: all(fleet.rate([host]) > 10 for host in fleet.hosts), fleet.where)
    sessions = [host.status()["session"] for host in gone]
    begun = time.monotonic()
    for host in gone:
        lose(host)
    took = fleet.await_rate(100, SESSION_S - SLACK_S, others, share=0.9)
    expect(time.monotonic() - begun < SESSION_S, f"the sessions have ended before: {took:.1f} s")
    if not find:
        return
    healed = time.monotonic()
    for host in gone:
        find(host)
    for host, session in zip(gone, sessions):
        grants_nothing_by(fleet, host, session, healed)
    eventually(BACK_S, lambda: all(fleet.rate([host]) > 10 for host in gone),
               lambda: f"they take part again: {fleet.where()}")
    with scene.ensemble.client() as client:
        eventually(HANG_S, lambda: not client.children(f"{fleet.path}/d"),
                   "the notes of rights that were ended are swept")


def grants_nothing_by(fleet, host, session, since):
    """Until the host knows that its @session is over; reads issued @since then."""
    before = since

    def knows():
        nonlocal before
        asking = time.monotonic()
        answer = host.ask("read", "status", limit_s=5)
        if not answer.ok or f"session {session}\n" not in answer.text:
            return True
        before = asking
        return False
    eventually(HANG_S, knows, f"{host.name} finds out that its session is over")
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
