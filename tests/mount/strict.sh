# shellcheck shell=bash
# Strict windows: 10/60s,strict is never more than 10 in any 60 s.

case_a_strict_window_is_a_rate() {
	start
	limiter orders 10/60s,strict
	is rate "$(cat "$m/orders/rate")" 10/min,strict
	grep -qx 'rate=10/min,strict' "$m/orders/config" || fail 'not in config'
	echo '5/s:3 20/h,strict' > "$m/orders/rate"
	is rate "$(cat "$m/orders/rate")" '5/s:3 20/h,strict'
	refused EINVAL write "$m/orders/rate" 10/60s,strict:5
	refused EINVAL write "$m/orders/rate" max,strict
	refused ERANGE write "$m/orders/rate" 1.5/s,strict
	refused EINVAL write "$m/orders/min" 1/s,strict
	refused ERANGE write "$m/orders/adapt" aimd
	refused ERANGE write "$m/orders/partitions/count" 21
	is rate "$(cat "$m/orders/rate")" '5/s:3 20/h,strict'
}

case_all_of_a_strict_window_is_there_at_once_and_no_more_until_it_is_over() {
	start
	limiter orders 10/h,strict
	local _
	for _ in 1 2 3 4; do
		cat "$m/orders/token"
	done > /dev/null
	is tokens "$(tokens orders)" 6
	is text "$(cat "$m/orders/take/6")" 6
	denied EBUSY read "$m/orders/try"
	denied EBUSY read "$m/orders/take/1,within=50min"
	like eta "$(cat "$m/orders/eta/10")" '^3[56][0-9]{2}\.'
	like why "$(cat "$m/orders/why")" 'rate 10/h,strict: 1 token to come, 3[56][0-9]{2}'
	counts orders granted 10
}

case_tokens_of_a_strict_window_come_back_when_it_is_over() {
	start
	limiter orders 3/2s,strict
	is text "$(cat "$m/orders/take/3")" 3
	denied EBUSY read "$m/orders/try"
	is 'in the next window' "$(cat "$m/orders/take/3")" 3
	counts orders granted 6
}

case_a_take_above_a_strict_window_is_refused() {
	start
	limiter orders 10/h,strict
	limiter orders/eu
	refused EINVAL read "$m/orders/take/11"
	like why "$(cat "$m/last_error")" 'larger than a .*strict one.* can never be had'
	refused EINVAL read "$m/orders/take/11,within=1s"
	refused EINVAL read "$m/orders/eu/take/11-20"
	is eta "$(cat "$m/orders/eta/11")" inf
	is text "$(cat "$m/orders/eu/take/1-20")" 10
	counts orders granted 10
}

case_charges_count_in_a_strict_window_and_negative_ones_free_it() {
	start
	limiter orders 10/h,strict
	cat "$m/orders/take/4" > /dev/null
	echo 5 > "$m/orders/charge"
	is tokens "$(tokens orders)" 1
	echo -3 > "$m/orders/charge"
	is tokens "$(tokens orders)" 4
	echo 10 > "$m/orders/charge"
	is tokens "$(tokens orders)" -6
	denied EBUSY read "$m/orders/try"
}

case_another_limit_keeps_what_was_taken_of_a_strict_window() {
	start
	limiter orders 10/h,strict
	cat "$m/orders/take/8" > /dev/null
	echo 20/h,strict > "$m/orders/rate"
	# In a fleet its pieces are laid anew: all of them count as used.
	[ -z "${SOURCE-}" ] || { denied EBUSY read "$m/orders/try"; return; }
	is tokens "$(tokens orders)" 12
	echo 5/h,strict > "$m/orders/rate"
	is tokens "$(tokens orders)" -3
	echo 20/2h,strict > "$m/orders/rate"
	is 'of a longer window' "$(tokens orders)" 0
}

