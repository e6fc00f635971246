# shellcheck shell=bash
# Readers that are blocked: how they wake, are interrupted, polled, and how many there can be.

# killed SIGNAL: readers blocked on each kind of file are ended by it soon, and spend nothing.
killed() {
	local file
	start
	empty orders
	for file in token stream take/5 token; do
		env --default-signal cat "$m/orders/$file" > "$d/got" &
		local pid=$!
		waiting orders 1
		kill "-$1" $pid
		gone $pid 20 2> /dev/null && fail "cat ended well after $1"
		is "read from $file" "$(cat "$d/got")" ''
		waiting orders 0
	done
	counts orders cancelled 4
	counts orders granted 1
	echo 5 > "$m/orders/burst"
	echo -1 > "$m/orders/charge"
	is 'the next token' "$(cat "$m/orders/try")" 1
}

case_a_reader_killed_by_sigint_is_gone_and_spends_nothing() { killed INT; }
case_a_reader_killed_by_sigterm_is_gone_and_spends_nothing() { killed TERM; }
case_a_reader_killed_by_sigkill_is_gone_and_spends_nothing() { killed KILL; }

case_a_signal_with_a_handler_interrupts_a_blocked_read() {
	start
	empty orders
	python3 - "$m/orders" <<- 'EOF'
		import errno, os, signal, sys, ctypes
		libc = ctypes.CDLL(None, use_errno=True)
		signal.signal(signal.SIGALRM, lambda *_: None)
		signal.siginterrupt(signal.SIGALRM, True)
		signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
		fd = os.open(sys.argv[1] + "/token", os.O_RDONLY)
		got = libc.read(fd, ctypes.create_string_buffer(16), 16)
		error = ctypes.get_errno()
		signal.setitimer(signal.ITIMER_REAL, 0) # at its end Python takes the handler away
		assert (got, error) == (-1, errno.EINTR), (got, error)
	EOF
	counts orders cancelled 1
	counts orders granted 1
	counts orders waiting 0
}

case_a_reader_stopped_and_continued_gets_one_token() {
	start
	empty orders
	env --default-signal cat "$m/orders/token" > "$d/got" &
	local pid=$! i
	waiting orders 1
	for i in 1 2 3; do
		kill -STOP $pid
		eventually 10 grep -q '^State:.*T' /proc/$pid/status
		kill -CONT $pid
		waiting orders 1
	done
	echo 1000/s > "$m/orders/rate"
	gone $pid 20
	is read "$(cat "$d/got")" 1
	counts orders granted 2
}

case_control_z_and_fg_at_a_terminal_give_one_token() {
	start
	empty orders
	python3 - "$m/orders" <<- 'EOF'
		import os, pty, select, sys, time
		limiter = sys.argv[1]
		pid, terminal = pty.fork()
		if pid == 0:
		    os.environ["PS1"] = "ready> "
		    os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
		said = b""
		def expect(what):
		    global said
		    until = time.monotonic() + 20
		    while what not in said:
		        assert time.monotonic() < until, (what, said)
		        if select.select([terminal], [], [], 0.1)[0]:
		            said += os.read(terminal, 4096)
		    said = said[said.index(what) + len(what):]
		def counter(name):
		    return dict(line.split() for line in open(limiter + "/stat"))[name]
		def waiting(n):
		    until = time.monotonic() + 20
		    while counter("waiting") != n:
		        assert time.monotonic() < until, counter("waiting")
		        time.sleep(0.02)
		expect(b"ready> ")
		os.write(terminal, b"cat %s/token; echo got\\\\ $?\n" % limiter.encode())
		waiting("1")
		os.write(terminal, b"\x1a")
		expect(b"Stopped")
		expect(b"ready> ")
		os.write(terminal, b"fg\n")
		waiting("1")
		open(limiter + "/rate", "w").write("1000/s")
		expect(b"1\r\n")
		expect(b"ready> ")
		os.write(terminal, b"exit\n")
		os.waitpid(pid, 0)
	EOF
	counts orders granted 2
	counts orders waiting 0
}

