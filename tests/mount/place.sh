# shellcheck shell=bash
# A reader keeps its place: an interruption that does not end it costs it nothing but the way.

file=token

# first COMMAND…: it waits for what $file of orders gives, its pid in $first; another reader waits
# behind it.
first() {
	env --default-signal "$@" > "$d/first" 2> "$d/complaints" &
	first=$!
	waiting orders 1
	reader "orders/$file"
	waiting orders 2
}

# interrupted N: the first one was interrupted N times at least, and waits again.
interrupted() {
	eventually 20 eval "[ \"\$(counter orders cancelled)\" -ge $1 ]" ||
		fail "interrupted only $(counter orders cancelled) times"
	waiting orders 2
}

# calm: a program is told to end its interruptions, or the jobs of a shell are awaited.
calm() {
	: > "$d/first.py.enough"
	[ ! -e "$d/first.py" ] || eventually 30 [ -e "$d/first.py.calm" ] ||
		fail 'it is disturbed for ever'
	eventually 30 eval '! pgrep -r D,R,S -f "^sleep 0\\." > /dev/null' || fail 'a job goes on'
}

# calmed N: likewise, and nothing interrupts it any more, so that it is there when its turn comes.
calmed() {
	local before
	interrupted "$1"
	calm
	until [ "${before-}" = "$(counter orders cancelled)" ]; do
		before=$(counter orders cancelled)
		sleep 1
	done
	waiting orders 2
}

# give [N]: tokens for those whose turn it is.
give() { echo "-${1-1}" > "$m/orders/charge"; }

# served_first [WHAT]: the next token is that of the one that came first, and the one after that of
# the other.
served_first() {
	give
	gone "$first" 20 || fail "the first one failed: $(cat "$d/complaints")"
	is 'what came first' "$(cat "$d/first")" "${1-1}"
	counts orders waiting 1
	is 'what came second' "$(cat "$d/got")" ''
	give
	gone "$reader" 20
	is 'what came second' "$(cat "$d/got")" 1
}

# ending_jobs: the beginning of a shell script with jobs that end while it does what follows.
ending_jobs() { printf 'sleep 0.%s & ' 5 7 9 11 13 15 17 19; }

case_a_script_of_bash_with_ending_jobs_waits_as_long_as_a_plain_one() {
	start
	empty orders 2
	first bash -c "$(ending_jobs) read -r got < '$m/orders/token'; echo \$got"
	calmed 3
	served_first
}

case_a_script_of_dash_with_ending_jobs_keeps_its_place() {
	start
	empty orders 2
	first dash -c "$(ending_jobs) read -r got < '$m/orders/token'; echo \$got"
	calmed 1
	served_first
}

case_a_reader_stopped_and_continued_keeps_its_place() {
	start
	empty orders 2
	first cat "$m/orders/token"
	local i
	for i in 1 2 3 4 5; do
		kill -STOP "$first"
		eventually 10 grep -q '^State:.*T' "/proc/$first/status"
		kill -CONT "$first"
		waiting orders 2
	done
	calmed 5
	served_first
}

case_a_traced_reader_keeps_its_place() {
	start
	empty orders 2
	first cat "$m/orders/token"
	python3 - "$first" <<- 'EOF'
		import ctypes, os, sys
		SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17
		libc = ctypes.CDLL(None, use_errno=True)
		number, pointer = ctypes.c_int, ctypes.c_void_p
		libc.ptrace.argtypes = [ctypes.c_long, number, pointer, pointer]
		pid = int(sys.argv[1])
		def ptrace(request):
		    failed = libc.ptrace(request, pid, None, None)
		    assert not failed, os.strerror(ctypes.get_errno())
		ptrace(SEIZE)
		ptrace(INTERRUPT)
		os.waitpid(pid, 0x40000000)
		ptrace(DETACH)
	EOF
	calmed 1
	served_first
}

