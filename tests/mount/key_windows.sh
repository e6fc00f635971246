# shellcheck shell=bash
# Windows of the calendar of keys: each key has its tokens once, whatever happens to the daemon.

# far: the beginning of a year's windows half a year from here, so that none begins in a case.
far() { LC_ALL=C date -u -d '+180 days' +year@%b-%-d | tr '[:upper:]' '[:lower:]'; }

# key_tokens KEY [LIMITER]: the whole tokens of a key of orders.
key_tokens() { awk '$1 == "tokens" { print int($2) }' "$m/${2-orders}/keys/$1/stat"; }

# field RECORD OFFSET: a number of the file of keys; record 0 is its header.
field() { od -An -td8 -j$((64 * $1 + $2)) -N8 "$d/kept/.keys" 2> /dev/null | tr -d ' '; }

# stored USED: the use of a key, of so many tokens, is in the file.
stored() {
	od -An -v -td8 -w64 "$d/kept/.keys" |
		awk -v used="$1" 'NR > 1 && $5 == used { found = 1 } END { exit !found }'
}

# at_rest USED: that, and the reserve is a token.
at_rest() { stored "$1" && [ "$(field 0 40)" = 1 ]; }

# quota [CONFIG]: a limiter whose keys have 1000 tokens, or as CONFIG says.
quota() {
	limiter orders
	echo "${1:-1000/$(far)}" > "$m/orders/key_rate"
}

# single: this is no host of a fleet; one refuses windows of keys.
single() {
	[ -n "${SOURCE-}" ] || return 0
	limiter orders
	refused ERANGE write "$m/orders/key_rate" '10/day@00:00'
	grep -q 'windows of the calendar of a key' "$m/last_error" || fail "$(cat "$m/last_error")"
	refused ERANGE write "$m/orders/keys/bob/rate" '10/day@00:00'
	return 1
}

case_a_key_has_a_quota_and_a_pace() {
	start
	single || return 0
	quota "3/$(far) 1/h"
	echo 5 > "$m/orders/key_burst"
	is taken "$(cat "$m/orders/keys/bob/take/2")" 2
	is 'taken by another' "$(cat "$m/orders/keys/eve/take/3")" 3
	is left "$(key_tokens bob)" 1
	is rate "$(cat "$m/orders/key_rate")" "1/h 3/$(far)"
	grep -qx "key_rate=1/h 3/$(far)" "$m/orders/config" || fail 'config'
	is refusal "$("$CLIENT" read "$m/orders/keys/bob/take/2,within=1h" || :)" EBUSY
	like eta "$(cat "$m/orders/keys/bob/eta/2")" '^1[0-9]{7}'
	like why "$(cat "$m/orders/keys/eve/why")" \
		"quota 3/$(far): 1 token to come, resets in 1[78][0-9] d"
	awk '$1 == "reset" { exit !($2 > 170 * 86400 && $2 < 190 * 86400) }' \
		"$m/orders/keys/bob/stat" || fail "$(cat "$m/orders/keys/bob/stat")"
	! grep -q '^reset' "$m/orders/stat" || is reset "$(counter orders reset)" max
}

case_a_key_has_a_quota_of_its_own() {
	start
	single || return 0
	quota
	echo "2000/$(far),Europe/Paris" > "$m/orders/keys/bob/rate"
	is 'rate of bob' "$(cat "$m/orders/keys/bob/rate")" "2000/$(far),Europe/Paris"
	is taken "$(cat "$m/orders/keys/bob/take/1500")" 1500
	is left "$(key_tokens bob)" 500
	grep -qx "key.bob.rate=2000/$(far),Europe/Paris" "$m/orders/config" || fail 'config'
	echo default > "$m/orders/keys/bob/rate"
	is 'left of the common one' "$(key_tokens bob)" -500
	refused EINVAL write "$m/orders/keys/bob/rate" '10/day@24:00'
	refused EINVAL write "$m/orders/key_rate" '10/day@00:00 9/day@01:00'
	grep -q 'one window of each length' "$m/last_error" || fail "$(cat "$m/last_error")"
}

case_readers_of_a_key_wait_for_the_next_window() {
	start
	single || return 0
	local begins=$(($(date +%s) + 10))
	quota "2/min@:$(date -d "@$begins" +%S)"
	cat "$m/orders/keys/bob/take/2" > /dev/null
	cat "$m/orders/keys/eve/take/1" > /dev/null
	reader orders/keys/bob/take/2
	eventually 60 eval '[ "$(ls "$m/orders/keys")" = bob ]' || fail 'eve is there for good'
	gone "$reader" 60
	[ "$(date +%s)" -ge "$begins" ] || fail 'it came too soon'
	is got "$(cat "$d/got")" 2
}

