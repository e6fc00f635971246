# shellcheck shell=bash
# The command line: how it daemonizes, what it refuses, and the ways it is called.

# daemons: the process ids of this case's daemons (a case has a process namespace of its own).
daemons() {
	local exe
	for exe in /proc/[0-9]*/exe; do
		[ "$(readlink "$exe")" != "$RATEFS" ] || basename "$(dirname "$exe")"
	done
}

none_left() { [ -z "$(daemons)" ]; }

# leave MOUNT: unmounts, and its daemon ends.
leave() {
	fusermount3 -u "$1"
	eventually 20 eval "! mountpoint -q '$1'"
}

case_the_mount_answers_when_the_command_returns() {
	local i
	for i in 1 2 3 4 5; do
		"$RATEFS" local "$m"
		grep -q version "$m/status" || fail "no status in run $i"
		mkdir "$m/orders"
		is token "$(cat "$m/orders/token")" 1
		leave "$m"
		eventually 20 none_left || fail 'the daemon is still there'
	done
}

case_the_daemon_holds_nothing_of_its_caller() {
	local said pid fd
	cd "$d"
	exec 7> "$d/lock"
	flock 7
	said=$("$RATEFS" local "$m" 2>&1)
	exec 7>&-
	flock -n "$d/lock" true || fail 'the daemon holds a lock of its caller'
	is 'what it said' "$said" ''
	for pid in $(daemons); do
		is 'working directory' "$(readlink "/proc/$pid/cwd")" /
		for fd in 0 1 2; do
			is "descriptor $fd" "$(readlink "/proc/$pid/fd/$fd")" /dev/null
		done
		[ "$(ps -o sid= -p "$pid")" != "$(ps -o sid= -p $$)" ] ||
			fail 'in the session of its caller'
	done
	leave "$m"
	eventually 20 none_left || fail 'the daemon is still there'
}

case_a_descriptor_that_is_closed_is_no_trouble() {
	local closed pid fd
	for closed in '0<&-' '1>&-' '2>&-' '0<&- 1>&-' '0<&- 2>&-' '1>&- 2>&-' \
		'0<&- 1>&- 2>&-'; do
		eval "timeout 20 \"\$RATEFS\" local \"\$m\" $closed" || fail "no mount with $closed"
		mkdir "$m/orders"
		is "token with $closed" "$(cat "$m/orders/token")" 1
		for pid in $(daemons); do
			for fd in 0 1 2; do
				is "descriptor $fd with $closed" \
					"$(readlink "/proc/$pid/fd/$fd")" /dev/null
			done
		done
		kill $(daemons)
		eventually 20 none_left || fail "the daemon is still there with $closed"
		! mountpoint -q "$m" || fail "still mounted with $closed"
	done
}

case_signals_that_its_caller_ignored_or_blocked_are_no_trouble() {
	env --ignore-signal --block-signal "$RATEFS" local "$m"
	mkdir "$m/orders"
	is token "$(cat "$m/orders/token")" 1
	if [ "$(status_of outlives_server)" = yes ]; then killed; fi
	kill $(daemons)
	eventually 20 none_left || fail 'the daemon is still there'
	! mountpoint -q "$m" || fail 'still mounted'
}

case_the_end_of_the_command_that_waits_is_that_of_the_daemon() {
	local signal tracer
	export ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 # which cannot be where strace is
	for signal in INT TERM KILL; do
		env --default-signal "$RATEFS" zk://127.0.0.1:1/x "$m" 2> "$d/err" &
		eventually 20 eval '[ "$(daemons | wc -l)" = 3 ]' ||
			fail 'no command, keeper and server'
		kill -$signal $!
		eventually 20 none_left || fail "the daemon goes on after SIG$signal"
		# While it mounts, too.
		env --default-signal strace -qq -f -o "$d/trace" \
			-e inject=mount:delay_enter=3000000 "$RATEFS" local "$m" 2> "$d/err" &
		tracer=$!
		eventually 20 grep -q 'mount(' "$d/trace" || fail 'it does not mount'
		kill -$signal "$(pgrep -P $tracer)"
		eventually 20 none_left || fail "the daemon goes on after SIG$signal as it mounts"
		! mountpoint -q "$m" || fail "mounted after SIG$signal"
		wait $tracer || :
		rm "$d/trace"
	done
}

case_sigterm_ends_a_daemon() {
	"$RATEFS" local "$m"
	kill $(daemons)
	eventually 20 none_left || fail 'the daemon is still there'
	! mountpoint -q "$m" || fail 'still mounted'
}

