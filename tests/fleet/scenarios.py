"""
Scenarios that a fleet has to get through, a function each; its name is the sentence that is tested.
Those marked `beside` leave the servers alone and run beside one another, those marked `alone` have
them to themselves.
"""
import base64
import collections
import concurrent.futures
import contextlib
import errno
import hashlib
import os
import random
import re
import resource
import select
import signal
import subprocess
import threading
import time

import checker
import deaths
import zk
from ensemble import Ensemble
from host import (DEFAULT_RIGHT_S, Failed, Fleet, HANG_S, RENEWAL_S, RIGHT_S, SESSION_S, TICK_S,
                  eventually, expect, gone, quarantine_s)
from links import CENTRE, NOBODY, Proxy, command

SCENARIOS = []
# A write waits for the servers for 2 s, and a read for no server. A busy machine can make some
# answers as late as it likes, so the soonest one is judged.
ANSWER_READ_S, ANSWER_WRITE_S = 1.5, 4.5
# Of hosts that are to keep what they hold, however long a machine takes for what they do.
KEPT_S = 20.0
KEPT = [f"right={KEPT_S:g}s", f"session={KEPT_S:g}s"]
CHURN_S = int(os.environ.get("FLEET_CHURN_S", 25))


def scenario(beside, limit_s=400):
    def mark(function):
        SCENARIOS.append((function, beside, limit_s))
        return function
    return mark


def beside(function):
    return scenario(True)(function)


def alone(function):
    return scenario(False)(function)


class Scene:
    """The parts of one scenario, and the end of it."""

    def __init__(self, folder, binary, client_program, ensemble):
        self.folder, self.binary = folder, binary
        self.client_program, self.ensemble = client_program, ensemble
        self.fleets, self.ends = [], []

    def fleet(self, hosts=0, ensemble=None, **options):
        fleet = Fleet(self.folder, self.binary, self.client_program, ensemble or self.ensemble,
                      **options)
        self.fleets.append(fleet)
        for _ in range(hosts):
            fleet.host()
        return fleet

    def loaded(self, hosts=3, rate=100, count=10, ensemble=None, options=None, **limiter):
        """A fleet under greedy load that uses its whole capacity."""
        fleet = self.fleet(hosts, ensemble, options=options)
        fleet.limiter(rate, count, **limiter)
        fleet.load()
        fleet.await_rate(rate)
        return fleet

    def proxy(self, server):
        proxy = Proxy(server.address)
        self.ends.append(proxy.close)
        return proxy

    def finish(self):
        """
        All that runs ends cleanly, no server died unasked, and no more was granted than may be.
        """
        for fleet in self.fleets:
            for host in fleet.hosts:
                host.end_readers()
            for host in fleet.hosts:
                if host.daemon:
                    expect(host.running(),
                           f"{host.name} ended by itself, status {host.daemon.poll()}: "
                           f"{host.said()[-400:]}")
                    host.stop()
            faults = [f"{host.name}: {fault}" for host in fleet.hosts
                      for fault in host.watch.faults()]
            expect(not faults, "\n".join(faults))
            fleet.check()

    def remove(self):
        for fleet in self.fleets:
            fleet.remove()
        for end in self.ends:
            with contextlib.suppress(Exception):
                end()


def servers(scene):
    return [server.place for server in scene.ensemble]


def stopped_at(fleet, host, cut, right_s=RIGHT_S):
    """No read that @host issued after its right must have ended was granted."""
    late = [g for g in fleet.grants() if g.host == host.name
            and g.issued > (cut + right_s) * checker.SECOND + 10_000_000]
    expect(not late,
           f"{host.name} granted {len(late)} tokens when it had been cut off for {right_s:g} s" +
           (f", the last {late[-1].issued / checker.SECOND - cut:.3f} s after" if late else ""))


# The checker, and the daemons' own bound.

@beside
def two_daemons_that_know_nothing_of_each_other_are_found_out(scene):
    fleet = scene.fleet(options=[])
    for name in ("h1", "h2"):
        host = fleet.host(name, source="local")
        host.mkdir("l")
        host.write("l/rate", "50/s")
    fleet.bounds["l"] = checker.Bound(50, 20)
    fleet.load()
    eventually(fleet.violations, "the checker finds that the rate is exceeded")
    fleet.bounds["l"] = checker.Bound(100, 2)


@beside
def sixteen_readers_of_one_daemon_raise_no_alarm(scene):
    fleet = scene.fleet(options=[])
    host = fleet.host(source="local")
    host.mkdir("l")
    host.write("l/rate", "500/s")
    fleet.bounds["l"] = checker.Bound(500, 1)
    fleet.load(files=["l/token"] * 15 + ["l/partitions/3/token"])
    fleet.await_rate(500, share=0.8)
    time.sleep(5)


@beside
def a_server_that_crashes_fails_its_scenario(scene):
    fleet = scene.fleet(options=[])
    host = fleet.host(source="local")
    victim = int(host.status()["server"])
    os.kill(victim, signal.SIGSEGV)
    eventually(lambda: int(host.status()["server"]) != victim, "the next server goes on")
    try:
        scene.finish()
    except Failed as failure:
        expect(f"a server died, which the test did not ask for: {victim} " in str(failure),
               str(failure))
    else:
        raise Failed("nothing was found out")
    host.watch = deaths.Watch(fleet.library, f"{host.folder}/watched anew")


# Sharing.

@beside
def three_greedy_hosts_share_one_rate(scene):
    fleet = scene.loaded(rate=120, count=12)
    eventually(lambda: all(3 <= len(host.held()) <= 5 for host in fleet.hosts), fleet.where)
    expect(sorted(sum((host.held() for host in fleet.hosts), [])) != [], "partitions are held")


@beside
def a_host_that_wants_little_gets_it_and_the_others_share_the_rest(scene):
    fleet = scene.fleet(3)
    fleet.limiter(120, 12)
    fleet.load(*fleet.hosts[:2])
    fleet.load(fleet.hosts[2], files=["l/token"], work_us=100_000)
    eventually(lambda: fleet.rate([fleet.hosts[2]], 3) > 6
               and all(fleet.rate([h], 3) > 40 for h in fleet.hosts[:2]),
               lambda: str([round(fleet.rate([h], 3)) for h in fleet.hosts]))


@beside
def a_host_of_weight_three_gets_three_times_as_much(scene):
    fleet = scene.fleet()
    fleet.host("h1")
    fleet.host("h2", "weight=3")
    fleet.limiter(200, 20)
    fleet.load()
    eventually(lambda: len(fleet.hosts[1].held()) in (14, 15, 16)
               and len(fleet.hosts[0].held()) in (4, 5, 6), fleet.where)


QUOTA, RESET_S = 300, 40


@beside
def a_quota_that_one_host_is_told_counts_for_all(scene):
    """Within a renewal and a second all keep to it, together; hosts that come later do, too."""
    fleet = scene.loaded(3, rate=60, count="auto")
    fleet.hosts[1].write("l/feedback", f"200 remaining={QUOTA} reset={RESET_S}s")
    told = time.monotonic()
    heard = told + RENEWAL_S + TICK_S
    time.sleep(RESET_S / 2)
    late = fleet.host("late")
    fleet.load(late)
    time.sleep(told + RESET_S - 2 - time.monotonic())
    tokens = fleet.granted(since=heard, until=told + RESET_S - 4)
    least = QUOTA - 60 * (RENEWAL_S + TICK_S) - len(fleet.hosts)
    expect(least * 0.6 <= tokens <= QUOTA, f"{tokens} tokens were granted of {QUOTA}")
    expect(not fleet.granted(since=told + RESET_S - 12, until=told + RESET_S - 4),
           "all of it is granted long before the reset")
    # The reset comes up to 1 % later where others told of it.
    fleet.await_rate(60, what="the rate again after the reset")


@beside
def the_word_max_ends_a_quota_on_all_hosts(scene):
    fleet = scene.loaded(3, rate=60, count=12)
    fleet.hosts[0].write("l/feedback", "429 remaining=0 reset=1h")
    eventually(lambda: fleet.rate(seconds=1) == 0, lambda: f"{fleet.rate(seconds=1)}/s")
    fleet.hosts[2].write("l/feedback", "quota remaining=max")
    fleet.await_rate(60)


@beside
def the_rest_of_a_quota_goes_to_the_host_that_wants_it(scene):
    fleet = scene.fleet(2)
    fleet.limiter(60, "auto")
    fleet.load(fleet.hosts[0])
    fleet.await_rate(60)
    fleet.hosts[0].write("l/feedback", f"200 remaining={QUOTA} reset=2min")
    told = time.monotonic()
    time.sleep(2)
    fleet.hosts[0].end_readers()
    fleet.load(fleet.hosts[1])
    eventually(lambda: fleet.granted(since=told) > 0.8 * QUOTA,
               lambda: f"{fleet.granted(since=told)} tokens of {QUOTA}", 80)
    time.sleep(5)
    tokens = fleet.granted(since=told)
    expect(tokens <= QUOTA + 60 * (RENEWAL_S + TICK_S), f"{tokens} tokens of {QUOTA}")


@beside
def more_hosts_than_partitions_take_turns(scene):
    fleet = scene.fleet(4)
    fleet.limiter(40, 2, lease="2s")
    fleet.load()
    eventually(lambda: {g.host for g in fleet.grants()} == {h.name for h in fleet.hosts},
               lambda: f"only {sorted({g.host for g in fleet.grants()})} have got anything")


