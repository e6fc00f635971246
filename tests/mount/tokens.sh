# shellcheck shell=bash
# The files that give tokens, byte by byte.

case_try_takes_one_now_or_fails() {
	start
	limiter orders 1/h 2
	is first "$(cat "$m/orders/try")" 1
	is second "$(cat "$m/orders/try")" 1
	denied EBUSY read "$m/orders/try"
	counts orders granted 2
	counts orders refused 1
}

case_take_gives_many_tokens_together() {
	start
	limiter orders 1/h 100
	is text "$(cat "$m/orders/take/60")" 60
	counts orders granted 60
	counts orders served 1
	is text "$(cat "$m/orders/take/40")" 40
	counts orders granted 100
	denied EBUSY read "$m/orders/try"
}

case_take_larger_than_burst_waits_until_enough_have_accrued() {
	start
	limiter orders 200/s 10
	local began ended
	began=$(milliseconds) # the bucket is refilled from the first take on
	: "$(cat "$m/orders/take/10")"
	is text "$(cat "$m/orders/take/100")" 100
	ended=$(milliseconds)
	counts orders granted 110
	[ $((ended - began)) -ge 490 ] || fail "100 tokens at 200/s after $((ended - began)) ms"
}

case_take_within_is_refused_at_once_if_it_cannot_be_had_in_time() {
	start
	limiter orders 1/h 5
	: "$(cat "$m/orders/take/5,within=1s")"
	denied EBUSY read "$m/orders/take/1,within=1s"
	denied EBUSY read "$m/orders/take/3,within=2h"
	counts orders granted 5
	counts orders refused 2
	counts orders waiting 0
}

case_take_within_waits_if_it_can_be_had_in_time() {
	start
	limiter orders 20/s 1
	is first "$(cat "$m/orders/take/1,within=0s")" 1
	is 'after a wait' "$(cat "$m/orders/take/5,within=1h")" 5
	counts orders granted 6
	counts orders refused 0
}

case_take_of_what_is_no_number_does_not_exist() {
	start
	limiter orders
	local name
	for name in x -1 1.5 0x10 '1,within' '1,within=' '1,within=soon' '1,without=1s' ' 1' \
		99999999999999999999999; do
		[ ! -e "$m/orders/take/$name" ] || fail "take/$name exists"
		[ ! -e "$m/orders/eta/$name" ] || fail "eta/$name exists"
	done
	counts orders granted 0
}

# names_mistake FILE ERRNO SAYS: opening it fails so, and last_error quotes its name and says what
# is wrong in it.
names_mistake() {
	refused "$2" read "$m/orders/$1"
	is "last_error after $1" "$(reason)" "'${1#*/}': $3"
}

case_last_error_says_what_is_wrong_in_a_name_in_take_or_eta() {
	start
	limiter orders
	local directory periods='(ns us ms s min h d), or a number of seconds'
	local why='not a number of tokens: such as 250 or 64Ki, or ' units='with units 1,tpm=250'
	local range="1-250 for up to 250, or $units; ,within=DURATION comes last"
	for directory in eta keys/alice/eta; do
		refused ENOENT read "$m/orders/$directory/5x"
		is "last_error" "$(reason)" "'5x': $why$units"
	done
	for directory in take keys/alice/take; do
		refused ENOENT read "$m/orders/$directory/5x"
		is "last_error" "$(reason)" "'5x': $why$range"
	done
	names_mistake take/-5 ENOENT "$why$range"
	names_mistake take/,within=5s ENOENT "$why$range"
	names_mistake eta/1.5 ERANGE 'out of bounds: tokens are a whole number from 0 to 10T'
	names_mistake take/11T ERANGE \
		'out of bounds: N is from 0 to 10T; of A-B, A is from 1 and B from A to 10T'
	names_mistake take/5,withn=2s ENOENT "$why$range"
	names_mistake take/5,2s ENOENT "$why$range"
	names_mistake take/5,within=2m ENOENT "not a duration: such as 200ms, 15s or 1h $periods"
	names_mistake take/5,within= ENOENT "not a duration: such as 200ms, 15s or 1h $periods"
	names_mistake take/5,within=3651d ERANGE \
		'out of bounds: a time is whole nanoseconds, up to 3650d'
	names_mistake eta/5,within=2s ENOENT 'eta has nothing after the numbers'
	counts orders granted 0
}