# polled WAY: token and stream are readable when a token is there, not before.
polled() {
	start
	empty tokens
	empty streams
	python3 - "$m" "$1" <<- 'EOF'
		import os, select, sys
		mount, way = sys.argv[1:]
		def readable(fd, seconds):
		    if way == "select":
		        return bool(select.select([fd], [], [], seconds)[0])
		    if way == "poll":
		        p = select.poll()
		        p.register(fd, select.POLLIN)
		        return bool(p.poll(seconds * 1000))
		    return bool(epolls[fd].poll(seconds))
		def write(name, value):
		    with open(limiter + "/" + name, "w") as f:
		        f.write(value)
		epolls = {}
		for name in "token", "stream":
		    limiter = "%s/%ss" % (mount, name)
		    fd = os.open(limiter + "/" + name, os.O_RDONLY | os.O_NONBLOCK)
		    if way == "epoll":
		        epolls[fd] = select.epoll()
		        epolls[fd].register(fd, select.EPOLLIN)
		    for turn in range(3):
		        assert not readable(fd, 0.1), (name, turn)
		        try:
		            os.pread(fd, 16, 0)
		            assert False, "a token out of nothing"
		        except BlockingIOError:
		            pass
		        write("charge", "-1")
		        assert readable(fd, 20), (name, turn)
		        assert readable(fd, 20), "looking takes nothing"
		        assert os.pread(fd, 16, 0) == b"1\n"
		    write("rate", "20/s")
		    assert readable(fd, 20), "the rate has been raised"
		    write("rate", "1/d")
		    try:
		        os.pread(fd, 16, 0)
		    except BlockingIOError:
		        pass
		    os.close(fd)
	EOF
}

case_select_tells_when_a_token_is_there() { polled select; }
case_poll_tells_when_a_token_is_there() { polled poll; }
case_epoll_tells_when_a_token_is_there() { polled epoll; }

case_a_poller_has_its_turn_beside_readers_that_keep_the_queue_full() {
	start
	limiter orders 50/s
	local reader readers=()
	for reader in 1 2 3 4; do
		cat "$m/orders/stream" > "$d/reader$reader" &
		readers+=($!)
	done
	eventually 20 has orders waiting 4 || fail 'the queue is not full'
	python3 - "$m/orders/token" <<- 'EOF'
		import asyncio, os, select, sys
		def blocks(wait, fd):
		    # A program that comes more than a second late has to wait again.
		    while wait():
		        try:
		            return os.pread(fd, 16, 0)
		        except BlockingIOError:
		            pass
		fd = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)
		poll, level, edge = select.poll(), select.epoll(), select.epoll()
		poll.register(fd, select.POLLIN)
		level.register(fd, select.EPOLLIN)
		ways = {
		    "select": lambda: select.select([fd], [], [], 20)[0],
		    "poll": lambda: poll.poll(20000),
		    "epoll": lambda: level.poll(20),
		}
		for way, wait in ways.items():
		    for turn in range(10):
		        assert blocks(wait, fd) == b"1\n", (way, turn)
		level.close()
		# Told of changes alone: it reads until it is refused.
		edge.register(fd, select.EPOLLIN | select.EPOLLET)
		for turn in range(10):
		    try:
		        while True:
		            os.pread(fd, 16, 0)
		    except BlockingIOError:
		        assert edge.poll(20), ("edge", turn)
		async def take():
		    loop, taken = asyncio.get_running_loop(), asyncio.Queue()
		    def readable():
		        try:
		            taken.put_nowait(os.pread(fd, 16, 0))
		        except BlockingIOError:
		            pass
		    loop.add_reader(fd, readable)
		    for turn in range(10):
		        assert await asyncio.wait_for(taken.get(), 20) == b"1\n", ("asyncio", turn)
		edge.close()
		asyncio.run(take())
	EOF
	kill "${readers[@]}"
	wait "${readers[@]}" 2> /dev/null || :
	eventually 20 has orders waiting 0 || fail "waiting $(counter orders waiting)"
}

