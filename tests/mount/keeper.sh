# shellcheck shell=bash
# The mount outlives its server: no reader and no open file notices that it was killed.

# holder NAME: opens slot of orders in the background and keeps it; its pid in $holder, and $d/NAME
# is there once it has it.
holder() {
	env --default-signal \
		bash -c "exec 3< '$m/orders/slot'; : > '$d/$1'; exec sleep 100" 3<&- 4<&- 5<&- &
	holder=$!
}

has_slot() { eventually 20 [ -e "$d/$1" ] || fail "$1 did not get a slot"; }

case_blocked_readers_get_their_tokens_from_the_next_server() {
	outlives
	empty orders
	local file
	for file in token take/2 stream keys/alice/token; do
		"$CLIENT" read "$m/orders/$file" > "$d/got.$(tr / . <<< "$file")" &
		readers+=($!)
	done
	waiting orders 4
	killed
	waiting orders 4
	killed
	waiting orders 4
	echo 1000/s > "$m/orders/rate"
	for file in "${readers[@]}"; do gone "$file" 20; done
	is token "$(cat "$d/got.token")" 1
	is take "$(cat "$d/got.take.2")" 2
	is stream "$(cat "$d/got.stream")" 1
	is key "$(cat "$d/got.keys.alice.token")" 1
	counts orders waiting 0
	is servers_before "$(status_of servers_before)" 2
}
readers=()

case_readers_are_served_in_the_order_in_which_they_came() {
	outlives
	empty orders 100
	local i
	for i in {1..40}; do
		"$CLIENT" read "$m/orders/take/$i" > /dev/null &
		readers+=($!)
		waiting orders "$i"
	done
	killed
	waiting orders 40
	is 'tokens wanted, in turn' "$(rows "$m/orders/waiters" | cut -d ' ' -f 3 | tr '\n' ' ')" \
		"$(seq -s ' ' 40) "
	echo 1000/s > "$m/orders/rate"
	for i in "${readers[@]}"; do gone "$i" 20; done
}

case_a_server_that_hangs_is_replaced_and_readers_keep_their_places() {
	outlives
	empty orders 3
	local before i reload
	for i in 1 2 3; do
		"$CLIENT" read "$m/orders/take/$i" > "$d/got.$i" &
		readers+=($!)
		waiting orders $i
	done
	before=$(pgrep -P "$daemon")
	kill -STOP "$before"
	death "$before signal 9"
	"$RATEFS" --reload "$m" & reload=$!
	eventually 90 eval "! alive $before" || fail 'it is not replaced'
	gone $reload 20 || fail 'the reload failed'
	grep -q "server $before has not answered for 30 s" "$d/log" || fail 'the log says nothing'
	is 'tokens wanted, in turn' "$(rows "$m/orders/waiters" | cut -d ' ' -f 3 | tr '\n' ' ')" \
		'1 2 3 '
	echo 1000/s > "$m/orders/rate"
	for i in "${readers[@]}"; do gone "$i" 20; done
	is got "$(cat "$d"/got.*)" $'1\n2\n3'
}

case_signals_reach_readers_that_waited_before_and_after() {
	outlives
	empty orders
	reader orders/token
	waiting orders 1
	killed
	waiting orders 1
	kill "$reader"
	gone "$reader" 10 || :
	waiting orders 0
	counts orders cancelled 1
	# While there is no server.
	reader orders/take/7
	waiting orders 1
	kill -STOP "$daemon"
	death_by_kill "$(server)"
	kill -KILL "$reader"
	kill -CONT "$daemon"
	gone "$reader" 10 || :
	eventually 10 has orders waiting 0 || fail 'who was killed still waits'
}

case_settings_names_and_owners_are_those_of_before() {
	outlives
	mkdir -p "$m/orders/batch" "$m/old" "$m/gone"
	echo '500/s 20000/h:50' > "$m/orders/rate"
	echo 'exponential initial=1s' > "$m/orders/backoff"
	echo 7/min > "$m/orders/batch/rate"
	mv "$m/old" "$m/new"
	rmdir "$m/gone"
	chmod 750 "$m/orders"
	chown 12:34 "$m/orders"
	local inode changed before
	inode=$(stat -c %i "$m/orders/batch/rate")
	changed=$(stat -c %Y "$m/orders/batch/rate")
	before=$(cat "$m/orders/config" "$m/orders/batch/config")
	cd "$m/orders/batch"
	exec 5> rate
	killed
	killed
	is 'both configs' "$(cat "$m/orders/config" "$m/orders/batch/config")" "$before"
	is owner "$(stat -c '%u:%g %a' "$m/orders")" '12:34 750'
	is limiters "$(ls -d "$m"/*/ | xargs -n 1 basename | tr '\n' ' ')" 'new orders '
	is inode "$(stat -c %i "$m/orders/batch/rate")" "$inode"
	is mtime "$(stat -c %Y "$m/orders/batch/rate")" "$changed"
	is 'from inside' "$(cat rate)" 7/min
	echo 8/min >&5
	is 'written through a file open before' "$(cat rate)" 8/min
	mkdir "$m/next"
	[ "$(stat -c %i "$m/next")" != "$(stat -c %i "$m/new")" ]
	cd /
	exec 5>&-
}