case_two_mounts_at_once_have_nothing_in_common() {
	mkdir "$d/other"
	"$RATEFS" local "$m"
	"$RATEFS" local "$d/other"
	mkdir "$m/orders" "$d/other/bookings"
	[ ! -e "$d/other/orders" ] && [ ! -e "$m/bookings" ] || fail 'they share their limiters'
	leave "$m"
	is token "$(cat "$d/other/bookings/token")" 1
	leave "$d/other"
	eventually 20 none_left || fail 'a daemon is still there'
}

# fails STATUS SAYS ARGUMENTS…: it exits so, and says why.
fails() {
	local wanted=$1 regex=$2 status=0 said
	shift 2
	said=$(timeout 20 "$RATEFS" "$@" 2>&1 < /dev/null) || status=$?
	is "exit status of ratefs $* ($said)" "$status" "$wanted"
	like "what ratefs $* says" "$said" "$regex"
}

# cannot STATUS SAYS ARGUMENTS…: likewise, and nothing is mounted.
cannot() {
	fails "$@"
	shift 2
	! mountpoint -q "$m" || fail "ratefs $* has mounted"
	none_left || fail "ratefs $* left a daemon"
}

case_a_mount_that_cannot_be_made_says_why() {
	touch "$d/file"
	cannot 1 'nowhere.*(No such file|not exist)' local "$d/nowhere"
	cannot 1 'file.*[Nn]ot a directory' local "$d/file"
	cannot 1 'nowhere.*(No such file|not exist)' -f local "$d/nowhere"
	cannot 1 'file' "local:$d/file" "$m"
	cannot 1 'missing' -o "config=$d/missing" local "$m"
}

# trees: how many trees are mounted at $m or in it.
trees() { awk -v m="$m" '$5 == m || index($5, m "/") == 1' /proc/self/mountinfo | wc -l; }

case_a_mount_point_that_is_a_ratefs_already_is_refused() {
	"$RATEFS" local "$m"
	mkdir "$m/orders"
	fails 1 "'$m' is a ratefs already" local "$m"
	fails 1 "'$m' is a ratefs already" -f local "$m"
	fails 1 "'$m' is a ratefs already" "local:$d/kept" "$m/"
	[ ! -e "$d/kept" ] || fail 'the directory of the source is made'
	# Not after ten seconds of looking for servers.
	fails 1 "'$m' is a ratefs already" zk://127.0.0.1:1/x "$m/orders/.."
	mkdir "$d/bound"
	mount --bind "$m" "$d/bound"
	fails 1 "'$d/bound' is a ratefs already" local "$d/bound"
	umount "$d/bound"
	is trees "$(trees)" 1
	is token "$(cat "$m/orders/token")" 1
	leave "$m"
	"$RATEFS" local "$m"
	leave "$m"
}

case_a_mount_point_in_a_ratefs_is_refused() {
	"$RATEFS" local "$m"
	mkdir "$m/orders"
	fails 1 "'$m/orders' is in a ratefs" local "$m/orders"
	fails 1 "'$m/orders/keys/alice' is in a ratefs" local "$m/orders/keys/alice"
	is trees "$(trees)" 1
	leave "$m"
}

case_a_ratefs_that_does_not_answer_is_seen_too() {
	start
	kill -STOP "$(server)"
	fails 1 "'$m' is a ratefs already" local "$m"
	kill -CONT "$(pgrep -P "$daemon")"
	crash
	fails 1 "'$m' is a ratefs already" local "$m"
	umount -l "$m"
}

case_a_daemon_that_lives_on_in_a_copy_of_its_mount_is_told() {
	[ -z "${SOURCE-}" ] || skip 'hosts of a fleet share'
	start
	local first=$daemon copy
	unshare --mount --propagation private sleep 1000 & copy=$!
	eventually 20 eval '[ "$(readlink /proc/'$copy'/ns/mnt)" != "$(readlink /proc/$$/ns/mnt)" ]'
	umount "$m"
	start
	grep -q "another daemon that has mounted on '$m' goes on" "$d/log" || fail 'it is not told'
	kill $copy
	gone "$first" 20
	umount "$m"
	gone "$daemon" 20
	: > "$d/log"
	start
	! grep 'another daemon' "$d/log" || fail 'there is none'
}