case_a_time_without_a_unit_is_seconds() {
	start
	limiter orders 1/h 5
	is 'take/2,within=5' "$(cat "$m/orders/take/2,within=5")" 2
	is 'take/3,within=0' "$(cat "$m/orders/take/3,within=0")" 3
	denied EBUSY read "$m/orders/take/1,within=1.5"
	echo 2 > "$m/orders/release_interval"
	is release_interval "$(cat "$m/orders/release_interval")" 2s
	echo 'linear initial=3' > "$m/orders/backoff"
	like backoff "$(cat "$m/orders/backoff")" 'initial=3s'
	counts orders granted 5
}

case_eta_tells_seconds_and_takes_nothing() {
	start
	limiter orders 1/s 5
	is 'with tokens there' "$(cat "$m/orders/eta/5")" 0.000
	like 'for more than there are' "$(cat "$m/orders/eta/105")" '^(99\.[0-9]{3}|100\.000)$'
	limiter free
	is 'without limit' "$(cat "$m/free/eta/1000000")" 0.000
	counts orders granted 0
	counts free granted 0
	limiter shut 0
	is 'when it is never' "$(cat "$m/shut/eta/1")" inf
}

case_a_token_is_read_in_pieces_of_any_size() {
	start
	limiter orders 1/h 1000
	local size
	for size in 1 2 3 7 4096 65536 1000000; do
		is "take/123 by $size" "$(dd status=none bs=$size if="$m/orders/take/123")" 123
	done
	counts orders granted $((7 * 123))
	counts orders served 7
}

case_reading_at_offset_zero_again_takes_another() {
	start
	limiter orders 1/h 10
	python3 - "$m/orders" <<- 'EOF'
		import os, sys
		fd = os.open(sys.argv[1] + "/token", os.O_RDONLY)
		assert os.pread(fd, 10, 0) == b"1\n"
		assert os.pread(fd, 10, 0) == b"1\n"
		assert os.pread(fd, 10, 1) == b"\n"
		assert os.pread(fd, 10, 2) == b"", "past the end is the end of the file"
		assert os.pread(fd, 10, 1000) == b""
		assert os.read(fd, 10) == b"1\n"
		assert os.read(fd, 10) == b""
		os.lseek(fd, 0, os.SEEK_SET)
		assert os.read(fd, 1) == b"1"
		assert os.read(fd, 1) == b"\n"
	EOF
	counts orders granted 4
	counts orders served 4
}

case_threads_that_share_a_descriptor_take_one_token_each() {
	start
	limiter orders 1000/s 1
	python3 - "$m/orders" <<- 'EOF'
		import os, sys, threading
		fd = os.open(sys.argv[1] + "/token", os.O_RDONLY)
		got = []
		def work():
		    for i in range(20):
		        got.append(os.pread(fd, 10, 0))
		threads = [threading.Thread(target=work) for i in range(8)]
		[t.start() for t in threads]
		[t.join() for t in threads]
		assert got == [b"1\n"] * 160, got
	EOF
	counts orders granted 160
}

case_stream_gives_one_token_a_line_to_head() {
	start
	limiter orders 1/h 100
	is lines "$(head -n 5 "$m/orders/stream" | wc -l)" 5
	counts orders granted 5
}

# loop SHELL…: reads ten lines of a stream and stops.
loop() {
	start
	limiter orders 1/h 100
	stream=$m/orders/stream "$@" -c 'n=0
		while read -r x; do
			n=$((n + 1))
			[ "$x" = 1 ] || exit 1
			[ $n -lt 10 ] || break
		done < "$stream"'
	counts orders granted 10
}

case_stream_gives_one_token_a_line_to_bash() { loop bash; }
case_stream_gives_one_token_a_line_to_dash() { loop dash; }
case_stream_gives_one_token_a_line_to_busybox() { loop busybox sh; }
case_stream_gives_one_token_a_line_to_zsh() { loop zsh; }

