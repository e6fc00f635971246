# shellcheck shell=bash
# A sleep: all that wait can be frozen, by any freezer and in any order, and keep their places.

# freezer NAME: a cgroup of that name that can be frozen, of version 2 or 1, whichever is there; its
# folder in $NAME. All are thawed at the end, however it comes: nothing else ends them.
folders=()
freezer() {
	local -n folder=$1
	local root=$d/cgroups
	if ! mountpoint -q "$root"; then
		mkdir -p "$root"
		mount -t "${cgroups:-cgroup2}" ${cgroups:+-o freezer} none "$root"
	fi
	folder=$root/ratefs-$$-$RANDOM-$1
	mkdir "$folder"
	folders+=("$folder")
	[ -e "$folder/cgroup.freeze" ] || [ -e "$folder/freezer.state" ] ||
		fail 'cgroups without a freezer'
}

# version_1: freezer makes cgroups of that version from now on, if the machine has them.
version_1() {
	mkdir "$d/one"
	! mount -t cgroup -o freezer none "$d/one" 2> /dev/null || cgroups=cgroup
}

# freeze FOLDER YES: freezes its processes, or thaws them.
freeze() {
	if [ -e "$1/cgroup.freeze" ]; then
		echo "$2" > "$1/cgroup.freeze"
	elif [ "$2" = 1 ]; then
		echo FROZEN > "$1/freezer.state"
	else
		echo THAWED > "$1/freezer.state"
	fi
}

is_frozen() { grep -qsx -e 'frozen 1' -e FROZEN "$1/cgroup.events" "$1/freezer.state"; }

# frozen FOLDER…: they are, one after the other.
frozen() {
	local folder
	for folder; do
		freeze "$folder" 1
	done
	for folder; do
		eventually 20 is_frozen "$folder" || fail "it cannot be frozen: $folder"
	done
}

at_end() {
	local folder process
	for folder in "${folders[@]}"; do
		freeze "$folder" 0
		while read -r process; do
			echo "$process" 2> /dev/null > "${folder%/*}/cgroup.procs" || :
		done < "$folder/cgroup.procs"
		rmdir "$folder" || :
	done
	folders=()
}

# into FOLDER PID…
into() {
	local folder=$1 process
	shift
	for process; do
		echo "$process" > "$folder/cgroup.procs"
	done
}

# queue N [FILE]: N readers wait in this order, in readers[].
queue() {
	readers=()
	local i
	for ((i = 1; i <= $1; i++)); do
		env --default-signal cat "$m/orders/${2-token}" > "$d/got.$i" &
		readers+=($!)
		waiting orders "$i"
	done
}

# order: those that wait for tokens of orders, in their order.
order() { awk '!/^#/ { printf "%s ", $1 }' "$m/orders/waiters"; }

# keeps WANTED: that is the order.
keeps() {
	local wanted=$1
	eventually 20 eval '[ "$(order)" = "$wanted" ]' || fail "the order is '$(order)', not '$1'"
}

give() { echo "-${1-1}" > "$m/orders/charge"; }

# served PID…: one after the other has the next token.
served() {
	local process
	for process; do
		give
		gone "$process" 20
	done
}

held() { grep -q '^State:.*tracing stop' "/proc/$1/status"; }

# poller: a program that polls orders/token, and reads to $d/polled.
poller() {
	env --default-signal python3 - "$m/orders/token" > "$d/polled" <<- 'EOF' &
		import os, select, sys
		token = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)
		waits = select.poll()
		waits.register(token, select.POLLIN)
		while True:
		    waits.poll()
		    try:
		        print(os.read(token, 16).decode(), end="")
		        break
		    except BlockingIOError:
		        pass
	EOF
	poller=$!
}

