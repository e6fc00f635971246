# shellcheck shell=bash
# Limiters in limiters, their names, owners and partitions.

case_a_token_of_a_child_is_a_token_of_every_ancestor() {
	start
	limiter orders
	limiter orders/eu
	limiter orders/eu/paris
	local i
	for i in 1 2 3; do
		: "$(cat "$m/orders/eu/paris/token")"
	done
	: "$(cat "$m/orders/eu/take/10")"
	: "$(cat "$m/orders/token")"
	counts orders/eu/paris granted 3
	counts orders/eu granted 13
	counts orders granted 14
}

case_children_together_get_no_more_than_their_parent() {
	start
	limiter orders 1/h 5
	limiter orders/eu 1/h 10
	limiter orders/us 1/h 10
	local i
	for i in 1 2; do
		is eu "$(cat "$m/orders/eu/try")" 1
		is us "$(cat "$m/orders/us/try")" 1
	done
	is eu "$(cat "$m/orders/eu/try")" 1
	denied EBUSY read "$m/orders/eu/try"
	denied EBUSY read "$m/orders/us/try"
	denied EBUSY read "$m/orders/try"
	counts orders granted 5
	counts orders/eu granted 3
	counts orders/us granted 2
	echo -5 > "$m/orders/charge"
	is 'what was refused by the parent was not spent' "$(cat "$m/orders/us/take/5,within=0s")" 5
}

case_a_child_gets_no_more_than_its_own() {
	start
	limiter orders 1/h 100
	limiter orders/eu 1/h 2
	is eu "$(cat "$m/orders/eu/take/2")" 2
	denied EBUSY read "$m/orders/eu/try"
	is orders "$(cat "$m/orders/take/98,within=0s")" 98
	denied EBUSY read "$m/orders/try"
}

case_a_reader_of_a_child_is_woken_by_its_parent() {
	start
	empty orders
	limiter orders/eu
	reader orders/eu/token
	waiting orders/eu 1
	echo 1000/s > "$m/orders/rate"
	gone $reader 20
	counts orders granted 2
	counts orders/eu granted 1
}

case_a_killed_reader_of_a_child_spends_nothing_anywhere() {
	start
	limiter orders 1/d 3
	limiter orders/eu 1/d 3
	empty orders/eu/paris 1
	reader orders/eu/paris/token
	waiting orders/eu/paris 1
	kill -9 $reader
	waiting orders/eu/paris 0
	counts orders granted 1
	counts orders/eu granted 1
	is 'left in eu' "$(cat "$m/orders/eu/take/2,within=0s")" 2
	denied EBUSY read "$m/orders/try"
}

case_many_readers_of_many_children_get_exact_counts() {
	start
	limiter orders 2000/s
	local child pids=()
	for child in a b c d; do
		limiter orders/$child
		"$CLIENT" crowd 100 "$m/orders/$child/token" > /dev/null &
		pids+=($!)
	done
	local pid
	for pid in "${pids[@]}"; do
		gone "$pid" 30
	done
	for child in a b c d; do
		counts orders/$child granted 100
	done
	counts orders granted 400
	counts orders waiting 0
}

case_a_limiter_keeps_everything_when_renamed() {
	start
	limiter orders 1/h 10
	limiter orders/eu
	: "$(cat "$m/orders/take/4")"
	mv "$m/orders" "$m/bookings"
	[ ! -e "$m/orders" ] || fail 'still there'
	is rate "$(cat "$m/bookings/rate")" 1/h
	counts bookings granted 4
	is six "$(cat "$m/bookings/eu/take/6")" 6
	denied EBUSY read "$m/bookings/try"
	mv "$m/bookings/eu" "$m/bookings/us"
	counts bookings/us granted 6
	limiter orders
	counts orders granted 0
}

case_a_blocked_reader_stays_when_its_limiter_is_renamed() {
	start
	empty orders
	reader orders/token
	waiting orders 1
	mv "$m/orders" "$m/bookings"
	counts bookings waiting 1
	echo 1000/s > "$m/bookings/rate"
	gone $reader 20
	is read "$(cat "$d/got")" 1
}

