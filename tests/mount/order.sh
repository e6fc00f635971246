# shellcheck shell=bash
# Order among siblings: weight, min, priority, and the bounds of a queue.

# flood FILE COUNT: so many readers of it, one after the other in each; ends with the case.
flood() { "$CLIENT" flood "$2" "$m/$1" & }

# family [SETTING=VALUE…]: limiter a of 20/s without a burst, with children one and other.
family() {
	mkdir "$m/a" "$m/a/one" "$m/a/other"
	echo 20/s > "$m/a/rate"
}

# split PARTS OF: grants what comes in 10 s, and then nothing, to children in each of which readers
# wait; fails if that of one was not PARTS of OF parts, but for 5 %.
split() {
	local before one other all off
	before=$(counter a granted)
	one=$(counter a/one granted)
	other=$(counter a/other granted)
	echo 100/s > "$m/a/rate"
	eventually 60 eval '[ "$(counter a granted)" -ge '$((before + 1000))' ]'
	echo 0 > "$m/a/rate"
	one=$(($(counter a/one granted) - one))
	other=$(($(counter a/other granted) - other))
	all=$((one + other))
	off=$((one * $2 - all * $1))
	[ "$all" -ge 1000 ] && [ $((${off#-} * 100)) -le $((all * $1 * 5)) ] ||
		fail "$1 of $2 parts: got $one and $other"
}

case_siblings_share_by_weight_however_many_readers_each_has() {
	start
	family
	echo 0 > "$m/a/rate"
	flood a/one/token 50
	flood a/other/token 5
	waiting a/one 50
	waiting a/other 5
	split 1 2
	echo 300 > "$m/a/other/weight"
	split 1 4
}

case_a_reader_with_priority_or_a_min_does_not_wait_for_a_flood() {
	start
	family
	echo 4/s > "$m/a/rate"
	flood a/one/token 60
	waiting a/one 60
	local setting before
	for setting in priority=1 min=2/s; do
		printf '%s\n' priority=0 min=none "$setting" > "$d/config"
		cp "$d/config" "$m/a/other/config"
		before=$(counter a granted)
		is "$setting" "$(cat "$m/a/other/token")" 1
		# One that was due when it came, and its own; and what came while it was counted.
		[ "$(($(counter a granted) - before))" -le 4 ] || fail "$setting: it waited"
	done
	counts a/other granted_min 1
}

case_a_key_does_not_wait_for_a_greedy_one() {
	start
	mkdir "$m/a" "$m/a/b"
	printf '%s\n' rate=1/h burst=20 > "$d/config"
	cp "$d/config" "$m/a/config"
	: "$(cat "$m/a/take/20")"
	printf '%s\n' rate=4/s key_rate=4/s > "$d/config"
	cp "$d/config" "$m/a/b/config"
	flood a/b/keys/greedy/token 500
	waiting a/b 500
	local key before
	for key in v w x y z; do
		reader "a/b/keys/$key/token"
		waiting a/b 501
		before=$(counter a granted)
		# Two tokens come: the greedy one may have the first.
		echo -2 > "$m/a/charge"
		eventually 30 has a granted $((before + 2))
		counts "a/b/keys/$key" granted 1
		wait "$reader"
		is "$key" "$(cat "$d/got")" 1
		waiting a/b 500
	done
}

case_a_key_that_is_opened_for_each_token_gets_no_more_than_its_siblings() {
	start
	family
	flood a/one/token 20
	waiting a/one 20
	local before
	before=$(counter a/one granted)
	for _ in {1..20}; do
		cat "$m/a/keys/k/token" > /dev/null
	done
	[ $(($(counter a/one granted) - before)) -ge 15 ] || fail 'its sibling starves'
}

case_a_queue_that_is_full_refuses_and_says_why() {
	start
	mkdir "$m/a"
	printf '%s\n' rate=1/h queue_max=1 concurrency=1 > "$d/config"
	cp "$d/config" "$m/a/config"
	: "$(cat "$m/a/token")"
	reader a/token
	waiting a 1
	denied EBUSY read "$m/a/token"
	is reason "$(reason)" "as many readers wait as queue_max of 'a' allows: 1"
	counts a refused_queue_max 1
	counts a refused 1
	echo 1min > "$m/a/wait_max"
	echo max > "$m/a/queue_max"
	denied EBUSY read "$m/a/take/2"
	is reason "$(reason)" \
		"the wait would be longer than wait_max of 'a' allows: 1min"
	counts a refused_wait_max 1
	kill "$reader"
}

# seconds FILE: waits and times in it, in milliseconds.
seconds() {
	rows "$1" | awk '{ printf "%s%d", (NR > 1 ? " " : ""), (NF > 1 ? $5 : $1) * 1000 }
		END { print "" }'
}

case_waiters_count_what_comes_before_in_siblings() {
	start
	family
	echo 2/min > "$m/a/rate"
	echo 9 > "$m/a/one/priority"
	: "$(cat "$m/a/token")"
	local _ ms eta
	for _ in 1 2 3 4 5; do reader a/one/token; done
	waiting a/one 5
	reader a/other/token
	waiting a/other 1
	read -r ms < <(seconds "$m/a/other/waiters")
	# Six tokens, of which the first may come at any time now.
	[ "$ms" -gt 150000 ] && [ "$ms" -le 180000 ] || fail "the last of them: $ms ms"
	read -r -a ms < <(seconds "$m/a/one/waiters")
	[ "${ms[0]}" -le 30000 ] && [ "${ms[4]}" -gt 120000 ] && [ "${ms[4]}" -le 150000 ] ||
		fail "the first of them: ${ms[*]} ms"
	eta=$(seconds "$m/a/other/eta/1")
	[ "$eta" -gt 180000 ] && [ "$eta" -le 210000 ] || fail "one more: $eta ms"
}

case_settings_of_order_read_back_and_are_bounded() {
	start
	family
	local setting value
	while read -r setting value; do
		echo "$value" > "$m/a/one/$setting"
		is "$setting" "$(cat "$m/a/one/$setting")" "$value"
	done <<- 'EOT'
		weight 10000
		min 12/s
		min none
		priority 9
		queue_max 0
		queue_max max
		wait_max 1500ms
		wait_max max
	EOT
	while read -r setting value; do
		denied ERANGE write "$m/a/one/$setting" "$value"
	done <<- 'EOT'
		weight 0
		weight 10001
		min max
		priority 10
		queue_max 1000000001
		wait_max 4000d
	EOT
	echo 15/s > "$m/a/other/min"
	denied ERANGE write "$m/a/one/min" 6/s
	like reason "$(cat "$m/last_error")" "together is 21/s: more than its rate, 20/s"
	denied ERANGE write "$m/a/rate" 14/s
	like reason "$(cat "$m/last_error")" "together is 15/s: more than its rate, 14/s"
}

case_minima_outlive_servers_and_a_restart_where_a_rate_further_up_was_lowered() {
	outlives "local:$d/kept"
	mkdir "$m/a" "$m/a/one" "$m/a/one/deep"
	echo 10/s > "$m/a/rate"
	echo 9/s > "$m/a/one/deep/min"
	denied ERANGE write "$m/a/one/deep/min" 11/s
	like reason "$(cat "$m/last_error")" \
		"in 'a/one' together is 11/s: more than the rate of 'a', 10/s"
	# Its owner is not held up by what others have set further down.
	echo 4/s > "$m/a/rate"
	killed
	is 'after a server' "$(cat "$m/a/rate" "$m/a/one/deep/min")" $'4/s\n9/s'
	stop
	start "local:$d/kept"
	is 'after a restart' "$(cat "$m/a/rate" "$m/a/one/deep/min")" $'4/s\n9/s'
	echo 8/s > "$m/a/one/deep/min"
	denied ERANGE write "$m/a/one/deep/min" 9/s
}
