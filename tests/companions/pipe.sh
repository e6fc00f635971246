# shellcheck shell=bash
# ratefs pipe: as many bytes as tokens.

# piped STATUS ARGUMENTS…: ratefs pipe exits so; its output is in $d/out and $d/err.
piped() {
	local wanted=$1 status=0
	shift
	env --default-signal timeout 30 "$RATEFS" pipe "$@" > "$d/out" 2> "$d/err" || status=$?
	is "exit status of pipe $* ($(cat "$d/err"))" "$status" "$wanted"
}

# pipe LIMITER [OPTION]: copies in the background; its pid in $pipe.
pipe() {
	env --default-signal "$RATEFS" pipe "${@:2}" "$m/$1" <&0 2> "$d/err" &
	pipe=$!
}

says() { like 'what it says' "$(cat "$d/err")" "$1"; }

# taken N: so many tokens of orders were taken, and not given back.
taken() { is taken $(($(counter orders granted) - $(counter orders returned))) "$1"; }

# held PIPE: the bytes in it, which are read.
held() {
	python3 - "$1" <<- 'EOF'
		import os, sys
		fd = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)
		count = 0
		try:
		    while got := os.read(fd, 1 << 20):
		        count += len(got)
		except BlockingIOError:
		    pass
		print(count)
	EOF
}

case_all_bytes_come_through_and_each_is_a_token() {
	start
	limiter orders 1G/s 1000000
	local size all=0
	for size in 0 1 2 4095 65535 65536 65537 300001; do
		head -c $size /dev/urandom > "$d/in"
		piped 0 "$m/orders" < "$d/in"
		cmp "$d/in" "$d/out" || fail "$size bytes are others"
		all=$((all + size))
	done
	taken $all
}

case_a_burst_of_one_does_not_make_a_copy_go_byte_by_byte() {
	start
	limiter orders 1M/s
	head -c 400000 /dev/urandom > "$d/in"
	piped 0 "$m/orders" < "$d/in"
	cmp "$d/in" "$d/out"
	taken 400000
	local served
	served=$(counter orders served)
	[ "$served" -lt 4000 ] || fail "$served takes for 400000 bytes"
}

case_copies_of_one_limiter_share_its_tokens_to_the_byte() {
	start
	limiter orders 1/d 5000
	local one
	head -c 4000 /dev/zero > "$d/in"
	pipe orders < "$d/in" > "$d/one"
	one=$pipe
	pipe orders < "$d/in" > "$d/two"
	eventually 20 has orders granted 5000 || fail "granted: $(counter orders granted)"
	eventually 20 eval '[ "$(counter orders waiting)" -gt 0 ]' || fail 'no copy waits'
	eventually 20 eval '[ "$(cat "$d/one" "$d/two" | wc -c)" = 5000 ]' ||
		fail "written: $(cat "$d/one" "$d/two" | wc -c)"
	kill "$pipe" "$one" 2> /dev/null || :
	gone "$pipe" 20 || :
	gone "$one" 20 || :
	taken 5000
}

case_input_that_is_there_is_copied_at_once() {
	start
	limiter orders 1/d 100
	mkfifo "$d/in"
	exec 7<> "$d/in"
	pipe orders < "$d/in" > "$d/out"
	printf hello >&7
	eventually 20 grep -q hello "$d/out" || fail 'it waits for more'
	taken 5
	printf ' world' >&7
	eventually 20 grep -q 'hello world' "$d/out" || fail 'it waits for more'
	taken 11
	exec 7>&-
	kill "$pipe"
	gone "$pipe" 20 || :
}

case_a_signal_gives_back_what_was_not_written() {
	start
	limiter orders 1/d 1000000
	mkfifo "$d/full"
	exec 7<> "$d/full"
	head -c 30000 /dev/zero >&7
	head -c 100000 /dev/zero > "$d/in"
	pipe orders < "$d/in" >&7
	eventually 20 eval '[ "$(counter orders granted)" -gt 0 ]'
	eventually 20 grep -qE '^(pipe_write|anon_pipe_write|pipe_wait)' "/proc/$pipe/wchan" ||
		sleep 0.3
	kill "$pipe"
	local status=0
	gone "$pipe" 20 || status=$?
	is 'exit status' $status 143
	is 'what it says' "$(cat "$d/err")" ''
	taken $(($(held "$d/full") - 30000))
	[ "$(counter orders returned)" -gt 0 ] || fail 'nothing had to come back'
}