# as_nobody COMMAND…
as_nobody() { setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"; }

open_to_all() {
	start -o allow_other
	chmod 711 "$d" "$(dirname "$d")"
	chmod 755 "$CLIENT"
	chmod 711 "$(dirname "$CLIENT")"
}

case_other_users_may_use_but_not_tune() {
	open_to_all
	limiter orders 500/s 10
	is token "$(as_nobody cat "$m/orders/token")" 1
	is rate "$(as_nobody cat "$m/orders/rate")" 500/s
	is 'writing rate' "$(as_nobody "$CLIENT" write "$m/orders/rate" 5/s)" EACCES
	is 'writing burst' "$(as_nobody "$CLIENT" write "$m/orders/burst" 5)" EACCES
	is 'writing config' "$(as_nobody "$CLIENT" write "$m/orders/config" rate=5/s)" EACCES
	is 'making a limiter' "$(as_nobody "$CLIENT" mkdir "$m/mine")" EACCES
	is 'making a child' "$(as_nobody "$CLIENT" mkdir "$m/orders/mine")" EACCES
	is 'removing it' "$(as_nobody "$CLIENT" rmdir "$m/orders")" EACCES
	is rate "$(cat "$m/orders/rate")" 500/s
	counts orders granted 1
}

case_a_mount_by_root_lets_others_in_and_modes_say_what_they_may_do() {
	start
	chmod 711 "$d" "$(dirname "$d")"
	like options "$(grep " $m " /proc/mounts)" allow_other
	limiter orders 1/d 2
	is token "$(as_nobody cat "$m/orders/token")" 1
	chmod 700 "$m/orders"
	as_nobody cat "$m/orders/token" 2> /dev/null && fail 'nobody could read a token'
	is 'a token of root' "$(cat "$m/orders/token")" 1
}

case_with_noallow_other_other_users_see_nothing() {
	start -o noallow_other
	chmod 711 "$d" "$(dirname "$d")"
	as_nobody cat "$m/status" > "$d/got" 2>&1 && fail 'nobody could read'
	like said "$(cat "$d/got")" 'Permission denied'
}

case_allow_root_is_heeded_and_not_widened() {
	start -o allow_root
	chmod 711 "$d" "$(dirname "$d")"
	limiter orders 1/d 2
	is 'a token of root' "$(cat "$m/orders/token")" 1
	as_nobody cat "$m/orders/token" 2> /dev/null && fail 'nobody could read a token'
	counts orders granted 1
}

case_a_closed_directory_keeps_other_users_out() {
	open_to_all
	limiter orders 500/s 10
	chmod 700 "$m/orders"
	is mode "$(stat -c %a "$m/orders")" 700
	as_nobody cat "$m/orders/token" 2> /dev/null && fail 'nobody could read a token'
	chmod 755 "$m/orders"
	is token "$(as_nobody cat "$m/orders/token")" 1
}

case_an_owner_may_tune_and_others_may_not() {
	open_to_all
	limiter orders 500/s 10
	chown nobody:nogroup "$m/orders"
	is owner "$(stat -c %U "$m/orders")" nobody
	as_nobody sh -c 'echo 5/s > "$1/orders/rate"' - "$m" || fail 'the owner could not tune'
	is rate "$(cat "$m/orders/rate")" 5/s
	is 'owner of the files' "$(stat -c %U "$m/orders/rate")" nobody
	is 'another user' "$(setpriv --reuid=daemon --clear-groups "$CLIENT" write \
		"$m/orders/rate" 9/s)" EACCES
	as_nobody mkdir "$m/orders/eu" || fail 'the owner could not make a child'
	is 'owner of the child' "$(stat -c %U "$m/orders/eu")" nobody
	is 'giving it away' "$(as_nobody chown daemon "$m/orders" 2>&1 | grep -c 'not permitted')" 1
	is rate "$(cat "$m/orders/rate")" 5/s
}

case_owner_and_mode_of_the_files_are_those_of_the_limiter() {
	start
	limiter orders
	chmod 700 "$m/orders"
	is token "$(stat -c %a "$m/orders/token")" 400
	is rate "$(stat -c %a "$m/orders/rate")" 600
	chmod 640 "$m/orders/token" 2> "$d/said" && fail 'a file of its own mode'
	like said "$(cat "$d/said")" 'not permitted'
	is token "$(stat -c %a "$m/orders/token")" 400
}

case_partitions_share_the_rate_exactly() {
	start
	limiter orders 100/s
	echo 4 > "$m/orders/partitions/count"
	is count "$(cat "$m/orders/partitions/count")" 4
	in_use
	local i
	for i in 0 1 2 3; do
		is "rate of partition $i" "$(cat "$m/orders/partitions/$i/rate")" 25/s
		is "state of partition $i" "$(cat "$m/orders/partitions/$i/state")" held
		like "holder of partition $i" "$(cat "$m/orders/partitions/$i/holder")" "^[^ ]+\$"
		like "expires of partition $i" "$(cat "$m/orders/partitions/$i/expires")" '^[^ ]+$'
	done
	is held "$(cat "$m/orders/partitions/held")" '0 1 2 3'
	counts orders partitions_held 4
	[ ! -e "$m/orders/partitions/4" ] || fail 'a fifth partition'
	is listed "$(ls "$m/orders/partitions" | grep -c '^[0-9]*$')" 4
}

case_the_holder_is_this_host() {
	start -o host=thishost
	limiter orders 100/s
	in_use
	is holder "$(cat "$m/orders/partitions/$(awk '{ print $1 }' \
		"$m/orders/partitions/held")/holder")" thishost
	grep -q thishost "$m/status" || fail 'status does not name the host'
	grep -q thishost "$m/hosts" || fail 'hosts does not name the host'
}

case_a_partition_of_a_slow_limiter_is_one() {
	mkdir "$d/kept"
	start "local:$d/kept"
	limiter orders 1/h
	is 'partitions of 1/h' "$(ls "$m/orders/partitions" | grep -c '^[0-9]*$')" 1
	echo 1000000/s > "$m/orders/rate"
	is 'partitions of 1000000/s' "$(ls "$m/orders/partitions" | grep -c '^[0-9]*$')" 20
}

case_a_partition_gives_tokens_of_its_own() {
	start
	limiter orders
	echo 4 > "$m/orders/partitions/count"
	echo 8 > "$m/orders/burst"
	echo 1/h > "$m/orders/rate"
	is token "$(cat "$m/orders/partitions/2/token")" 1
	counts orders granted 1
}

case_a_read_of_a_partition_can_be_killed() {
	start
	empty orders 1
	echo 2 > "$m/orders/partitions/count"
	env --default-signal timeout -k 1 1 cat "$m/orders/partitions/1/token" > "$d/got" || :
	is read "$(cat "$d/got")" ''
	counts orders granted 1
}

case_a_thousand_limiters_are_made_and_removed() {
	start
	mkdir "$m"/l{1..1000}
	is listed "$(ls "$m" | grep -c '^l[0-9]')" 1000
	is token "$(cat "$m/l777/token")" 1
	like status "$(cat "$m/status")" 'limiters[^0-9]*1000'
	rmdir "$m"/l{1..1000}
	is listed "$(ls "$m" | grep -c '^l[0-9]')" 0
	like status "$(cat "$m/status")" 'limiters[^0-9]*0'
}

case_making_removing_and_reading_at_once_ends_well() {
	start
	local i pids=()
	for i in 1 2 3 4; do
		(for _ in {1..60}; do
			mkdir "$m/orders"
			rmdir "$m/orders"
		done; :) 2> /dev/null &
		pids+=($!)
		(for _ in {1..60}; do
			cat "$m/orders/token" > /dev/null
			echo 5000/s > "$m/orders/rate"
		done; :) 2> /dev/null &
		pids+=($!)
	done
	wait "${pids[@]}" || :
	like status "$(cat "$m/status")" 'limiters'
}

case_an_open_file_of_a_partition_that_is_gone_is_no_device() {
	start
	limiter orders 100/s
	echo 4 > "$m/orders/partitions/count"
	exec 3< "$m/orders/partitions/3/rate" 4< "$m/orders/partitions/3/token"
	echo 2 > "$m/orders/partitions/count"
	is rate "$(read_of 3)" ENODEV
	is token "$(read_of 4)" ENODEV
	exec 3<&- 4<&-
}
