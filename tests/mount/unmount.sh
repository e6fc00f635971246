# shellcheck shell=bash
# The mount ends in every way it can, with readers blocked on it.

blocked_readers() {
	start "$@"
	empty orders
	for file in token stream take/5; do
		"$CLIENT" read "$m/orders/$file" > "$d/got.${file%/*}" &
		readers+=($!)
	done
	waiting orders 3
	"$CLIENT" read "$m/events" > "$d/got.events" &
	readers+=($!)
	sleep 0.2
}
readers=()

# all_got ERRNOS: every reader has ended with one of them.
all_got() {
	local pid got
	for pid in "${readers[@]}"; do
		gone "$pid" 20 || :
	done
	for got in token stream take; do
		like "what a reader of $got got" "$(cat "$d/got.$got")" "^($1)\$"
	done
	like 'what a reader of events got' "$(cat "$d/got.events")" "^(|$1)\$"
}

case_sigterm_ends_the_mount_and_its_readers() {
	blocked_readers
	stop TERM
	all_got ESHUTDOWN
}

case_sigint_ends_the_mount_and_its_readers() {
	blocked_readers
	stop INT
	all_got ESHUTDOWN
}

# unclean: the daemon, whose server is killed for it, ends by itself with status 1, is unmounted and
# says why.
unclean() {
	local status=0
	gone "$daemon" 60 || status=$?
	daemon=
	is 'exit status of the daemon' "$status" 1
	! is_mounted || fail 'still mounted after the daemon has ended'
	grep -q 'server [0-9]* has not ended for 10 s: killed' "$d/log" ||
		fail 'the log says nothing'
}

# Each signal comes again and again, and gives the server no more time.
case_signals_end_a_mount_with_a_server_that_hangs() {
	local server signal
	for signal in TERM INT; do
		rm -f "$d/log"
		blocked_readers
		server=$(server)
		kill -STOP "$server"
		death "$server signal 9"
		eventually 60 eval "kill -$signal $daemon; nap 1; ! alive $server" ||
			fail "the server is still there after SIG$signal"
		unclean
		all_got ECONNABORTED
	done
}

case_a_server_that_hangs_at_its_end_waits_for_a_signal_and_no_longer() {
	cat > "$d/stuck.c" <<- 'EOF'
		#include <dlfcn.h>
		#include <fcntl.h>
		#include <stdlib.h>
		#include <string.h>
		#include <unistd.h>

		/* The levels, which are written at the end, are on a disk that does not answer. */
		int renameat(int from, const char *old, int to, const char *name)
		{
			int (*next)(int, const char *, int, const char *) =
				dlsym(RTLD_NEXT, "renameat");

			while (!strcmp(name, ".levels")) {
				close(open(getenv("STUCK"), O_CREAT | O_WRONLY, 0600));
				pause();
			}
			return next(from, old, to, name);
		}
	EOF
	cc -shared -fPIC -D_GNU_SOURCE -o "$d/stuck.so" "$d/stuck.c" -ldl
	export STUCK=$d/stuck
	ASAN_OPTIONS+=:verify_asan_link_order=0 LD_PRELOAD="$LD_PRELOAD $d/stuck.so" \
		start "local:$d/kept"
	local server
	server=$(server)
	umount "$m"
	eventually 20 [ -e "$STUCK" ] || fail 'it writes no levels'
	alive "$daemon" || fail 'the daemon did not wait for its server'
	death "$server signal 9"
	kill "$daemon"
	unclean
}

case_a_server_that_a_debugger_has_is_not_killed_at_its_end() {
	command -v gdb > /dev/null || skip 'no gdb'
	start
	gdb -q -batch -p "$(server)" -ex "shell touch '$d/held'" -ex "shell sleep 12" \
		-ex detach > "$d/gdb" 2>&1 &
	eventually 60 [ -e "$d/held" ] || fail 'the debugger does not get it'
	stop
	grep -q 'has not ended' "$d/log" && fail 'it was killed'
	wait
}

case_signals_end_a_mount_with_files_open() {
	start
	limiter orders
	exec 8< "$m/orders/token" 9> "$m/orders/rate"
	stop TERM
	exec 8<&- 9>&-
}

case_signals_end_a_mount_with_slots_open() {
	start
	limiter orders
	echo 1 > "$m/orders/concurrency"
	slot=keys/ann/slot
	if fleet_refuses EINVAL key_concurrency 1; then
		slot=slot
	else
		echo 1 > "$m/orders/key_concurrency"
	fi
	exec 8< "$m/orders/$slot"
	: < "$m/orders/$slot" &
	waiting orders 1
	stop TERM
	exec 8<&-
}