case_tokens_that_come_back_follow_no_link() {
	local status=0
	mkdir -p "$d/fake/take"
	touch "$d/fake/token"
	echo 8 > "$d/fake/take/1-8"
	echo mine > "$d/mine"
	ln -s "$d/mine" "$d/fake/charge"
	printf 0123456789 | timeout 30 "$RATEFS" pipe "$d/fake" > /dev/full 2> "$d/err" || status=$?
	is 'exit status' $status 1
	says '/charge: 8 tokens are not given back: Too many levels'
	is 'what the link leads to' "$(cat "$d/mine")" mine
}

case_a_signal_ends_a_wait_for_tokens_and_none_is_spent() {
	start
	empty orders
	head -c 10 /dev/zero > "$d/in"
	pipe orders < "$d/in" > "$d/out"
	waiting orders 1
	kill -STOP "$pipe"
	kill -CONT "$pipe"
	waiting orders 1
	kill -INT "$pipe"
	local status=0
	gone "$pipe" 20 || status=$?
	is 'exit status' $status 130
	taken 1
}

case_without_a_reader_it_takes_nothing_and_ends_by_SIGPIPE() {
	start
	limiter orders 1/d 1000
	mkfifo "$d/fifo"
	sleep 30 < "$d/fifo" &
	local reader=$! status=0
	exec 7> "$d/fifo"
	kill "$reader"
	gone "$reader" 20 || :
	head -c 100 /dev/zero > "$d/in"
	env --default-signal timeout 30 "$RATEFS" pipe "$m/orders" < "$d/in" >&7 2> "$d/err" ||
		status=$?
	is 'exit status' $status 141
	is 'what it says' "$(cat "$d/err")" ''
	taken 0
	status=0
	(trap '' PIPE; exec "$RATEFS" pipe "$m/orders" < "$d/in" >&7 2> "$d/err") || status=$?
	is 'exit status where SIGPIPE is ignored' $status 1
	says 'standard output: Broken pipe'
	taken 0
	exec 7>&-
}

case_output_that_fails_costs_no_tokens() {
	start
	limiter orders 1/d 1000
	local status=0
	head -c 64 /dev/zero > "$d/in"
	"$RATEFS" pipe "$m/orders" < "$d/in" > /dev/full 2> "$d/err" || status=$?
	is 'exit status' $status 1
	says 'standard output: No space left on device'
	taken 0
	counts orders returned 64
	piped 1 "$m/orders" < "$d"
	says 'standard input: Is a directory'
	taken 0
}

case_a_limiter_that_goes_away_ends_it() {
	start
	limiter orders 1/d 100
	mkfifo "$d/in"
	exec 7<> "$d/in"
	pipe orders < "$d/in" > "$d/out"
	printf hello >&7
	eventually 20 grep -q hello "$d/out"
	rmdir "$m/orders"
	printf more >&7
	local status=0
	gone "$pipe" 20 || status=$?
	is 'exit status' $status 1
	says "^ratefs pipe: $m/orders: the limiter is gone\$"
	is output "$(cat "$d/out")" hello
	exec 7>&-
}

case_a_mount_that_ends_ends_it() {
	start
	empty orders
	head -c 10 /dev/zero > "$d/in"
	pipe orders < "$d/in" > "$d/out"
	waiting orders 1
	stop
	local status=0
	gone "$pipe" 20 || status=$?
	is 'exit status' $status 1
	says "^ratefs pipe: $m/orders: (no tokens: |the limiter is gone)"
	is output "$(cat "$d/out")" ''
}

case_a_key_has_a_rate_of_its_own() {
	start
	limiter orders 1/d 1000
	echo 1/d > "$m/orders/key_rate"
	echo 20 > "$m/orders/key_burst"
	head -c 30 /dev/zero > "$d/in"
	pipe orders/keys/ann < "$d/in" > "$d/out"
	eventually 20 eval '[ "$(wc -c < "$d/out")" = 20 ]' || fail "$(wc -c < "$d/out") bytes"
	kill "$pipe"
	gone "$pipe" 20 || :
	taken 20
	"$RATEFS" pipe "$m/orders/keys/bob" < "$d/in" > /dev/full 2> "$d/err" || :
	taken 20
}

