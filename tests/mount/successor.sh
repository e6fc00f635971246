# shellcheck shell=bash
# The server is replaced by another program, finds what it cannot read, or there is no next one.

case_another_server_is_started_from_the_program_now_on_disk() {
	cp "$RATEFS" "$d/ratefs"
	RATEFS=$d/ratefs
	outlives
	empty orders
	reader orders/token
	waiting orders 1
	local before
	before=$(server)
	cp "$RATEFS" "$d/new"
	mv "$d/new" "$d/ratefs"
	like 'the program of before' "$(readlink "/proc/$before/exe")" 'deleted'
	"$d/ratefs" --reload "$m"
	[ "$before" != "$(server)" ] || fail 'the same server'
	is 'the program' "$(readlink "/proc/$(server)/exe")" "$d/ratefs"
	waiting orders 1
	# One that is no ratefs leaves the one before, however it ends.
	cp "$RATEFS" "$RATEFS.right"
	local status program
	for program in /bin/false /bin/true; do
		cp "$program" "$d/new"
		before=$(server)
		mv "$d/new" "$d/ratefs"
		status=0
		death '[0-9]+ status [01]'
		"$RATEFS.right" --reload "$m" 2> "$d/said" || status=$?
		is "exit status with $program" $status 1
		like said "$(cat "$d/said")" 'back to the program that ran before'
		[ "$before" != "$(server)" ] || fail 'the same server'
		waiting orders 1
	done
	is 'times it says so' \
		"$(grep -c 'back to the program that ran before' "$d/log")" 2
	echo 1000/s > "$m/orders/rate"
	gone "$reader" 20
	is token "$(cat "$d/got")" 1
}

case_programs_that_do_not_start_end_no_mount_however_often() {
	cp "$RATEFS" "$d/ratefs"
	RATEFS=$d/ratefs
	cp "$RATEFS" "$RATEFS.right"
	outlives
	empty orders
	reader orders/token
	local before
	death '[0-9]+ status 1'
	cp /bin/false "$d/new"
	mv "$d/new" "$d/ratefs"
	for _ in {1..12}; do
		before=$(server)
		sleep 0.2 # it serves, see KEEPER_LIFE_NS
		"$RATEFS.right" --reload "$m" 2> "$d/said" && fail 'it says that it did'
		[ "$before" != "$(server)" ] || fail 'the same server'
	done
	waiting orders 1
}

case_readers_that_wait_go_on_waiting_whatever_the_bounds_are_by_then() {
	outlives
	limiter orders 1/d
	cat "$m/orders/token" > /dev/null
	local readers=()
	for _ in 1 2 3; do
		reader orders/token
		readers+=("$reader")
	done
	waiting orders 3
	echo 1 > "$m/orders/queue_max"
	echo 1s > "$m/orders/wait_max"
	"$RATEFS" --reload "$m"
	waiting orders 3
	killed
	waiting orders 3
	denied EBUSY read "$m/orders/token"
	echo 1000/s > "$m/orders/rate"
	for reader in "${readers[@]}"; do
		gone "$reader" 20
	done
}

case_tokens_taken_before_can_be_given_back_to_the_next_server() {
	outlives
	empty orders 2
	killed
	echo -2 > "$m/orders/charge"
	denied ERANGE write "$m/orders/charge" -1
	is tokens "$(cat "$m/orders/take/2,within=0s")" 2
}

# memory version N|cut|flip: the state that the server has written for the next one is damaged, see
# state.py.
memory() { python3 "$(dirname "${BASH_SOURCE[0]}")/state.py" "$daemon" "$@"; }

