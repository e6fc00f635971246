# shellcheck shell=bash
# What one user does to the daemon must not reach another, nor its memory. Times are compared with
# those from before, generously.

reader=() # of events, in follow()
nobody=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
as_nobody() { "${nobody[@]}" "$@"; }

# open_to_all [OPTIONS…] [SOURCE]: and a limiter `other`, of the user who must be served.
open_to_all() {
	start -o allow_other "$@"
	chmod 711 "$d" "$(dirname "$d")" "$(dirname "$CLIENT")"
	chmod 755 "$CLIENT"
	limiter other
}

# Sanitizers keep what was freed for a while.
is_sanitized() {
	grep -qE 'lib(a|t)san' "/proc/$daemon/maps" ||
		[ "$(awk '/^VmSize/ { print $2 }' "/proc/$daemon/status")" -gt 1000000000 ]
}

# memory: the server's own and what it keeps for the next, in KiB.
memory() { awk '/^Rss(Anon|Shmem)/ { sum += $2 } END { print sum }' "/proc/$(server)/status"; }

# no_more_than KIB BEFORE: it has grown since.
no_more_than() {
	local now
	now=$(memory)
	echo "# $2 KiB before, $now KiB after"
	is_sanitized || [ "$now" -le $(($2 + $1)) ] || fail "memory has grown from $2 to $now KiB"
}

# served BEFORE_MS: 300 tokens of another user; they may take 20 times as long, and 2 seconds.
served() {
	local took
	took=$("$CLIENT" turns 300 "$m/other/token")
	echo "# 300 tokens took $1 ms before, $took ms now"
	[ "$took" -le $(($1 * 20 + 2000)) ] || fail "300 tokens took $took ms"
}

case_twenty_thousand_readers_of_one_user_do_not_starve_another() {
	open_to_all
	empty orders
	local before crowds=() i
	before=$("$CLIENT" turns 300 "$m/other/token")
	crowds_take_turns
	for i in 1 2; do
		setpriv --reuid=nobody --regid=nogroup --clear-groups "$CLIENT" crowd 10000 \
			"$m/orders/token" > "$d/got$i" &
		crowds+=($!)
	done
	eventually 50 eval \
		'has orders waiting 20000 || ! alive ${crowds[0]} || ! alive ${crowds[1]}' ||
		fail "only $(counter orders waiting) wait"
	has orders waiting 20000 || skip 'no twenty thousand threads here'
	served "$before"
	# The list of its own readers that it may read is long.
	(while :; do as_nobody cat "$m/orders/waiters" "$m/metrics" "$m/status" > /dev/null; done) &
	local looker=$!
	served "$before"
	kill $looker
	kill -9 "${crowds[@]}"
	wait "${crowds[@]}" 2> /dev/null || :
	served "$before"
	waiting orders 0
}

# A server that was stopped finds 200 reads of one user in the queue, and behind them one of
# another, which gets one of 60 tokens.
case_users_are_served_in_turn() {
	open_to_all
	limiter orders 1/d 60
	local server queue=/sys/fs/fuse/connections/$minor/waiting
	server=$(server)
	mkfifo "$d/begin"
	chmod 644 "$d/begin"
	"${nobody[@]}" /usr/bin/python3 - "$m/orders/token" "$d/begin" > "$d/open" << 'END' &
import os, sys, threading
files = [os.open(sys.argv[1], os.O_RDONLY) for _ in range(200)]
print("open", flush=True)
os.open(sys.argv[2], os.O_RDONLY)
for file in files: threading.Thread(target=os.read, args=[file, 16], daemon=True).start()
threading.Event().wait()
END
	local crowd=$!
	eventually 20 [ -s "$d/open" ]
	exec 5< "$m/orders/token"
	kill -STOP "$server"
	: > "$d/begin"
	eventually 20 eval "[ \$(cat $queue) -ge 200 ]" || fail "$(cat "$queue") requests wait"
	cat <&5 > "$d/token" &
	local reader=$!
	eventually 20 eval "[ \$(cat $queue) -ge 201 ]" || fail "$(cat "$queue") requests wait"
	kill -CONT "$server"
	eventually 20 [ -s "$d/token" ] ||
		fail "root has no token, nobody $(counter orders granted)"
	kill -9 $crowd $reader
	wait $crowd $reader 2> /dev/null || :
}

