#!/usr/bin/env python3
"""
Bounds of a fleet's grants, checked from the readers' logs alone.

A reader stamps before it issues a read and after the read has returned; the grant lies somewhere in
between. A window is in violation whatever the true instants were if the reads that lie wholly
inside it got more tokens than it allows. All windows are looked at, of any length: for unit jobs
with release times and deadlines that is the very question whether instants exist that keep the
bound.
"""
import bisect
import collections
import sys

SECOND = 1_000_000_000
WINDOWS_S = (0.01, 0.1, 1, 10)
ROUNDING = 0.01  # tokens: floating point, and a nanosecond of the rate for each bucket
Grant = collections.namedtuple("Grant", "issued returned host file tokens")
Excess = collections.namedtuple("Excess", "begin end tokens allowed")


def parse(lines):
    """The grants and the failures, as (issued, returned, host, file, errno); a line may be torn."""
    grants, failures = [], []
    for line in lines:
        words = line.split()
        if len(words) != 5 or not line.endswith("\n"):
            continue
        entry = (int(words[0]), int(words[1]), words[2], words[3])
        if words[4].isdigit():
            grants.append(Grant(*entry, int(words[4])))
        else:
            failures.append((*entry, words[4]))
    return grants, failures


def partition(file):
    """(limiter, partition) of a partition's file, or None."""
    words = file.split("/")
    return ("/".join(words[:-3]),
            words[-2]) if len(words) > 3 and words[-3] == "partitions" else None


def limiter(file):
    words = file.split("/")
    if "partitions" in words:
        return "/".join(words[:words.index("partitions")])
    return "/".join(words[:-2 if "take" in words else -1])


def belongs(file, name):
    """A token of a limiter below @name is one of @name, too."""
    return f"{limiter(file)}/".startswith(f"{name}/")


class Bound:
    """
    Bounds of a fleet's grants: a burst, and rates in force. set() is told when a write of a rate
    was issued and when it was answered; the old rate counts until @quarantine_s after that. An
    answer that is None never came: from then on both count.
    """

    def __init__(self, rate, burst, quarantine_s=0.0):
        self.burst = burst
        self.quarantine_ns = round(quarantine_s * SECOND)
        self.rates = [[0, None, rate]]  # [from, until or None, tokens a second]
        self.points = None

    def set(self, rate, issued, answered):
        if answered is not None:
            for entry in self.rates:
                if entry[1] is None:
                    entry[1] = answered + self.quarantine_ns
        self.rates.append([issued, None, rate])
        self.points = None

    def accrued(self, instant):
        """Tokens that have flowed in by @instant at the largest of the rates in force."""
        if self.points is None:
            times = sorted({t for entry in self.rates for t in entry[:2] if t is not None})
            self.points = [(0, 0.0, 0.0)]
            for time in times:
                at, total, rate = self.points[-1]
                now = max((r for since, until, r in self.rates if since <= time
                           and (until is None or time < until)), default=0)
                self.points.append((time, total + rate * (time - at) / SECOND, now))
            self.times = [point[0] for point in self.points]
        at, total, rate = self.points[bisect.bisect_right(self.times, instant) - 1]
        return total + rate * (instant - at) / SECOND


def worst(grants, bound):
    """The window with the most above what is allowed, as an Excess, or None without grants."""
    starts = sorted({grant.issued for grant in grants})
    if not starts:
        return None
    place = {start: index for index, start in enumerate(starts)}
    size = 1 << (len(starts) - 1).bit_length()
    # Leaf i is the window that begins with starts[i] and ends with the read looked at: tokens of
    # the reads inside, plus what had accrued by its begin. It counts once a read of its start
    # returned.
    total = [0] * (2 * size)
    best = [float("-inf")] * (2 * size)
    accrued = [bound.accrued(start) for start in starts]
    found = None
    for grant in sorted(grants, key=lambda grant: grant.returned):
        node = size + place[grant.issued]
        total[node] += grant.tokens
        best[node] = accrued[node - size] + total[node]
        while node > 1:
            node >>= 1
            left, right = 2 * node, 2 * node + 1
            total[node] = total[left] + total[right]
            best[node] = max(best[right], best[left] + total[right])
        by_now = bound.accrued(grant.returned)
        excess = best[1] - by_now - bound.burst
        if found is None or excess > found[0]:
            node, behind = 1, 0
            while node < size:
                left, right = 2 * node, 2 * node + 1
                if best[right] >= best[left] + total[right]:
                    node = right
                else:
                    node, behind = left, behind + total[right]
            index = node - size
            allowed = by_now - accrued[index] + bound.burst
            found = (excess, Excess(starts[index], grant.returned, total[node] + behind, allowed))
    return found[1]


