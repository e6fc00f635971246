# shellcheck shell=bash
# Why a reader waits, and who holds slots: the files why and holders.

# why LIMITER REGEX…: its lines are like these, one each.
why() {
	local path=$1 line=0 lines
	shift
	mapfile -t lines < "$m/$path/why"
	is "lines in why of $path (${lines[*]})" ${#lines[@]} $#
	for regex in "$@"; do
		like "why of $path" "${lines[line++]}" "^$regex\$"
	done
}

seconds='([0-9]+\.[0-9] s|never)'

case_why_names_a_rate_that_is_used_up() {
	start
	limiter free
	why free nothing
	empty orders
	why orders "orders rate 1/d.*: 1 token to come, $seconds"
	reader orders/take/3
	waiting orders 1
	why orders "orders rate 1/d.*: 4 tokens to come, $seconds"
	kill "$reader"
	echo 0 > "$m/orders/rate"
	why orders 'orders rate 0.*: [0-9]+ tokens? to come, never'
	echo open > "$m/orders/enforcement"
	why orders nothing
	echo closed > "$m/orders/enforcement"
	why orders 'orders enforcement closed: nothing is granted'
}

case_why_names_a_key_that_has_had_its_share() {
	start
	limiter orders
	echo 1/d > "$m/orders/key_rate"
	: "$(cat "$m/orders/keys/bob/token")"
	why orders/keys/bob "orders key bob 1/d: 1 token to come, $seconds"
	why orders/keys/eve nothing
	why orders nothing
	reader orders/keys/bob/token
	waiting orders 1
	why orders "orders key bob 1/d: 2 tokens to come, $seconds"
	kill "$reader"
}

case_why_names_no_key_that_has_what_its_readers_wait_for() {
	start
	limiter orders 1/d
	echo 1/d > "$m/orders/key_rate"
	: "$(cat "$m/orders/token")"
	reader orders/keys/bob/token
	waiting orders 1
	why orders "orders rate 1/d: 2 tokens to come, $seconds" \
		'orders order: orders key bob comes first, weight 100 beside 100'
	echo max > "$m/orders/rate"
	gone "$reader" 20
	echo 'exponential initial=1h max=1d' > "$m/orders/backoff"
	echo throttled > "$m/orders/feedback"
	reader orders/keys/eve/token
	waiting orders 1
	why orders "orders backoff: pause until $seconds from now" \
		'orders order: orders key eve comes first, weight 100 beside 100'
	echo none > "$m/orders/backoff"
	gone "$reader" 20
	echo closed > "$m/orders/enforcement"
	reader orders/keys/ann/token
	waiting orders 1
	why orders 'orders enforcement closed: nothing is granted'
	kill "$reader"
}

case_why_names_a_key_whose_slots_are_open() {
	local opener
	start -o host=thishost
	limiter orders
	echo 1 > "$m/orders/key_concurrency"
	exec 7< "$m/orders/keys/bob/slot"
	why orders nothing
	sh -c 'exec 3< "$1"' - "$m/orders/keys/bob/slot" 7<&- &
	opener=$!
	eventually 20 eval '[ "$(cat "$m/orders/why")" != nothing ]'
	why orders 'orders key bob slots 1 of 1: pid [0-9]+ on host thishost for [0-9.]+ s'
	exec 7<&-
	gone "$opener" 20
	why orders nothing
}

case_why_names_a_part_of_the_reserve_whose_readers_wait() {
	start
	limiter orders 1000/s
	echo '1/d hosts=2' > "$m/orders/partitions/reserve"
	timeout 0.2 cat "$m/orders/partitions/r1/token" > /dev/null || :
	reader orders/partitions/r1/token
	waiting orders 1
	why orders "orders partition r1 rate 1/d: [0-9]+ tokens? to come, $seconds"
	kill "$reader"
}

case_why_names_the_pause_of_backoff() {
	start
	limiter orders
	echo 'exponential initial=1h max=1d' > "$m/orders/backoff"
	echo throttled > "$m/orders/feedback"
	why orders "orders backoff: pause until $seconds from now"
}

case_why_and_holders_name_the_holders_of_slots() {
	start -o host=thishost
	limiter orders
	limiter orders/eu
	echo 1 > "$m/orders/concurrency"
	why orders/eu nothing
	is 'holders of none' "$(cat "$m/orders/holders")" ''
	sh -c 'echo $$ > "$1" && exec sleep 100 3< "$2"' - "$d/pid" "$m/orders/eu/slot" &
	local holder=$! expected
	eventually 20 has orders slots_used 1
	why orders/eu "orders slots 1 of 1: pid $holder on host thishost for [0-9.]+ s"
	for expected in orders orders/eu; do
		like "holders of $expected" "$(rows "$m/$expected/holders")" \
			"^thishost $holder 0 (sleep|sh) [0-9]+\.[0-9]{3}\$"
	done
	[ "$(status_of outlives_server)" != yes ] || {
		killed
		like 'holders after another server' "$(rows "$m/orders/holders")" \
			"^thishost $holder 0 sleep [0-9]+\.[0-9]{3}\$"
	}
	kill "$holder"
	eventually 20 has orders slots_used 0
	is 'holders of none' "$(cat "$m/orders/holders")" ''
}

case_why_names_a_sibling_that_comes_first_and_a_parent_that_is_short() {
	start
	empty orders
	limiter orders/batch
	limiter orders/online
	local short="orders rate 1/d.*: [23] tokens to come, $seconds"
	why orders/batch "${short/\[23\] tokens/1 token}"
	echo 9 > "$m/orders/online/priority"
	reader orders/online/token
	waiting orders/online 1
	why orders/batch 'orders order: orders/online comes first, priority 9 over 0' "$short"
	echo 1/d > "$m/orders/online/min"
	why orders/batch 'orders order: orders/online comes first, its min is 1/d' "$short"
	kill "$reader"
	waiting orders/online 0
	reader orders/token
	waiting orders 1
	why orders/batch "$short" \
		'orders order: its own readers come first, weight 100 beside 100'
	kill "$reader"
}

case_why_begins_with_what_takes_longest() {
	start
	empty orders
	limiter orders/batch 20/s
	reader orders/batch/token
	waiting orders/batch 1
	why orders/batch "orders rate 1/d.*: 2 tokens to come, $seconds" \
		"orders/batch rate 20/s: 1 token to come, $seconds"
	kill "$reader"
}

case_why_tells_nothing_of_limiters_that_are_closed_to_its_reader() {
	start -o allow_other
	chmod 711 "$d" "$(dirname "$d")"
	empty orders
	limiter orders/eu
	limiter orders/secret
	echo 9 > "$m/orders/secret/priority"
	chmod 700 "$m/orders/secret"
	reader orders/secret/token
	waiting orders/secret 1
	local nobody=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
	like 'of a sibling' "$("${nobody[@]}" cat "$m/orders/eu/why")" \
		'orders order: another limiter comes first, priority 9 over 0'
	chmod 711 "$m/orders"
	eventually 20 eval '[ "$("${nobody[@]}" sort -u "$m/orders/eu/why")" = \
		"orders is short, and closed to this user" ]' ||
		fail "of a parent: $("${nobody[@]}" cat "$m/orders/eu/why")"
	kill "$reader"
}

case_with_servers_why_and_holders_name_the_holder_on_another_host() {
	start -o host=first
	mkdir "$d/other"
	"$RATEFS" -o host=second "$(sed -n 's/^source //p' "$m/status")" "$d/other"
	mkdir "$m/orders"
	printf 'rate=100/s\nconcurrency=1\npartitions.count=1\n' > "$m/orders/config"
	eventually 20 [ -e "$d/other/orders/slot" ]
	mkdir "$m/orders/eu"
	eventually 20 [ -e "$d/other/orders/eu/slot" ]
	exec 5< "$d/other/orders/eu/slot"
	(while read -r _ < "$d/other/orders/token"; do :; done) &
	local other=$!
	cat "$m/orders/token" > /dev/null &
	local mine=$!
	# The other host writes it with its renewals.
	local short='orders no partition: 2 hosts share 1, claimed since [0-9.]+ s'
	eventually 60 grep -qE "^$short; a slot by pid $BASHPID on host second for [0-9]+ s\$" \
		"$m/orders/why" || fail "why: $(cat "$m/orders/why")"
	eventually 60 grep -qx 'second - - - - leases 1 of 1' "$m/orders/holders" ||
		fail "holders: $(cat "$m/orders/holders")"
	for limiter in orders orders/eu; do
		grep -qE "^second $BASHPID 0 bash [0-9]+\$" "$m/$limiter/holders" ||
			fail "holders of $limiter: $(cat "$m/$limiter/holders")"
	done
	kill $other $mine
	exec 5<&-
	eventually 60 eval '! grep -q "^second [0-9]" "$m/orders/holders"' ||
		fail "holders: $(cat "$m/orders/holders")"
	fusermount3 -u "$d/other"
}