kept_aside() {
	outlives "local:$d/kept"
	limiter orders 1/d 100
	exec 5< "$m/orders/token" 6< "$m/orders/slot"
	memory version "$1"
	killed
	like log "$(grep 'another version' "$d/log")" 'kept aside, buckets start empty'
	counts orders slots_used 0
	is 'tokens of orders' "$(tokens orders)" 0
	is 'through a file open before' "$(read_of 5)" ENODEV
	exec 5<&- 6<&-
	echo 1000/s > "$m/orders/rate"
	is token "$(cat "$m/orders/token")" 1
	killed
	is rate "$(cat "$m/orders/rate")" 1000/s
}

case_the_state_of_an_older_version_is_kept_aside() { kept_aside 1; }
case_the_state_of_a_newer_version_is_kept_aside() { kept_aside 65535; }

case_a_state_damaged_at_any_byte_is_kept_aside() {
	outlives "local:$d/kept"
	local i where told before
	for i in {1..21}; do
		told=$(grep -c 'is damaged' "$d/log" || :)
		[ -d "$m/orders" ] || limiter orders 1/d 100
		limiter "other$i" 5/s
		exec 5< "$m/orders/slot"
		before=$(server)
		sleep 0.12 # or it would seem not to stay up
		kill -STOP "$before"
		where=$(memory "$([ $((i % 3)) = 0 ] && echo flip || echo cut)")
		death_by_kill "$before"
		eventually 20 eval "[ \"\$(server)\" != $before ]" || fail 'no other server'
		[[ $where = levels* ]] || [ "$(grep -c 'is damaged' "$d/log")" -gt "$told" ] ||
			fail "not found: $where"
		if [ "$(grep -c 'is damaged' "$d/log" || :)" -gt "$told" ]; then
			is "tokens of orders after $where" "$(tokens orders)" 0
			is limiters "$(ls -d "$m"/other*/ | wc -l)" "$i"
			rmdir "$m/orders"
		fi
		exec 5<&-
	done
	grep -q 'of another version or damaged: kept aside' "$d/log"
}

case_a_program_that_cannot_read_it_leaves_it_to_the_one_before() {
	outlives
	empty orders
	reader orders/token
	waiting orders 1
	local before
	before=$(server)
	kill -STOP "$before"
	kill -HUP "$daemon"
	death '[0-9]+ status 1'
	memory version 65535
	kill -CONT "$before"
	eventually 10 grep -q 'back to the program that ran before' "$d/log" ||
		fail 'it does not say why'
	eventually 10 grep -q 'kept aside' "$d/log" || fail 'nor that nobody could read it'
	eventually 10 [ -r "$m/status" ]
}

case_reload_refuses_what_is_no_mount() {
	local status=0
	"$RATEFS" --reload "$d" 2> "$d/said" || status=$?
	is status $status 1
	is said "$(cat "$d/said")" "ratefs: $d: not a mount of ratefs"
	status=0
	"$RATEFS" --reload 2> "$d/said" || status=$?
	is status $status 2
}

case_the_end_comes_while_there_is_no_server() {
	outlives
	empty orders
	reader orders/token
	waiting orders 1
	kill -STOP "$daemon"
	death_by_kill "$(server)"
	kill -TERM "$daemon"
	kill -CONT "$daemon"
	ended
	gone "$reader" 10 || :
	like 'what the reader got' "$(cat "$d/got")" '^(ECONNABORTED|ENOTCONN|ESHUTDOWN)$'
}

case_the_end_comes_while_the_next_server_starts() {
	local i
	for i in 0 0.002 0.004 0.007 0.01 0.02 0.05 0.1; do
		outlives
		death_by_kill "$(server)"
		sleep $i
		kill -TERM "$daemon"
		ended
	done
}

case_the_end_comes_while_the_first_server_starts() {
	local i status
	for i in 0.01 0.02 0.03 0.05 0.1 0.2; do
		env --default-signal "$RATEFS" -f local "$m" >> "$d/log" 2>&1 &
		daemon=$!
		sleep $i
		kill -TERM "$daemon"
		status=0
		gone "$daemon" 20 || status=$?
		daemon=
		# 143: before it looks for signals.
		[ $status = 0 ] || [ $status = 143 ] || fail "status $status after $i s"
		! mountpoint -q "$m" || fail 'still mounted'
	done
}