case_a_poller_has_one_place_and_makes_way_when_it_closes() {
	start
	empty orders
	python3 - "$m/orders" <<- 'EOF'
		import os, select, sys
		limiter = sys.argv[1]
		def waiting():
		    with open(limiter + "/stat") as stat:
		        return dict(line.split() for line in stat)["waiting"]
		fd = os.open(limiter + "/token", os.O_RDONLY | os.O_NONBLOCK)
		poll = select.poll()
		poll.register(fd, select.POLLIN)
		for turn in range(3):
		    assert not poll.poll(10)
		    assert waiting() == "1", waiting()
		os.close(fd)
		assert waiting() == "0", waiting()
	EOF
}

case_waiters_tells_of_a_poller_and_its_user() {
	start
	empty orders
	python3 - "$m/orders" <<- 'EOF'
		import os, select, sys
		limiter = sys.argv[1]
		fd = os.open(limiter + "/take/1", os.O_RDONLY | os.O_NONBLOCK)
		poll = select.poll()
		poll.register(fd, select.POLLIN)
		assert not poll.poll(10)
		with open(limiter + "/waiters") as waiters:
		    lines = [line.split() for line in waiters]
		assert lines[0] == "# pid uid tokens waited left command".split(), lines
		assert len(lines) == 2 and lines[1][:3] == ["-", str(os.getuid()), "1"], lines
		with open("/proc/self/comm") as comm:
		    assert lines[1][5] == comm.read().strip(), lines
	EOF
}

case_a_poller_within_a_time_is_not_refused_for_its_own_place() {
	start
	limiter orders 1/10s
	cat "$m/orders/token" > /dev/null
	python3 - "$m/orders" <<- 'EOF'
		import os, select, sys
		limiter = sys.argv[1]
		fd = os.open(limiter + "/take/1,within=15s", os.O_RDONLY | os.O_NONBLOCK)
		poll = select.poll()
		poll.register(fd, select.POLLIN)
		for turn in range(3):
		    assert not poll.poll(10)
		try:
		    os.pread(fd, 16, 0)
		    assert False, "a token out of nothing"
		except BlockingIOError:
		    pass
		with open(limiter + "/charge", "w") as charge:
		    charge.write("-1")
		assert poll.poll(20000)
		assert os.pread(fd, 16, 0) == b"1\n"
	EOF
}

case_a_limiter_that_is_polled_can_be_removed() {
	start
	empty orders
	python3 - "$m/orders" <<- 'EOF'
		import errno, os, select, sys
		fd = os.open(sys.argv[1] + "/token", os.O_RDONLY | os.O_NONBLOCK)
		poll = select.epoll()
		poll.register(fd, select.EPOLLIN)
		assert not poll.poll(0)
		os.rmdir(sys.argv[1])
		assert poll.poll(20), "not told"
		try:
		    os.pread(fd, 16, 0)
		    assert False, "a token of nothing"
		except OSError as error:
		    assert error.errno == errno.ENODEV, error
	EOF
}

case_a_poll_of_a_take_waits_until_all_its_tokens_are_there() {
	start
	limiter orders 1/d 10
	cat "$m/orders/take/10" > /dev/null
	python3 - "$m/orders" <<- 'EOF'
		import errno, os, select, sys
		limiter = sys.argv[1]
		def charge(text):
		    with open(limiter + "/charge", "w") as f:
		        f.write(text)
		fd = os.open(limiter + "/take/5", os.O_RDONLY | os.O_NONBLOCK)
		poll = select.poll()
		poll.register(fd, select.POLLIN)
		charge("-4")
		assert not poll.poll(200), "four are there"
		charge("-1")
		assert poll.poll(20000), "five are there"
		assert os.pread(fd, 16, 0) == b"5\n"
		assert not poll.poll(200), "none is there"
		larger = os.open(limiter + "/take/11", os.O_RDONLY | os.O_NONBLOCK)
		poll = select.poll()
		poll.register(larger, select.POLLIN)
		assert poll.poll(20000), "it is refused at once"
		try:
		    os.pread(larger, 16, 0)
		    assert False, "eleven out of nothing"
		except OSError as error:
		    assert error.errno == errno.EINVAL, error
	EOF
	like 'last error' "$(cat "$m/last_error")" 'larger than the burst'
	counts orders granted 15
}