case_tokens_left_in_a_bucket_are_left() {
	outlives
	limiter orders '1/d:100 1/26d:50'
	cat "$m/orders/take/30" > /dev/null
	limiter debt 1/d
	echo 500 > "$m/debt/charge"
	limiter full 1/d 70
	killed
	is 'tokens of orders' "$(tokens orders)" 20
	like 'tokens of debt' "$(tokens debt)" '^-(49[89]|500)$'
	"$CLIENT" read "$m/orders/take/20" > /dev/null
	is 'one more' "$("$CLIENT" read "$m/orders/try" || :)" EBUSY
	counts orders granted 50
	echo -5 > "$m/orders/charge"
	killed
	is 'tokens of orders' "$(tokens orders)" 5
}

# known LIMITER: prints its counters and learnt values.
known() {
	local counted='granted|served|delayed_seconds|ok|throttled|error'
	# In a fleet it is the rate of what is held, and a lease that is not used goes back.
	[ -n "${SOURCE-}" ] || counted+='|effective_rate'
	grep -E "^($counted|backoff_(up|down|pauses|paused_seconds|seconds)) " "$m/$1/stat"
}

case_a_line_of_feedback_that_is_cut_goes_on_with_the_next_server() {
	outlives
	limiter orders
	{ printf '200\n%.0s' {1..127}; printf '429 '; } > "$d/begin"
	exec 5> "$m/orders/feedback"
	dd if="$d/begin" bs=512 status=none >&5
	killed
	echo 'remaining=12 reset=1h' >&5
	counts orders ok 127
	counts orders throttled 1
	[ -n "${SOURCE-}" ] || counts orders service_left 12
	dd if="$d/begin" bs=512 status=none >&5
	killed
	exec 5>&-
	eventually 20 has orders throttled 2
}

case_learnt_values_and_counters_are_known_to_the_next_server() {
	outlives
	limiter orders 1000/s 1000
	limiter paused 1000/s 1000
	echo 'aimd period=1h' > "$m/orders/adapt"
	echo 'linear initial=1s max=1min' > "$m/paused/backoff"
	local i orders paused
	for i in {1..100}; do cat "$m/orders/token"; done > /dev/null
	sleep 0.6
	for i in {1..100}; do cat "$m/orders/token"; done > /dev/null
	printf 'throttled\nok\nerror 2\n' > "$m/orders/feedback"
	echo 429 retry-after=1h > "$m/paused/feedback"
	orders=$(known orders) paused=$(known paused)
	[ -n "${SOURCE-}" ] || like orders "$orders" 'effective_rate [0-9]{1,3}(\.|$)'
	like paused "$paused" 'backoff_pauses 1'
	killed
	is 'of orders' "$(known orders)" "$orders"
	is 'of paused' "$(known paused)" "$paused"
	is 'in the pause' "$("$CLIENT" read "$m/paused/try" || :)" EBUSY
	killed
	is 'of orders' "$(known orders)" "$orders"
	is 'of paused' "$(known paused)" "$paused"
	# The setting counts: there is nothing to learn.
	echo none > "$m/orders/adapt"
	killed
	[ -n "${SOURCE-}" ] || is 'rate in force' "$(counter orders effective_rate)" 1000
}

case_a_quota_is_known_to_the_next_server() {
	outlives
	limiter orders 1000/s 1000
	limiter free max
	echo 'quota remaining=12 reset=1h limit=5 window=1s' > "$m/orders/feedback"
	echo 'quota remaining=3 reset=1h' > "$m/free/feedback"
	: "$(cat "$m/orders/take/2")" "$(cat "$m/free/token")"
	killed
	counts orders service_left 10
	counts orders service_rate 5
	counts free service_left 2
	is 'too many' "$("$CLIENT" read "$m/orders/take/11,within=1ms" || :)" EBUSY
	is 'as many' "$(cat "$m/orders/take/10")" 10
	: "$(cat "$m/free/take/2")"
	killed
	is 'one more' "$("$CLIENT" read "$m/orders/try" || :)" EBUSY
	is 'one more' "$("$CLIENT" read "$m/free/try" || :)" EBUSY
}