case_mount_refuses_a_second_one() {
	local status=0
	[ -x /sbin/mount.fuse3 ] || skip 'no /sbin/mount.fuse3'
	mount -t tmpfs none /usr/local/bin
	ln -s "$RATEFS" /usr/local/bin/ratefs
	mount -t fuse.ratefs local "$m"
	mount -t fuse.ratefs local "$m" 2> "$d/err" || status=$?
	[ $status != 0 ] || fail 'the second mount is made'
	like 'what it says' "$(cat "$d/err")" "'$m' is a ratefs already"
	# A line of fstab that is mounted already is left alone.
	echo "local $m fuse.ratefs defaults 0 0" > "$d/fstab"
	mount -a -T "$d/fstab"
	is trees "$(trees)" 1
	umount "$m"
	eventually 20 none_left || fail 'the daemon is still there'
}

# The one without servers waits a moment for them, in which the other one is quicker.
case_of_two_that_mount_at_once_one_is_refused() {
	local first done=0
	"$RATEFS" -o nowait zk://127.0.0.1:1/x "$m" 2> "$d/first" & first=$!
	! "$RATEFS" local "$m" 2> "$d/second" || done=$((done + 1))
	! wait $first || done=$((done + 1))
	is "mounts made ($(cat "$d/first" "$d/second"))" $done 1
	is trees "$(trees)" 1
	leave "$m"
	eventually 20 none_left || fail 'a daemon is still there'
}

# strace holds up the mount of the first one behind its last look at the mount point.
case_one_that_mounts_over_another_takes_its_mount_back() {
	local status=0 first
	export ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0
	strace -f -o "$d/trace" -e trace=mount -e inject=mount:delay_enter=3000000 \
		"$RATEFS" -o nowait zk://127.0.0.1:1/x "$m" 2> "$d/first" & first=$!
	eventually 20 grep -qs mount "$d/trace"
	"$RATEFS" local "$m"
	wait $first || status=$?
	is 'exit status of the first' "$status" 1
	like 'what it said' "$(cat "$d/first")" "mount point '$m' is a ratefs already"
	is trees "$(trees)" 1
	like 'the source' "$(cat "$m/status")" $'\nsource local\n'
	leave "$m"
	eventually 20 none_left || fail 'a daemon is still there'
}

case_another_file_system_can_be_mounted_over() {
	mount -t tmpfs none "$m"
	is 'what it said' "$("$RATEFS" local "$m" 2>&1)" ''
	[ -e "$m/status" ] || fail 'it has not mounted'
	leave_one
	umount "$m"
}

# leave_one: unmounts the upper one of two.
leave_one() {
	fusermount3 -u "$m"
	eventually 20 none_left || fail 'the daemon is still there'
}

case_a_mount_over_files_says_that_they_are_hidden() {
	local said
	mkdir "$m/orders"
	said=$("$RATEFS" local "$m" 2>&1)
	is 'what it said' "$said" \
		"ratefs: mount point '$m' is not empty: its content is hidden until it is unmounted"
	[ ! -e "$m/orders" ] || fail 'what was there is not hidden'
	leave_one
	[ -d "$m/orders" ] || fail 'what was there is gone'
	said=$("$RATEFS" -o loglevel=error local "$m" 2>&1)
	is 'what it said' "$said" ''
	leave_one
	rmdir "$m/orders"
}

case_wrong_arguments_are_named() {
	cannot 2 '(SOURCE|source|usage|Usage)'
	cannot 2 '(MOUNTPOINT|mount ?point)' local
	cannot 2 'third' local "$m" third
	cannot 2 'remote' remote "$m"
	cannot 2 'remote:x' remote:x "$m"
	cannot 2 'bogus' --bogus local "$m"
	cannot 2 '[-]?Z' -Z local "$m"
	cannot 2 'bogus' -o bogus local "$m"
	cannot 2 'bogus' -o bogus=1 local "$m"
	cannot 2 'loud' -o loglevel=loud local "$m"
	cannot 2 'config' -o config= local "$m"
	cannot 2 'host' -o host= local "$m"
	cannot 2 'local:' local: "$m"
	cannot 2 "''|\"\"|empty|SOURCE|source" '' "$m"
	cannot 2 '-o' local "$m" -o
}

case_help_and_version_are_told() {
	local said
	said=$("$RATEFS" --help)
	like help "$said" 'SOURCE'
	like help "$said" 'MOUNTPOINT'
	like help "$said" 'config='
	like version "$("$RATEFS" --version)" 'ratefs.* [0-9]+(\.[0-9]+)+'
}