# program TEXT: the first one is a program of python; path is what it reads. It has read(FD), which
# tells of EINTR, once(FD), which reads until it is interrupted, and disturbed(), after which it is
# interrupted until calm.
program() {
	cat - <(echo "$1") > "$d/first.py" <<- 'EOF'
		import ctypes, errno, os, signal, sys, threading, time
		libc = ctypes.CDLL(None, use_errno=True)
		limiter, path = sys.argv[1:]
		def read(fd):
		    text = ctypes.create_string_buffer(16)
		    got = libc.read(fd, text, 16)
		    if got < 0:
		        return errno.errorcode[ctypes.get_errno()]
		    return text.value.decode().strip()
		def told(what):
		    while not os.path.exists(sys.argv[0] + what):
		        time.sleep(0.02)
		def tell(what):
		    open(sys.argv[0] + what, "w")
		def once(fd):
		    assert read(fd) == "EINTR"
		    signal.signal(signal.SIGALRM, signal.SIG_IGN)
		    tell(".once")
		def calm():
		    told(".enough")
		    signal.setitimer(signal.ITIMER_REAL, 0)
		    tell(".calm")
		def disturbed():
		    signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
		    threading.Thread(target=calm).start()
		signal.signal(signal.SIGALRM, lambda *_: None)
		signal.siginterrupt(signal.SIGALRM, True)
	EOF
	first python3 -u "$d/first.py" "$m/orders" "$m/orders/$file"
}

case_a_python_program_with_a_handler_keeps_its_place() {
	start
	empty orders 2
	program 'disturbed(); print(open(path).read().strip())'
	calmed 5
	served_first
}

case_a_reader_of_stream_keeps_its_place() {
	start
	empty orders 2
	file=stream
	program 'disturbed(); print(os.read(os.open(path, os.O_RDONLY), 1).decode())'
	calmed 5
	served_first
}

case_a_reader_of_several_tokens_keeps_its_place() {
	start
	empty orders 4
	file=take/2
	program 'disturbed(); print(open(path).read().strip())'
	calmed 5
	give 2
	gone "$first" 20
	is 'what came first' "$(cat "$d/first")" 2
	counts orders waiting 1
}

# in_order: a reader of $file that is disturbed stands before one that came later, and both are
# served, once COMMAND… gives a token a second.
in_order() {
	program 'disturbed(); open(path).read()'
	kill "$reader"
	waiting orders 1
	python3 -c 'import sys; open(sys.argv[1]).read()' "$m/orders/$file" &
	reader=$!
	waiting orders 2
	calm
	waiting orders 2
	is 'the order of those who wait' "$(awk '!/^#/ { print $1 }' "$m/orders/waiters")" \
		"$first"$'\n'"$reader"
	"$@"
	gone "$first" 20
	gone "$reader" 20
}

case_a_reader_in_a_key_keeps_its_place() {
	start
	limiter orders
	echo 1 > "$m/orders/key_burst"
	echo 1/d > "$m/orders/key_rate"
	is 'a token of the key' "$(cat "$m/orders/keys/ann/token")" 1
	file=keys/ann/token
	raise() { echo 1/s > "$m/orders/key_rate"; }
	in_order raise
}

case_a_reader_in_a_partition_keeps_its_place() {
	start
	limiter orders 4/d 4
	echo 4 > "$m/orders/partitions/count"
	file=partitions/2/token
	while [ "$("$CLIENT" peek "$m/orders/$file")" = 1 ]; do :; done
	raise() { echo 4/s > "$m/orders/rate"; }
	in_order raise
}

case_an_opener_of_a_slot_keeps_its_place() {
	start
	limiter orders
	echo 1 > "$m/orders/concurrency"
	exec 3< "$m/orders/slot"
	env --default-signal bash -c \
		"$(ending_jobs) exec 4< '$m/orders/slot'; echo first > '$d/first'; sleep 100" 3<&- &
	first=$!
	waiting orders 1
	env --default-signal \
		bash -c "exec 4< '$m/orders/slot'; echo second > '$d/second'; sleep 100" 3<&- &
	calmed 3
	exec 3<&-
	eventually 20 [ -e "$d/first" ] || fail 'the first one has no slot'
	[ ! -e "$d/second" ] || fail 'two slots of one'
	counts orders waiting 1
}

# program_once TEXT: a program is interrupted once, when both wait, and does that then.
program_once() {
	program "fd = os.open(path, os.O_RDONLY); once(fd)
$1"
	eventually 20 eval 'kill -ALRM "$first"; [ -e "$d/first.py.once" ]' ||
		fail 'it is not interrupted'
}