case_polls_of_one_user_delay_no_event_of_another() {
	open_to_all
	mkdir "$m/own"
	chown nobody "$m/own"
	"${nobody[@]}" /usr/bin/python3 - "$m/own/pressure" > "$d/open" << 'END' &
import os, resource, select, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000))
epoll = select.epoll()
for _ in range(15000):
    file = os.open(sys.argv[1], os.O_RDWR)
    os.write(file, b"some 500000 500000")
    epoll.register(file, select.EPOLLPRI)
print("open", flush=True)
epoll.poll()
END
	local crowd=$! begun took
	eventually 60 [ -s "$d/open" ]
	begun=${EPOCHREALTIME/./}
	/usr/bin/python3 - "$m" << 'END' || fail 'an event is missing'
import os, select, sys
events = os.open(sys.argv[1] + "/events", os.O_RDONLY | os.O_NONBLOCK)
os.read(events, 4096)  # its first line
epoll = select.epoll()
epoll.register(events, select.EPOLLIN)
for burst in range(2, 42):
    assert not epoll.poll(0)  # it is watched
    with open(sys.argv[1] + "/other/burst", "w") as file:
        file.write(f"{burst}\n")
    assert epoll.poll(20)
    while True:
        try:
            os.read(events, 4096)
        except BlockingIOError:
            break
END
	took=$(((${EPOCHREALTIME/./} - begun) / 1000))
	echo "# 40 events took $took ms"
	[ $took -lt 5000 ] || fail 'each waits for all polls of another'
	kill $crowd
	wait $crowd 2> /dev/null || :
}

# reads FILE COUNT: opens it so often, says so, and reads all at once when it may begin.
reads() {
	"${@:3}" /usr/bin/python3 - "$1" "$2" "$d/begin" << 'END'
import os, sys, threading
files = [os.open(sys.argv[1], os.O_RDONLY) for _ in range(int(sys.argv[2]))]
print("open", flush=True)
os.open(sys.argv[3], os.O_RDONLY)
texts = []
threads = [threading.Thread(target=lambda file=file: texts.append(os.read(file, 1 << 20)))
           for file in files]
for thread in threads: thread.start()
for thread in threads: thread.join()
for text in texts: sys.stdout.write(text.decode())
END
}