@beside
def an_idle_host_is_served_from_its_reserve_while_others_are_greedy(scene):
    fleet = scene.fleet(2)
    fleet.limiter(100, 8, more=[("partitions/reserve", "10/s hosts=2")])
    fleet.bounds["l"].burst += 2
    fleet.load(fleet.hosts[0])
    fleet.await_rate(90)
    eventually(lambda: any([fleet.hosts[1].read(f"l/partitions/r{n}/{file}")
                                        for file in ("holder", "state")] == ["h2", "reserved"]
                                       for n in (0, 1)), "h2 holds a reserve")
    time.sleep(0.5)  # a token of the reserve has accrued
    answer = fleet.hosts[1].ask("read", "l/token")
    delayed = fleet.hosts[1].stat()["delayed_seconds"]
    expect(answer.ok and float(delayed) == 0,
           f"the first token of h2: {answer.result}, it has waited for {delayed} s")


@beside
def takes_of_several_tokens_keep_the_bound(scene):
    fleet = scene.fleet(3)
    fleet.limiter(100, 10, burst=20)
    fleet.takes(15)
    fleet.load(files=["l/take/15", "l/take/2", "l/token"])
    fleet.await_rate(100)
    fleet.hosts[0].kill()
    fleet.await_rate(100, fleet.hosts[1:])


@beside
def a_token_of_a_child_is_a_token_of_its_parent_on_all_hosts(scene):
    fleet = scene.fleet(2)
    fleet.limiter(60, 6)
    fleet.limiter(50, 5, name="l/a")
    fleet.limiter(50, 5, name="l/b")
    fleet.load(files=["l/a/token", "l/b/token"])
    fleet.await_rate(60)


@beside
def no_partition_is_used_by_two_when_partitions_are_read_one_by_one(scene):
    fleet = scene.fleet(3)
    fleet.limiter(200, 4, lease="2s", shares=True)
    fleet.load(files=[f"l/partitions/{n}/token" for n in range(4)])
    fleet.await_rate(200)
    # Two hosts may hold all four, and keep them as long as they read.
    holder = next(host for host in fleet.hosts
                  if host.ask("read", "l/partitions/held").text.strip())
    holder.kill()
    fleet.await_rate(200, [host for host in fleet.hosts if host is not holder])
    expect(checker.handovers(fleet.grants()) > 0, "no partition has changed hands")


STEADY_S = 9.0


@beside
def a_steady_fleet_writes_once_a_renewal_period_and_host(scene):
    """Once shares have settled, which takes long where readers do not get on."""
    fleet, told = scene.loaded(2), ""

    def versions():
        with scene.ensemble.client() as client:
            return {name: client.get(f"{fleet.path}/h/{name}")[1].version
                    for name in client.children(f"{fleet.path}/h")}

    def steady():
        nonlocal told
        before, begun, tokens = versions(), time.monotonic(), fleet.granted(since=0)
        time.sleep(STEADY_S)
        after, took = versions(), time.monotonic() - begun
        tokens = fleet.granted(since=0) - tokens
        writes = sum(after[name] - before[name] for name in after if name in before)
        told = f"{writes} transactions of 2 hosts in {took:.1f} s for {tokens} tokens"
        expect(len(before) == len(after) == 2, f"hosts: {before}, {after}")
        return writes <= 2 * (took / RENEWAL_S * 1.5 + 2)
    eventually(steady, lambda: told)


# Settings.

@beside
def settings_written_on_one_host_reach_the_others(scene):
    fleet = scene.fleet(3)
    fleet.limiter(100, 10)
    for writer, file, value in ((1, "rate", "70/s"), (2, "burst", "4"),
                                (0, "enforcement", "shadow"), (1, "partitions/lease", "20s"),
                                (2, "partitions/count", "5"), (0, "release_interval", "100ms"),
                                (1, "offline", "open")):
        fleet.hosts[writer].write(f"l/{file}", value)
        for host in fleet.hosts:
            eventually(lambda: host.read(f"l/{file}") == value,
                       lambda: f"{host.name}: {file} is {host.read(f'l/{file}')}, not {value}")
    fleet.bounds.clear()


@beside
def a_limiter_made_renamed_protected_and_removed_is_seen_on_other_hosts(scene):
    fleet = scene.fleet(2)
    one, two = fleet.hosts
    one.mkdir("a")
    eventually(lambda: two.there("a/rate"), "h2 sees a")
    two.mkdir("a/b")
    eventually(lambda: one.there("a/b/rate"), "h1 sees a/b")
    one.insist("chmod", "a/b", "3770")
    eventually(lambda: os.stat(f"{two.mount}/a/b").st_mode & 0o7777 == 0o3770,
               "h2 sees the mode of a/b")
    two.mkdir("a/b/of-the-group")
    eventually(lambda: one.there("a/b/of-the-group/rate"), "h1 sees a/b/of-the-group")
    expect(os.stat(f"{one.mount}/a/b/of-the-group").st_mode & 0o2000, "it inherits setgid")
    one.insist("rmdir", "a/b/of-the-group")
    two.insist("rename", "a/b", f"{two.mount}/a/c")
    eventually(lambda: one.there("a/c/rate") and not one.there("a/b"),
               "h1 sees a/c instead of a/b")
    expect(one.ask("rmdir", "a").result == "EBUSY", "rmdir of a limiter with children is EBUSY")
    one.insist("rmdir", "a/c")
    eventually(lambda: not two.there("a/c"), "h2 sees that a/c is gone")
    two.insist("rmdir", "a")
    eventually(lambda: not one.there("a"), "h1 sees that a is gone")


@beside
def a_key_is_held_to_its_rate_over_all_hosts_and_holds_up_no_other(scene):
    fleet = scene.fleet(2)
    rate, key_rate, count = 200, 20, 10
    fleet.limiter(rate, count, more=[("key_rate", f"{key_rate}/s")])
    for key in ("greedy", "small"):
        # The larger of key_burst and the number of partitions, and a token more for each host.
        fleet.bounds[f"l/keys/{key}"] = checker.Bound(key_rate, count + len(fleet.hosts),
                                                      fleet.quarantine_s)
    fleet.load(files=["l/keys/greedy/token"] * 4)
    fleet.load(files=["l/keys/small/token"], work_us=500_000)
    fleet.await_rate(key_rate, limiter="l/keys/greedy", share=0.8)
    eventually(lambda: fleet.rate(seconds=5, limiter="l/keys/small") > 2,
               lambda: f"small has {fleet.rate(seconds=5, limiter='l/keys/small')}/s "
                       "of the 4 it asks for")


@beside
def a_leased_key_has_nine_tenths_of_its_rate_where_it_is_asked_for(scene):
    """On one host, then on all, and when the host that had it was killed."""
    fleet = scene.fleet(3)
    key_rate, count = 50, 10
    fleet.limiter(400, count, more=[("key_rate", f"{key_rate}/s"), ("key_share", "leased")])
    for key in ("one", "all"):
        fleet.bounds[f"l/keys/{key}"] = checker.Bound(key_rate, 1 + len(fleet.hosts),
                                                      fleet.quarantine_s)
    fleet.load(work_us=20_000)
    fleet.load(fleet.hosts[0], files=["l/keys/one/token"] * 2)
    fleet.await_rate(key_rate, limiter="l/keys/one", share=0.88)
    fleet.load(files=["l/keys/all/token"] * 2)
    fleet.await_rate(key_rate, limiter="l/keys/all", share=0.88)
    fleet.hosts[0].kill()
    fleet.load(fleet.hosts[1], files=["l/keys/one/token"] * 2)
    fleet.await_rate(key_rate, hosts=fleet.hosts[1:2], limiter="l/keys/one", share=0.88)


@beside
def no_strict_window_of_a_key_has_more_tokens_whatever_hosts_come_and_go(scene):
    fleet, tokens, window_s = scene.fleet(3), 30, 5
    fleet.limiter(400, "auto", more=[("key_rate", f"{tokens}/{window_s}s,strict")])

    def most():
        return checker.most([g for g in fleet.grants() if checker.belongs(g.file, "l/keys/k")],
                            window_s)

    for host in fleet.hosts:
        fleet.load(host, files=["l/keys/k/token"] * 2)
        fleet.await_rate(0.8 * tokens / window_s, limiter="l/keys/k", share=1)
    fleet.hosts[0].kill()
    fleet.await_rate(0.8 * tokens / window_s, hosts=fleet.hosts[1:], limiter="l/keys/k", share=1)
    expect(most() <= tokens, f"{most()} tokens of a window of {tokens}")


@beside
def units_of_a_key_are_divided_over_hosts_and_come_to_those_that_are_left(scene):
    fleet, takes = scene.fleet(3), 12
    fleet.limiter(400, "auto", more=[("key_rate", f"100/s x={10 * takes}/s:{10 * takes}")])
    # Each host has room for a take of ten, beside its part of the burst.
    fleet.bounds["l/keys/k"] = checker.Bound(takes, takes + 2 * len(fleet.hosts),
                                             fleet.quarantine_s)
    for host in fleet.hosts:
        fleet.load(host, files=["l/keys/k/take/1,x=10"] * 2)
        fleet.await_rate(takes, limiter="l/keys/k", share=0.9)
    fleet.hosts[0].kill()
    fleet.await_rate(takes, hosts=fleet.hosts[1:], limiter="l/keys/k", share=0.9)