case_used_tokens_of_a_strict_window_count_as_taken_at_the_next_start() {
	start "local:$d/kept"
	limiter orders 10/h,strict
	cat "$m/orders/take/4" > /dev/null
	stop
	start "local:$d/kept"
	is left "$(tokens orders)" 6
	is rate "$(cat "$m/orders/rate")" 10/h,strict
	crash
	umount -l "$m"
	start "local:$d/kept"
	is 'after a crash' "$(tokens orders)" 0
	like eta "$(cat "$m/orders/eta/1")" '^3[56][0-9]{2}\.'
}

case_used_tokens_of_a_strict_window_outlive_a_killed_server() {
	outlives
	limiter orders 10/h,strict
	cat "$m/orders/take/4" > /dev/null
	killed
	is left "$(tokens orders)" 6
	"$RATEFS" --reload "$m"
	is left "$(tokens orders)" 6
	is text "$(cat "$m/orders/take/6")" 6
	denied EBUSY read "$m/orders/try"
}

case_partitions_of_a_strict_window_have_whole_tokens_of_it() {
	start
	limiter orders
	echo 3 > "$m/orders/partitions/count"
	echo 10/h,strict > "$m/orders/rate"
	local p _
	# In a fleet the tenth token counts as used where partitions are taken one after another.
	if [ -n "${SOURCE-}" ]; then
		is 'three of each' "$(cat "$m/orders/take/9")" 9
		"$CLIENT" read "$m/orders/try" > /dev/null || :
		reader orders/partitions/0/token
		waiting orders 1
		kill "$reader"
		return
	fi
	for p in 0 1 2; do
		for _ in 1 2 3; do
			cat "$m/orders/partitions/$p/token"
		done > /dev/null
	done
	reader orders/partitions/0/token
	waiting orders 1
	is 'the limiter has all' "$(cat "$m/orders/take/1")" 1
	denied EBUSY read "$m/orders/try"
	kill "$reader"
}

case_a_poll_of_a_strict_window_keeps_a_token_of_it() {
	start
	limiter orders 2/h,strict
	is tokens "$(python3 - "$m/orders/token" << 'END'
import os, select, sys
file = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)
poll = select.poll()
poll.register(file, select.POLLIN)
taken = 0
while poll.poll(1500 if taken == 2 else None):
    try:
        taken += int(os.pread(file, 64, 0))
    except BlockingIOError:
        pass
print(taken)
END
)" 2
	denied EBUSY read "$m/orders/try"
}

case_a_strict_window_of_each_key_is_its_own() {
	start
	limiter orders
	echo 2/h,strict > "$m/orders/key_rate"
	# A host of a fleet that begins has used all of it.
	if [ -n "${SOURCE-}" ]; then
		refused ERANGE write "$m/orders/key_share" leased
		denied EBUSY read "$m/orders/keys/ann/try"
		return
	fi
	is key_rate "$(cat "$m/orders/key_rate")" 2/h,strict
	is ann "$(cat "$m/orders/keys/ann/take/2")" 2
	denied EBUSY read "$m/orders/keys/ann/try"
	is bob "$(cat "$m/orders/keys/bob/take/2")" 2
	refused EINVAL read "$m/orders/keys/bob/take/3"
	denied EBUSY read "$m/orders/keys/ann/try"
}

case_keys_of_a_strict_window_are_used_up_after_a_restart() {
	start "local:$d/kept"
	limiter orders
	echo 2/h,strict > "$m/orders/key_rate"
	is ann "$(cat "$m/orders/keys/ann/take/1")" 1
	stop
	start "local:$d/kept"
	denied EBUSY read "$m/orders/keys/ann/try"
	denied EBUSY read "$m/orders/keys/bob/try"
}

case_a_killed_server_frees_no_strict_window_of_a_key() {
	outlives
	[ -z "${SOURCE-}" ] || return 0
	limiter orders
	echo 2/h,strict > "$m/orders/key_rate"
	is ann "$(cat "$m/orders/keys/ann/take/1")" 1
	killed
	denied EBUSY read "$m/orders/keys/ann/take/2,within=0s"
}