# A server that was stopped finds 8 pages of metrics of one user, and 8 tokens of another. The pages
# tell how many tokens came before. Of some rounds one suffices: time may pass.
case_a_user_rests_after_a_slow_request_while_others_ask() {
	open_to_all
	limiter orders 1/d 10000
	for i in {1..50}; do limiter "$(printf %0200d "$i")" 1/s; done
	local queue=/sys/fs/fuse/connections/$minor/waiting server round before
	local -a granted
	server=$(server)
	mkfifo "$d/begin"
	chmod 644 "$d/begin"
	for round in {1..10}; do
		before=$(counter orders granted)
		: > "$d/pages"
		: > "$d/tokens"
		reads "$m/metrics" 8 "${nobody[@]}" > "$d/pages" &
		local pages=$!
		reads "$m/orders/token" 8 > "$d/tokens" &
		local tokens=$!
		eventually 20 eval '[ -s "$d/pages" ] && [ -s "$d/tokens" ]'
		kill -STOP "$server"
		: > "$d/begin"
		eventually 20 eval "[ \$(cat $queue) -ge 16 ]" || fail "$(cat "$queue") wait"
		kill -CONT "$server"
		wait $pages $tokens
		mapfile -t granted < <(
			sed -n 's/^ratefs_granted_total{limiter="orders"} //p' "$d/pages" | sort -n
		)
		is pages ${#granted[@]} 8
		[ "${granted[2]}" -lt $((before + 8)) ] || return 0
	done
	fail "tokens in the pages: ${granted[*]}, before $before"
}

case_readers_that_are_stopped_and_go_on_hold_up_no_other() {
	open_to_all
	empty orders
	local before
	before=$("$CLIENT" turns 300 "$m/other/token")
	setpriv --reuid=nobody --regid=nogroup --clear-groups env --default-signal "$CLIENT" crowd \
		2000 "$m/orders/token" > "$d/got" &
	local crowd=$!
	waiting orders 2000
	kill -STOP $crowd
	served "$before"
	# One that goes on is told that it was interrupted: in time to spare all of them have ended.
	for _ in {1..20}; do
		{ kill -CONT $crowd && kill -STOP $crowd; } 2> /dev/null || break
	done
	eventually 20 eval 'echo max > "$m/orders/rate"' || fail 'the rate cannot be raised'
	served "$before"
	kill -CONT $crowd 2> /dev/null || :
	gone $crowd 30
	is 'granted or interrupted' "$(awk '{ print $2 + $4 }' "$d/got")" 2000
	waiting orders 0
	is 'tokens granted' "$(counter orders granted)" $(($(awk '{ print $2 }' "$d/got") + 1))
}

# Each that leaves five bytes is more than may be left in all.
case_two_hundred_thousand_names_that_are_not_there_leave_nothing() {
	open_to_all
	limiter orders
	local before count=200000
	! is_sanitized || count=50000
	"$CLIENT" probe 1000 "$m/orders" > /dev/null
	before=$(memory)
	is 'at the top' "$(as_nobody "$CLIENT" probe $((count / 4)) "$m")" 0
	is 'in a limiter' "$(as_nobody "$CLIENT" probe $((count / 4)) "$m/orders")" 0
	is 'in take' "$(as_nobody "$CLIENT" probe $((count / 4)) "$m/orders/take")" 0
	is 'in partitions' "$(as_nobody "$CLIENT" probe $((count / 4)) "$m/orders/partitions")" 0
	no_more_than 1024 "$before"
}

case_a_hundred_thousand_keys_of_any_name_stay_in_bounds() {
	open_to_all
	limiter orders
	local before count=100000 there
	! is_sanitized || count=20000
	before=$("$CLIENT" turns 300 "$m/other/token")
	is 'in the tree' "$(as_nobody "$CLIENT" names 1000 "$m")" 0
	there=$(as_nobody "$CLIENT" names $count "$m/orders/keys")
	[ "$there" -gt $((count * 9 / 10)) ] || fail "only $there names of $count are keys"
	served "$before"
	[ "$(counter orders keys)" -le 65536 ] ||
		fail "$(counter orders keys) keys that nobody has used"
	is token "$(cat "$m/orders/keys/mine/token")" 1
	as_nobody ls "$m/orders/keys" > /dev/null
	eventually 30 has orders keys 0 || fail "$(counter orders keys) keys are left"
}

case_polls_that_are_left_leave_nothing() {
	open_to_all
	empty orders
	local before count=20000
	! is_sanitized || count=2000
	as_nobody "$CLIENT" polls 1000 "$m/orders/token"
	as_nobody "$CLIENT" polls 1000 "$m/events"
	before=$(memory)
	as_nobody "$CLIENT" polls $count "$m/orders/token"
	as_nobody "$CLIENT" polls $count "$m/orders/keys/one/stream"
	as_nobody "$CLIENT" polls $count "$m/events"
	no_more_than 1024 "$before"
	mkdir "$m/new"
	echo 1000/s > "$m/orders/rate"
	is token "$(cat "$m/orders/token")" 1
	eventually 10 eval '[ "$(awk "\$1 == \"files\" { print \$2 }" "$m/status")" = 1 ]' ||
		fail 'files are open still'
}

case_pages_that_are_begun_and_left_stay_in_bounds() {
	open_to_all -o user_texts_max=16384
	local before long
	long=$(printf %0200d)
	mkdir "$m/$long"{1..1000}
	as_nobody cat "$m/metrics" > /dev/null
	before=$(memory)
	"${nobody[@]}" python3 - "$m/metrics" > "$d/told" << 'END' &
import os, sys, time
def read_on(file):
    got = 1
    while more := len(os.read(file, 1 << 20)): got += more
    return got
files = [os.open(sys.argv[1], os.O_RDONLY) for i in range(60)]
# More than the bound allows, if what was read to its end counted.
for file in files[:20]:
    os.read(file, 1)
    assert read_on(file) > 1000000
begun = []
for file in files[20:]:
    try:
        os.read(file, 1)
        begun.append(file)
    except OSError: pass
print(len(begun), flush=True)
time.sleep(100)
END
	eventually 60 [ -s "$d/told" ]
	no_more_than 32768 "$before"
	local begun
	begun=$(cat "$d/told")
	[ "$begun" -gt 5 ] && [ "$begun" -lt 40 ] || fail "$begun pages were begun"
	is 'page of another user' "$(grep -c '^ratefs_granted_total' "$m/metrics")" 1001
	kill $!
}

case_many_pages_of_one_user_keep_none_from_another() {
	open_to_all
	local i crowd before
	mkdir "$m"/l{1..1000}
	before=$("$CLIENT" turns 300 "$m/other/token")
	"${nobody[@]}" python3 - "$m/metrics" > "$d/refused" 2> /dev/null << 'END' &
import errno, os, sys, threading
def ask():
    file = os.open(sys.argv[1], os.O_RDONLY)
    while True:
        try: os.pread(file, 1, 0)
        except OSError as error: os.write(1, (errno.errorcode[error.errno] + "\n").encode())
for i in range(40): threading.Thread(target=ask).start()
END
	crowd=$!
	eventually 40 [ -s "$d/refused" ] || fail 'none of 40 is refused'
	for i in {1..10}; do
		is "pages of root, $i" "$(grep -c '^ratefs_granted_total' "$m/metrics")" 1001
	done
	served "$before"
	kill -9 $crowd
	{ wait $crowd || :; } 2> /dev/null
	is 'the others are refused so' "$(sort -u "$d/refused")" EBUSY
	like last_error "$(as_nobody cat "$m/last_error")" '^user 65534 waits for 16 pages'
	is 'then' "$(as_nobody grep -c '^ratefs_granted_total' "$m/metrics")" 1001
}

case_many_changes_of_one_user_hold_up_no_other() {
	local i before crowd
	# A disk that takes its time: so many changes would wait for more than 2 s.
	cc -shared -fPIC -o "$d/slow.so" -x c - <<- 'END'
		#include <unistd.h>
		#include <sys/syscall.h>
		int fsync(int file) { usleep(20000); return (int)syscall(SYS_fsync, file); }
	END
	LD_PRELOAD="$LD_PRELOAD $d/slow.so" open_to_all -o user_texts_max=8192 "local:$d/kept"
	mkdir "$m"/l{1..300}
	chown nobody "$m"/l*
	before=$(memory)
	"${nobody[@]}" python3 - "$m" > "$d/refused" 2> /dev/null << 'END' &
import errno, os, sys, threading, time
def change(limiter):
    file = os.open(f"{sys.argv[1]}/l{limiter}/config", os.O_WRONLY)
    for burst in range(1, 1000):
        try: os.pwrite(file, b"burst=%d\n" % burst + b"\n" * 60000, 0)
        except OSError as error:
            os.write(1, (errno.errorcode[error.errno] + "\n").encode())
            time.sleep(0.1)
for limiter in range(1, 301): threading.Thread(target=change, args=[limiter]).start()
END
	crowd=$!
	eventually 40 [ -s "$d/refused" ]
	for i in {1..6}; do echo "$i/s" > "$m/other/rate"; done
	no_more_than 16384 "$before"
	kill -9 $crowd
	{ wait $crowd || :; } 2> /dev/null
	is rate "$(cat "$m/other/rate")" 6/s
	like refusals "$(sort -u "$d/refused" | tr '\n' ' ')" '^(ENOSPC |ETIMEDOUT )+$'
}

case_many_followers_of_events_hold_up_no_other() {
	open_to_all
	local before
	before=$("$CLIENT" turns 300 "$m/other/token")
	as_nobody "$CLIENT" crowd 5000 "$m/events" > "$d/got" &
	local crowd=$!
	eventually 40 eval '[ "$(awk "\$1 == \"readers\" { print \$2 }" "$m/status")" = 5000 ] ||
		! alive $crowd' || fail 'they do not wait'
	alive $crowd || skip 'no five thousand threads here'
	served "$before"
	mkdir "$m/new"
	gone $crowd 30
	like got "$(cat "$d/got")" '^granted 5000 '
}

# follow BYTES COMMAND…: a reader of `events`, who has read the head before COMMAND runs, goes on
# once it is done, with as many BYTES in each read.
follow() {
	"${reader[@]}" /usr/bin/python3 - "$m/events" "$@" << 'END'
import os, subprocess, sys
events = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)
os.read(events, 4096)
subprocess.run(sys.argv[3:], check=True)
while True:
    try: os.write(1, os.read(events, int(sys.argv[2])))
    except BlockingIOError: break
END
}