# sleeps ROUNDS: a daemon with readers, a poller and an opener sleeps and wakes so often.
sleeps() {
	start
	empty orders 4
	limiter jobs
	echo 1 > "$m/jobs/concurrency"
	queue 2
	poller
	waiting orders 3
	env --default-signal cat "$m/orders/token" > "$d/got.3" &
	readers+=($!)
	waiting orders 4
	env --default-signal cat "$m/events" > "$d/events" &
	local follower=$! round before
	exec 3< "$m/jobs/slot"
	env --default-signal bash -c "exec 4< '$m/jobs/slot'; echo opened; sleep 100" \
		> "$d/slot" 3<&- &
	local opener=$!
	waiting jobs 1
	local service clients
	freezer service
	freezer clients
	into "$service" "$daemon" "$(server)"
	into "$clients" "${readers[@]}" "$poller" "$opener" "$follower"
	before=$(order)
	for ((round = 0; round < $1; round++)); do
		"$RATEFS" --freeze "$m"
		into "$service" "$(status_of frozen_by)"
		if ((round % 2)); then
			frozen "$clients" "$service"
		else
			frozen "$service" "$clients"
		fi
		[ $round != 0 ] || sleep 1.2
		freeze "$service" 0
		freeze "$clients" 0
		"$RATEFS" --thaw "$m"
		keeps "$before"
		waiting jobs 1
	done
	served "${readers[@]:0:2}" "$poller" "${readers[2]}"
	is 'what the poller got' "$(cat "$d/polled")" 1
	exec 3<&-
	eventually 20 [ -s "$d/slot" ] || fail 'the opener has no slot'
	alive "$follower" || fail 'the reader of events has ended'
	kill "$opener" "$follower"
}

case_all_that_wait_are_frozen_in_either_order_and_keep_their_places() {
	sleeps "${FREEZES:-4}"
}

case_the_same_by_a_freezer_of_version_1() {
	version_1
	[ -n "${cgroups-}" ] || skip 'no cgroups of version 1'
	sleeps "${FREEZES:-4}"
}

case_a_freeze_holds_no_lock_of_its_caller() {
	outlives
	exec 7> "$d/lock"
	flock 7
	"$RATEFS" --freeze "$m"
	exec 7>&-
	flock -n "$d/lock" true || fail 'the tracer holds it'
	"$RATEFS" --thaw "$m"
}

case_nothing_is_granted_while_frozen_and_then_the_old_order_counts() {
	start
	empty orders 6
	queue 3
	"$RATEFS" --freeze "$m"
	counts orders waiting 0
	like why "$(cat "$m/orders/why")" "^frozen by process $(status_of frozen_by)"$'\n'
	cat "$m/orders/token" > "$d/late" &
	local late=$!
	eventually 20 held "$late" || fail 'the late one is not held'
	give 4
	is 'a try' "$("$CLIENT" read "$m/orders/try")" EBUSY
	counts orders granted 6
	"$RATEFS" --thaw "$m"
	gone "${readers[0]}" 20
	gone "${readers[1]}" 20
	gone "${readers[2]}" 20
	gone "$late" 20
	counts orders granted 10
}

case_a_poll_that_comes_while_frozen_is_held_and_served_after_it() {
	start
	empty orders 3
	queue 1
	"$RATEFS" --freeze "$m"
	poller
	eventually 20 held "$poller" || fail 'it is not held'
	give 2
	is 'what the poller got' "$(cat "$d/polled")" ''
	"$RATEFS" --thaw "$m"
	gone "${readers[0]}" 20
	gone "$poller" 20
	is 'what the poller got' "$(cat "$d/polled")" 1
}

any_ended() {
	local process
	for process in "${readers[@]}"; do
		alive "$process" || return 0
	done
	return 1
}

# first_though_late: three wait, and there is a token when they are thawed; the one that came first
# is back last. Whether it has the token all the same.
first_though_late() {
	queue 3
	"$RATEFS" --freeze "$m"
	give
	kill -STOP "${readers[0]}"
	"$RATEFS" --thaw "$m"
	kill -CONT "${readers[0]}"
	eventually 20 any_ended || fail 'none is served'
	! alive "${readers[0]}"
}

# A thaw waits for a second, and on a busy machine a reader can be later than that. If a thaw does
# not wait, the first is served in none of five times.
case_a_thaw_waits_for_all_before_it_grants() {
	start
	empty orders 3
	local tries=1
	until first_though_late; do
		[ $((tries++)) -lt 5 ] || fail 'others were served before it'
		kill "${readers[@]}" 2> /dev/null
		waiting orders 0
	done
	gone "${readers[0]}" 20
	served "${readers[@]:1}"
}

case_a_reader_that_ends_while_frozen_holds_up_the_others_for_a_moment_only() {
	start
	empty orders 3
	queue 3
	"$RATEFS" --freeze "$m"
	kill -9 "${readers[0]}"
	eventually 20 eval '! alive "${readers[0]}"'
	"$RATEFS" --thaw "$m"
	keeps "${readers[1]} ${readers[2]} "
	served "${readers[@]:1}"
}