case_a_poll_of_a_take_is_told_when_the_burst_becomes_too_small_for_it() {
	start
	empty orders 10
	limiter orders/express
	python3 - "$m/orders" <<- 'EOF'
		import os, select, sys, threading
		limiter = sys.argv[1]
		def lower():
		    with open(limiter + "/burst", "w") as burst:
		        burst.write("5")
		# A poller that wants less, and has to wait for it, comes first.
		token = os.open(limiter + "/token", os.O_RDONLY | os.O_NONBLOCK)
		others = select.epoll()
		others.register(token, select.EPOLLIN)
		assert not others.poll(0)
		for name in "take/6", "express/take/6":
		    fd = os.open(limiter + "/" + name, os.O_RDONLY | os.O_NONBLOCK)
		    epoll = select.epoll()
		    epoll.register(fd, select.EPOLLIN)
		    assert not epoll.poll(0), name
		    threading.Timer(0.2, lower).start()
		    assert epoll.poll(20), name
		    with open(limiter + "/burst", "w") as burst:
		        burst.write("10")
	EOF
}

# Go makes every file that can be polled one that does not block, and waits for it by epoll.
case_go_reads_a_take_whole() {
	start
	limiter orders 1/d 10
	cat "$m/orders/take/10" > /dev/null
	cat > "$d/take.go" <<- 'EOF'
		package main

		import (
			"fmt"
			"os"
		)

		func main() {
			for _, name := range os.Args[1:] {
				text, err := os.ReadFile(name)
				fmt.Printf("%q %v\n", text, err != nil)
			}
		}
	EOF
	HOME=$d go build -o "$d/take" "$d/take.go"
	"$d/take" "$m/orders/take/3" "$m/orders/take/11" > "$d/got" &
	local reader=$!
	sleep 0.2
	echo -3 > "$m/orders/charge"
	gone $reader 20
	is 'what Go read' "$(cat "$d/got")" '"3\n" false
"" true'
	counts orders granted 13
}

case_a_waiting_poll_is_woken_when_a_token_comes() {
	start
	empty orders
	python3 - "$m/orders" <<- 'EOF'
		import os, select, sys, threading, time
		fd = os.open(sys.argv[1] + "/token", os.O_RDONLY)
		p = select.poll()
		p.register(fd, select.POLLIN)
		def raise_rate():
		    time.sleep(0.3)
		    with open(sys.argv[1] + "/rate", "w") as f:
		        f.write("5/s")
		threading.Thread(target=raise_rate).start()
		assert p.poll(20000)
		assert os.read(fd, 16) == b"1\n"
	EOF
	counts orders granted 2
}

case_polls_of_closed_files_leave_nothing_behind() {
	start
	empty orders
	python3 - "$m/orders" <<- 'EOF'
		import os, select, sys
		for i in range(300):
		    fd = os.open(sys.argv[1] + "/token", os.O_RDONLY)
		    for again in range(3):
		        p = select.poll()
		        p.register(fd, select.POLLIN)
		        assert not p.poll(0)
		    os.close(fd)
	EOF
	echo 1000/s > "$m/orders/rate"
	is token "$(cat "$m/orders/token")" 1
}

case_a_read_that_would_block_is_refused_with_o_nonblock() {
	start
	limiter orders 1/d 3
	: "$(cat "$m/orders/token")" # a host of a fleet has its lease now
	is 'a token that is there' "$("$CLIENT" peek "$m/orders/token")" 1
	is 'a line that is there' "$("$CLIENT" peek "$m/orders/stream")" 1
	denied EAGAIN peek "$m/orders/token"
	denied EAGAIN peek "$m/orders/stream"
	denied EAGAIN peek "$m/orders/take/2"
	# More than the burst is never there.
	denied EINVAL peek "$m/orders/take/4"
	counts orders granted 3
	counts orders refused 3
	counts orders waiting 0
}