case_a_long_take_keeps_what_it_has_saved_up() {
	outlives
	limiter orders 10/s
	cat "$m/orders/token" > /dev/null
	local before after
	reader orders/take/400
	waiting orders 1
	sleep 3
	before=$(awk '!/^#/ { print $5 }' "$m/orders/waiters")
	killed
	waiting orders 1
	after=$(awk '!/^#/ { print $5 }' "$m/orders/waiters")
	# From nothing it would be 40 seconds.
	awk "BEGIN { exit !($before < 38 && $after <= $before) }" ||
		fail "$before s to go before, $after s after"
	echo 1000/s > "$m/orders/rate"
	gone "$reader" 20
	is 'what it got' "$(cat "$d/got")" 400
}

case_savings_of_a_reader_that_left_are_not_given_out() {
	outlives
	limiter orders 100/s
	cat "$m/orders/token" > /dev/null
	reader orders/take/1000000
	waiting orders 1
	sleep 0.5
	kill "$reader"
	gone "$reader" 10 || :
	waiting orders 0
	echo 1/d > "$m/orders/rate"
	killed
	[ "$(tokens orders)" -le 1 ] || fail "tokens $(tokens orders)"
}

case_a_reader_killed_with_its_server_leaves_nothing_saved_up() {
	outlives
	limiter orders 100/s
	cat "$m/orders/token" > /dev/null
	reader orders/take/1000000
	waiting orders 1
	sleep 0.5
	cat "$m/orders/stat" > /dev/null
	kill -STOP "$daemon"
	death_by_kill "$(server)"
	kill -9 "$reader"
	kill -CONT "$daemon"
	gone "$reader" 10 || :
	[ "$(tokens orders)" -le 1 ] || fail "tokens $(tokens orders)"
}

case_slots_stay_open_and_a_waiter_gets_the_next() {
	outlives
	limiter orders
	echo 2 > "$m/orders/concurrency"
	holder first
	local first=$holder
	has_slot first
	exec 4< "$m/orders/slot"
	holder third
	waiting orders 1
	killed
	waiting orders 1
	counts orders slots_used 2
	sleep 0.3
	[ ! -e "$d/third" ] || fail 'a third slot of two'
	is 'read of a slot that was open' "$(cat <&4)" 0
	kill -9 "$first"
	has_slot third
	counts orders slots_used 2
	killed
	counts orders slots_used 2
	kill "$holder"
	exec 4<&-
	eventually 10 has orders slots_used 0 || fail "slots_used $(counter orders slots_used)"
}

case_a_slot_closed_while_there_is_no_server_is_free_in_the_next() {
	outlives
	limiter orders
	echo 1 > "$m/orders/concurrency"
	holder first
	has_slot first
	kill -STOP "$daemon"
	death_by_kill "$(server)"
	kill -9 "$holder"
	kill -CONT "$daemon"
	eventually 10 has orders slots_used 0 || fail "slots_used $(counter orders slots_used)"
}

case_a_poller_is_woken_and_polls_again() {
	outlives
	empty orders
	python3 -c '
import os, select, sys
token = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)
poll = select.poll()
poll.register(token, select.POLLIN)
assert poll.poll(0) == []
print("polls", flush=True)
assert poll.poll(20000) == [(token, select.POLLIN)]
print(os.read(token, 9))' "$m/orders/token" > "$d/polled" &
	local poller=$!
	eventually 10 grep -q polls "$d/polled"
	killed
	sleep 0.2
	echo 1000/s > "$m/orders/rate"
	gone $poller 20 || fail "$(cat "$d/polled")"
	is 'what who polled read' "$(tail -n 1 "$d/polled")" "b'1\\n'"
}

case_open_files_can_be_read_on() {
	outlives
	limiter orders
	exec 5< "$m/orders/take/250" 6< "$m/orders/stream" 7< "$m/orders/keys/bob/token"
	is 'first byte' "$(head -c 1 <&5)" 2
	is 'of a stream' "$(head -c 1 <&6)" 1
	killed
	is 'the rest' "$(cat <&5)" 50
	is 'of a stream' "$(head -c 3 <&6)" $'\n1'
	is 'of a key' "$(cat <&7)" 1
	exec 5<&- 6<&- 7<&-
}