@beside
def slots_are_divided_over_the_hosts_and_freed_by_the_death_of_their_holders(scene):
    fleet, slots = scene.fleet(2), 4
    fleet.limiter(100, slots, more=[("concurrency", f"{slots}")])
    holders = []

    def hold(host):
        holders.append(subprocess.Popen(
            ["sh", "-c", 'exec 3< "$0" && echo held && exec sleep 1000',
             f"{host.mount}/l/slot"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE))
        os.set_blocking(holders[-1].stdout.fileno(), False)
        holders[-1].held = False

    def held():
        for holder in holders:
            holder.held = holder.held or bool(holder.stdout.read())
        return sum(holder.held for holder in holders)

    def end(holder):
        holders.remove(holder)
        holder.kill()
        holder.wait()

    def settled(what):
        eventually(lambda: held() == slots, lambda: f"{what}: {held()} of {slots} slots")
        until = time.monotonic() + 2
        while time.monotonic() < until:
            expect(held() <= slots, f"{what}: {held()} of {slots} slots are open")
            time.sleep(0.05)

    scene.ends.append(lambda: [holder.kill() for holder in holders])
    for host in fleet.hosts:
        for _ in range(slots):
            hold(host)
    settled("at first")
    for holder in [holder for holder in holders if holder.held][:2]:
        end(holder)
    settled("after two holders were killed")
    for holder in list(holders):
        end(holder)


@beside
def open_slots_have_different_numbers_and_holders_hear_of_a_loss(scene):
    fleet = scene.fleet(2)
    fleet.limiter(100, 4, more=[("concurrency", "4")])
    one, other = fleet.hosts

    def open_slot(host):
        return os.open(f"{host.mount}/l/slot", os.O_RDONLY)

    def number(slot):
        try:
            return int(os.pread(slot, 16, 0))
        except OSError as error:
            return errno.errorcode[error.errno]

    def await_loss(slot, timeout_ms=None):
        poll = select.poll()
        poll.register(slot, 0)
        return poll.poll(timeout_ms) == [(slot, select.POLLERR)]

    def told_of_loss(slot):
        return await_loss(slot, 0)

    slots = [open_slot(host) for host in (one, one, other, other)]
    asked = [slots[0], *slots[2:]]
    numbers = [number(slot) for slot in asked]
    expect(len(set(numbers)) == 3 and set(numbers) < {0, 1, 2, 3}, f"numbers: {numbers}")
    expect(not any(map(told_of_loss, slots)), "one is lost")
    one.kill_server()
    expect([number(slot) for slot in asked] == numbers, "a successor's are other numbers")
    events = os.open(f"{one.mount}/events", os.O_RDONLY | os.O_NONBLOCK)
    scene.ends.append(lambda: os.close(events))
    waits = concurrent.futures.ThreadPoolExecutor(1).submit(await_loss, slots[0])
    one.freeze()
    others = [open_slot(other) for _ in range(2)]
    expect(sorted(map(number, [*others, *slots[2:]])) == [0, 1, 2, 3], "other numbers")
    one.thaw()
    eventually(lambda: all(map(told_of_loss, slots[:2])), "the loss is not told")
    expect(waits.result(HANG_S), "one who waits for a loss hears of something else")
    expect([number(slot) for slot in slots] == ["ENODEV"] * 2 + numbers[1:],
           f"numbers after a loss: {[number(slot) for slot in slots]}")
    eventually(lambda: b" l 2 slots lost" in os.read(events, 65536), "events say nothing of it")
    # Leaves are the first host's again, and its slots are lost all the same, also to a successor.
    for slot in others:
        os.close(slot)
    eventually(lambda: one.held(), "the first host leases slots again")
    one.kill_server()
    expect([number(slot) for slot in slots[:2]] == ["ENODEV"] * 2, "a successor forgot the loss")
    expect(all(map(told_of_loss, slots[:2])), "a poll does not hear of it")
    # A loss while there is no server is told by the next one, also to those who follow events.
    for slot in slots[:2]:
        os.close(slot)
    last = open_slot(one)
    with one.without_server():
        others = [open_slot(other) for _ in range(2)]
    eventually(lambda: told_of_loss(last), "the loss is not told by a successor")
    expect(number(last) == "ENODEV", f"a slot that was lost has number {number(last)}")
    eventually(lambda: b" l 1 slots lost" in os.read(events, 65536), "events say nothing of it")


@beside
def holders_and_why_name_the_holders_of_slots_on_other_hosts(scene):
    fleet = scene.fleet(3)
    fleet.limiter(100, 2, more=[("concurrency", "2")])
    one, other, third = fleet.hosts

    def opener(host):
        process = subprocess.Popen(["sh", "-c", 'exec 3< "$0" && exec sleep 1000',
                                    f"{host.mount}/l/slot"],
                                   stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        scene.ends.append(process.kill)
        return process

    def named(holder, host):
        return re.search(rf"(?m)^{host.name} {holder.pid} 0 sleep (\d+)$", third.read("l/holders"))

    first = opener(other)
    eventually(lambda: named(first, other), lambda: f"the slot: {third.read('l/holders')}")
    second = opener(one)
    eventually(lambda: named(first, other) and named(second, one),
               lambda: f"both slots: {third.read('l/holders')}")
    opener(third)
    eventually(lambda: f"pid {first.pid} on host {other.name} for " in third.read("l/why"),
               lambda: f"why: {third.read('l/why')}")
    held_s = int(named(first, other)[1])
    other.kill_server()
    eventually(lambda: (found := named(first, other)) and int(found[1]) > held_s + 5,
               lambda: f"the slot of a successor: {third.read('l/holders')}")
    other.kill()
    eventually(lambda: not named(first, other),
               lambda: f"slots of a host that is gone: {third.read('l/holders')}")
    expect(named(second, one), f"a slot that is open: {third.read('l/holders')}")


@beside
def settings_survive_when_every_host_has_left(scene):
    fleet = scene.fleet(2)
    fleet.limiter(30, 3)
    fleet.hosts[0].write("l/offline", "share:3")
    config = fleet.hosts[0].read("l/config")
    fleet.hosts[0].stop()
    fleet.hosts[1].kill()
    for host in fleet.hosts:
        host.start()
        expect(host.read("l/config") == config, f"{host.name}: {host.read('l/config')}")


@beside
def a_rate_lowered_while_a_host_is_cut_off_holds_after_the_quarantine(scene):
    fleet = scene.loaded(3)
    fleet.hosts[0].place.cut(*servers(scene))
    fleet.insist_on_rate(fleet.hosts[1], 20)
    time.sleep(quarantine_s() + SESSION_S)
    fleet.await_rate(20, fleet.hosts[1:])
    expect(fleet.rate(fleet.hosts, 3) < 30,
           f"{fleet.rate(fleet.hosts, 3):.0f}/s where 20/s are allowed")
    fleet.hosts[0].place.heal()
    eventually(lambda: fleet.hosts[0].read("l/rate") == "20/s",
               "the host that was cut off has the new rate")
    fleet.insist_on_rate(fleet.hosts[0], 60)
    fleet.await_rate(60)


@beside
def a_count_changed_while_a_host_is_cut_off_lets_no_partition_be_used_twice(scene):
    fleet = scene.loaded(3)
    fleet.hosts[0].place.cut(*servers(scene))
    time.sleep(1)
    fleet.hosts[1].write("l/partitions/count", "4")
    second = fleet.hosts[2].ask("write", "l/partitions/count", "5")
    expect(second.result in ("OK", "EBUSY"), f"a second change in the quarantine: {second.result}")
    fleet.await_rate(100, fleet.hosts[1:])
    fleet.hosts[0].place.heal()
    eventually(lambda: fleet.rate([fleet.hosts[0]]) > 10,
               "the host that was cut off takes part again")


# Processes.

def names_of_hosts(host):
    return sorted(line.split()[0] for line in host.read("hosts").splitlines()
                  if not line.startswith("#"))


@beside
def the_partitions_of_a_killed_host_are_granted_elsewhere_in_time(scene):
    fleet = scene.loaded(3)
    fleet.hosts[0].kill()
    fleet.await_rate(100, fleet.hosts[1:])
    eventually(lambda: names_of_hosts(fleet.hosts[1]) == ["h2", "h3"],
               "the host that was killed is listed no more")
    fleet.hosts[0].start()
    eventually(lambda: fleet.rate([fleet.hosts[0]]) > 10,
               "the host that was killed takes part again")


@beside
def the_rest_of_a_quota_of_a_killed_host_comes_to_the_others(scene):
    # The session outlasts the quarantine, as by default: a neighbour ends the host.
    fleet = scene.fleet(2, options=["right=3s"])
    one, other = fleet.hosts
    fleet.make("q", rate="1000/year@jan-1")

    def granted(host):
        return int(host.stat("q")["granted"]) if host.there("q") else 0

    one.loop("q/take/5", work_us=20000)
    eventually(lambda: granted(one) >= 400, "400 are used")
    one.end_readers()
    # It goes on, or it would give back what it has.
    one.loop("q/token", work_us=300000)
    time.sleep(2 * RENEWAL_S)
    used = granted(one)
    one.kill()
    other.loop("q/token")
    eventually(lambda: granted(other) + used >= 900, "what it had left is used")
    time.sleep(1)
    expect(granted(other) + used <= 1000, f"{used} and {granted(other)} of 1000 were granted")


@beside
def when_half_the_hosts_die_the_others_use_everything(scene):
    fleet = scene.loaded(4)
    for host in fleet.hosts[:2]:
        host.kill()
    fleet.await_rate(100, fleet.hosts[2:])


@beside
def when_all_hosts_die_at_once_they_start_again(scene):
    fleet = scene.loaded(2)
    for host in fleet.hosts:
        host.kill()
    time.sleep(SESSION_S + TICK_S)
    for host in fleet.hosts:
        host.start()
    # One that finds all taken gets its share when the other gives some up, after their quarantine.
    fleet.await_rate(100)


@beside
def a_host_frozen_for_longer_than_its_right_wakes_up_without_it(scene):
    fleet = scene.loaded(3)
    fleet.hosts[0].freeze()
    fleet.await_rate(100, fleet.hosts[1:])
    time.sleep(1)
    fleet.hosts[0].thaw()
    eventually(lambda: fleet.rate([fleet.hosts[0]]) > 10,
               "the host that was frozen takes part again")


@beside
def pauses_of_any_length_let_no_partition_be_used_twice(scene):
    fleet = scene.loaded(2, count=4, lease="1s")
    source = random.Random()
    for turn in range(7):
        host = fleet.hosts[turn % 2]
        host.freeze()
        time.sleep(source.uniform(0, RIGHT_S + 1))
        host.thaw()
        time.sleep(source.uniform(0, 1))
    fleet.await_rate(100)


@beside
def a_host_whose_other_threads_are_stopped_stops_granting_in_time(scene):
    fleet = scene.loaded(2)
    begun = time.monotonic()
    fleet.hosts[0].freeze_thread(RIGHT_S + SESSION_S)
    stopped = [g for g in fleet.grants() if g.host == "h1"
               and g.issued > (begun + RIGHT_S + 1) * checker.SECOND
               and g.returned < (begun + RIGHT_S + SESSION_S) * checker.SECOND]
    expect(not stopped, f"{len(stopped)} tokens granted after the right had ended")
    eventually(lambda: fleet.rate([fleet.hosts[0]]) > 10, "the host takes part again")


@beside
def a_host_without_a_free_descriptor_waits_for_one(scene):
    fleet = scene.loaded(2)
    host = fleet.hosts[0]
    soft, hard = resource.prlimit(host.server, resource.RLIMIT_NOFILE)
    host.place.cut(*servers(scene))
    time.sleep(2)
    resource.prlimit(host.server, resource.RLIMIT_NOFILE, (4, hard))
    host.place.heal()
    time.sleep(RIGHT_S)
    expect(host.running() and host.ask("read", "status").ok,
           f"{host.name} does not answer: {host.said()[-300:]}")
    resource.prlimit(host.server, resource.RLIMIT_NOFILE, (soft, hard))
    eventually(lambda: fleet.rate([host]) > 10,
               lambda: f"the host takes part again: {fleet.where()}")


def leaves_nothing_leased(fleet):
    """A tile that is leased to a host that has ended is of no use until its right is over."""
    name = re.findall(r"joined as \S+ \((\w+)\)", fleet.hosts[0].said())[-1]
    with fleet.ensemble.client() as client:
        leased = [node for node in below(client, f"{fleet.path}/t") if is_leased(node, name)]
    expect(not leased, f"{name} has left {leased}")
    fleet.await_rate(100, fleet.hosts[1:])


@beside
def a_host_that_is_stopped_gives_its_share_back_at_once(scene):
    fleet = scene.loaded(2)
    fleet.hosts[0].stop()
    leaves_nothing_leased(fleet)
    errors = {failure[4] for failure in fleet.failures() if failure[2] == "h1"}
    expect("ESHUTDOWN" in errors, f"blocked readers got {errors}")


@beside
def a_host_that_is_unmounted_by_force_gives_its_share_back_at_once(scene):
    fleet = scene.loaded(2)
    host = fleet.hosts[0]
    for words in (["-f"], ["-l"]):
        with contextlib.suppress(RuntimeError):
            command("umount", *words, host.mount)
    host.ended()
    leaves_nothing_leased(fleet)


@beside
def two_daemons_with_one_host_name_are_two_hosts(scene):
    fleet = scene.fleet(1)
    twin = fleet.host("twin", start=False)
    twin.called = "h1"
    twin.start()
    fleet.limiter(100, 10)
    fleet.load()
    eventually(lambda: all(fleet.rate([host]) > 20 for host in fleet.hosts), fleet.where)
    fleet.hosts[0].kill()
    fleet.await_rate(100, [twin])


@beside
def a_second_host_with_other_constants_follows_the_fleet(scene):
    fleet = scene.fleet(1)
    fleet.options = ["right=20s", "session=12s"]
    fleet.host()
    fleet.limiter(100, 10)
    fleet.load()
    fleet.await_rate(100)
    fleet.hosts[1].place.cut(*servers(scene))
    cut = time.monotonic()
    time.sleep(RIGHT_S + 3)
    stopped_at(fleet, fleet.hosts[1], cut)


# Servers that are killed, and their successors.

def settled(fleet, each):
    """Returns what hosts hold, so many partitions each, for which no other one competes."""
    eventually(lambda: all(len(host.held()) == each for host in fleet.hosts), fleet.where)
    fleet.hosts[0].write("l/partitions/lease", "1h")
    eventually(lambda: all(host.read("l/partitions/lease") == "1h" for host in fleet.hosts),
               "all know of the lease")
    eventually(lambda: all(len(host.held()) == each for host in fleet.hosts), fleet.where)
    return [host.held() for host in fleet.hosts]


def unharmed(fleet, hosts=None):
    names = {host.name for host in hosts or fleet.hosts}
    failures = [failure for failure in fleet.failures() if failure[2] in names]
    expect(not failures, f"readers got {failures[:5]}")


@beside
def a_server_that_is_killed_at_any_moment_loses_no_lease_and_no_reader_notices(scene):
    fleet = scene.loaded(2, rate=120, count=12, options=KEPT)
    held = settled(fleet, 6)
    sessions = [host.status()["session"] for host in fleet.hosts]
    source = random.Random()
    for _ in range(24):
        time.sleep(source.uniform(0, 0.5))
        source.choice(fleet.hosts).kill_server()
    expect([host.status()["session"] for host in fleet.hosts] == sessions,
           f"sessions were {sessions}: {fleet.where()}")
    expect([host.held() for host in fleet.hosts] == held, f"held was {held}: {fleet.where()}")
    fleet.await_rate(120)
    unharmed(fleet)


@beside
def servers_killed_while_leases_come_and_go_let_no_partition_be_used_twice(scene):
    fleet = scene.loaded(3, rate=120, count=12, lease="1s", shares=True)
    source = random.Random()
    begun = time.monotonic()
    while time.monotonic() < begun + 20:
        host = source.choice(fleet.hosts)
        if host.readers:
            host.end_readers()
        else:
            files = source.choice([("l/token",), ("l/take/3", "l/partitions/5/token")])
            fleet.load(host, files=files)
        time.sleep(source.uniform(0, 0.3))
        source.choice(fleet.hosts).kill_server()
    for host in fleet.hosts:
        host.end_readers()
    fleet.takes(3)
    unharmed(fleet)
    fleet.load()
    fleet.await_rate(120, what="nothing is lost for good")
    expect(len({host.status()["session"] for host in fleet.hosts}) == 3, fleet.where())


@beside
def answers_that_are_lost_when_a_server_is_killed_are_cleared_up_by_the_next(scene):
    fleet = scene.fleet()
    proxy = scene.proxy(scene.ensemble.servers[0])
    host = fleet.host(source=f"zk://{CENTRE}:{proxy.address[1]}{fleet.path}")
    other = fleet.host()
    fleet.limiter(100, 10, lease="1s")
    fleet.load(other)
    fleet.await_rate(100)

    def unsettled():
        states = {host.ask("read", f"l/partitions/{i}/state").text.strip() for i in range(10)}
        return states & {"draining", "in_doubt", "taking"}

    for _ in range(3):
        fleet.load(host)
        eventually(lambda: len(host.held()) > 1, fleet.where)
        host.end_readers()
        # A partition that is not wanted for a second goes back.
        time.sleep(random.uniform(0.5, 1))
        proxy.lose_answers = True
        with contextlib.suppress(Failed):
            eventually(unsettled, "something is given back", 0.5)
        host.kill_server()
        fleet.load(host)
        time.sleep(1)
        host.end_readers()
        proxy.lose_answers = False
        proxy.drop()
    fleet.load(host)
    fleet.await_rate(100, what="nothing is lost for good")
    eventually(lambda: fleet.rate([host]) > 10, "the host takes part again")
    unharmed(fleet)


@beside
def a_change_that_a_killed_server_had_made_is_acknowledged_by_the_next(scene):
    fleet = scene.fleet()
    proxy = scene.proxy(scene.ensemble.servers[0])
    host = fleet.host(source=f"zk://{CENTRE}:{proxy.address[1]}{fleet.path}")
    proxy.delay_s = 0.05  # each way
    with concurrent.futures.ThreadPoolExecutor(1) as asking:
        for words in 10 * (("mkdir", "a"), ("rmdir", "a")):
            answer = asking.submit(host.ask, *words)
            time.sleep(random.uniform(0.1, 0.3))
            host.kill_server()
            result = answer.result().result
            expect(result in ("OK", "ETIMEDOUT"), f"{words[0]}: {result}")
            if result != "OK":
                host.insist(*words, unknown=True)


@beside
def a_limiter_that_another_host_made_meanwhile_is_not_that_of_a_mkdir_asked_again(scene):
    fleet = scene.fleet()
    proxy = scene.proxy(scene.ensemble.servers[0])
    one = fleet.host(source=f"zk://{CENTRE}:{proxy.address[1]}{fleet.path}")
    two = fleet.host()
    two.mkdir("l")
    eventually(lambda: one.there("l/rate"), "h1 sees l")
    results = set()
    with concurrent.futures.ThreadPoolExecutor(1) as asking:
        for lock in range(10):
            proxy.lose_requests = True
            # A mkdir keeps others from looking names up beside it.
            answer = asking.submit(one.ask, "mkdir", f"l/{lock}")
            eventually(lambda: one.status()["readers"] == "1", "the change is asked for")
            two.mkdir(f"l/{lock}")
            proxy.lose_requests = False
            proxy.drop()
            one.kill_server()
            results.add(answer.result().result)
    expect(results <= {"EEXIST", "ETIMEDOUT"} and "EEXIST" in results, f"mkdir: {results}")


@beside
def a_change_of_a_killed_server_is_not_denied_by_the_next_without_a_coordinator(scene):
    fleet = scene.fleet()
    proxy = scene.proxy(scene.ensemble.servers[0])
    one = fleet.host(source=f"zk://{CENTRE}:{proxy.address[1]}{fleet.path}")
    one.mkdir("l")
    proxy.lose_answers = proxy.refuse = True
    with concurrent.futures.ThreadPoolExecutor(1) as asking:
        # A mkdir keeps others from looking names up beside it.
        answer = asking.submit(one.ask, "mkdir", "l/a")
        eventually(lambda: one.status()["readers"] == "1", "the change is asked for")
        one.kill_server()
        result = answer.result().result
        expect(result == "ETIMEDOUT", f"mkdir: {result}")
        expect("read it back" in one.read("last_error"), one.read("last_error"))


@beside
def held_partitions_are_used_by_the_next_server_until_the_right_ends_without_a_coordinator(scene):
    fleet = scene.loaded(2, options=KEPT)
    host = fleet.hosts[0]
    session, held = host.status()["session"], host.held()
    host.place.cut(*servers(scene))
    host.kill_server()
    eventually(lambda: fleet.rate([host], seconds=0.5) > 10, "the next one grants what it may")
    expect(host.held() == held, f"held was {held}: {fleet.where()}")
    host.place.heal()
    eventually(lambda: host.status()["coordinator"] == "ready", fleet.where)
    expect(host.status()["session"] == session, fleet.where())
    host.place.cut(*servers(scene))
    cut = time.monotonic()
    while time.monotonic() < cut + KEPT_S:
        host.kill_server()
        time.sleep(0.2)
    time.sleep(1.5)
    stopped_at(fleet, host, cut, KEPT_S)
    host.place.heal()
    fleet.await_rate(100)
    unharmed(fleet)


@beside
def whose_session_is_over_before_the_next_server_is_a_new_host(scene):
    fleet = scene.loaded(2)
    host, other = fleet.hosts
    before = host.status()["session"]
    with host.without_server():
        fleet.await_rate(100, [other])
    eventually(lambda: fleet.rate([host]) > 10, "it takes part again")
    expect(host.status()["session"] != before, "another session")
    expect(not set(host.held()) & set(other.held()), fleet.where())
    unharmed(fleet)


@beside
def a_server_without_its_leases_and_its_host_node_begins_anew(scene):
    fleet = scene.loaded(2)
    host, other = fleet.hosts
    before = host.status()["session"]
    with scene.ensemble.client() as client, host.without_server():
        for name in client.children(f"{fleet.path}/h"):
            if b"name=h1\n" in client.get(f"{fleet.path}/h/{name}")[0]:
                client.delete(f"{fleet.path}/h/{name}")
    eventually(lambda: fleet.rate([host]) > 10, "it takes part again")
    expect(host.status()["session"] != before, "another session")
    unharmed(fleet)


@beside
def a_reload_costs_a_host_of_a_fleet_nothing(scene):
    fleet = scene.loaded(2, options=KEPT)
    host = fleet.hosts[0]
    held = settled(fleet, 5)
    session = host.status()["session"]
    for _ in range(3):
        command(fleet.binary, "--reload", host.mount)
    expect(host.status()["servers_before"] == "3", host.said()[-300:])
    expect((host.status()["session"], [host.held() for host in fleet.hosts]) == (session, held),
           f"held was {held}: {fleet.where()}")
    unharmed(fleet)


# Links.

OLD = re.compile(r"# as of \d+ s ago: ZooKeeper does not answer\n")


def cut_off(scene, **ways):
    fleet = scene.loaded(3)
    host = fleet.hosts[0]
    events = host.follow("events")
    expect(names_of_hosts(host) == ["h1", "h2", "h3"], host.read("hosts"))
    host.place.cut(*servers(scene), **ways)
    cut = time.monotonic()
    fleet.await_rate(100, fleet.hosts[1:])
    time.sleep(max(0, cut + RIGHT_S + 1 - time.monotonic()))
    stopped_at(fleet, host, cut)
    state = host.status()["coordinator"]
    seen = host.read("hosts")
    expect(OLD.match(seen) and f"\n{host.name} " in seen, f"hosts, cut off: {seen}")
    host.place.heal()
    eventually(lambda: fleet.rate([host]) > 10,
               lambda: f"{host.name} takes part again: {fleet.where()}")
    expect(host.status()["coordinator"] != state, f"status says '{state}', cut off or not")
    eventually(lambda: not OLD.match(host.read("hosts")), lambda: host.read("hosts"))
    with open(events) as file:
        told = file.read()
    for event in ("right lapsed", "degraded: the coordinator is out of reach",
                  "the coordinator is back"):
        expect(f" fleet {event}\n" in told, f"events do not say '{event}': {told[-600:]}")


@beside
def a_host_cut_off_stops_by_itself_and_resumes(scene):
    cut_off(scene)


@beside
def a_host_whose_requests_are_lost_stops_by_itself_and_resumes(scene):
    cut_off(scene, back=False)


@beside
def a_host_whose_answers_are_lost_stops_by_itself_and_resumes(scene):
    cut_off(scene, out=False)


@beside
def a_host_cut_off_grants_its_part_of_the_rate_with_offline_share(scene):
    fleet = scene.loaded(2, more=[("offline", "share:4")])
    host = fleet.hosts[0]
    host.place.cut(*servers(scene))
    fleet.bounds["l"].set(100 + 25, time.monotonic_ns(),
                          time.monotonic_ns())  # as the operator vouches for
    time.sleep(RIGHT_S + 1)
    eventually(lambda: 18 <= fleet.rate([host], 3) <= 27,
               lambda: f"{fleet.rate([host], 3):.0f}/s where a quarter of 100/s is due")
    expect("degraded" in host.read("status"), "status says that it is degraded")
    host.place.heal()
    eventually(lambda: fleet.rate([host]) > 30, "the host has its share again")


@beside
def a_host_cut_off_grants_everything_with_offline_open(scene):
    fleet = scene.loaded(2, more=[("offline", "open")])
    fleet.bounds.clear()
    host = fleet.hosts[0]
    host.place.cut(*servers(scene))
    eventually(lambda: fleet.rate([host]) > 150,
               lambda: f"{fleet.rate([host]):.0f}/s of an open limiter")
    host.place.heal()
    eventually(lambda: fleet.rate([host]) < 110, "the host keeps to the rate again")


@beside
def answers_that_are_lost_at_any_moment_are_cleared_up(scene):
    fleet = scene.fleet()
    proxy = scene.proxy(scene.ensemble.servers[0])
    fleet.host(source=f"zk://{CENTRE}:{proxy.address[1]}{fleet.path}")
    fleet.host()
    fleet.limiter(100, 10, lease="1s")
    fleet.load()
    fleet.await_rate(100)
    for _ in range(6):
        proxy.lose_answers = True
        time.sleep(random.uniform(0.2, 1.5))
        proxy.drop()
        proxy.lose_answers = False
        time.sleep(random.uniform(0.5, 2))
    eventually(lambda: fleet.rate([fleet.hosts[0]]) > 10, "the host takes part again")
    fleet.await_rate(100)


def costs_no_capacity(fleet, seconds, share):
    """The hosts are entitled to @share of 100/s for so long, and the first one to its part."""
    slow, means = fleet.hosts[0], []

    def holds():
        means.append(fleet.entitled_in(seconds))
        return means[-1] > share * 100 and fleet.entitled([slow]) > 20
    eventually(holds, lambda: f"{means} of 100/s, {fleet.where()}")
    eventually(lambda: fleet.rate([slow]) > 20, lambda: f"the slow host grants: {fleet.where()}")


@beside
def answers_that_come_late_cost_no_capacity(scene):
    fleet = scene.fleet()
    proxy = scene.proxy(scene.ensemble.servers[1])
    fleet.host(source=f"zk://{CENTRE}:{proxy.address[1]}{fleet.path}")
    fleet.host()
    fleet.limiter(100, 10)
    fleet.load()
    fleet.await_rate(100)
    proxy.delay_s = 0.15
    costs_no_capacity(fleet, 8, 0.75)


@beside
def a_coordinator_whose_answers_take_800_ms_costs_no_capacity(scene):
    fleet = scene.fleet(options=[])
    proxy = scene.proxy(scene.ensemble.servers[1])
    slow = fleet.host(source=f"zk://{CENTRE}:{proxy.address[1]}{fleet.path}")
    fleet.host()
    fleet.limiter(100, 10)
    fleet.load()
    fleet.await_rate(100)
    eventually(lambda: len(slow.held()) in (4, 5, 6), fleet.where)
    proxy.delay_s = 0.4  # each way
    costs_no_capacity(fleet, 9, 0.85)

    def keeps_its_connection():
        given_up = slow.said().count("the connection is given up")
        time.sleep(9)
        return slow.said().count("the connection is given up") == given_up
    eventually(keeps_its_connection,
               lambda: f"it learns how long an answer may take: {slow.said()}")
    slow.end_readers()
    slow.stop()
    slow.start()
    fleet.load(slow)
    # Joining and getting a share take some twenty answers one after the other, of 0.8 s each.
    eventually(lambda: fleet.rate([slow]) > 20, "it starts, too")


@beside
def a_session_that_moves_to_another_server_keeps_what_it_holds(scene):
    fleet = scene.fleet(options=KEPT)
    proxies = [scene.proxy(server) for server in scene.ensemble.servers[:2]]
    host = fleet.host(source="zk://" + ",".join(f"{CENTRE}:{p.address[1]}"
                                                for p in proxies) + fleet.path)
    fleet.limiter(100, 10)
    fleet.load()
    fleet.await_rate(100)
    eventually(lambda: len(host.held()) == 10, fleet.where)
    before = host.status()["session"]
    for _ in range(4):
        proxy = next(proxy for proxy in proxies if proxy.pairs)
        connections = host.said().count("connected to ZooKeeper at")
        proxy.refuse = True
        proxy.drop()
        eventually(lambda: host.said().count("connected to ZooKeeper at") > connections, host.said)
        expect(len(host.held()) == 10, fleet.where())
        proxy.refuse = False
    expect(host.status()["session"] == before,
           f"session {before} has become {host.status()['session']}")
    fleet.await_rate(100)


@beside
def a_dead_server_and_a_name_that_does_not_resolve_are_passed_over(scene):
    fleet = scene.fleet()
    address = scene.ensemble.servers[2].place.address
    fleet.host(source=f"zk://{NOBODY}:2181,nowhere.invalid:2181,{address}:2181{fleet.path}")
    fleet.host(source=f"zk://nowhere.invalid,zk1,zk2:2181{fleet.path}")
    fleet.limiter(100, 10)
    fleet.load()
    fleet.await_rate(100)
    eventually(lambda: all(fleet.rate([h]) > 20 for h in fleet.hosts), fleet.where)


@beside
def without_a_coordinator_a_mount_fails_after_ten_seconds_and_names_what_it_tried(scene):
    fleet = scene.fleet()
    host = fleet.host(start=False)
    begun = time.monotonic()
    host.launch(source=f"zk://{NOBODY}:2181,{CENTRE}:9/nothing")
    expect(gone(host.daemon.pid, 60), "still trying after 60 s")
    status, took = host.daemon.wait(), time.monotonic() - begun
    host.daemon = None
    expect(status == 1 and took > 8, f"exit status {status} after {took:.1f} s")
    expect(NOBODY in host.said() and CENTRE in host.said(), f"it says: {host.said()}")


@beside
def with_nowait_a_mount_is_there_before_the_coordinator(scene):
    fleet = scene.fleet()
    proxy = scene.proxy(scene.ensemble.servers[0])
    proxy.refuse = True
    host = fleet.host("h1", "nowait", source=f"zk://{CENTRE}:{proxy.address[1]}{fleet.path}")
    state = host.status()["coordinator"]
    made = host.ask("mkdir", "l")
    expect(made.result in ("EHOSTUNREACH", "ETIMEDOUT"), f"mkdir: {made.result}")
    proxy.refuse = False
    eventually(lambda: host.status()["coordinator"] != state,
               f"status goes on saying '{state}'")
    eventually(lambda: host.ask("mkdir", "l").result in ("OK", "EEXIST"),
               "mkdir with the coordinator")
    host.write("l/rate", "50/s")
    fleet.bounds["l"] = checker.Bound(50, 20)
    fleet.load()
    fleet.await_rate(50)


# Operators.

@beside
def a_path_of_several_names_is_made_where_it_is_missing(scene):
    fleet = scene.fleet(path="/deep/er/and/deeper")
    fleet.host()
    fleet.host()
    fleet.limiter(100, 10)
    fleet.load()
    fleet.await_rate(100)
    with scene.ensemble.client() as client:
        expect(client.exists("/deep/er/and/deeper/v"), "the layout is where it was asked for")


@beside
def a_layout_of_another_version_is_refused(scene):
    fleet = scene.fleet(1)
    fleet.hosts[0].stop()

    def changes():
        with scene.ensemble.client() as client:
            return {path: client.get(path)[1].mzxid for path in client.tree(fleet.path)}
    with scene.ensemble.client() as client:
        client.set(f"{fleet.path}/v", b"4711")
    before, host = changes(), fleet.hosts[0]
    host.launch()
    status = host.refused()
    expect(status == 1 and "version" in host.said(),
           f"exit status {status}: {host.said()[-300:]}")
    expect(changes() == before, "it has changed something all the same")


def make_layout_before(client, path):
    """As a fleet of the layout before was left: markers in f, and records that name no cut."""
    limiters = [name for name in client.children(f"{path}/c") if name != "0"]
    for folder in ("t", "r", "d", "a"):
        for node in sorted(client.tree(f"{path}/{folder}"), key=len, reverse=True):
            client.delete(node)
    for folder in ("l", "f"):
        client.create(f"{path}/{folder}")
        for name in limiters:
            client.create(f"{path}/{folder}/{name}")
    for name in limiters:
        record = client.get(f"{path}/c/{name}")[0].decode()
        client.set(f"{path}/c/{name}", re.sub("(?m)^cut=.*\n", "", record).encode())
        for index in range(120):
            client.create(f"{path}/f/{name}/{index}", b"1 0.500000000")
    client.set(f"{path}/v", b"ratefs 3\n")


@beside
def a_fleet_of_the_layout_before_is_turned_over_when_no_host_has_it(scene):
    fleet = scene.fleet(2)
    fleet.limiter(100, 10)
    for host in fleet.hosts:
        host.stop()
    with scene.ensemble.client() as client:
        eventually(lambda: not client.children(f"{fleet.path}/h"), "hosts leave")
        make_layout_before(client, fleet.path)
        for host in fleet.hosts:
            host.start()
        expect(client.get(f"{fleet.path}/v")[0] == b"ratefs 4\n", "it is of this layout")
        expect(not client.exists(f"{fleet.path}/f") and not client.exists(f"{fleet.path}/l"),
               "nodes of the layout before are left")
    expect(fleet.hosts[1].read("l/rate").strip() == "100/s", "the settings stay")
    fleet.load()
    fleet.await_rate(100)


@beside
def without_authority_a_mount_is_refused_and_with_credentials_it_works(scene):
    fleet = scene.fleet(path="/guarded")
    digest = base64.b64encode(hashlib.sha1(b"fleet:secret").digest()).decode()
    with scene.ensemble.client() as client:
        client.create("/guarded", acl=[(31, "digest", f"fleet:{digest}")])
    host = fleet.host(start=False)
    host.launch()
    status = host.refused()
    expect(status == 1 and "denie" in host.said(), f"exit status {status}: {host.said()[-300:]}")
    with open(f"{fleet.folder}/credentials", "w") as file:
        file.write("fleet:secret\n")
    os.chmod(f"{fleet.folder}/credentials", 0o600)
    host.start(f"credentials={fleet.folder}/credentials")
    fleet.limiter(100, 10)
    fleet.load()
    fleet.await_rate(100)
    with scene.ensemble.client() as client:
        try:
            client.children("/guarded/h")
            raise Failed("everybody may read what was made with credentials")
        except zk.Refused as error:
            expect(error.code == -102, str(error))


def below(client, root):
    return [node for node in client.tree(root) if node != root]


def is_leased(node, host=""):
    """A tile that @host leases, or any; a clean one ends with its epoch and what is left."""
    return f".{host}" in node.rpartition("/")[2].partition("+")[0]


def meddled(scene, folder, garbage, whole=True, chosen=lambda node: True, count=10):
    """An operator deletes all nodes of a folder that are chosen, or writes garbage into them."""
    fleet = scene.loaded(2, lease="2s", count=count)
    fleet.host("spare")
    with scene.ensemble.client() as client:
        for turn in range(2):
            root = f"{fleet.path}/{folder}"
            nodes = [root] if folder == "g" else below(client, root)
            for node in reversed([node for node in nodes if chosen(node)]):
                with contextlib.suppress(zk.Refused):
                    if garbage:
                        client.set(node, b"\xff\0garbage\n" * 40)
                    else:
                        client.delete(node)
            if turn == 0:
                time.sleep(random.uniform(0.2, 1))
    gets_over_it(fleet, whole)
    return fleet


def gets_over_it(fleet, whole=True):
    for _ in range(3):
        time.sleep(1)
        for host in fleet.hosts:
            expect(host.running(), f"{host.name} has ended: {host.said()[-300:]}")
            host.read("status")
    if whole:
        fleet.await_rate(100)


@beside
def hosts_get_over_the_deletion_of_their_own_nodes(scene):
    meddled(scene, "h", garbage=False)


@beside
def hosts_get_over_garbage_in_their_own_nodes(scene):
    meddled(scene, "h", garbage=True)


@beside
def hosts_get_over_the_deletion_of_all_tiles(scene):
    meddled(scene, "t", garbage=False)


@beside
def hosts_get_over_the_deletion_of_leased_tiles_of_a_limiter_without_numbers(scene):
    meddled(scene, "t", garbage=False, chosen=is_leased, count="auto")


@beside
def hosts_get_over_the_deletion_of_free_tiles(scene):
    fleet = meddled(scene, "t", garbage=False, chosen=lambda node: not is_leased(node))
    fleet.hosts[0].stop()
    fleet.await_rate(100, fleet.hosts[1:])


@beside
def hosts_get_over_garbage_in_tiles(scene):
    fleet = meddled(scene, "t", garbage=True)
    fleet.hosts[0].stop()
    fleet.await_rate(100, fleet.hosts[1:])


FOREIGN = ("0", "-", "+", ".", "..x", "4095-0+1+1", "0-4096+1+1", "5-5+1+1", "00-1+1+1", "1+1+1:",
           "0-9+1+1:1,2,3,4,5,6,7,8,9", "0-9+4294967296+1", "0-9.short", "9-18446744073709551616",
           "0-1+1+1:nan", "x" * 200)


@beside
def hosts_get_over_nodes_that_have_no_name_of_theirs(scene):
    fleet = scene.loaded(2, lease="2s")
    with scene.ensemble.client() as client:
        folders = [f"{fleet.path}/{name}" for name in ("t", "r", "d", "a", "h", "w", "c")]
        folders += [node for folder in folders for node in below(client, folder)
                    if folder[-1] in "trw" and node.count("/") == folder.count("/") + 1]
        for folder in folders:
            for name in FOREIGN:
                with contextlib.suppress(zk.Refused):
                    client.create(f"{folder}/{name}", b"garbage")
    gets_over_it(fleet)
    fleet.hosts[0].kill()
    fleet.await_rate(100, fleet.hosts[1:])


@beside
def hosts_get_over_the_deletion_of_what_is_wanted(scene):
    meddled(scene, "w", garbage=False)


@beside
def a_deleted_limiter_grants_nothing_twice(scene):
    meddled(scene, "c", garbage=False, whole=False)


@beside
def garbage_in_a_limiter_grants_nothing_twice(scene):
    meddled(scene, "c", garbage=True, whole=False)


@beside
def without_the_constants_nothing_is_granted_twice(scene):
    meddled(scene, "g", garbage=False, whole=False)


@beside
def garbage_in_the_constants_grants_nothing_twice(scene):
    meddled(scene, "g", garbage=True, whole=False)


class Churn:
    """
    Makes and removes limiters of @names in the root of @host's mount, as fast as it can, until
    end().
    """

    def __init__(self, host, names):
        self.host, self.names, self.over = host, names, False
        self.results = collections.Counter()
        self.thread = threading.Thread(target=self.go, daemon=True)
        self.thread.start()

    def go(self):
        while not self.over:
            path = f"{self.host.mount}/{random.choice(self.names)}"
            act = random.choice((os.mkdir, os.rmdir))
            try:
                act(path)
                self.results[act.__name__] += 1
            except OSError as error:
                self.results[errno.errorcode[error.errno]] += 1

    def end(self):
        self.over = True
        self.thread.join(HANG_S)
        expect(not self.thread.is_alive(), f"{self.host.name}: a mkdir or rmdir does not return")
        return self.results


def served_without_a_death(host):
    """
    The first server still serves: the keeper replaces one that died, and readers hardly notice.
    """
    expect(host.status()["servers_before"] == "0",
           f"a server of {host.name} died: {host.said()[-2000:]}")


@scenario(beside=True, limit_s=CHURN_S + 400)
def hosts_that_lose_sessions_while_both_make_and_remove_the_same_limiters_go_on(scene):
    fleet = scene.fleet(2)
    churns = [Churn(host, ("x", "y", "z")) for host in fleet.hosts]
    until, sessions = time.monotonic() + CHURN_S, 0
    while time.monotonic() < until or sessions <= CHURN_S / 2:
        time.sleep(0.7)
        # Servers that lose their leader close all connections.
        with (contextlib.suppress(OSError, RuntimeError),
              scene.ensemble.client() as client):
            for name in client.children(f"{fleet.path}/h"):
                with contextlib.suppress(zk.Refused):
                    client.delete(f"{fleet.path}/h/{name}")
                    sessions += 1
        for host in fleet.hosts:
            served_without_a_death(host)
    expected = {"mkdir", "rmdir", "EEXIST", "ENOENT", "ENODEV", "EBUSY", "EHOSTUNREACH",
                "ETIMEDOUT"}
    for churn in churns:
        results = churn.end()
        expect(set(results) <= expected and results["mkdir"] and results["rmdir"],
               f"{churn.host.name}: {dict(results)}")
    fleet.limiter()
    fleet.load()
    fleet.await_rate(100)
    for host in fleet.hosts:
        served_without_a_death(host)


@scenario(beside=True, limit_s=400)
def servers_restored_from_an_older_backup_are_joined_again(scene):
    single = Ensemble(scene.folder, count=1, first=241)
    scene.ends.append(single.remove)
    server = single.servers[0]
    server.start()
    single.await_quorum()
    fleet = scene.loaded(2, ensemble=single)
    server.kill()
    single.keep("backup")
    server.start()
    single.await_quorum()
    fleet.await_rate(100)
    time.sleep(4)
    server.kill()
    single.bring_back("backup")
    server.start()
    single.await_quorum()
    fleet.await_rate(100)


# Leases and watches that fit.

LIMITERS, PARTITIONS = 3, 4096  # more than any host may hold
LEASES_MAX = 10000  # FLEET_LEASES_MAX of core/fleet/fleet.h
FILLED_S = 300.0  # for hangs


def single_server(scene, first):
    single = Ensemble(scene.folder, count=1, first=first)
    scene.ends.append(single.remove)
    single.servers[0].start()
    single.await_quorum()
    return single


def filled(scene, ensemble, known=None):
    """A host that holds as much as it may, and what its readers read. @known: its servers."""
    fleet = scene.fleet(0, ensemble, options=KEPT)
    fleet.host(source=known_source(fleet, known or ensemble))
    files = []
    for index in range(LIMITERS):
        fleet.limiter(PARTITIONS, PARTITIONS, name=f"l{index}")
        files.append(f"l{index}/token")
    fleet.load(files=files, work_us=100_000)
    await_full(fleet.hosts[0])
    return fleet, files


def known_source(fleet, known):
    return "zk://" + ",".join(f"{server.place.address}:2181" for server in known) + fleet.path


def hosts_left(ensemble, fleet):
    with ensemble.client() as client:
        return client.children(f"{fleet.path}/h")


def goes_on(fleet, ensemble, disturb, kept=("session", "leases")):
    """Whatever @disturb does to its server, it keeps its session and all that it holds."""
    host = fleet.hosts[0]
    before = [host.status()[name] for name in kept]
    disturb()

    def renews():
        """For so long, on one connection."""
        connections = host.said().count("connected to ZooKeeper at")
        begun = int(host.status()["transactions"])
        time.sleep(3 * RIGHT_S)
        return (int(host.status()["transactions"]) > begun + 5
                and host.said().count("connected to ZooKeeper at") == connections)
    eventually(renews, lambda: f"it is connected and renews its right: {host.said()[-900:]}")
    status = host.status()
    expect([status[name] for name in kept] == before,
           f"{kept} was {before}: {status}, {host.said()[-400:]}")
    host.end_readers()
    host.stop()
    eventually(lambda: not hosts_left(ensemble, fleet),
               lambda: f"the session is not closed: {hosts_left(ensemble, fleet)}")


def await_full(host):
    """It has as many leases as there is room for, and takes no more."""
    eventually(lambda: int(host.status()["leases"]) >= LEASES_MAX
               and int(host.status()["left_out"]) > 0,
               lambda: f"{host.name}: {host.status()['leases']} leases where {LEASES_MAX} fit",
               FILLED_S)
    for _ in range(4):
        leases = int(host.status()["leases"])
        expect(leases <= LEASES_MAX, f"{leases} leases where {LEASES_MAX} fit")
        time.sleep(1)
    expect(host.said().count("fleet: full: ") == 1,
           f"it says once that there is no more room: {host.said()[-400:]}")


def restarted(single):
    single.servers[0].kill()
    time.sleep(1)
    single.servers[0].start()
    single.await_quorum()


def hang_its_server(scene, host):
    address = re.findall(r"connected to ZooKeeper at ([\d.]+):", host.said())[-1]
    next(s for s in scene.ensemble if s.place.address == address).freeze()
    time.sleep(RENEWAL_S)


@scenario(beside=True, limit_s=900)
def a_host_that_holds_all_it_may_goes_on_when_its_server_is_started_again(scene):
    single = single_server(scene, 221)
    fleet, _ = filled(scene, single)
    goes_on(fleet, single, lambda: restarted(single))


@scenario(beside=False, limit_s=900)
def a_host_that_holds_all_it_may_goes_to_another_server_when_its_own_hangs(scene):
    fleet, _ = filled(scene, scene.ensemble, known=scene.ensemble.followers())
    goes_on(fleet, scene.ensemble, lambda: hang_its_server(scene, fleet.hosts[0]))


@scenario(beside=True, limit_s=900)
def servers_start_again_after_a_host_that_held_all_it_may_has_died(scene):
    single = single_server(scene, 231)
    fleet, files = filled(scene, single)
    fleet.hosts[0].kill()
    fleet.hosts[0].end_readers()
    eventually(lambda: not hosts_left(single, fleet), "the session of the dead host is closed")
    restarted(single)
    other = fleet.host("other")
    fleet.load(other, files=files, work_us=100_000)
    await_full(other)


WATCHED, WATCHED_PATH = 1500, 240  # limiters, and bytes of the path before their names


@scenario(beside=False, limit_s=900)
def a_host_that_watches_all_it_may_goes_to_another_server_when_its_own_hangs(scene):
    fleet = scene.fleet(path="/" + "p" * (WATCHED_PATH - 1), options=KEPT)
    host = fleet.host(source=known_source(fleet, scene.ensemble.followers()))
    for index in range(WATCHED):
        fleet.make(f"l{index}", rate="10/s")
    host.loop(*(f"l{index}/token" for index in range(WATCHED)), work_us=2_000_000)
    eventually(lambda: int(host.status()["leases"]) >= WATCHED,
               lambda: f"{host.status()['leases']} leases of {WATCHED} limiters", FILLED_S)
    goes_on(fleet, scene.ensemble, lambda: hang_its_server(scene, host), kept=("session",))


# Servers.

def pinned(scene, *groups):
    """A fleet with hosts that know only some of the servers each."""
    fleet = scene.fleet()
    for group in groups:
        fleet.host(source="zk://" + ",".join(f"{s.place.address}:2181"
                                             for s in group) + fleet.path)
    fleet.limiter(100, 10)
    fleet.load()
    fleet.await_rate(100)
    eventually(lambda: all(fleet.rate([h]) > 10 for h in fleet.hosts), fleet.where)
    return fleet


def server_cut_off(scene, server, **ways):
    rest = [s for s in scene.ensemble if s is not server]
    fleet = pinned(scene, [server], rest, rest)
    scene.ensemble.cut_off(server, **ways)
    cut = time.monotonic()
    fleet.await_rate(100, fleet.hosts[1:])  # an election may come first
    late = time.monotonic() - cut - RIGHT_S
    if late < 1:
        time.sleep(1 - late)
    if ways.get("out", True) and ways.get("back", True):
        stopped_at(fleet, fleet.hosts[0], cut)
    server.place.heal()
    eventually(lambda: fleet.rate([fleet.hosts[0]]) > 10,
               lambda: f"h1 takes part again: {fleet.where()}")


@alone
def hosts_of_a_follower_that_is_cut_off_stop_and_the_others_go_on(scene):
    server_cut_off(scene, scene.ensemble.followers()[0])


@alone
def hosts_of_a_follower_that_hears_but_is_not_heard_are_replaced(scene):
    server_cut_off(scene, scene.ensemble.followers()[-1], back=False)


@alone
def hosts_of_a_leader_that_is_cut_off_stop_and_the_others_go_on(scene):
    server_cut_off(scene, scene.ensemble.leader())


class Rights:
    """
    Looks at what hosts may grant, in a block: as long as their rights last, they go on as before,
    however long the servers take to elect a leader.
    """

    def __init__(self, fleet, what, share=0.8):
        self.fleet, self.what, self.least = fleet, what, share * 100
        self.looks, self.over = [], False
        self.thread = threading.Thread(target=self.look, daemon=True)

    def look(self):
        while not self.over:
            entitled = self.fleet.entitled()
            if all(float(host.status()["right_seconds"]) > 0 for host in self.fleet.hosts):
                self.looks.append(entitled)
            time.sleep(0.1)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, kind, *_):
        self.over = True
        self.thread.join(HANG_S)
        if not kind:
            # Single looks come while some part of it changes hands.
            expect(self.looks and sum(self.looks) / len(self.looks) > self.least,
                   f"{self.what}: hosts may grant {self.looks} of 100/s while their rights last")


def shared_out(scene):
    """
    A fleet of three hosts that has shared out a limiter evenly, so that no part of it is about to
    change hands.
    """
    fleet = scene.loaded(3, options=[])

    def even():
        shares = [fleet.entitled([host]) for host in fleet.hosts]
        return sum(shares) > 99 and min(shares) > 29
    eventually(even, fleet.where)
    return fleet


@alone
def a_leader_that_is_killed_costs_nothing_while_rights_last(scene):
    fleet = shared_out(scene)
    leader = scene.ensemble.leader()
    with Rights(fleet, "without a leader"):
        leader.kill()
        time.sleep(DEFAULT_RIGHT_S - RENEWAL_S)
    scene.ensemble.await_quorum(2)
    fleet.await_rate(100)
    leader.start()


@alone
def a_leader_that_hangs_costs_nothing_while_rights_last(scene):
    fleet = shared_out(scene)
    with Rights(fleet, "while the leader hangs"):
        scene.ensemble.leader().freeze()
        time.sleep(DEFAULT_RIGHT_S - RENEWAL_S)
    scene.ensemble.await_quorum(2)
    fleet.await_rate(100)


@alone
def a_rolling_restart_is_not_noticed(scene):
    fleet = shared_out(scene)
    for server in scene.ensemble:
        with Rights(fleet, f"restart of server {server.number}", 0.7):
            server.kill()
            server.start()
            scene.ensemble.await_quorum(3)
        fleet.await_rate(100)


@scenario(beside=False, limit_s=400)
def with_all_servers_killed_files_answer_and_readers_can_be_interrupted_until_they_are_back(scene):
    fleet = scene.loaded(3)
    fleet.hosts[2].loop("l/stream")
    states = [host.status()["coordinator"] for host in fleet.hosts]
    config = fleet.hosts[0].read("l/config")
    for server in scene.ensemble:
        server.kill()
    cut = time.monotonic()
    changed, soonest = False, {}

    def note(what, answer):
        soonest[what] = min(answer.seconds, soonest.get(what, answer.seconds))
    while time.monotonic() < cut + RIGHT_S + 3:
        for host in fleet.hosts:
            for file in ("status", "l/rate", "l/stat", "hosts", "l/partitions/held", "l/waiters"):
                answer = host.ask("read", file)
                expect(answer.ok, f"{host.name}: {file}: {answer.result}")
                note(file, answer)
        for words in (["write", "l/rate", "77/s"], ["mkdir", "new"], ["rmdir", "l"],
                      ["chmod", "l", "750"]):
            answer = fleet.hosts[0].ask(*words)
            expect(answer.result in ("EHOSTUNREACH", "ETIMEDOUT", "EBUSY"),
                   f"{' '.join(words)}: {answer.result}")
            changed = changed or answer.result == "ETIMEDOUT"
            note(" ".join(words), answer)
    late = {what: f"{seconds:.3f} s" for what, seconds in soonest.items()
            if seconds > (ANSWER_WRITE_S if " " in what else ANSWER_READ_S)}
    expect(not late, f"not once an answer before {late}")
    for host, before in zip(fleet.hosts, states):
        expect(host.status()["coordinator"] != before,
               f"status of {host.name} says '{before}' without any server")
        stopped_at(fleet, host, cut)
        host.end_readers()
    fleet.load()
    fleet.hosts[1].stop()
    for server in scene.ensemble:
        server.start()
    scene.ensemble.await_quorum()
    fleet.hosts[1].start()
    # A write that timed out may have been executed in the end.
    eventually(lambda: fleet.rate() > 0.85 * int(fleet.hosts[0].read("l/rate").split("/")[0]),
               lambda: f"{fleet.rate():.0f}/s of {fleet.hosts[0].read('l/rate')}; {fleet.where()}")
    expect(changed or fleet.hosts[0].read("l/config") == config,
           "a refused write has changed something")


@scenario(beside=False, limit_s=400)
def settings_survive_when_hosts_and_servers_all_are_killed(scene):
    fleet = scene.loaded(2)
    config = fleet.hosts[0].read("l/config")
    for host in fleet.hosts:
        host.kill()
    for server in scene.ensemble:
        server.kill()
    for server in scene.ensemble:
        server.start()
    scene.ensemble.await_quorum()
    for host in fleet.hosts:
        host.start()
        expect(host.read("l/config") == config, f"{host.name}: {host.read('l/config')}")
    fleet.await_rate(100)