case_fusermount_is_refused_while_a_reader_waits() {
	blocked_readers
	fusermount3 -u "$m" 2> "$d/said" && fail 'unmounted below its readers'
	like said "$(cat "$d/said")" 'busy'
	counts orders waiting 3
	kill "${readers[@]}"
	wait "${readers[@]}" 2> /dev/null || :
	eventually 10 fusermount3 -u "$m" 2> /dev/null ||
		fail 'not unmounted after the readers have gone'
	ended
}

case_umount_ends_the_daemon() {
	start
	limiter orders
	umount "$m"
	ended
}

case_a_lazy_umount_serves_until_the_last_close() {
	blocked_readers
	exec 8> "$m/orders/rate"
	umount -l "$m"
	is 'left in the mount point' "$(ls -A "$m")" ''
	sleep 0.3
	alive "$daemon" || fail 'the daemon left its readers'
	echo 1000/s >&8
	local pid
	for pid in "${readers[@]:0:3}"; do
		gone "$pid" 20
	done
	is token "$(cat "$d/got.token")" 1
	alive "$daemon" || fail 'the daemon left an open file'
	exec 8>&-
	gone "${readers[3]}" 20
	ended
}

case_a_forced_umount_ends_the_readers_without_a_token() {
	blocked_readers
	umount -f "$m" 2> /dev/null || :
	all_got 'ECONNABORTED|ENOTCONN|ESHUTDOWN'
	eventually 20 eval '! alive $daemon' || fail 'the daemon is still there'
	! mountpoint -q "$m" || umount "$m"
	ended
}

case_an_aborted_connection_ends_the_daemon() {
	blocked_readers
	echo 1 > "/sys/fs/fuse/connections/$minor/abort"
	all_got 'ECONNABORTED|ENOTCONN|ESHUTDOWN'
	eventually 20 eval '! alive $daemon' || fail 'the daemon is still there'
	! mountpoint -q "$m" || umount "$m"
	ended
}

case_a_killed_daemon_leaves_no_reader_blocked() {
	blocked_readers
	kill -9 "$daemon"
	all_got 'ESHUTDOWN|ECONNABORTED|ENOTCONN'
	wait "$daemon" 2> /dev/null || :
	daemon=
	eventually 20 eval '! mountpoint -q "$m"' ||
		fail 'the server did not unmount without its keeper'
}

# hidden: the daemon serves an open file, and its mount is gone from its place.
hidden() {
	start
	limiter orders
	exec 8< "$m/orders/token"
	umount -l "$m"
}

# end_by keeper-SIGNAL | server-SIGNAL: ends the daemon by that, whatever is at its mount point.
end_by() {
	local process=$daemon
	[[ $1 = keeper-* ]] || process=$(pgrep -P "$daemon")
	kill "-${1#*-}" "$process"
	{ gone "$daemon" 20 || :; } 2> /dev/null
	exec 8<&-
	eventually 20 eval '! pgrep -x ratefs > /dev/null' ||
		fail "a process is still there after $1"
	daemon=
}

# is_mounted: a ratefs is, wherever it is below the directory of the case.
is_mounted() { grep ' - fuse.ratefs ' /proc/self/mountinfo | grep -qF " $d/"; }

case_another_file_system_in_its_place_stays() {
	local process
	for process in keeper-TERM keeper-KILL server-TERM; do
		hidden
		mount -t tmpfs data "$m"
		end_by "$process"
		is 'what is there' "$(stat -f -c %T "$m")" tmpfs
		umount "$m"
	done
}

case_another_tree_in_its_place_stays() {
	local other
	hidden
	other=$daemon
	start
	mkdir "$m/mail"
	kill "$other"
	{ gone "$other" 20 || :; } 2> /dev/null
	exec 8<&-
	is 'what is there' "$(cat "$m/mail/token")" 1
	stop
}

case_it_unmounts_where_its_place_has_been_moved_to() {
	local process options
	export ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 # which needs what user=NAME gives up
	mkdir -p "$d/data"
	mount -t tmpfs data "$d/data"
	m="$d/above it/m"
	for process in keeper-TERM keeper-KILL server-TERM; do
		for options in -orw -ouser=nobody; do
			mkdir -p "$m"
			start $options
			mv "$d/above it" "$d/moved (here)"
			mkdir "$d/above it"
			ln -s ../data "$m"
			end_by $process
			! is_mounted ||
				fail "still mounted after $process with $options"
			is 'where its path leads to' "$(stat -f -c %T "$d/data")" tmpfs
			rm -r "$d/above it" "$d/moved (here)"
		done
	done
	umount "$d/data"
}