case_a_name_means_the_same_to_the_next() {
	outlives
	limiter orders 1/d 10000
	limiter other 1/d 10000
	local i
	for i in {1..20}; do cat "$m/orders/take/$i" > /dev/null; done
	killed
	for i in {20..1}; do is "take/$i" "$(cat "$m/other/take/$i")" "$i"; done
	for i in {1..20}; do is "take/$i" "$(cat "$m/orders/take/$i")" "$i"; done
	counts orders granted 420
	counts other granted 210
}

# outlives_for_all OPTIONS: other users find their way, and may make limiters.
outlives_for_all() {
	outlives -o "allow_other$1"
	chmod 711 "$d" "$(dirname "$d")" "$(dirname "$CLIENT")"
	chmod 755 "$CLIENT"
	chmod 777 "$m"
}

case_bounds_of_a_user_count_in_the_next_server() {
	local bounds=,user_limiters_max=1,user_files_max=2,user_names_max=2,user_keys_max=1
	outlives_for_all $bounds,user_readers_max=1
	limiter orders
	empty idle
	as nobody mkdir "$m/mine"
	env --default-signal setpriv --reuid=nobody --clear-groups \
		bash -c "exec 3< '$m/orders/keys/bob/token'; exec sleep 100" &
	local holder=$!
	eventually 20 eval '[[ $(readlink "/proc/$holder/fd/3") = */bob/token ]]' ||
		fail 'it has not opened'
	as nobody stat "$m/orders/take/2" "$m/orders/take/3" > /dev/null
	killed
	is 'limiters' "$(as nobody "$CLIENT" mkdir "$m/another")" ENOSPC
	is 'keys' "$(as nobody "$CLIENT" read "$m/orders/keys/alice/token")" ENOSPC
	as nobody "$CLIENT" read "$m/orders/take/4" > /dev/null
	like 'names, and one of root' "$(cat "$m/status")" $'\nnames 3\n'
	env --default-signal setpriv --reuid=nobody --clear-groups cat "$m/idle/token" > /dev/null &
	local reader=$!
	waiting idle 1
	killed
	waiting idle 1
	is 'files' "$(as nobody "$CLIENT" read "$m/orders/rate")" ENOSPC
	as daemon mkdir "$m/others"
	kill $holder
	wait $holder 2> /dev/null || :
	eventually 20 eval '[ "$(as nobody "$CLIENT" read "$m/orders/rate")" != ENOSPC ]' ||
		fail 'a file that was closed counts'
	is 'readers' "$(as nobody "$CLIENT" read "$m/idle/token")" EBUSY
	kill $reader
	wait $reader 2> /dev/null || :
}

case_names_outlive_their_server_and_give_way_in_the_next() {
	outlives_for_all ,user_names_max=3
	limiter orders
	empty idle 2
	as nobody stat "$m/idle/take/1" > /dev/null
	env --default-signal setpriv --reuid=nobody --clear-groups \
		cat < "$m/idle/take/1" > "$d/got" &
	local reader=$! number
	waiting idle 1
	number=$(stat -c %i "$m/idle/take/1")
	as nobody stat "$m/orders/take/1" "$m/orders/take/2" > /dev/null
	killed
	waiting idle 1
	is 'sizes' "$(as nobody cat "$m"/orders/take/{1..24} | wc -l)" 24
	is 'of an open file' "$(stat -c %i -L "/proc/$reader/fd/0" "$m/idle/take/1")" \
		"$number"$'\n'"$number"
	like 'names, and one of root' "$(cat "$m/status")" $'\nnames 4\n'
	echo max > "$m/idle/rate"
	wait $reader
	is 'what the reader got' "$(cat "$d/got")" 1
}

case_an_open_events_file_hears_no_more_from_the_next_server() {
	outlives_for_all ''
	mkdir "$m/secret" "$m/public"
	chmod 700 "$m/secret"
	as nobody cat "$m/events" > "$d/nobody" &
	local nobody=$!
	eventually 20 eval '[ "$(status_of readers)" = 1 ]' || fail 'nobody follows'
	killed
	eventually 20 eval '[ "$(status_of readers)" = 1 ]' || fail 'nobody follows'
	echo 5/s > "$m/secret/rate"
	echo 6/s > "$m/public/rate"
	eventually 20 grep -q 6/s "$d/nobody" || fail 'not told'
	is 'what is closed' "$(grep -c secret "$d/nobody")" 0
	kill $nobody
	wait $nobody 2> /dev/null || :
}