# A library has the signal come just before the read that waits.
case_a_signal_before_a_call_that_waits_ends_it() {
	local status=0
	cc -std=gnu11 -D_GNU_SOURCE -w -fPIC -shared -x c -o "$d/early.so" - <<- 'EOF'
		#include <fcntl.h>
		#include <signal.h>
		#include <string.h>
		#include <sys/syscall.h>
		#include <unistd.h>
		ssize_t read(int file, void *bytes, size_t size)
		{
			static int sent;
			char path[4096] = "", link[64];
			sprintf(link, "/proc/self/fd/%d", file);
			readlink(link, path, sizeof(path) - 1);
			if (strstr(path, "/take/") && !sent++)
				raise(SIGTERM);
			return syscall(SYS_read, file, bytes, size);
		}
	EOF
	start
	empty orders
	echo x > "$d/in"
	LD_PRELOAD="${LD_PRELOAD-} $d/early.so" pipe orders < "$d/in" > "$d/out"
	gone "$pipe" 60 || status=$?
	is status $status 143
	taken 1 # by empty
}

case_as_many_pipes_wait_as_may() {
	start -o readers_max=1
	empty orders
	reader orders/token
	waiting orders 1
	head -c 10 /dev/zero > "$d/in"
	piped 1 "$m/orders" < "$d/in"
	says 'orders: no tokens: there are 1 readers that wait, the most there can be'
	kill "$reader"
}

case_a_refusal_by_a_bound_of_the_limiter_is_told_as_such() {
	start
	empty orders
	head -c 10 /dev/zero > "$d/in"
	echo 1min > "$m/orders/wait_max"
	piped 1 "$m/orders" < "$d/in"
	says "orders: no tokens: the wait would be longer than wait_max of 'orders' allows: 1min"
	echo max > "$m/orders/wait_max"
	echo 0 > "$m/orders/queue_max"
	piped 1 "$m/orders/keys/one" < "$d/in"
	says "one: no tokens: as many readers wait as queue_max of 'orders' allows: 0"
	piped 1 "$m/orders" < "$d/in" > /dev/null
	says "orders: no tokens: as many readers wait as queue_max of 'orders' allows: 0"
}

copied='copied, [0-9.]+m?s, [0-9.]+ [kMG]?B/s'

case_progress_is_one_line_at_the_end_without_a_terminal() {
	start
	limiter orders 1G/s 1000000
	head -c 300001 /dev/urandom > "$d/in"
	piped 0 --progress "$m/orders" < "$d/in"
	cmp "$d/in" "$d/out"
	says "^300001 bytes \\(100 %\\) $copied\$"
	piped 0 "$m/orders" --progress < <(cat "$d/in")
	says "^300001 bytes $copied\$"
	piped 0 "$m/orders" < "$d/in"
	is 'what it says without the option' "$(cat "$d/err")" ''
	exec 7< "$d/in"
	dd bs=300000 count=1 <&7 > /dev/null 2>&1
	piped 0 --progress "$m/orders" <&7
	says "^1 byte \\(100 %\\) $copied\$"
}

case_progress_is_told_also_of_a_copy_that_a_signal_ends() {
	start
	limiter orders 1/d 5000
	head -c 8000 /dev/zero > "$d/in"
	pipe orders --progress < "$d/in" > "$d/out"
	waiting orders 1
	kill "$pipe"
	local status=0
	gone "$pipe" 20 || status=$?
	is 'exit status' $status 143
	says "^5000 bytes \\(62 %\\) $copied\$"
}

case_a_copy_that_tells_its_progress_keeps_its_place_in_the_queue() {
	start
	limiter orders 1/d 5000
	head -c 5001 /dev/zero > "$d/in"
	pipe orders < "$d/in" > "$d/out"
	waiting orders 1
	reader orders/token
	waiting orders 2
	kill -USR1 "$pipe"
	eventually 20 eval '! alive "$pipe" || [ -s "$d/err" ]'
	says "^5000 bytes \\(99 %\\) $copied(, [0-9a-z.]+ left)?\$"
	echo -1 > "$m/orders/charge"
	gone "$pipe" 20
	cmp "$d/in" "$d/out"
	counts orders waiting 1
	kill "$reader"
}