case_options_come_before_or_after() {
	"$RATEFS" -o host=first,loglevel=warning local "$m" -o allow_other
	like host "$(cat "$m/status")" first
	like options "$(grep " $m " /proc/mounts)" allow_other
	leave "$m"
}

case_default_permissions_are_always_on() {
	start -o default_permissions
	like options "$(grep " $m " /proc/mounts)" default_permissions
	stop
	start
	like options "$(grep " $m " /proc/mounts)" default_permissions
}

case_a_mount_that_something_hides_at_once_is_given_up() {
	local status=0
	export ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 # which cannot be where strace is
	strace -qq -f -o "$d/trace" -e inject=mount:delay_exit=5000000 \
		"$RATEFS" -f local "$m" 2> "$d/err" &
	eventually 20 grep -q " $m " /proc/self/mountinfo || fail 'not mounted'
	# mount(8) would ask for the attributes of what is there, and wait.
	python3 -c 'import ctypes, sys
sys.exit(ctypes.CDLL(None).mount(b"data", sys.argv[1].encode(), b"tmpfs", 0, None))' "$m"
	gone $! 20 || status=$?
	is 'exit status' $status 1
	like said "$(cat "$d/err")" "$m does not lead to the mount"
	is 'what is there' "$(stat -f -c %T "$m")" tmpfs
	umount "$m"
}

case_another_type_does_not_hide_it() {
	"$RATEFS" -o subtype=other,fsname=name local "$m"
	is 'name and type' "$(findmnt -no SOURCE,FSTYPE "$m" | tr -s ' ')" 'name fuse.ratefs'
	leave "$m"
}

case_the_type_of_the_mount_is_fuse_ratefs() {
	start
	is type "$(findmnt -n -o FSTYPE "$m")" fuse.ratefs
	like source "$(findmnt -n -o SOURCE "$m")" "^${SOURCE:-local}"
}

case_options_of_fuse_are_taken() {
	start -o ro,nosuid,nodev,noexec,fsname=mine
	like options "$(grep " $m " /proc/mounts)" '^mine .*nosuid'
	is 'making a limiter' "$("$CLIENT" mkdir "$m/orders")" EROFS
}

case_it_can_be_called_as_a_mount_helper() {
	ln -s "$RATEFS" "$d/mount.fuse.ratefs"
	local flag
	for flag in '' -n -s -v -sv '-t fuse.ratefs'; do
		"$d/mount.fuse.ratefs" local "$m" $flag -o rw,nosuid,nodev,host=helper
		like "host with $flag" "$(cat "$m/status")" helper
		like options "$(grep " $m " /proc/mounts)" nosuid
		leave "$m"
		eventually 20 none_left || fail 'the daemon is still there'
	done
	"$d/mount.fuse.ratefs" "local:$d/kept" "$m" -fv -o rw
	[ -z "$(ls "$m")" ] && [ ! -e "$d/kept" ] || fail 'a fake mount has made something'
}

case_durations_of_options_may_be_seconds() {
	local status option
	ln -s "$RATEFS" "$d/mount.fuse.ratefs"
	"$d/mount.fuse.ratefs" zk://127.0.0.1:1/x "$m" -f -o right=9,session=7.5
	for option in right=1 right=601 right=9m session=1.9 session=; do
		status=0
		"$d/mount.fuse.ratefs" zk://127.0.0.1:1/x "$m" -f -o $option 2> "$d/err" ||
			status=$?
		is "exit status with $option" $status 2
		like "what it says of $option" "$(cat "$d/err")" \
			"not a ${option%=*} .*'${option#*=}'"
	done
}

case_mount_mounts_it() {
	[ -x /sbin/mount.fuse3 ] || skip 'no /sbin/mount.fuse3'
	mount -t tmpfs none /usr/local/bin
	ln -s "$RATEFS" /usr/local/bin/ratefs
	mount -v -t fuse.ratefs -o host=mounted local "$m"
	like host "$(cat "$m/status")" mounted
	umount "$m"
	eventually 20 none_left || fail 'the daemon is still there'
}