case_through_another_open_file_the_place_is_the_same_and_one_only() {
	start
	empty orders 3
	program_once '
again = os.open(path, os.O_RDONLY)
def read_too():
    while "\nwaiting 2\n" not in open(limiter + "/stat").read():
        pass
    read(fd)
also = threading.Thread(target=read_too)
also.start()
print(read(again), flush=True)
also.join()'
	waiting orders 3
	give
	eventually 20 [ -s "$d/first" ] || fail 'the first one has no token'
	is 'what came second' "$(cat "$d/got")" ''
	give
	gone "$reader" 20
	counts orders waiting 1
	give
	gone "$first" 20
}

case_an_absent_reader_holds_up_no_other_and_has_its_place_for_a_second() {
	start
	empty orders 3
	program_once '
open(limiter + "/charge", "w").write("-1")
time.sleep(0.2)
print(read(fd))'
	gone "$reader" 20
	is 'what came second' "$(cat "$d/got")" 1
	waiting orders 1
	reader orders/token
	waiting orders 2
	served_first
}

case_a_place_is_gone_after_a_second() {
	start
	empty orders 3
	program_once '
told(".again")
print(read(fd))'
	waiting orders 1
	sleep 1.2
	: > "$d/first.py.again"
	waiting orders 2
	give
	gone "$reader" 20
	counts orders waiting 1
	is 'what came first' "$(cat "$d/first")" ''
	give
	gone "$first" 20
}

case_a_killed_reader_gets_nothing_and_holds_up_no_other() {
	start
	empty orders 2
	first cat "$m/orders/token"
	kill -9 "$first"
	waiting orders 1
	give
	gone "$reader" 20
	is 'what came second' "$(cat "$d/got")" 1
	counts orders granted 3
}

case_a_limit_on_the_time_ends_for_one_that_is_interrupted_again_and_again() {
	start local
	empty orders 2
	# As things stand it would be granted in time; then a lower rate makes it wait in vain.
	python3 - "$m/orders" <<- 'EOF'
		import errno, os, signal, sys, time
		limiter = sys.argv[1]
		def rate(value):
		    with open(limiter + "/rate", "w") as rate:
		        rate.write(value)
		signal.signal(signal.SIGALRM, lambda *_: rate("1/d"))
		rate("1/1900ms")
		signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
		began = time.monotonic()
		fd = os.open(limiter + "/take/1,within=2s", os.O_RDONLY)
		try:
		    assert not os.read(fd, 16), "a token out of nothing"
		except OSError as error:
		    assert error.errno == errno.EBUSY and time.monotonic() - began > 1.9
		signal.setitimer(signal.ITIMER_REAL, 0) # at its end Python takes the handler away
	EOF
	[ "$(counter orders cancelled)" -ge 3 ] ||
		fail "interrupted only $(counter orders cancelled) times"
	counts orders refused 1
}

case_the_waiting_of_one_that_came_back_is_listed_in_order_and_from_its_beginning() {
	start
	empty orders 2
	first cat "$m/orders/token"
	sleep 1
	kill -STOP "$first"
	eventually 10 grep -q '^State:.*T' "/proc/$first/status"
	kill -CONT "$first"
	calmed 1
	is 'who waits' "$(awk '!/^#/ { printf "%s ", $1 }' "$m/orders/waiters")" "$first $reader "
	awk -v pid="$first" '$1 == pid && $4 < 1 { exit 1 }' "$m/orders/waiters" ||
		fail "$(cat "$m/orders/waiters")"
	served_first
	is 'delayed of a second and more' "$(counter orders delayed_seconds |
		awk '{ print ($1 >= 2) }')" 1
}

case_the_next_server_knows_readers_that_came_back() {
	outlives
	empty orders 2
	program 'disturbed(); print(open(path).read().strip())'
	calmed 5
	killed
	waiting orders 2
	like waiters "$(awk '!/^#/ { printf "%s ", $1 }' "$m/orders/waiters")" " $reader "'$'
	killed
	waiting orders 2
	served_first
}

case_the_next_server_knows_readers_about_to_come_back() {
	outlives
	empty orders 2
	first cat "$m/orders/token"
	kill -STOP "$first"
	eventually 10 grep -q '^State:.*T' "/proc/$first/status"
	waiting orders 1
	killed
	kill -CONT "$first"
	calmed 1
	served_first
}

case_a_reader_in_a_process_namespace_of_its_own_keeps_its_place() {
	start
	empty orders 2
	first unshare --pid --fork --kill-child \
		bash -c "$(ending_jobs) read -r got < '$m/orders/token'; echo \$got"
	calmed 3
	served_first
}