case_settings_of_a_directory_go_on() {
	outlives "local:$d/kept"
	limiter orders 1/d 100
	mkdir "$m/orders/batch"
	cat "$m/orders/batch/take/30" > /dev/null
	local inode
	inode=$(stat -c %i "$m/orders/batch")
	reader orders/batch/take/90
	waiting orders/batch 1
	killed
	is 'tokens of orders' "$(tokens orders)" 70
	waiting orders/batch 1
	is inode "$(stat -c %i "$m/orders/batch")" "$inode"
	echo 1000/s > "$m/orders/rate"
	gone "$reader" 20
	eventually 20 eval '[ "$(tokens orders)" -gt 1 ]'
	echo 1/d > "$m/orders/rate"
	killed
	is rate "$(cat "$m/orders/rate")" 1/d
	stop
	start "local:$d/kept"
	is 'rate after a restart' "$(cat "$m/orders/rate")" 1/d
	local left
	left=$(tokens orders)
	[ "$left" -gt 1 ]
	killed
	is 'tokens of orders' "$(tokens orders)" "$left"
}

reloaded() { "$RATEFS" --reload "$m"; }

# Where the settings were there are others by then, of which the next server knows nothing.
case_the_tree_and_its_settings_may_be_moved() {
	local by option
	export ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 # which needs what user=NAME gives up
	chmod 711 "$d" "$(dirname "$d")"
	for option in rw user=nobody; do
		m=$d/1/m
		mkdir -p "$m"
		[ $option = rw ] || chown nobody "$d/1"
		outlives -o $option "local:$d/1/kept"
		limiter orders 1/d 10
		reader orders/take/20
		waiting orders 1
		for by in killed reloaded; do
			mv "$d/1" "$d/2"
			mkdir -p "$d/1/kept"
			m=$d/2/m
			$by
			waiting orders 1
			echo 11 > "$m/orders/burst"
			is 'settings at the old place' "$(ls -A "$d/1/kept")" ''
			grep -qx burst=11 "$d/2/kept/orders/.config" || fail "not kept: $by"
			rm -r "$d/1"
			mv "$d/2" "$d/1"
			m=$d/1/m
			echo 10 > "$m/orders/burst"
		done
		mv "$d/1" "$d/2"
		m=$d/2/m
		kill "$reader"
		eventually 10 umount "$m" 2> /dev/null || fail 'not unmounted'
		ended
		rm -r "$d/2"
	done
}

# goes_on KEPT: the next servers have the settings that are in KEPT by now.
goes_on() {
	local by
	for by in killed reloaded; do
		echo 10 > "$m/orders/burst"
		$by
		echo 11 > "$m/orders/burst"
		grep -qx burst=11 "$1/orders/.config" || fail "not kept: $by"
	done
}

# moved_to PATH: so are the settings, and go on; whatever comes into their place stays as it is.
moved_to() {
	outlives "local:$d/kept"
	limiter orders 1/d 10
	mv "$d/kept" "$1"
	goes_on "$1"
	mkdir "$d/kept"
	goes_on "$1"
	is 'what is at the old place' "$(ls -A "$d/kept")" ''
	rmdir "$d/kept"
	mkdir "$d/other"
	ln -s other "$d/kept"
	goes_on "$1"
	is 'what a link there leads to' "$(ls -A "$d/other")" ''
	stop
	[ -e "$1/.levels" ] || fail 'no .levels after a clean end'
}

case_settings_that_were_moved_are_no_others() { moved_to "$d/moved"; }

case_settings_may_have_a_name_as_if_they_were_removed() { moved_to "$d/kept (deleted)"; }

case_settings_may_be_moved_below_a_closed_directory() {
	local option owner
	export ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 # which needs what user=NAME gives up
	chmod 711 "$d" "$(dirname "$d")"
	for option in rw user=nobody; do
		owner=nobody
		[ $option = rw ] || owner=root
		mkdir -m 700 "$d/closed"
		chown $owner "$d/closed"
		outlives -o $option "local:$d/kept"
		limiter orders 1/d 10
		mv "$d/kept" "$d/closed/kept"
		goes_on "$d/closed/kept"
		stop
		rm -r "$d/closed"
	done
}

