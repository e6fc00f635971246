"""
Scenarios of sharing: the dead are replaced by their neighbour. How long that takes is measured by
tests/bench, row 25.
"""
import contextlib
import time

import checker
import zk
from host import LOG_LATE_S, REPLACED_S, SLACK_S, eventually, expect
from scenarios import BACK_S, beside, servers

HANG_S = 60.0  # for hangs

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


@beside
def hosts_get_over_the_deletion_of_the_notes_that_a_right_is_over(scene):
    fleet = scene.loaded(3, options=NEIGHBOUR)
    fleet.hosts[0].kill()
    over = f"{fleet.path}/d"
    with scene.ensemble.client() as client:
        eventually(20, lambda: client.children(over), "a neighbour ends its right")
        for name in client.children(over):
            with contextlib.suppress(zk.Refused):
                client.delete(f"{over}/{name}")
    fleet.await_rate(100, REPLACED_S, fleet.hosts[1:])
