# shellcheck shell=bash
# Promises of the manual that no other case looks at: the state after a crash, a slow disk, lost
# events, the sticky bit, and the odd ways to write options.

tokens_are() { is "tokens of $1" "$(tokens "$1")" "$2"; }

case_tokens_left_in_buckets_are_used_up_by_the_next_start() {
	start "local:$d/kept"
	limiter orders 1/d 10
	cat "$m/orders/take/4" > "$d/got"
	stop
	[ -e "$d/kept/.levels" ] || fail 'no .levels after a clean end'
	start "local:$d/kept"
	tokens_are orders 6
	[ ! -e "$d/kept/.levels" ] || fail '.levels is still there'
	cat "$m/orders/take/1" > "$d/got"
	crash
	umount -l "$m"
	[ ! -e "$d/kept/.levels" ] || fail '.levels after a crash'
	start "local:$d/kept"
	tokens_are orders 0
	stop
	start "local:$d/kept"
	tokens_are orders 0
}

# slow_disk: starts the next daemons with a fsync(2) that takes four seconds while $d/slow is there.
slow_disk() {
	cat > "$d/slow.c" <<- 'EOF'
		#include <dlfcn.h>
		#include <stdlib.h>
		#include <unistd.h>

		static int slowly(const char *name, int descriptor)
		{
			int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);

			if (!access(getenv("SLOW"), F_OK))
				sleep(4);
			return next(descriptor);
		}

		int fsync(int descriptor) { return slowly("fsync", descriptor); }
		int fdatasync(int descriptor) { return slowly("fdatasync", descriptor); }
	EOF
	cc -shared -fPIC -D_GNU_SOURCE -w -o "$d/slow.so" "$d/slow.c" -ldl
	export SLOW=$d/slow
	ASAN_OPTIONS+=:verify_asan_link_order=0
}

case_a_disk_that_is_slow_makes_a_write_time_out_and_is_followed() {
	slow_disk
	LD_PRELOAD=$d/slow.so start "local:$d/kept"
	limiter orders 5/s
	touch "$d/slow"
	is errno "$("$CLIENT" write "$m/orders/rate" 6/s)" ETIMEDOUT
	like 'last error' "$(cat "$m/last_error")" '^[^ ]+( [^ ]+){2,}$'
	is 'a token meanwhile' "$(cat "$m/orders/token")" 1
	rm "$d/slow"
	# It may still be kept, as it is in the end.
	eventually 20 eval '[ "$(cat "$m/orders/rate")" = 6/s ]' ||
		fail "rate $(cat "$m/orders/rate")"
	stop
	start "local:$d/kept"
	is 'the rate that was kept' "$(cat "$m/orders/rate")" 6/s
}

retune() { echo "$1" 2> /dev/null > "$m/orders/rate"; }

case_a_reader_of_events_that_falls_behind_is_told_how_much_it_lost() {
	start
	limiter orders
	exec 3< "$m/events"
	local i
	# A fleet refuses a change while its server does not answer: that is no part of this case.
	for ((i = 1; i <= 3000; i++)); do eventually 20 retune "$i/s"; done
	timeout 20 cat <&3 > "$d/events" &
	local reader=$!
	eventually 20 grep -q 'orders rate 3000/s' "$d/events" ||
		fail "the last line: $(tail -n 1 "$d/events")"
	kill $reader
	wait $reader 2> /dev/null || :
	exec 3<&-
	like 'behind the head' "$(sed -n 2p "$d/events")" '^lost [0-9]+ bytes$'
	# Losses, and limiters that are there, are those that were told.
	python3 - "$d/events" <<- 'EOF'
		import re, sys
		head, lost, *lines = open(sys.argv[1]).read().splitlines()
		rates = [int(re.search(r" orders rate (\d+)/s$", line)[1]) for line in lines]
		assert rates == list(range(rates[0], 3001)), "lines are missing"
		length = len(lines[0]) - len(str(rates[0]))
		told = sum(length + len(str(rate)) + 1 for rate in range(1, rates[0]))
		assert int(lost.split()[1]) == told, (lost, told)
	EOF
}

case_with_the_sticky_bit_users_remove_and_rename_only_their_own() {
	start -o allow_other
	chmod 711 "$d" "$(dirname "$d")"
	limiter shared
	chmod 1777 "$m/shared"
	as nobody mkdir "$m/shared/of-nobody"
	as daemon mkdir "$m/shared/of-daemon"
	as daemon rmdir "$m/shared/of-nobody" 2> /dev/null && fail "another user's was removed"
	as daemon mv "$m/shared/of-nobody" "$m/shared/mine" 2> /dev/null &&
		fail "another user's was renamed"
	as nobody mv "$m/shared/of-nobody" "$m/shared/mine"
	as nobody rmdir "$m/shared/mine"
	chmod 0777 "$m/shared"
	as nobody rmdir "$m/shared/of-daemon"
}

case_options_are_bounded_and_a_wrong_one_is_named() {
	local option said
	for option in weight=2 right=3s session=3s credentials=/none nowait; do
		said=$("$RATEFS" -o "$option" local "$m" 2>&1) &&
			fail "$option was taken by one host"
		like "$option" "$said" "only for a fleet.*${option%%=*}"
	done
	for option in weight=0 weight=1001 weight=x right=1s right=11min right= session=1s \
		session=301s; do
		said=$("$RATEFS" -o "$option" "zk://127.0.0.1:1/x" "$m" 2>&1) &&
			fail "$option was taken"
		like "$option" "$said" "${option%%=*}"
	done
	for option in readers_max=0 readers_max=x limiters_max=1000000001 user_keys_max=-1 \
		names_max=1048577; do
		said=$("$RATEFS" -o "$option" local "$m" 2>&1) && fail "$option was taken"
		like "$option" "$said" "${option%%=*}"
	done
	for option in zk:// zk:///x zk://h:0 zk://h:65536 zk://h:x \
		"zk://h/$(printf 'p%.0s' {1..300})" zk://h//x zk://h/../x; do
		said=$("$RATEFS" "$option" "$m" 2>&1) && fail "$option was taken"
		[ -n "$said" ] || fail "$option was refused without a word"
	done
	mountpoint -q "$m" && fail 'something was mounted'
	# The last of several counts, with a blank after -o or without.
	start -ohost=first -o host=second,loglevel=info
	is host "$(status_of host)" second
}