# Without a mount a path of theirs begins at the top of what was mounted.
case_settings_whose_file_system_has_no_place_go_on() {
	local top
	top=$(ls -A /)
	mkdir "$d/volume"
	mount -t tmpfs none "$d/volume"
	exec 5< "$d/volume"
	outlives "local:$d/volume"
	limiter orders 1/d 10
	umount -l "$d/volume"
	goes_on /dev/fd/5
	is 'what is at their place' "$(ls -A "$d/volume")" ''
	stop
	[ -e /dev/fd/5/.levels ] || fail 'no .levels after a clean end'
	is 'what is at the top' "$(ls -A /)" "$top"
}

case_settings_that_leave_their_bind_mount_go_on() {
	local top
	top=$(ls -A /)
	mkdir -p "$d/volume/kept" "$d/bound"
	mount --bind "$d/volume" "$d/bound"
	outlives "local:$d/bound/kept"
	limiter orders 1/d 10
	mv "$d/volume/kept" "$d/moved"
	goes_on "$d/moved"
	stop
	[ -e "$d/moved/.levels" ] || fail 'no .levels after a clean end'
	is 'what is at the top' "$(ls -A /)" "$top"
}

case_ten_thousand_blocked_readers_get_their_tokens_from_the_next_server() {
	outlives
	empty orders
	crowds_take_turns
	"$CLIENT" crowd 10000 "$m/orders/token" > "$d/got" &
	local crowd=$! from ms
	eventually 40 eval 'has orders waiting 10000 || ! alive $crowd' ||
		fail "only $(counter orders waiting) wait"
	alive $crowd || skip 'no ten thousand threads here'
	from=$(milliseconds)
	killed
	waiting orders 10000
	ms=$(($(milliseconds) - from))
	killed
	waiting orders 10000
	echo '100000/s' > "$m/orders/rate"
	gone $crowd 40
	is 'the crowd' "$(cat "$d/got")" 'granted 10000 interrupted 0 refused 0 other 0'
	counts orders granted 10001
	echo "# all waited again $ms ms after the kill"
}

# See paged.c and handed.py.
case_a_request_that_is_handed_to_a_killed_server_reaches_the_next() {
	local here
	here=$(dirname "${BASH_SOURCE[0]}")
	cc -std=gnu11 -D_GNU_SOURCE -O1 -w -fPIC -shared -o "$d/paged.so" "$here/paged.c"
	ASAN_OPTIONS+=:verify_asan_link_order=0 LD_PRELOAD="$LD_PRELOAD $d/paged.so" outlives
	limiter orders 1000/s 100
	death '[0-9]+ signal 9'
	python3 "$here/handed.py" "$m/status" "$m/orders/token"
}

# Killed at any moment, under load: see keeper.py.
case_no_reader_gets_an_error_or_a_token_too_many_whenever_it_is_killed() {
	outlives
	limiter load 200/s 5
	echo 3 > "$m/load/concurrency"
	limiter polled 20/s 1
	empty queue
	death '[0-9]+ signal 9'
	python3 "$(dirname "${BASH_SOURCE[0]}")/keeper.py" "$m" "${KILLS:-200}" \
		"$([ -n "${SOURCE-}" ] && echo 15 || echo 35)"
	eventually 10 has load slots_used 0 || fail "slots_used $(counter load slots_used)"
	counts load waiting 0
}

case_slots_of_keys_stay_open_and_a_waiter_gets_the_next() {
	outlives
	limiter orders
	! fleet_refuses EINVAL key_concurrency 1 || return 0
	echo 1 > "$m/orders/key_concurrency"
	exec 4< "$m/orders/keys/bob/slot"
	exec 5< "$m/orders/keys/eve/slot"
	env --default-signal \
		bash -c "exec 3< '$m/orders/keys/bob/slot'; : > '$d/second'; exec sleep 100" \
		3<&- 4<&- 5<&- &
	local second=$!
	waiting orders/keys/bob 1
	killed
	counts orders slots_used 2
	waiting orders/keys/bob 1
	denied EAGAIN peek "$m/orders/keys/bob/slot"
	is holders "$(rows "$m/orders/holders" | wc -l)" 2
	exec 5<&-
	eventually 20 has orders slots_used 1
	[ ! -e "$d/second" ] || fail 'a second slot of one'
	exec 4<&-
	eventually 20 [ -e "$d/second" ] || fail 'no slot'
	killed
	counts orders slots_used 1
	kill -9 "$second"
	eventually 20 has orders slots_used 0
}