case_umount_while_there_is_no_server_ends_the_keeper() {
	outlives
	kill -STOP "$daemon"
	death_by_kill "$(server)"
	umount --no-canonicalize --internal-only "$m"
	kill -CONT "$daemon"
	ended
}

case_the_kept_state_is_in_no_core() {
	outlives
	like 'flags of the memory' "$(awk '/ratefs-state/ { found = 1 }
		found && /VmFlags/ { print; exit }' "/proc/$(server)/smaps")" ' dd( |$)'
}

case_a_directory_that_was_moved_is_not_made_anew() {
	outlives "local:$d/kept"
	limiter orders
	mv "$d/kept" "$d/moved"
	killed
	is token "$(cat "$m/orders/token")" 1
	[ ! -e "$d/kept" ] || fail 'there is another one'
	[ -e "$d/moved/orders" ] || fail 'the limiter is gone'
	stop
	[ -e "$d/moved/.levels" ] || fail 'no .levels after a clean end'
}

# ends_without_settings: the server is killed, and none can follow, which the first one finds out.
ends_without_settings() {
	local status=0
	death_by_kill "$(server)"
	gone "$daemon" 20 || status=$?
	daemon=
	is 'exit status' $status 1
	like log "$(cat "$d/log")" "cannot open $d/kept: it was removed|cannot write to $d/kept"
	is starts "$(grep -c 'the next one goes on' "$d/log")" 1
}

case_a_directory_that_was_removed_is_not_made_anew() {
	outlives "local:$d/kept"
	limiter orders
	rm -r "$d/kept"
	ends_without_settings
	[ ! -e "$d/kept" ] || fail 'there is another one'
}

case_a_directory_that_was_removed_and_made_anew_is_another() {
	outlives "local:$d/kept"
	limiter orders
	rm -r "$d/kept"
	mkdir "$d/kept"
	ends_without_settings
	is 'what is in the other one' "$(ls -A "$d/kept")" ''
}

case_reload_signals_no_process_but_a_keeper() {
	sleep 60 &
	printf 'keeper %d\nserver %d\noutlives_server yes\n' $! $! > "$d/status"
	if "$RATEFS" --reload "$d" 2> "$d/said"; then fail 'it says that it did'; fi
	is said "$(cat "$d/said")" "ratefs: $d: not a mount of ratefs"
	kill -0 $! || fail 'it was killed'
}

# Its name ends as a name does in the list of the kernel, and its arguments are those of a server.
case_reload_believes_no_directory_that_names_a_forged_server() {
	env --default-signal sleep 60 &
	local victim=$! forger
	python3 - "$victim" 0123456789 <<- 'EOF' &
		import sys, time
		open("/proc/self/comm", "w").write("x) S " + sys.argv[1])
		arguments = open("/proc/self/stat").read().rsplit(")", 1)[1].split()[45]
		with open("/proc/self/mem", "r+b", buffering=0) as memory:
		    memory.seek(int(arguments))
		    memory.write(b"x\0--server=x\0")
		time.sleep(60)
	EOF
	forger=$!
	eventually 20 grep -qs -e --server= "/proc/$forger/cmdline"
	printf 'keeper %d\nserver %d\noutlives_server yes\n' "$victim" "$forger" > "$d/status"
	timeout 20 "$RATEFS" --reload "$d" 2> "$d/said" && fail 'it says that it did'
	alive "$victim" || fail 'it was killed'
	is said "$(cat "$d/said")" "ratefs: $d: not a mount of ratefs"
	kill "$victim" "$forger"
}

case_a_limit_on_files_is_none_on_what_is_kept() {
	ulimit -S -f 100
	outlives
	limiter orders
	killed
	is token "$(cat "$m/orders/token")" 1
}