case_a_refusal_of_the_file_itself_is_ebusy_with_o_nonblock_too() {
	start
	limiter orders 1/d 2
	echo 1/d > "$m/orders/key_rate"
	: "$(cat "$m/orders/take/2")"
	denied EBUSY read "$m/orders/try"
	denied EBUSY peek "$m/orders/try"
	denied EBUSY peek "$m/orders/keys/alice/try"
	denied EBUSY read "$m/orders/take/2,within=1h"
	denied EBUSY peek "$m/orders/take/2,within=1h"
	counts orders granted 2
	counts orders refused 4
	# It would be granted in time, if it could wait.
	denied EAGAIN peek "$m/orders/take/2,within=30d"
	denied EBUSY peek "$m/orders/take/3,within=1h"
	denied EINVAL peek "$m/orders/take/3,within=30d"
}

case_a_poll_ends_with_the_time_that_within_gives() {
	start local
	empty orders
	python3 - "$m/orders" <<- 'EOF'
		import errno, os, select, sys
		limiter = sys.argv[1]
		def rate(value):
		    with open(limiter + "/rate", "w") as rate:
		        rate.write(value)
		fd = os.open(limiter + "/take/1,within=3s", os.O_RDONLY | os.O_NONBLOCK)
		poll = select.poll()
		poll.register(fd, select.POLLIN)
		# As things stand it would be granted in time; then a lower rate makes it wait in
		# vain.
		rate("1/2900ms")
		assert not poll.poll(0)
		rate("1/d")
		assert not poll.poll(0)
		assert poll.poll(60000), "it goes on polling"
		for _ in range(2):
		    try:
		        os.read(fd, 16)
		        sys.exit("a token out of nothing")
		    except OSError as error:
		        assert error.errno == errno.EBUSY, error
	EOF
	counts orders refused 2
	counts orders waiting 0
}

case_a_blocking_read_is_refused_when_its_polls_took_the_time_that_within_gives() {
	start local
	empty orders
	python3 - "$m/orders" <<- 'EOF'
		import errno, os, select, sys
		limiter = sys.argv[1]
		def rate(value):
		    with open(limiter + "/rate", "w") as rate:
		        rate.write(value)
		fd = os.open(limiter + "/take/1,within=3s", os.O_RDONLY)
		poll = select.poll()
		poll.register(fd, select.POLLIN)
		rate("1/2900ms")
		assert not poll.poll(0)
		rate("1/d")
		assert poll.poll(60000), "it goes on polling"
		# As things stand now it would be granted in three seconds more.
		rate("1/2900ms")
		try:
		    os.read(fd, 16) # on a busy machine a token may be there by then
		except OSError as error:
		    assert error.errno == errno.EBUSY, error
		    # Once is enough: from here on a poll tells of a token, which is there.
		    if poll.poll(0):
		        os.read(fd, 16)
	EOF
	like 'the time that it waited for a token' "$(counter orders delayed_seconds)" '^0(\.0+)?$'
}

case_o_nonblock_does_not_overtake_waiters() {
	start
	empty orders 5
	reader orders/take/5
	waiting orders 1
	echo -3 > "$m/orders/charge"
	denied EAGAIN peek "$m/orders/token"
	denied EBUSY read "$m/orders/try"
	denied EBUSY read "$m/orders/take/1,within=1s"
	echo -2 > "$m/orders/charge"
	gone $reader 20
	is read "$(cat "$d/got")" 5
}

# many: ten thousand blocked readers, $! their process.
many() {
	start
	empty orders
	crowds_take_turns
	"$CLIENT" crowd 10000 "$m/orders/token" > "$d/got" &
	crowd=$!
	eventually 40 eval 'has orders waiting 10000 || ! alive $crowd' ||
		fail "only $(counter orders waiting) wait"
	if ! alive $crowd; then
		local status=0
		wait $crowd || status=$?
		is "status of the crowd ($(cat "$d/got"))" $status 77
		skip 'no ten thousand threads here'
	fi
	is 'lines in waiters' "$(grep -c '^[0-9]' "$m/orders/waiters")" 10000
}

case_ten_thousand_blocked_readers_are_cancelled() {
	many
	local began
	began=$(milliseconds)
	kill -9 $crowd
	wait $crowd 2> /dev/null || :
	waiting orders 0
	echo "# gone after $(($(milliseconds) - began)) ms"
	counts orders cancelled 10000
	counts orders granted 1
}