case_a_user_who_changes_without_end_pushes_out_no_change_of_another() {
	open_to_all
	mkdir "$m/theirs"
	chown nobody "$m/theirs"
	flood() {
		as_nobody sh -c 'for i in $(seq 3000); do echo "$i/s" > "$0/rate"; done' "$m/theirs"
	}
	changes() {
		echo 5/s > "$m/other/rate"
		flood
		echo 6/s > "$m/other/rate"
		flood
		mkdir "$m/new"
	}
	export m
	export -f changes flood as_nobody
	follow 100 bash -c "$(declare -p nobody); changes" > "$d/events"
	is 'changes of root' \
		"$(sed '/ theirs /d; s/^[0-9]*\.[0-9]* //' "$d/events" | tr '\n' ,)" \
		"$(printf 'other rate 5/s,lost %d bytes,other rate 6/s,lost %d bytes,new created,' \
			$(grep -o 'lost [0-9]*' "$d/events" | cut -d' ' -f2))"
	is 'of nobody, the last' "$(grep ' theirs ' "$d/events" | tail -n 1 | sed 's/^[^ ]* //')" \
		'theirs rate 3000/s'
	is 'their bytes' "$(($(grep ' theirs ' "$d/events" | wc -c) / 1024))" 63
	follow 100 mkdir "$m/last" > "$d/events"
	is 'a follower from now on' "$(sed 's/^[0-9.]* //' "$d/events")" 'last created'
}