case_quotas_outlive_a_killed_server() {
	outlives
	single || return 0
	quota
	echo "50/$(far)" > "$m/orders/keys/eve/rate"
	exec 5< "$m/orders/keys/open/take/100"
	is 'taken by one that stays open' "$("$CLIENT" read /dev/fd/5 || cat <&5)" 100
	is taken "$(cat "$m/orders/keys/bob/take/400")" 400
	is taken "$(cat "$m/orders/keys/eve/take/20")" 20
	killed
	is left "$(key_tokens bob)" 600
	is 'left of its own' "$(key_tokens eve)" 30
	is 'left of one that is open' "$(key_tokens open)" 900
	is 'left of a new one' "$(key_tokens new)" 1000
	mv "$m/orders" "$m/others"
	mkdir "$m/orders"
	rmdir "$m/orders"
	mv "$m/others" "$m/orders"
	is taken "$(cat "$m/orders/keys/bob/take/1")" 1
	kill -HUP "$daemon"
	killed
	is left "$(key_tokens bob)" 599
	exec 5<&-
	rmdir "$m/orders"
	quota
	is 'left in a new limiter' "$(key_tokens bob)" 1000
}

case_quotas_outlive_an_end_and_a_rename() {
	start "local:$d/kept"
	limiter shop
	limiter shop/orders
	echo "1000/$(far)" > "$m/shop/orders/key_rate"
	is taken "$(cat "$m/shop/orders/keys/bob/take/400")" 400
	mv "$m/shop" "$m/store"
	is taken "$(cat "$m/store/orders/keys/eve/take/300")" 300
	stop
	start "local:$d/kept"
	is left "$(key_tokens bob store/orders)" 600
	is left "$(key_tokens eve store/orders)" 700
	is 'left of a new one' "$(key_tokens new store/orders)" 1000
	echo "1200/$(far)" > "$m/store/orders/key_rate"
	stop
	start "local:$d/kept"
	is 'left of another number' "$(key_tokens bob store/orders)" 800
	rmdir "$m/store/orders"
	limiter store/orders
	echo "1000/$(far)" > "$m/store/orders/key_rate"
	is 'left in a new limiter' "$(key_tokens bob store/orders)" 1000
	stop
	start "local:$d/kept"
	is 'left in a new limiter' "$(key_tokens bob store/orders)" 1000
}

case_a_renamed_limiter_keeps_its_quotas_through_a_crash() {
	start "local:$d/kept"
	quota
	is taken "$(cat "$m/orders/keys/bob/take/400")" 400
	eventually 60 at_rest 400 || fail 'the reserve at rest is not a token'
	local before
	before=$(cksum < "$d/kept/.keys")
	# Without a token that is taken since.
	mv "$m/orders" "$m/others"
	eventually 60 eval '[ "$(cksum < "$d/kept/.keys")" != "$before" ]' || fail 'nothing is kept'
	eventually 60 at_rest 400 || fail 'the reserve at rest is not a token'
	crash
	umount -l "$m" || :
	start "local:$d/kept"
	[ "$(key_tokens bob others)" -le 600 ] || fail "bob has $(key_tokens bob others)"
}

case_after_a_crash_a_second_counts_as_used() {
	start "local:$d/kept"
	quota
	is taken "$(cat "$m/orders/keys/bob/take/400")" 400
	eventually 60 at_rest 400 || fail 'the reserve at rest is not a token'
	is taken "$(cat "$m/orders/keys/eve/take/30")" 30
	eventually 60 stored 30 || fail 'what eve took is not in the file'
	crash
	umount -l "$m" || :
	start "local:$d/kept"
	[ "$(key_tokens bob)" -le 600 ] || fail "bob has $(key_tokens bob)"
	[ "$(key_tokens bob)" -ge 400 ] || fail "bob has $(key_tokens bob)"
	[ "$(key_tokens eve)" -le 970 ] || fail "eve has $(key_tokens eve)"
	[ "$(key_tokens new)" -lt 1000 ] || fail "a new one has $(key_tokens new)"
	local left
	left=$(key_tokens bob)
	eventually 60 at_rest $((1000 - left)) || fail 'the reserve at rest is not a token'
	crash
	umount -l "$m" || :
	start "local:$d/kept"
	is 'left of one at rest' "$(key_tokens bob)" $((left - 1))
	stop
	start "local:$d/kept"
	is 'left after a clean end' "$(key_tokens bob)" $((left - 1))
}

case_a_damaged_file_gives_keys_nothing_twice() {
	start "local:$d/kept"
	quota
	cat "$m/orders/keys/bob/take/1000" > /dev/null
	stop
	printf x | dd of="$d/kept/.keys" bs=1 seek=$((64 + 20)) conv=notrunc status=none
	start "local:$d/kept"
	is left "$(key_tokens bob)" 0
	is left "$(key_tokens new)" 0
	grep -q 'keys is damaged: windows' "$d/log" || fail 'nothing was said'
	stop
	start "local:$d/kept"
	is left "$(key_tokens new)" 0
}

case_keys_that_are_forgotten_leave_no_more_to_new_ones() {
	start "local:$d/kept"
	quota
	echo 3 > "$m/orders/keys_max"
	cat "$m/orders/keys/bob/take/400" > /dev/null
	for key in a b c; do cat "$m/orders/keys/$key/take/1" > /dev/null; done
	! ls "$m/orders/keys" | grep -qx bob || fail 'bob is remembered'
	is 'left of a new one' "$(key_tokens new)" 600
	stop
	start "local:$d/kept"
	is 'left of a new one' "$(key_tokens other)" 600
	is left "$(key_tokens bob)" 600
}