case_stream_gives_one_token_a_line_to_python() {
	start
	limiter orders 1/h 100
	python3 - "$m/orders" <<- 'EOF'
		import sys
		with open(sys.argv[1] + "/stream") as stream:
		    for n in range(1, 11):
		        assert next(stream) == "1\n"
		        stat = dict(line.split() for line in open(sys.argv[1] + "/stat"))
		        assert int(stat["granted"]) == n, (n, stat["granted"])
	EOF
	counts orders granted 10
}

case_stream_blocks_when_the_bucket_is_empty_and_goes_on() {
	start
	limiter orders 1/d 3
	head -n 5 "$m/orders/stream" > "$d/got" &
	local pid=$!
	# On a fleet it waits for the first lease, too.
	eventually 20 has orders granted 3 || fail "granted $(counter orders granted)"
	waiting orders 1
	echo 100/s > "$m/orders/rate"
	gone $pid 20
	is lines "$(wc -l < "$d/got")" 5
	counts orders granted 5
}

case_an_odd_offset_of_stream_gives_the_newline_and_no_token() {
	start
	limiter orders 1/h 100
	python3 - "$m/orders/stream" <<- 'EOF'
		import os, sys
		fd = os.open(sys.argv[1], os.O_RDONLY)
		assert os.pread(fd, 1, 0) == b"1"
		assert os.pread(fd, 1, 1) == b"\n"
		assert os.pread(fd, 4096, 2) == b"1\n", "one line a read at most"
		assert os.pread(fd, 4096, 5) == b"\n"
		assert os.pread(fd, 4096, 1 << 40) == b"1\n"
	EOF
	counts orders granted 3
}

case_a_charge_is_paid_by_later_readers() {
	start
	limiter orders 1/s 10
	: "$(cat "$m/orders/token")"
	echo 29 > "$m/orders/charge"
	like 'tokens in debt' "$(counter orders tokens)" '^-'
	like 'seconds until one is there' "$(cat "$m/orders/eta/1")" '^(2[01]|1[0-9])\.'
	denied EBUSY read "$m/orders/try"
	echo -29 > "$m/orders/charge"
	is 'after giving back' "$(cat "$m/orders/try")" 1
}

case_tokens_given_back_go_to_the_first_in_the_queue() {
	start
	empty orders 1
	local i pids=()
	for i in 0 1 2 3 4; do
		reader orders/token
		pids+=("$reader")
		waiting orders $((i + 1))
	done
	is 'in the order of coming' "$(awk '!/^#/ { print $1 }' "$m/orders/waiters" | xargs)" \
		"${pids[*]}"
	for i in 0 1 2 3 4; do
		echo -1 > "$m/orders/charge"
		gone "${pids[i]}" 20
		counts orders waiting $((4 - i))
	done
}

case_a_large_take_is_not_overtaken() {
	start
	empty orders 10
	reader orders/take/10
	local large=$reader
	waiting orders 1
	reader orders/token
	waiting orders 2
	echo -5 > "$m/orders/charge"
	counts orders waiting 2
	denied EBUSY read "$m/orders/try"
	echo -5 > "$m/orders/charge"
	gone "$large" 20
	counts orders waiting 1
	echo -1 > "$m/orders/charge"
	gone "$reader" 20
}

case_no_more_is_granted_than_rate_and_burst_allow() {
	start
	limiter orders 50/s 5
	local began granted i most pids=()
	began=$(milliseconds)
	for i in 1 2 3 4; do
		sh -c 'while read -r _ < "$1"; do :; done' - "$m/orders/token" &
		pids+=($!)
	done
	eventually 60 eval '[ "$(counter orders granted)" -gt 80 ]' || fail 'too few tokens'
	granted=$(counter orders granted)
	most=$((($(milliseconds) - began) * 50 / 1000 + 5 + 1))
	kill "${pids[@]}"
	echo "# $granted tokens, at most $most allowed"
	[ "$granted" -le "$most" ] || fail "$granted tokens, at most $most allowed"
}