case_a_signal_that_would_end_a_frozen_reader_does_so_at_the_thaw() {
	local reader
	start
	empty orders 3
	queue 3
	"$RATEFS" --freeze "$m"
	for reader in "${readers[@]:0:2}"; do
		kill -TERM "$reader"
	done
	sleep 0.5
	for reader in "${readers[@]}"; do
		alive "$reader" || fail "$reader has ended"
	done
	"$RATEFS" --thaw "$m"
	for reader in "${readers[@]:0:2}"; do
		eventually 20 eval '! alive "$reader"'
	done
	keeps "${readers[2]} "
	served "${readers[2]}"
}

case_a_process_that_was_stopped_stays_so_and_no_other_does() {
	start
	empty orders 3
	queue 2
	kill -STOP "${readers[0]}"
	waiting orders 1
	"$RATEFS" --freeze "$m"
	kill -STOP "${readers[1]}"
	kill -CONT "${readers[1]}"
	"$RATEFS" --thaw "$m"
	waiting orders 1
	grep -q '^State:.*(stopped)' "/proc/${readers[0]}/status" || fail 'it goes on'
	kill -CONT "${readers[0]}"
	waiting orders 2
	kill "${readers[@]}"
}

case_readers_go_on_in_their_places_if_the_tracer_is_killed() {
	start
	empty orders 3
	queue 3
	local tracer before
	before=$(order)
	"$RATEFS" --freeze "$m"
	tracer=$(status_of frozen_by)
	kill -9 "$tracer"
	# The threads go on only as it has ended.
	eventually 20 eval '! alive "$tracer"'
	keeps "$before"
	is 'the tracer' "$(status_of frozen_by)" 0
	served "${readers[@]}"
}

case_the_next_server_is_frozen_too() {
	outlives
	empty orders 3
	queue 3
	local before late
	before=$(order)
	"$RATEFS" --freeze "$m"
	sleep 2.2
	killed
	"$RATEFS" --reload "$m"
	give
	cat "$m/orders/token" > "$d/late" &
	late=$!
	eventually 20 held "$late" || fail 'the late one is not held'
	"$RATEFS" --thaw "$m"
	gone "${readers[0]}" 20
	keeps "${before#* }$late "
	served "${readers[@]:1}" "$late"
}

case_frozen_lists_the_threads_and_reading_it_freezes_nothing() {
	start
	empty orders 3
	queue 2
	poller
	waiting orders 3
	is 'the threads' "$(sort "$m/frozen")" \
		"$(printf '%s\n' "${readers[@]}" "$poller" | sort)"
	is 'the tracer' "$(status_of frozen_by)" 0
	refused EINVAL write "$m/frozen" 1
	served "${readers[@]}" "$poller"
}

case_a_poll_of_frozen_tells_of_threads_that_it_has_not_listed() {
	start
	empty orders 3
	queue 1
	# The first line that the program reads tells it that another reader waits.
	mkfifo "$d/more"
	timeout 60 python3 - "$m/frozen" "$d/more" > "$d/polled" <<- 'EOF' &
		import os, select, sys
		def polled(file, ms):
		    waits = select.poll()
		    waits.register(file, select.POLLIN)
		    return bool(waits.poll(ms))
		def listed(file):
		    return len(os.pread(file, 65536, 0).splitlines())
		seen = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)
		assert polled(seen, 0) and listed(seen) == 1 and polled(seen, 0), "of no freeze"
		freezes = os.open(sys.argv[1], os.O_RDWR | os.O_NONBLOCK)
		assert polled(freezes, 20000) and listed(freezes) == 1, "the first"
		assert not polled(freezes, 200), "there is no other"
		try:
		    listed(freezes)
		    sys.exit("a read that is to block")
		except BlockingIOError:
		    pass
		assert polled(seen, 0), "of no freeze, beside one"
		print("listed", flush=True)
		open(sys.argv[2]).read()
		assert polled(freezes, 20000) and listed(freezes) == 2, "both"
		assert not polled(freezes, 200), "there is no third"
		print("done")
	EOF
	local program=$!
	eventually 60 eval '[ -s "$d/polled" ] || ! alive "$program"'
	is 'what the poller says' "$(cat "$d/polled")" listed
	env --default-signal cat "$m/orders/token" > "$d/late" &
	readers+=($!)
	: > "$d/more"
	wait "$program" || fail "the poller: exit status $?"
	is 'what the poller says' "$(tail -n 1 "$d/polled")" done
	waiting orders 2
	kill "${readers[@]}"
}