case_limiters_come_from_a_config_file() {
	cat > "$d/ini" <<- 'EOF'
		; limiters
		# of this test
		[orders]
		rate = 500/s
		burst=10

		[orders/eu]
		rate=10/s:20 5000/h:100
		enforcement = shadow
		[orders/eu/paris]
		[bookings]
		partitions.count=4
		release_interval = 200ms
	EOF
	start -o "config=$d/ini"
	is rate "$(cat "$m/orders/rate")" 500/s
	is burst "$(cat "$m/orders/burst")" 10
	is rate "$(cat "$m/orders/eu/rate")" '10/s:20 5000/h:100'
	is enforcement "$(cat "$m/orders/eu/enforcement")" shadow
	is rate "$(cat "$m/orders/eu/paris/rate")" max
	is count "$(cat "$m/bookings/partitions/count")" 4
	is release_interval "$(cat "$m/bookings/release_interval")" 200ms
	is limiters "$(find "$m" -name token -path '*/token' -not -path '*/partitions/*' | wc -l)" 4
}

case_a_config_file_may_be_the_output_of_a_command() {
	"$RATEFS" -o config=<(printf '[orders]\nrate=5/s\n') local "$m"
	is rate "$(cat "$m/orders/rate")" 5/s
	local pid
	for pid in $(daemons); do
		! ls -l "/proc/$pid/fd" | grep 'pipe:' || fail 'the daemon holds the pipe'
	done
	leave "$m"
	eventually 20 none_left || fail 'the daemon is still there'
	# One that is not open is none of the daemon's own files.
	local number status
	for number in 3 4 5 6 7 8 9; do
		status=0
		timeout 20 "$RATEFS" -f -o config=/dev/fd/$number local "$m" 2> "$d/err" ||
			status=$?
		is "exit status with $number ($(cat "$d/err"))" $status 1
	done
}

case_a_wrong_config_file_is_named_with_its_line() {
	local text
	for text in '[orders]\nrate=plenty' '[orders]\nspeed=5' 'rate=5' '[orders' \
		'[orders]\nrate' '[orders/eu]\nrate=5/s\n[token]' '[.x]' '[]' '[a//b]'; do
		printf "$text\n" > "$d/ini"
		local status=0 said
		said=$(timeout 20 "$RATEFS" -o "config=$d/ini" local "$m" 2>&1 < /dev/null) ||
			status=$?
		like "exit status with $text ($said)" "$status" '^[12]$'
		like "what it says of $text" "$said" 'ini:[1-3]: '
		is "what ratefs check says of $text" "$("$RATEFS" check "$d/ini" | head -n 1)" \
			"${said#ratefs: }"
		! mountpoint -q "$m" || fail "mounted with $text"
	done
}

# notified NAME: binds the socket; its messages go to $d/notified, a line each.
notified() {
	python3 - "$1" "$d/notified" <<- 'END' &
		import socket, sys
		server = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
		name = sys.argv[1]
		server.bind(name.replace("@", "\0", 1) if name[0] == "@" else name)
		out = open(sys.argv[2], "w", buffering=1)
		while True:
		    print(server.recv(4096).decode(), file=out)
	END
	eventually 20 [ -e "$d/notified" ]
}

case_a_service_manager_is_notified() {
	local name
	for name in "$d/socket" "@ratefs-$$-$RANDOM"; do
		notified "$name"
		NOTIFY_SOCKET=$name start
		eventually 20 grep -qx READY=1 "$d/notified" || fail "not ready on $name"
		is 'before the end' "$(cat "$d/notified")" READY=1
		stop
		eventually 20 grep -qx STOPPING=1 "$d/notified" || fail "not stopping on $name"
		is 'in all' "$(cat "$d/notified")" $'READY=1\nSTOPPING=1'
		kill %1 && wait %1 || :
		rm "$d/notified"
	done
}

case_a_service_manager_that_does_not_listen_is_no_trouble() {
	NOTIFY_SOCKET=$d/nowhere start
	eventually 20 grep -q "cannot notify '$d/nowhere'" "$d/log" || fail 'it says nothing'
	stop
	NOTIFY_SOCKET=$(head -c 200 /dev/zero | tr '\0' x) start
	eventually 20 grep -q 'cannot notify .*too long' "$d/log" || fail 'it says nothing'
}

case_lines_in_the_journal_begin_with_their_level() {
	: > "$d/log"
	JOURNAL_STREAM=$(stat -c %d:%i "$d/log") NOTIFY_SOCKET=$d/nowhere start
	eventually 20 grep -q '^<4>ratefs: cannot notify' "$d/log" ||
		fail 'no warning with its level'
	grep -q '^<6>ratefs: .* serves ' "$d/log" || fail 'no line with the level of information'
	stop
	: > "$d/log"
	JOURNAL_STREAM=1:1 start
	eventually 20 grep -q '^ratefs: .* serves ' "$d/log" ||
		fail 'a level where there is no journal'
}