def violation(grants, bound):
    """The worst window if it is in violation, else None."""
    found = worst(grants, bound)
    return found if found and found.tokens > found.allowed + ROUNDING else None


def most(grants, window_s):
    """The most tokens that certainly fell into a window of this length."""
    window = window_s * SECOND
    inside = sorted((g for g in grants if g.returned - g.issued <= window),
                    key=lambda g: g.returned)
    starts = sorted({g.issued for g in inside})
    sums, result = [0] * (len(starts) + 1), 0  # a binary indexed tree over the starts
    oldest = collections.deque()
    for grant in inside:
        oldest.append(grant)
        index = bisect.bisect_right(starts, grant.issued)
        while index <= len(starts):
            sums[index] += grant.tokens
            index += index & -index
        count, index = sum_all(sums, len(starts)), bisect.bisect_left(starts,
                                                                      grant.returned - window)
        result = max(result, count - sum_all(sums, index))
    return result


def sum_all(sums, index):
    result = 0
    while index:
        result += sums[index]
        index -= index & -index
    return result


def most_held(holds, longest_s):
    """
    The most slots that were held at an instant. Each of @holds, whose ISSUED is when a slot was
    open and RETURNED when it was not closed yet, counts for @longest_s at most.
    """
    ends = [(hold.issued, 1) for hold in holds]
    ends += [(min(hold.returned, hold.issued + round(longest_s * SECOND)), -1) for hold in holds]
    held = most = 0
    for _, change in sorted(ends):
        held += change
        most = max(most, held)
    return most


def handovers(grants):
    """How often a partition's tokens went to another host than the one before."""
    holder, count = {}, 0
    for grant in sorted(grants, key=lambda grant: grant.returned):
        if partition(grant.file):
            count += holder.get(grant.file, grant.host) != grant.host
            holder[grant.file] = grant.host
    return count


def describe(name, found):
    return (f"{name}: {found.tokens} tokens in {(found.end - found.begin) / SECOND:.6f} s from "
            f"{found.begin / SECOND:.6f}, allowed {found.allowed:.3f}")


# Its own tests.

def steady(rate, seconds, hosts=1, late_ns=0, begin=SECOND):
    """Greedy readers, one a host, that are served evenly and hear of it @late_ns later."""
    before = {}
    for index in range(round(rate * seconds)):
        instant = begin + round(index * SECOND / rate)
        host = index % hosts
        yield Grant(before.get(host, begin - 1), instant + late_ns, f"h{host}", "l/token", 1)
        before[host] = instant + late_ns


def test_a_log_that_keeps_the_bound_passes():
    assert not violation(list(steady(100, 30, hosts=3)), Bound(100, 1))


def test_one_token_too_many_in_ten_milliseconds_is_found():
    grants = list(steady(100, 30))
    assert violation(grants + [Grant(grants[500].returned - 1000, grants[500].returned, "h1",
                                     "l/token", 1)], Bound(100, 1))


def test_a_fleet_that_doubles_is_found():
    grants = list(steady(50, 5)) + [g._replace(host="other") for g in steady(50, 5)]
    found = violation(grants, Bound(50, 20))
    assert found and found.tokens > 400


def test_one_per_mille_too_much_is_found_in_a_long_window():
    assert violation(list(steady(100.1, 120)),
                     Bound(100, 1)) and not violation(list(steady(100, 120)), Bound(100, 1))


def test_late_stamps_raise_no_alarm():
    for late_ns in (1000, 10_000_000, 3 * SECOND):
        assert not violation(list(steady(1000, 5, hosts=7, late_ns=late_ns)), Bound(1000, 1))


def test_reads_that_all_return_after_a_stall_raise_no_alarm_if_they_were_issued_before_it():
    grants = [Grant(SECOND, 9 * SECOND, f"h{n}", "l/token", 1) for n in range(80)]
    assert not violation(grants, Bound(10, 1)) and violation(grants, Bound(9, 1))