# The daemon is in a process namespace of its own, and sees no thread of those outside.
case_where_threads_are_not_seen_the_open_file_counts() {
	# Nor does it see its own threads, which the search for leaks would have to.
	ASAN_OPTIONS+=:detect_leaks=0
	unshare --pid --fork --kill-child "$RATEFS" -f local "$m" >> "$d/log" 2>&1 &
	eventually 20 mountpoint -q "$m"
	minor=$(mountpoint -d "$m" | cut -d: -f2)
	empty orders 3
	program 'disturbed(); print(open(path).read().strip())'
	is 'the thread as seen by the daemon' \
		"$(awk '!/^#/ { print $1; exit }' "$m/orders/waiters")" 0
	calmed 5
	served_first
	umount "$m"
}

# The server's thread that stores settings is stopped meanwhile: a change takes its time.
case_a_change_is_not_interrupted() {
	start "local:$d/kept"
	limiter orders 5/s
	python3 - "$m" "$(server)" <<- 'EOF'
		import ctypes, os, signal, socket, sys, time
		SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17
		libc = ctypes.CDLL(None, use_errno=True)
		number, pointer = ctypes.c_int, ctypes.c_void_p
		libc.ptrace.argtypes = [ctypes.c_long, number, pointer, pointer]
		mount, server = sys.argv[1], int(sys.argv[2])
		orders = mount + "/orders"
		# The thread that stores, and under a sanitizer its own.
		tasks = [int(task) for task in os.listdir("/proc/%d/task" % server)]
		others = [task for task in tasks if task != server]
		assert others
		def ptrace(request):
		    for task in others:
		        failed = libc.ptrace(request, task, None, None)
		        assert not failed, os.strerror(ctypes.get_errno())
		signals = []
		signal.signal(signal.SIGALRM, lambda *_: signals.append(1))
		signal.siginterrupt(signal.SIGALRM, True)
		def write(path, text):
		    fd = os.open(path, os.O_WRONLY)
		    return libc.write(fd, text, len(text))
		more, less = (mount + "/more").encode(), (mount + "/less").encode()
		changes = {
		    "write": lambda: write(orders + "/rate", b"7/s") == 3,
		    "mkdir": lambda: libc.mkdir(more, 0o755) == 0,
		    "rename": lambda: libc.rename(more, less) == 0,
		    "chmod": lambda: libc.chmod(less, 0o700) == 0,
		    "rmdir": lambda: libc.rmdir((mount + "/less").encode()) == 0,
		}
		for name, change in changes.items():
		    signals.clear()
		    # The tracer has to be the thread that goes on, so the change has a process of
		    # its own.
		    here, there = socket.socketpair()
		    pid = os.fork()
		    if not pid:
		        there.recv(1)
		        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
		        there.send(b"!")
		        done = change()
		        error = os.strerror(ctypes.get_errno())
		        signal.setitimer(signal.ITIMER_REAL, 0)
		        if not done:
		            print(name, error, file=sys.stderr)
		        os._exit(0 if done and signals else 1 + bool(signals))
		    ptrace(SEIZE)
		    ptrace(INTERRUPT)
		    for task in others:
		        os.waitpid(task, 0x40000000)
		    here.send(b"!")
		    here.recv(1)
		    time.sleep(1)
		    ptrace(DETACH)
		    assert os.waitpid(pid, 0)[1] == 0, name
	EOF
	is rate "$(cat "$m/orders/rate")" 7/s
	is 'last error' "$(cat "$m/last_error")" ''
}

# As with the sysctl set, which would be so for all mounts of the machine: the daemon believes this
# file.
case_readers_near_the_limit_of_the_kernel_on_requests_keep_their_places() {
	echo 4 > "$d/limit"
	mount --bind "$d/limit" /proc/sys/fs/fuse/default_request_timeout ||
		skip 'a kernel without that sysctl'
	start
	umount /proc/sys/fs/fuse/default_request_timeout
	is 'the limit' "$(status_of request_timeout_seconds)" 4
	empty orders 2
	first python3 -c 'import sys; print(open(sys.argv[1]).read().strip())' "$m/orders/token"
	kill "$reader"
	waiting orders 1
	sleep 0.7
	python3 -c 'import sys; print(open(sys.argv[1]).read().strip())' "$m/orders/token" \
		> "$d/got" &
	reader=$!
	interrupted 5
	[ "$(counter orders cancelled)" -lt 20 ] || fail 'interrupted again and again'
	served_first
}