case_a_thread_that_a_debugger_lets_go_is_held_with_the_next_one() {
	start
	empty orders 3
	queue 1
	strace -p "${readers[0]}" -o "$d/trace" 2> "$d/strace" &
	local debugger=$!
	eventually 20 grep -q attached "$d/strace" || fail "no trace: $(cat "$d/strace")"
	like 'what freeze says' "$("$RATEFS" --freeze "$m" 2>&1)" \
		"^ratefs: thread ${readers[0]} cannot be held, and may keep a freezer waiting\$"
	kill "$debugger"
	gone "$debugger" 20 || :
	env --default-signal cat "$m/orders/token" > "$d/late" &
	readers+=($!)
	eventually 20 held "${readers[1]}" || fail 'the late one is not held'
	eventually 20 held "${readers[0]}" || fail 'the first one is not held'
	"$RATEFS" --thaw "$m"
	keeps "${readers[*]} "
	served "${readers[@]}"
}

case_only_the_owner_freezes_and_only_once() {
	start -o allow_other
	chmod 711 "$d" "$(dirname "$d")" "$(dirname "$CLIENT")"
	chmod 755 "$CLIENT"
	is 'a read by another user' "$(as nobody "$CLIENT" read "$m/frozen")" EACCES
	is 'a write by another user' "$(as nobody "$CLIENT" write "$m/frozen" 1)" EACCES
	like 'a freeze without a mount' "$("$RATEFS" --freeze "$d" 2>&1)" 'not a mount of ratefs'
	like 'a thaw of two' "$("$RATEFS" --thaw "$m" "$m" 2>&1)" 'needs a mount point'
	"$RATEFS" --thaw "$m"
	"$RATEFS" --freeze "$m"
	like 'another freeze' "$("$RATEFS" --freeze "$m" 2>&1)" 'frozen already'
	"$RATEFS" --thaw "$m"
	is 'the tracer' "$(status_of frozen_by)" 0
}

case_a_thaw_ends_no_process_but_the_one_that_has_it_frozen() {
	start
	env --default-signal bash -c \
		'exec 3<> "$0/frozen"; sleep 100 & exec 3>&-; exec sleep 100' "$m" &
	local opener=$!
	eventually 20 grep -qs sleep "/proc/$opener/comm"
	is 'the opener' "$(status_of frozen_by)" "$opener"
	like 'what thaw says' "$("$RATEFS" --thaw "$m" 2>&1)" "process $opener is none here"
	alive "$opener" || fail 'a process is ended that does not have it open'
	pkill -P "$opener"
	eventually 20 eval '[ "$(status_of frozen_by)" = 0 ]'
	kill "$opener"
}

case_processes_of_another_namespace_are_not_taken_for_readers() {
	start
	like 'what freeze says' "$(unshare -p -f --mount-proc "$RATEFS" --freeze "$m" 2>&1)" \
		'process namespace'
	is 'the tracer' "$(status_of frozen_by)" 0
}

# As in a container that runs nothing else: the keeper has number 1.
case_the_first_process_of_a_namespace_is_reloaded_and_frozen() {
	mkdir "$d/inner"
	cat > "$d/commands" <<- 'END'
		until mountpoint -q "$2"; do sleep 0.1; done
		for command in --reload --freeze --thaw; do
			"$1" $command "$2" 2>&1 || echo "$command: exit status $?"
		done
		awk '$1 ~ "keeper|servers_before|frozen_by" { print $2 }' "$2/status"
		kill 1
	END
	timeout -s KILL 100 unshare -p -f --mount-proc --kill-child sh -c \
		'sh "$2" "$0" "$1" > "$3" & exec "$0" -f local "$1"' \
		"$RATEFS" "$d/inner" "$d/commands" "$d/said" 2> "$d/log"
	is said "$(paste -s -d ' ' "$d/said")" '1 1 0'
}

case_the_end_of_the_mount_ends_a_freeze() {
	start
	empty orders 2
	queue 2
	"$RATEFS" --freeze "$m"
	local tracer
	tracer=$(status_of frozen_by)
	stop
	eventually 20 eval '! alive "$tracer"' || fail 'the tracer is still there'
	gone "${readers[0]}" 20 || :
	gone "${readers[1]}" 20 || :
}

