# shellcheck shell=bash
# Windows of the calendar: their tokens are there once, whatever happens to the daemon.

# far: the beginning of a year's windows half a year from here, so that none begins in a case.
far() { LC_ALL=C date -u -d '+180 days' +year@%b-%-d | tr '[:upper:]' '[:lower:]'; }

# synced RESERVE: the first record of the file of windows is on the disk, with that reserve.
synced() { [ "$(od -An -td8 -j$((64 + 32)) -N8 "$d/kept/.windows" | tr -d ' ')" = "$1" ]; }

case_a_quota_outlives_a_killed_daemon() {
	start "local:$d/kept"
	limiter orders "1000/$(far)"
	is taken "$(cat "$m/orders/take/400")" 400
	crash
	umount -l "$m" || :
	start "local:$d/kept"
	is left "$(tokens orders)" 600
	is taken "$(cat "$m/orders/take/600")" 600
	crash
	umount -l "$m" || :
	start "local:$d/kept"
	is left "$(tokens orders)" 0
	is refusal "$("$CLIENT" read "$m/orders/try" || :)" EBUSY
}

# The files of the dead machine are those that were synced: another boot id is all that tells.
case_after_a_loss_of_power_the_last_second_counts_as_used() {
	start "local:$d/kept"
	limiter orders "1000/$(far)"
	is taken "$(cat "$m/orders/take/400")" 400
	eventually 60 synced 400 || fail 'the reserve is not that of the last second'
	eventually 60 synced 1 || fail 'the reserve at rest is not a token'
	crash
	umount -l "$m" || :
	cp /proc/sys/kernel/random/uuid "$d/boot"
	mount --bind "$d/boot" /proc/sys/kernel/random/boot_id
	start "local:$d/kept"
	is left "$(tokens orders)" 599
	stop
	umount /proc/sys/kernel/random/boot_id
	start "local:$d/kept"
	is 'left after a clean end' "$(tokens orders)" 599
}

case_a_quota_outlives_a_killed_server() {
	outlives
	limiter orders
	echo "1000/$(far) 1000/$(far),Europe/Paris" > "$m/orders/rate"
	is taken "$(cat "$m/orders/take/400")" 400
	killed
	is left "$(tokens orders)" 600
	echo "2000/$(far)" > "$m/orders/rate"
	killed
	is left "$(tokens orders)" 1600
}

case_a_quota_outlives_a_clean_end_a_rename_and_another_number() {
	start "local:$d/kept"
	limiter shop
	limiter shop/orders "1000/$(far) 1/d:500"
	is taken "$(cat "$m/shop/orders/take/400")" 400
	echo "700/$(far)" > "$m/shop/orders/rate"
	mv "$m/shop" "$m/store"
	stop
	start "local:$d/kept"
	is left "$(tokens store/orders)" 300
	rmdir "$m/store/orders"
	limiter store/orders "700/$(far)"
	is 'left in a new one' "$(tokens store/orders)" 700
}

case_a_window_that_began_while_nothing_ran_is_full() {
	start "local:$d/kept"
	local begins=$(($(date +%s) + 15))
	limiter orders "5/min@:$(date -d "@$begins" +%S)"
	cat "$m/orders/take/5" > /dev/null
	begins=$(($(date +%s) + 60))
	crash
	umount -l "$m" || :
	eventually 120 eval "[ \$(date +%s) -gt $begins ]"
	start "local:$d/kept"
	is left "$(tokens orders)" 5
}

case_a_reader_waits_for_the_next_window() {
	start
	limiter orders
	local begins=$(($(date +%s) + 10))
	echo "2/min@:$(date -d "@$begins" +%S)" > "$m/orders/rate"
	while cat "$m/orders/try" 2> /dev/null; do :; done > /dev/null
	reader orders/take/2
	gone "$reader" 120
	is got "$(cat "$d/got")" 2
	has orders granted 4 || has orders granted 6 || fail "granted $(counter orders granted)"
}