# There is no room for `lost N bytes` in what it reads, and lines that it may not read are between
# those that are lost.
case_a_small_read_gives_no_more_than_the_line_after_a_loss() {
	open_to_all
	local reader=("${nobody[@]}")
	mkdir "$m/theirs"
	chown nobody "$m/theirs"
	chmod 700 "$m/other"
	change() { for i in $(seq "$1"); do echo "$i/s" > "$m/theirs/rate"; done; }
	mkfifo "$d/begun" "$d/done"
	chmod 666 "$d/begun" "$d/done"
	follow 8 sh -c "echo > '$d/begun'; read -r _ < '$d/done'" > "$d/events" &
	local follower=$!
	read -r _ < "$d/begun"
	export m
	export -f change
	as_nobody bash -c 'change 1500'
	echo 5/s > "$m/other/rate"
	as_nobody bash -c 'change 3000'
	echo > "$d/done"
	gone $follower 20
	is 'of root' "$(grep -ac other "$d/events")" 0
	is 'wrong lines' "$(grep -avcE '^[0-9]{10}[.][0-9]{3} theirs rate [0-9]+/s$' "$d/events")" 0
	is 'lines' "$(($(wc -c < "$d/events") / 1024))" 63
}

case_a_giant_write_is_refused_and_leaves_nothing() {
	open_to_all
	limiter orders 500/s
	chmod 777 "$m/orders"
	local before file
	before=$(memory)
	for file in rate config charge; do
		as_nobody python3 - "$m/orders/$file" <<- 'EOF'
			import errno, os, sys
			fd = os.open(sys.argv[1], os.O_WRONLY)
			for size in 1 << 26, 131072, 65537:
			    try:
			        sys.exit("%d bytes are taken" % os.write(fd, b" " * size))
			    except OSError as error:
			        assert error.errno == errno.E2BIG, error
			assert os.write(fd, b"") == 0
			os.ftruncate(fd, 0)
			try:
			    os.ftruncate(fd, 1 << 40)
			except OSError:
			    pass
		EOF
	done
	no_more_than 2048 "$before"
	is rate "$(cat "$m/orders/rate")" 500/s
	# A report may have any length, and a line without an end is not kept whole.
	as_nobody python3 - "$m/orders/feedback" <<- 'EOF'
		import os, sys
		fd = os.open(sys.argv[1], os.O_WRONLY)
		for text in b"200\n", b" ":
		    assert os.write(fd, text * ((1 << 24) // len(text))) == 1 << 24
		for i in range(1 << 15):
		    assert os.write(fd, b"x" * 512) == 512
	EOF
	counts orders ok $((1 << 22))
	no_more_than 2048 "$before"
}

case_mapping_and_splicing_spend_nothing() {
	open_to_all
	limiter orders 1/h 10
	python3 - "$m/orders" <<- 'EOF'
		import errno, mmap, os, signal, sys
		limiter = sys.argv[1]
		for name in "token", "stream", "take/2", "slot", "stat", "rate":
		    fd = os.open(limiter + "/" + name, os.O_RDONLY)
		    for flags in mmap.MAP_SHARED, mmap.MAP_PRIVATE:
		        pid = os.fork()
		        if pid == 0:
		            try:
		                bytes = mmap.mmap(fd, 1, flags=flags, prot=mmap.PROT_READ)
		            except OSError as error:
		                os._exit(0 if error.errno == errno.ENODEV else 1)
		            bytes[0]
		            os._exit(2)
		        status = os.waitpid(pid, 0)[1]
		        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGBUS
		        assert status == 0 or killed, (name, status)
		    readable, writable = os.pipe()
		    try:
		        os.splice(fd, writable, 4096)
		        sys.exit(name + " can be spliced")
		    except OSError as error:
		        assert error.errno == errno.EINVAL, (name, error)
		    os.close(fd)
		readable, writable = os.pipe()
		os.write(writable, b"7/s\n")
		rate = os.open(limiter + "/rate", os.O_WRONLY)
		assert os.splice(readable, rate, 4096) == 4
	EOF
	is 'what was spliced in' "$(cat "$m/orders/rate")" 7/s
	counts orders granted 0
	eventually 10 has orders slots_used 0 || fail 'a slot is open'
}

# out_of_files: the daemon cannot open any more.
out_of_files() { prlimit --pid "$(server)" --nofile=3:20000; }

case_a_daemon_without_descriptors_serves_on() {
	open_to_all "local:$d/kept"
	limiter orders 500/s 5
	out_of_files
	is token "$(cat "$m/orders/token")" 1
	is 'a token of another user' "$(as_nobody cat "$m/orders/token")" 1
	is key "$(cat "$m/orders/keys/one/token")" 1
	mkdir "$m/new" 2> /dev/null && fail 'a limiter was made that cannot be kept'
	refused 'EMFILE|EIO' write "$m/orders/rate" 7/s
	is 'rate, since it was refused' "$(cat "$m/orders/rate")" 500/s
	[ -n "$(as_nobody cat "$m/metrics")" ] || fail 'no metrics'
	prlimit --pid "$(server)" --nofile=1024:20000
	echo 7/s > "$m/orders/rate"
	mkdir "$m/new"
	is rate "$(cat "$m/orders/rate")" 7/s
	# A leak checker could not end without.
	is_sanitized || out_of_files
	stop TERM
}