# Root may not look into the tree of another user, but may freeze it as that user.
case_the_script_of_a_sleep_freezes_the_trees_of_all_users() {
	chmod 711 "$d" "$(dirname "$d")" "$(dirname "$CLIENT")"
	mknod -m 666 "$d/fuse" c 10 229
	mount --bind "$d/fuse" /dev/fuse
	mkdir "$d/a tree"
	chown nobody "$d/a tree"
	m="$d/a tree"
	as nobody "$RATEFS" local "$m"
	as nobody mkdir "$m/orders"
	as nobody sh -c 'echo 1/d > "$0/rate"; echo 1 > "$0/burst"; cat "$0/token"' "$m/orders"
	as nobody env --default-signal cat "$m/orders/token" > "$d/got" &
	seen() { as nobody grep -qx "$1" "$m/$2"; }
	eventually 20 seen 'waiting 1' orders/stat
	reader=$(as nobody cat "$m/frozen")
	# Not those of the machine.
	awk '$3 == "fuse.ratefs" && $2 !~ /\/a\\040tree$/ { print $2 }' /proc/self/mounts |
		xargs -r umount -l
	mkdir "$d/bin"
	ln -s "$RATEFS" "$d/bin/ratefs"
	local script
	script=$(dirname "${BASH_SOURCE[0]}")/../../operators/ratefs-sleep
	PATH=$d/bin:$PATH "$script" pre suspend
	held "$reader" || fail 'it is not held'
	PATH=$d/bin:$PATH "$script" post suspend
	eventually 20 seen 'waiting 1' orders/stat
	seen 'frozen_by 0' status
	kill "$reader"
	eventually 20 eval "! alive $reader" || fail 'the reader is still there'
	as nobody fusermount3 -u "$m"
}

case_freezing_what_is_no_mount_says_so() {
	start
	"$RATEFS" --freeze "$d" 2> "$d/said" && fail 'no mount was frozen'
	is said "$(cat "$d/said")" "ratefs: $d: not a mount of ratefs"
}

case_a_thaw_believes_no_directory_that_names_a_process() {
	: > "$d/a"
	env --default-signal sleep 60 < "$d/a" &
	local victim=$!
	eventually 20 grep -qs sleep "/proc/$victim/comm"
	ln -s "$d/a" "$d/frozen"
	printf 'keeper 1\nserver 2\nfrozen_by %d\n' "$victim" > "$d/status"
	"$RATEFS" --thaw "$d" 2> "$d/said" && fail 'it says that it did'
	alive "$victim" || fail 'a process is ended'
	is said "$(cat "$d/said")" "ratefs: $d: not a mount of ratefs"
	kill "$victim"
}

# The status waits to be read, and tells then of the process that reads it. The list can be polled.
case_a_freeze_believes_no_directory_that_lists_threads() {
	env --default-signal sleep 60 &
	local victim=$! liar command listed
	freezer listed
	into "$listed" "$victim"
	ln -s "$listed/cgroup.procs" "$d/frozen"
	mkfifo "$d/status"
	"$RATEFS" --freeze "$d" 2> "$d/said" &
	command=$!
	(
		exec > "$d/status"
		printf 'keeper 1\nserver 2\nfrozen_by %d\n' "$(pgrep -P $command)"
	) &
	liar=$!
	eventually 20 eval '! alive "$command" || held "$victim"' || fail 'it goes on'
	! held "$victim" || fail 'a thread is held'
	is said "$(cat "$d/said")" "ratefs: $d: not a mount of ratefs"
	kill "$victim" "$liar"
}

# A daemon of another user may list whatever thread it likes.
case_the_tree_of_an_ordinary_user_holds_threads_of_that_user_only() {
	chmod 711 "$d" "$(dirname "$d")" "$(dirname "$CLIENT")"
	mknod -m 666 "$d/fuse" c 10 229
	mount --bind "$d/fuse" /dev/fuse
	echo user_allow_other > "$d/fuse.conf"
	mount --bind "$d/fuse.conf" /etc/fuse.conf
	chown nobody "$m"
	as nobody "$RATEFS" -o allow_other local "$m"
	as nobody mkdir "$m/orders"
	as nobody sh -c 'echo 1/d > "$0/rate"; echo 1 > "$0/burst"; cat "$0/token"' "$m/orders"
	as nobody env --default-signal cat "$m/orders/token" > "$d/got" &
	waiting orders 1
	local of_user of_root
	of_user=$(cat "$m/frozen")
	env --default-signal cat "$m/orders/token" > "$d/got.root" &
	of_root=$!
	waiting orders 2
	like 'what freeze says' "$("$RATEFS" --freeze "$m" 2>&1)" \
		"^ratefs: thread $of_root cannot be held"
	held "$of_user" || fail 'the reader of that user is not held'
	! held "$of_root" || fail 'the reader of root is held'
	"$RATEFS" --thaw "$m"
	waiting orders 2
	kill "$of_user" "$of_root"
	eventually 20 as nobody fusermount3 -u "$m"
}