case_why_and_stat_tell_when_the_next_window_begins() {
	start
	limiter orders
	echo "2/$(far),America/New_York" > "$m/orders/rate"
	cat "$m/orders/take/2" > /dev/null
	like why "$(cat "$m/orders/why")" \
		"^orders quota 2/$(far),America/New_York: 1 token to come, resets in 1[78][0-9] d\$"
	counter orders reset | awk '{ exit !($1 > 170 * 86400 && $1 < 190 * 86400) }' ||
		fail "reset $(counter orders reset)"
	is refusal "$("$CLIENT" read "$m/orders/take/1,within=1h" || :)" EBUSY
	is rate "$(cat "$m/orders/rate")" "2/$(far),America/New_York"
	grep -q '^ratefs_reset{limiter="orders"}' "$m/metrics" || fail 'no metric'
}

# Until there are windows the daemon has no need of the time of day.
case_a_first_window_begins_by_the_clock_as_it_is_then() {
	cat > "$d/wall.c" <<- 'EOF'
		#include <stdlib.h>
		#include <sys/syscall.h>
		#include <time.h>
		#include <unistd.h>

		/* While WALL is there the time of day is ten years ahead. */
		int clock_gettime(clockid_t id, struct timespec *now)
		{
			int err = syscall(SYS_clock_gettime, id, now);

			if (!err && id == CLOCK_REALTIME && !access(getenv("WALL"), F_OK))
				now->tv_sec += 10 * 365 * 86400;
			return err;
		}
	EOF
	cc -shared -fPIC -D_GNU_SOURCE -w -o "$d/wall.so" "$d/wall.c"
	export WALL=$d/wall
	touch "$WALL"
	ASAN_OPTIONS+=:verify_asan_link_order=0 LD_PRELOAD="$LD_PRELOAD $d/wall.so" start
	mkdir "$m/orders"
	rm "$WALL"
	echo "5/$(far)" > "$m/orders/rate"
	sleep 3 # in which it looks at the clock, as it does each second from now on
	like reset "$(counter orders reset)" '^1[45][0-9]{6}([.]|$)'
}

case_why_tells_when_the_window_of_a_unit_begins() {
	start
	limiter llm
	echo "9/d:9 tpm=20/$(far)" > "$m/llm/rate"
	cat "$m/llm/take/1,tpm=15" > /dev/null
	reader llm/take/1,tpm=8
	waiting llm 1
	like why "$(cat "$m/llm/why")" \
		"^llm quota tpm=20/$(far): 3 tokens to come, resets in 1[78][0-9] d\$"
	kill "$reader"
}

case_why_leaves_out_the_debt_that_ends_with_the_window() {
	start
	limiter orders "5/$(far)"
	cat "$m/orders/take/5" > /dev/null
	echo 7 > "$m/orders/charge"
	like why "$(cat "$m/orders/why")" ': 1 token to come, resets in '
}

case_a_take_above_a_window_is_refused_in_words() {
	start
	limiter orders "20/$(far)"
	refused EINVAL read "$m/orders/take/21"
	like 'last error' "$(cat "$m/last_error")" \
		'larger than a window of the calendar.* can never be had'
}

case_windows_that_are_none_are_refused_in_words() {
	start
	limiter orders 1/s
	refused EINVAL write "$m/orders/rate" '10/day@24:00'
	grep -q '@00:00 to @23:59' "$m/last_error" || fail "$(cat "$m/last_error")"
	refused EINVAL write "$m/orders/rate" '10/day@00:00,Europe/Atlantis'
	grep -q "'Europe/Atlantis' is no time zone" "$m/last_error" || fail "$(cat "$m/last_error")"
	is rate "$(cat "$m/orders/rate")" 1/s
}

case_a_damaged_record_gives_nothing_twice() {
	start "local:$d/kept"
	limiter orders "10/$(far)"
	cat "$m/orders/take/10" > /dev/null
	crash
	umount -l "$m" || :
	printf x | dd of="$d/kept/.windows" bs=1 seek=$((64 + 20)) conv=notrunc status=none
	start "local:$d/kept"
	is left "$(tokens orders)" 0
	grep -q 'is damaged: windows' "$d/log" || fail 'nothing was said'
	echo max > "$m/orders/rate"
	echo "10/$(far)" > "$m/orders/rate"
	is left "$(tokens orders)" 10
}