case_it_ends_where_its_path_leads_through_its_own_tree() {
	local process
	m=$d/above/m
	for process in keeper-TERM keeper-KILL server-TERM; do
		mkdir -p "$m"
		start
		mv "$d/above" "$d/moved"
		ln -s "$d/moved/m" "$d/above"
		end_by $process
		! is_mounted || fail "still mounted after $process"
		rm -r "$d/above" "$d/moved"
	done
}

case_it_mounts_again_at_the_same_place() {
	local i
	for i in 1 2 3; do
		start
		limiter orders
		is token "$(cat "$m/orders/token")" 1
		stop
	done
}

case_an_abort_while_many_are_granted_ends_it_cleanly() {
	ulimit -s 1024 # structures that nest for each reader do not fit
	start
	limiter orders 0
	"$CLIENT" crowd 4000 "$m/orders/token" > "$d/crowd" 2>&1 &
	eventually 60 has orders waiting 4000 || skip 'no four thousand threads here'
	(sleep 0.02; echo 1 > "/sys/fs/fuse/connections/$minor/abort") &
	echo 40000/s > "$m/orders/rate" || :
	ended
}

# The server is stopped while tokens come due and the connection ends: its grants then have no
# reader to go to.
case_tokens_granted_as_the_mount_ended_are_not_spent() {
	start "local:$d/kept"
	# The reader is seen to wait, and the server stopped, long before the tokens come due.
	limiter orders 5/3s 5
	is taken "$(cat "$m/orders/take/5")" 5
	cat "$m/orders/take/5" > "$d/reader" 2>&1 &
	eventually 20 has orders waiting 1
	local server
	server=$(server)
	kill -STOP "$server"
	sleep 3.2
	echo 1 > "/sys/fs/fuse/connections/$minor/abort"
	kill -CONT "$server"
	eventually 20 eval '! alive $daemon' || fail 'the daemon is still there'
	umount -l "$m" 2> /dev/null || :
	ended
	start "local:$d/kept"
	is left "$(tokens orders)" 5
}

case_a_signal_that_comes_while_the_timer_is_set_ends_the_daemon() {
	cat > "$d/late.c" <<- 'EOF'
		#define _GNU_SOURCE
		#include <dlfcn.h>
		#include <signal.h>
		#include <stdlib.h>
		#include <time.h>
		#include <unistd.h>

		/* As the timer is about to be stopped, and where LATE is there, SIGTERM comes. */
		int timer_settime(timer_t timer, int flags, const struct itimerspec *when,
				  struct itimerspec *before)
		{
			int (*settime)(timer_t, int, const struct itimerspec *,
				       struct itimerspec *) = dlsym(RTLD_NEXT, "timer_settime");
			_Bool stops = !when->it_value.tv_sec && !when->it_value.tv_nsec;

			if (stops && !unlink(getenv("LATE")))
				raise(SIGTERM);
			return settime(timer, flags, when, before);
		}
	EOF
	cc -shared -fPIC -o "$d/late.so" "$d/late.c" -ldl
	export LATE=$d/late
	mkdir "$d/kept"
	# In a fleet there is always a time for the timer.
	ASAN_OPTIONS+=:verify_asan_link_order=0 LD_PRELOAD=$d/late.so start "local:$d/kept"
	limiter orders 5/s 1
	# More than the burst waits, however late it is asked for, and the timer with it. The reader
	# sends nothing after its tokens that would wake the daemon.
	python3 -c 'import os, sys, time
file = os.open(sys.argv[1], os.O_RDONLY)
open(sys.argv[2], "w").close()
print(os.read(file, 2).decode(), flush=True)
time.sleep(100)' "$m/orders/take/2" "$LATE" > "$d/got" &
	eventually 20 [ -s "$d/got" ] || fail 'no tokens'
	[ ! -e "$LATE" ] || fail 'the timer was not stopped'
	ended
}

case_a_copy_in_another_mount_namespace_keeps_the_daemon_until_a_signal_comes() {
	start
	unshare --mount --propagation private sleep 100 &
	local holder=$! own
	own=$(readlink /proc/self/ns/mnt)
	eventually 10 eval "[ \"\$(readlink /proc/$holder/ns/mnt)\" != '$own' ]" ||
		fail 'no other namespace'
	umount "$m"
	grep -qx 'limiters 0' "/proc/$holder/root$m/status" || fail 'the copy is not served'
	stop
	is 'status of the copy' "$(cat "/proc/$holder/root$m/status" 2>&1 |
		grep -c 'not connected')" 1
	kill $holder
}