case_ten_thousand_blocked_readers_are_granted() {
	many
	local began
	began=$(milliseconds)
	echo max > "$m/orders/rate"
	gone $crowd 40
	echo "# granted after $(($(milliseconds) - began)) ms"
	is ended "$(cat "$d/got")" 'granted 10000 interrupted 0 refused 0 other 0'
	counts orders granted 10001
	counts orders waiting 0
	counts orders cancelled 0
}

case_ten_thousand_blocked_readers_do_not_hold_up_the_others() {
	many
	limiter other
	local began i
	began=$(milliseconds)
	for i in {1..50}; do
		read -r _ < "$m/other/token"
	done
	echo "# 50 tokens in $(($(milliseconds) - began)) ms"
	reader orders/token
	waiting orders 10001
	kill -9 $reader
	waiting orders 10000
	kill -9 $crowd
	waiting orders 0
}

case_ten_thousand_blocked_readers_end_with_the_daemon() {
	many
	stop TERM
	gone $crowd 20
	like ended "$(cat "$d/got")" '^granted 0 .* other 10000$'
}

# asynchronous KIND: many reads from one client that is then killed. The kernel may let one wait at
# a time, or wait by poll, or answer with nothing at all.
asynchronous() {
	start
	empty orders
	limiter other
	local status=0
	"$CLIENT" "$1" 200 "$m/orders/token" > "$d/got" &
	local pid=$!
	sleep 0.5
	if alive $pid; then
		echo "# $(counter orders waiting) of 200 reads wait in the queue"
	else
		wait $pid || status=$?
		[ $status != 77 ] || skip "no $1 here"
		is 'without a token to have' "$status $(cat "$d/got")" '0 tokens 0'
	fi
	for _ in {1..30}; do
		read -r _ < "$m/other/token"
	done
	kill -9 $pid 2> /dev/null || :
	gone $pid 20 2> /dev/null || :
	waiting orders 0
	counts orders granted 1
	echo 1000/s > "$m/orders/rate"
	sleep 0.2
	counts orders granted 1
	is 'the next token' "$(cat "$m/orders/token")" 1
}

case_a_client_with_asynchronous_reads_leaves_nothing_waiting_when_killed() { asynchronous aio; }
case_a_client_with_io_uring_leaves_nothing_waiting_when_killed() { asynchronous uring; }

# io_uring asks again after a short read, and for FUSE files at the same place: a larger buffer gets
# two tokens.
case_asynchronous_reads_spend_what_they_get() {
	start
	limiter orders 1/h 1000
	local kind spent=0 got
	for kind in aio uring; do
		got=$("$CLIENT" $kind 100 "$m/orders/token") || continue
		echo "# $kind: $got by 100 reads"
		spent=$((spent + ${got#tokens }))
		counts orders granted $spent
	done
}

case_waiters_lists_blocked_readers_in_order() {
	start -o allow_other
	chmod 711 "$d" "$(dirname "$d")"
	limiter orders 1/h 1
	: "$(cat "$m/orders/token")"
	reader orders/take/2
	local first=$reader
	waiting orders 1
	setpriv --reuid=nobody --clear-groups cat "$m/orders/token" > /dev/null &
	local second=$!
	waiting orders 2
	echo "# $(tail -n 2 "$m/orders/waiters" | head -n 1)"
	like waiters "$(grep '^[0-9]' "$m/orders/waiters")" \
		"^$first +0 +2 +[0-9.]+ +[0-9.]+ client"$'\n'"$second +$(id \
		-u nobody) +1 +[0-9.]+ +[0-9.]+ cat\$"
	kill -9 $first $second
	waiting orders 0
	is 'nobody left' "$(grep -c '^[0-9]' "$m/orders/waiters")" 0
}

case_delays_of_readers_are_summed() {
	start
	empty orders
	reader orders/token
	waiting orders 1
	sleep 0.5
	echo 1000/s > "$m/orders/rate"
	gone $reader 20
	awk "BEGIN { exit !($(counter orders delayed_seconds) >= 0.5) }" ||
		fail "$(counter orders delayed_seconds) s"
	counts orders served 2
}
