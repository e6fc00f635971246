# shellcheck shell=bash
# The messages of the daemon: to syslog or standard error, also where nobody reads them.

# own_dev: a /dev of the case alone, so that nobody else's log is there.
own_dev() {
	mkdir "$d/dev"
	mount -t tmpfs none "$d/dev"
	mknod -m 666 "$d/dev/null" c 1 3
	mknod -m 666 "$d/dev/fuse" c 10 229
	mknod -m 666 "$d/dev/urandom" c 1 9
	mkdir "$d/dev/shm"
	mount --move "$d/dev" /dev
}

# syslog: a syslog daemon, its pid in $syslog, what it reads in $d/syslog.
syslog() {
	rm -f /dev/log
	python3 - >> "$d/syslog" <<- 'END' &
		import os, socket
		log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
		log.bind("/dev/log")
		os.chmod("/dev/log", 0o666)
		while True:
		    print(log.recv(8192), flush=True)
	END
	syslog=$!
	eventually 20 test -S /dev/log || fail 'no /dev/log'
}

# unread: the syslog daemon is stopped, and its socket takes no more.
unread() {
	kill -STOP "$syslog"
	eventually 20 grep -q '^State:.T' "/proc/$syslog/status" || fail 'syslog does not stop'
	python3 - <<- 'END'
		import socket
		try:
		    while True:
		        log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
		        log.sendto(b"<30>ignored", socket.MSG_DONTWAIT, "/dev/log")
		except BlockingIOError:
		    pass
	END
}

# background [OPTIONS…]: a daemon in the background; its keeper's pid in $keeper.
background() {
	"$RATEFS" "$@" "local:$d/kept" "$m" > "$d/said" 2>&1
	must_outlive
	keeper=$(ps -o ppid= -p "$(server)" | tr -d ' ')
}

# quits: the keeper ends on SIGTERM.
quits() {
	kill "$keeper"
	eventually 20 eval '! alive "$keeper"' || fail 'it does not end'
	eventually 20 eval '! mountpoint -q "$m"' || fail 'still mounted'
}

# reloads: another server goes on.
reloads() {
	local before
	before=$(server)
	timeout 20 "$RATEFS" --reload "$m" || fail 'the reload does not come back'
	[ "$(server)" != "$before" ] || fail 'no other server'
}

# has_told FILE: it has a number of messages that were lost, and behind it the next one.
has_told() {
	grep -A1 'ratefs.*: messages that the log did not take are lost: [1-9]' "$1" |
		grep -qE 'ratefs.*: (another server takes over|server [0-9]+ goes on)'
}

case_in_the_background_messages_go_to_syslog() {
	own_dev
	syslog
	"$RATEFS" "local:$d/kept" "$m" > "$d/said" 2>&1
	mkdir "$m/orders"
	eventually 10 grep -q serves "$d/syslog" ||
		fail "syslog: $(cat "$d/syslog"), standard error: $(cat "$d/said")"
	umount "$m"
	eventually 20 grep -q 'the mount has ended' "$d/syslog" || fail "syslog: $(cat "$d/syslog")"
	# <30> is facility daemon, priority info.
	like 'first line' "$(head -n 1 "$d/syslog")" \
		"^b'<30>[A-Z][a-z]{2} [ 1-3][0-9] [0-9:]{8} ratefs\[[0-9]+\]: [^ ]"
	is 'standard error' "$(cat "$d/said")" ''
	kill $syslog
	wait $syslog 2> /dev/null || :
}

case_a_syslog_that_nobody_reads_stops_nobody() {
	own_dev
	syslog
	background
	unread
	reloads
	killed
	mkdir "$m/orders"
	kill -CONT $syslog
	# The queue is read first.
	eventually 20 eval 'reloads; has_told "$d/syslog"' || fail "syslog: $(tail "$d/syslog")"
	unread
	quits
	kill -9 $syslog
	wait $syslog 2> /dev/null || :
}

case_a_syslog_that_is_started_again_is_found() {
	own_dev
	syslog
	# The daemon is another user than root by then.
	chmod 711 "$d" "$(dirname "$d")"
	mkdir "$d/kept"
	chown nobody "$d/kept"
	background -o user=nobody
	kill $syslog
	wait $syslog 2> /dev/null || :
	reloads
	rm /dev/log
	reloads
	syslog
	: > "$d/syslog"
	reloads
	has_told "$d/syslog" || fail "syslog: $(tail "$d/syslog")"
	quits
	kill $syslog
	wait $syslog 2> /dev/null || :
}

# fill: the pipe that is standard error takes no more.
fill() {
	python3 -c '
import os, sys
pipe = os.open(sys.argv[1], os.O_WRONLY | os.O_NONBLOCK)
try:
    while True: os.write(pipe, b"ignored\n")
except BlockingIOError: pass' "$d/errors"
}

case_a_standard_error_that_nobody_reads_stops_nobody() {
	local errors reader
	mkfifo "$d/errors"
	exec {errors}<> "$d/errors"
	chmod 711 "$d" "$(dirname "$d")"
	# That user could not open the pipe.
	chmod 600 "$d/errors"
	env --default-signal "$RATEFS" -f -o user=nobody local "$m" 2>&$errors &
	daemon=$!
	eventually 20 test -e "$m/status" || fail 'no mount'
	must_outlive
	fill
	reloads
	killed
	reloads
	cat <&$errors > "$d/read" &
	reader=$!
	eventually 20 eval 'reloads; has_told "$d/read"' || fail "read: $(tail "$d/read")"
	kill $reader
	wait $reader 2> /dev/null || :
	fill
	stop
}

case_messages_of_libfuse_stop_nobody_either() {
	local holder i
	# A socket: no write to it fails, and none returns while it is full.
	python3 -c '
import os, signal, socket, sys
ours, errors = socket.socketpair()
holder = os.fork()
if not holder:
    errors.close()
    print(os.getpid(), file=open(sys.argv[1], "w"), flush=True)
    signal.pause()
os.dup2(errors.fileno(), 2)
os.execvp(sys.argv[2], sys.argv[2:])' "$d/holder" "$RATEFS" -f -o debug local "$m" &
	daemon=$!
	eventually 20 test -e "$m/status" || fail 'no mount'
	must_outlive
	for i in {1..500}; do
		timeout 20 cat "$m/status" > /dev/null || fail "read $i of status waits"
	done
	reloads
	stop
	holder=$(cat "$d/holder")
	kill "$holder"
}

case_a_service_manager_that_reads_nothing_stops_nobody() {
	python3 -c '
import signal, socket, sys
manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
manager.bind(sys.argv[1])
try:
    while True:
        other = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        other.sendto(b"", socket.MSG_DONTWAIT, sys.argv[1])
except BlockingIOError: open(sys.argv[2], "w")
signal.pause()' "$d/manager" "$d/full" & local manager=$!
	eventually 20 test -e "$d/full" || fail 'it is not full'
	NOTIFY_SOCKET=$d/manager start
	eventually 20 grep -q "cannot notify '$d/manager'" "$d/log" || fail 'it says nothing'
	stop
	kill $manager
	wait $manager 2> /dev/null || :
}