case_no_byte_is_lost_however_often_a_copy_tells_its_progress() {
	start
	limiter orders 300k/s 1000
	head -c 600000 /dev/urandom > "$d/in"
	mkfifo "$d/from" "$d/to"
	cat "$d/in" > "$d/from" &
	cat "$d/to" > "$d/out" &
	local last=$!
	pipe orders < "$d/from" > "$d/to"
	eventually 20 eval '[ "$(counter orders granted)" -gt 0 ]'
	while alive "$pipe"; do
		kill -USR1 "$pipe" 2> /dev/null || :
	done
	gone "$pipe" 20
	gone "$last" 20
	cmp "$d/in" "$d/out"
	taken 600000
	[ -s "$d/err" ] || fail 'it told nothing'
	is 'other lines' "$(grep -vE "^[0-9]+ bytes $copied\$" "$d/err")" ''
}

case_standard_error_that_takes_no_progress_does_not_hold_up_a_copy() {
	start
	limiter orders 1G/s 1000000
	head -c 300001 /dev/urandom > "$d/in"
	mkfifo "$d/full" "$d/broken"
	exec 7<> "$d/full" 8<> "$d/broken"
	dd if=/dev/zero of="$d/full" oflag=nonblock 2> /dev/null || :
	exec 9> "$d/broken" 8>&-
	local error
	for error in '&7' '&9' '&-' /dev/full; do
		eval 'env --default-signal timeout 30 "$RATEFS" pipe --progress "$m/orders" \
			< "$d/in" > "$d/out" 2>'"$error" || fail "exit status $? with 2>$error"
		cmp "$d/in" "$d/out"
	done
	taken $((4 * 300001))
}

case_a_copy_that_has_not_begun_is_asked_how_far_it_is() {
	start
	limiter orders
	export ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0
	mkfifo "$d/from"
	exec 7<> "$d/from"
	strace -D -o "$d/trace" -e trace=?access,?faccessat,?faccessat2 \
		-e inject=?access,?faccessat,?faccessat2:delay_enter=1000000 \
		"$RATEFS" pipe "$m/orders" < "$d/from" 2> "$d/err" 7>&- &
	pipe=$!
	eventually 20 grep -qs "$m/orders" "$d/trace"
	kill -USR1 "$pipe"
	eventually 20 grep -q '^0 bytes copied' "$d/err"
	exec 7>&-
	gone "$pipe" 20
}

# on_screen SCENARIO: of screen.py, in $d, with a limiter that has 5,000 tokens of orders.
on_screen() {
	start
	limiter orders 1/d 5000
	head -c 8000 /dev/zero > "$d/in"
	(cd "$d" && timeout 50 /usr/bin/python3 "$CASES/screen.py" "$1" "$RATEFS" "$m/orders")
}

case_on_a_terminal_the_line_is_renewed() { on_screen renews_its_line; }
case_control_c_leaves_the_last_line_on_the_terminal() { on_screen ends_its_line; }
case_a_terminal_that_nobody_reads_does_not_hold_up_a_copy() { on_screen ends_on_a_full_terminal; }
case_a_message_has_a_line_of_its_own_on_the_terminal() { on_screen tells_below_its_line; }

case_wrong_arguments_are_named() {
	start
	limiter orders
	piped 2
	says "no limiter given: 'LIMITER'"
	piped 2 -x
	says "invalid option -- 'x'"
	piped 2 ''
	says "no limiter given: 'LIMITER'"
	piped 2 "$m/orders" more
	says "an argument too many: 'more'"
	echo 4 > "$m/orders/partitions/count"
	piped 2 "$m/orders/partitions/0"
	says "not a limiter or a key, there is no take: '$m/orders/partitions/0'"
	piped 1 "$d"
	says 'not a limiter: it has no file token'
	piped 1 "$d/nothing"
	says 'No such file or directory'
	piped 0 --help
	like help "$(cat "$d/out")" 'ratefs pipe \[options\] LIMITER'
}