def test_tokens_of_one_take_count():
    assert violation([Grant(SECOND, SECOND + 1, "h1", "l/take/12", 12)], Bound(1, 11))
    assert not violation([Grant(SECOND, SECOND + 1, "h1", "l/take/12", 12)], Bound(1, 12))


def test_a_lowered_rate_counts_only_after_the_quarantine():
    def log(until):
        return list(steady(100, until)) + list(steady(10, 20,
                                                      begin=SECOND + round(until * SECOND)))
    bound = Bound(100, 1, quarantine_s=4)
    bound.set(10, SECOND * 11, SECOND * 11)
    assert not violation(log(13.9), bound) and violation(log(14.2), bound)


def test_a_raised_rate_counts_from_when_it_was_written():
    grants = list(steady(10, 5)) + list(steady(100, 5, begin=SECOND * 6))
    early, late = Bound(10, 1, 4), Bound(10, 1, 4)
    early.set(100, SECOND * 6, SECOND * 6)
    late.set(100, SECOND * 7, SECOND * 7)
    assert not violation(grants, early) and violation(grants, late)


def test_a_write_without_an_answer_leaves_both_rates_possible():
    bound = Bound(100, 1, 1)
    bound.set(10, SECOND * 3, None)
    assert not violation(list(steady(100, 20)), bound)


def test_the_search_finds_what_trying_all_windows_finds():
    import random
    source = random.Random(7)
    for _ in range(300):
        grants = []
        for _ in range(source.randint(1, 25)):
            issued = source.randint(0, 40) * SECOND // 10
            grants.append(Grant(issued, issued + source.randint(1, 15) * SECOND // 10, "h",
                                "l/token", source.randint(1, 3)))
        bound = Bound(3, 2)
        bound.set(7, SECOND, SECOND)
        by_hand = max(sum(g.tokens for g in grants if g.issued >= a.issued
                          and g.returned <= b.returned)
                      - (bound.accrued(b.returned) - bound.accrued(a.issued)) - bound.burst
                      for a in grants for b in grants if b.returned >= a.returned)
        found = worst(grants, bound)
        assert abs(found.tokens - found.allowed - by_hand) < 1e-6
        assert all(most(grants,
                        w) == max(sum(g.tokens for g in grants
                                      if g.issued >= b.returned - w * SECOND
                                      and g.returned <= b.returned)
                                          for b in grants) for w in WINDOWS_S)


def test_slots_that_are_held_at_an_instant_are_counted_as_long_as_they_may_be():
    holds = [Grant(begin, begin + 10, "h", "s/slot", 1) for begin in (0, 5, 9, 10, 30)]
    assert most_held(holds, 1) == 3 and most_held(holds, 5e-9) == 2 and most_held([], 1) == 0


def test_a_torn_line_is_left_out():
    grants, failures = parse(["1 2 h1 l/token 1\n", "3 4 h1 l/token EAGAIN\n", "5 6 h1 l/tok"])
    assert len(grants) == 1 and failures == [(3, 4, "h1", "l/token", "EAGAIN")]


def test_files_belong_to_limiters_and_partitions():
    assert partition("a/b/partitions/3/token") == ("a/b", "3") and partition("a/token") is None
    for file in ("a/b/partitions/3/token", "a/b/take/5", "a/b/token"):
        assert limiter(file) == "a/b"
    assert belongs("a/b/token", "a") and belongs("a/token", "a") and not belongs("ab/token", "a")


def test_a_partition_that_changes_hands_is_a_handover():
    grants = [Grant(i, i + 1, host, "l/partitions/0/token", 1) for i, host in enumerate("aabba")]
    assert handovers(grants) == 2


if __name__ == "__main__":
    tests = [(name, test) for name, test in globals().items() if name.startswith("test_")]
    print(f"1..{len(tests)}")
    failed = 0
    for number, (name, test) in enumerate(tests, 1):
        try:
            test()
            print(f"ok {number} - {name[5:].replace('_', ' ')}")
        except AssertionError as error:
            failed = 1
            print(f"not ok {number} - {name[5:].replace('_', ' ')} {error}")
    sys.exit(failed)
