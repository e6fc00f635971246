# shellcheck shell=bash
# ratefs run: tokens, the command, its end, and what is told of it.

# run STATUS ARGUMENTS…: ratefs run exits so; its output is in $d/out and $d/err.
run() {
	local wanted=$1 status=0
	shift
	env --default-signal timeout 30 "$RATEFS" run "$@" > "$d/out" 2> "$d/err" < /dev/null ||
		status=$?
	is "exit status of run $* ($(cat "$d/err"))" "$status" "$wanted"
}

# says TEXT REGEX: the last run said TEXT on standard error.
says() { like 'what it says' "$(cat "$d/err")" "$1"; }

silent() { is 'what it says' "$(cat "$d/err")" ''; }

# fake: a directory with the files of a limiter that always has tokens; reports are in $f/feedback.
fake() {
	f=$d/fake
	mkdir -p "$f/take" "$f/keys/alice/take"
	echo 1 | tee "$f/token" "$f/slot" > "$f/keys/alice/token"
	: > "$f/feedback"
}

reported() { is 'what was reported' "$(cat "$f/feedback")" "$1"; }

case_a_limiter_that_may_not_be_looked_into_is_told_from_none() {
	start
	limiter orders
	chmod 711 "$d" "$(dirname "$d")"
	chmod 750 "$m/orders"
	as nobody "$RATEFS" run "$m/orders" true 2> "$d/err" && fail 'it ran'
	says "^ratefs run: $m/orders/token: Permission denied\$"
	as nobody "$RATEFS" run "$m" true 2> "$d/err" && fail 'it ran'
	says "^ratefs run: $m: not a limiter: it has no file token\$"
}

case_the_command_runs_with_a_token() {
	start
	limiter orders 100/s
	run 0 "$m/orders" -- echo one two
	is output "$(cat "$d/out")" 'one two'
	silent
	counts orders granted 1
}

case_the_exit_status_is_that_of_the_command() {
	local status
	fake
	for status in 0 1 2 75 124 125 255; do run $status "$f" -- sh -c "exit $status"; done
}

case_the_exit_status_is_told_below_a_parent_that_ignores_the_ends_of_children() {
	local status=0
	fake
	timeout 30 env --ignore-signal=CHLD "$RATEFS" run "$f" --report -- sh -c 'exit 3' ||
		status=$?
	is 'exit status' "$status" 3
	reported error
}

case_a_command_that_a_signal_ends_gives_128_and_its_number() {
	fake
	run 137 "$f" -- sh -c 'kill -KILL $$'
	run 143 "$f" -- sh -c 'kill -TERM $$'
	reported $'error\nerror'
}

case_options_stand_on_either_side_of_the_limiter() {
	start
	limiter orders 1/d 20
	run 0 -n 3 "$m/orders" --within 1s -- echo -n 5
	is output "$(cat "$d/out")" 5
	counts orders granted 3
}

case_the_command_needs_no_dashes_before_it() {
	start
	limiter orders 1/d 20
	run 0 -n 3 "$m/orders" echo -n 5 --slot -- x
	is output "$(cat "$d/out")" '5 --slot -- x'
	run 0 "$m/orders" -n 4 --within 1s echo --help
	is output "$(cat "$d/out")" "$(env echo --help)"
	run 3 "$m/orders" sh -c 'exit "$1"' -- 3
	counts orders granted 8
	run 0 "$m/orders" -- env -- echo -- one
	is output "$(cat "$d/out")" '-- one'
}

case_several_tokens_are_taken_together() {
	start
	limiter orders 1/d 250
	run 0 "$m/orders" -n 250 -- true
	counts orders granted 250
	counts orders served 1
}

case_without_tokens_in_time_nothing_is_run() {
	start
	empty orders
	run 124 "$m/orders" --within 1s -- touch "$d/ran"
	says 'orders: no tokens within 1s$'
	run 124 "$m/orders" --within 1 -- touch "$d/ran"
	says 'orders: no tokens within 1s$'
	run 124 "$m/orders" --within 0.1 -- touch "$d/ran"
	says 'orders: no tokens within 100ms$'
	run 124 "$m/orders" -n 5 --within 0s -- touch "$d/ran"
	[ ! -e "$d/ran" ] || fail 'it ran'
	counts orders granted 1
}

case_where_too_many_wait_for_tokens_in_time_nothing_is_run() {
	start -o readers_max=1
	empty orders
	reader orders/token
	waiting orders 1
	run 124 "$m/orders" -n 1 --within 3d -- touch "$d/ran"
	[ ! -e "$d/ran" ] || fail 'it ran'
	like last_error "$(cat "$m/last_error")" 'readers? that wait'
}

case_it_waits_for_its_turn() {
	start
	empty orders
	"$RATEFS" run "$m/orders" -- touch "$d/ran" &
	waiting orders 1
	[ ! -e "$d/ran" ] || fail 'it did not wait'
	echo max > "$m/orders/rate"
	gone $! 20
	[ -e "$d/ran" ] || fail 'it did not run'
}

case_a_signal_ends_the_wait_and_no_token_is_spent() {
	local signal status
	start
	empty orders
	for signal in HUP INT QUIT TERM USR1; do
		status=0
		env --default-signal "$RATEFS" run "$m/orders" -- touch "$d/ran" 2> "$d/err" &
		waiting orders 1
		kill -$signal $!
		gone $! 20 || status=$?
		is "exit status after $signal" $status $((128 + $(kill -l $signal)))
		waiting orders 0
	done
	counts orders granted 1
	[ ! -e "$d/ran" ] || fail 'it ran'
}

case_a_token_of_a_limiter_that_goes_away_is_a_failure() {
	local status=0
	start
	empty orders
	"$RATEFS" run "$m/orders" -- touch "$d/ran" 2> "$d/err" &
	waiting orders 1
	stop
	gone $! 20 || status=$?
	is 'exit status' $status 125
	says 'orders'
	[ ! -e "$d/ran" ] || fail 'it ran'
}

# at_work COMMAND: starts it through run in the background; it makes $d/ready when it is.
at_work() {
	rm -f "$d/ready"
	env --default-signal "$RATEFS" run "$f" "${with[@]}" -- bash -c "$1" \
		> "$d/out" 2> "$d/err" &
	eventually 20 [ -e "$d/ready" ] || fail 'the command did not start'
}

case_signals_are_passed_on_to_the_command() {
	local signal status with
	fake
	for with in '' --output; do
		with=($with)
		for signal in HUP INT QUIT TERM USR1 USR2; do
			status=0
			at_work "trap 'exit 7' $signal; touch $d/ready
				while :; do sleep 0.02; done"
			kill -$signal $!
			gone $! 20 || status=$?
			is "exit status after $signal" $status 7
		done
	done
}

case_a_command_that_was_told_to_end_is_not_run_again() {
	local with=(--retry 5) status=0
	fake
	at_work "trap 'exit 75' TERM; echo >> $d/tries; touch $d/ready
		while :; do sleep 0.02; done"
	kill $!
	gone $! 20 || status=$?
	is 'exit status' $status 75
	is tries "$(wc -l < "$d/tries")" 1
}

case_an_ignored_signal_stays_so_and_no_other_is() {
	fake
	(trap '' HUP PIPE && "$RATEFS" run "$f" --output -- grep SigIgn /proc/self/status) \
		> "$d/out" 2> "$d/err"
	is 'ignored HUP and PIPE' "$(cut -f 2 "$d/out")" 0000000000001001
	run 0 "$f" --output -- grep -E 'Sig(Ign|Blk)' /proc/self/status
	is 'blocked and ignored' "$(cut -f 2 "$d/out")" $'0000000000000000\n0000000000000000'
}

case_a_throttled_command_is_run_again_with_a_new_token() {
	start
	limiter orders 1/d 10
	run 0 "$m/orders" --retry 5 -- \
		sh -c "echo >> $d/tries; [ \$(wc -l < $d/tries) = 3 ] || exit 75"
	is tries "$(wc -l < "$d/tries")" 3
	counts orders granted 3
}

case_there_is_an_end_to_retries() {
	start
	limiter orders 1/d 10
	run 75 "$m/orders" -- sh -c "echo >> $d/tries; exit 75"
	is tries "$(wc -l < "$d/tries")" 1
	run 75 "$m/orders" --retry 2 -- sh -c "echo >> $d/tries; exit 75"
	is tries "$(wc -l < "$d/tries")" 4
	counts orders granted 4
}

case_other_failures_are_not_tried_again() {
	fake
	run 1 "$f" --retry 5 -- sh -c "echo >> $d/tries; exit 1"
	run 137 "$f" --retry 5 -- sh -c "echo >> $d/tries; kill -9 \$\$"
	is tries "$(wc -l < "$d/tries")" 2
}

case_another_exit_status_can_mean_throttled() {
	fake
	run 9 "$f" --throttled 9 --retry 1 -- sh -c "echo >> $d/tries; exit 9"
	is tries "$(wc -l < "$d/tries")" 2
	run 75 "$f" --throttled 9 -- sh -c 'exit 75'
	reported $'throttled\nthrottled\nerror'
}

case_a_command_that_is_not_there_is_127_and_nothing_is_reported() {
	fake
	touch "$d/plain"
	run 127 "$f" --retry 3 -- "$d/nowhere"
	says nowhere
	run 127 "$f" --output -- no-such-command
	run 126 "$f" -- "$d/plain"
	says plain
	run 126 "$f" -- "$d"
	reported ''
}

case_work_that_cannot_begin_costs_no_token() {
	start
	limiter orders 1/d 5
	touch "$d/plain"
	run 127 "$m/orders" -n 3 -- no-such-command
	counts orders granted 0
	run 126 "$m/orders" -n 3 -- "$d/plain"
	counts orders granted 3
	counts orders returned 3
	printf '#!/nowhere/at/all\n' > "$d/script"
	chmod 755 "$d/script"
	run 127 "$m/orders" -- "$d/script"
	counts orders returned 4
	cp /bin/true "$d/of-mine"
	cd "$d"
	PATH=/nowhere::$PATH run 0 "$m/orders" -- of-mine
	PATH=/nowhere:$PATH run 127 "$m/orders" -- of-mine
	cd /
}

case_how_it_went_is_reported() {
	fake
	echo 250 > "$f/take/250"
	run 0 "$f" -- true
	run 75 "$f" -- sh -c 'exit 75'
	run 3 "$f" -- sh -c 'exit 3'
	run 0 "$f" -n 250 -- true
	run 0 "$f" -n 1 --report -- true
	silent
	reported $'ok\nthrottled\nerror\nok 250\nok'
	# Not more than feedback takes in one line.
	: > "$f/feedback"
	echo 2G > "$f/take/2G"
	run 0 "$f" -n 2G -- true
	reported 'ok 1000000000'
}

case_without_feedback_nothing_is_said_unless_it_was_asked_for() {
	fake
	rm "$f/feedback"
	run 0 "$f" -- true
	silent
	run 125 "$f" --report -- touch "$d/ran"
	says 'feedback: No such file'
	[ ! -e "$d/ran" ] || fail 'it ran'
}

case_a_report_that_is_refused_changes_no_exit_status() {
	fake
	rm "$f/feedback" && mkdir "$f/feedback"
	run 3 "$f" -- sh -c 'exit 3'
	says 'cannot report.*feedback'
}

# links FILE: that file of the fake leads to one of the caller.
links() {
	echo mine > "$d/mine"
	ln -sf "$d/mine" "$f/$1"
}

case_a_report_follows_no_link() {
	fake
	links feedback
	run 3 "$f" -- sh -c 'exit 3'
	says 'cannot report: .*/feedback: Too many levels'
	run 125 "$f" --report -- touch "$d/ran"
	says 'feedback: Too many levels'
	[ ! -e "$d/ran" ] || fail 'it ran'
	is 'what the link leads to' "$(cat "$d/mine")" mine
}

case_tokens_that_come_back_follow_no_link() {
	fake
	links charge
	echo 1 > "$f/take/1,within=1s"
	run 125 "$f" --slot --within 1s -- touch "$d/ran"
	says 'the tokens are spent: .*/charge: Too many levels'
	is 'what the link leads to' "$(cat "$d/mine")" mine
}

case_feedback_of_the_tree_counts_what_is_reported() {
	start
	limiter orders 1000/s 1000
	run 0 "$m/orders" --report -- true
	run 0 "$m/orders" --report -n 5 -- true
	run 3 "$m/orders" --report -- sh -c 'exit 3'
	run 75 "$m/orders" --report -- sh -c 'exit 75'
	run 75 "$m/orders" --report --output -- echo '429 retry-after=2s'
	silent
	counts orders ok 6
	counts orders error 1
	counts orders throttled 2
}

case_slot_and_feedback_of_a_key_are_those_of_its_limiter() {
	fake
	run 0 "$f/keys/alice" --report --slot -- true
	reported ok
	: > "$f/feedback"
	cd "$f/keys" && run 0 alice --report -- true
	reported ok
}

case_limiters_of_a_mount_that_is_called_keys_are_no_keys() {
	m=$d/keys
	mkdir "$m"
	start
	limiter orders
	run 0 "$m/orders" --report --slot -- true
	silent
	counts orders ok 1
	counts orders slots_opened 1
}

case_keys_of_the_tree_have_tokens_of_their_own() {
	start
	limiter orders
	echo 1/d > "$m/orders/key_rate"
	run 0 "$m/orders/keys/alice" -- true
	run 124 "$m/orders/keys/alice" --within 1s -- true
	run 0 "$m/orders/keys/bob" -- true
}

case_a_slot_is_held_while_the_command_runs() {
	fake
	run 0 "$f" --slot -- \
		sh -c "readlink /proc/\$PPID/fd/* | grep -c /slot
			readlink /proc/\$\$/fd/* | grep -c /slot || :"
	is 'held by run, and by the command' "$(cat "$d/out")" $'1\n0'
	run 0 "$f" -- sh -c "readlink /proc/\$PPID/fd/* | grep -c /slot || :"
	is 'held without --slot' "$(cat "$d/out")" 0
}

case_slots_of_the_tree_bound_the_commands_at_work() {
	start
	limiter orders
	echo 2 > "$m/orders/concurrency"
	seq 8 | timeout 30 xargs -P 8 -I % "$RATEFS" run "$m/orders" --slot -- \
		sh -c "mkdir $d/at.%; ls -d $d/at.* | wc -l; sleep 0.1; rmdir $d/at.%" > "$d/out"
	is 'runs' "$(wc -l < "$d/out")" 8
	[ "$(sort -n "$d/out" | tail -n 1)" -le 2 ] ||
		fail "at work at once: $(tr '\n' ' ' < "$d/out")"
}

case_commands_at_work_have_different_numbers() {
	start
	limiter gpu
	echo 3 > "$m/gpu/concurrency"
	seq 12 | timeout 30 xargs -P 6 -I % "$RATEFS" run "$m/gpu" --slot -- \
		sh -c "mkdir $d/of.\$RATEFS_SLOT && sleep 0.05 && rmdir $d/of.\$RATEFS_SLOT &&
			echo \$RATEFS_SLOT >> $d/numbers"
	is 'numbers' "$(sort -u "$d/numbers" | tr '\n' ' ')" '0 1 2 '
	is 'runs' "$(wc -l < "$d/numbers")" 12
	RATEFS_SLOT=outer run 0 "$m/gpu" -- sh -c 'echo $RATEFS_SLOT'
	is 'without --slot' "$(cat "$d/out")" outer
}

case_a_number_that_cannot_be_had_is_told_and_the_command_runs() {
	fake
	: > "$f/slot"
	RATEFS_SLOT=outer run 0 "$f" --slot -- sh -c 'echo ${RATEFS_SLOT-none}'
	is 'number' "$(cat "$d/out")" none
	says 'no number of the slot'
}

case_a_refusal_by_a_bound_of_the_limiter_is_told_and_may_be_tried_again() {
	start
	limiter orders 1/d
	: "$(cat "$m/orders/token")"
	echo 1min > "$m/orders/wait_max"
	run 124 "$m/orders" -- touch "$d/ran"
	says "orders: no tokens: the wait would be longer than wait_max of 'orders' allows: 1min"
	echo max > "$m/orders/rate"
	printf 'queue_max=0\nconcurrency=1\n' > "$d/config"
	cp "$d/config" "$m/orders/config"
	exec 8< "$m/orders/slot"
	run 124 "$m/orders" --slot -- touch "$d/ran"
	says "orders/slot: as many readers wait as queue_max of 'orders' allows: 0"
	exec 8<&-
	[ ! -e "$d/ran" ] || fail 'it ran'
}

case_a_job_is_left_out_or_waits_for_a_slot_as_long_as_it_says() {
	start
	limiter orders '1/d tpm=1/d' 100
	echo 1 > "$m/orders/concurrency"
	run 0 "$m/orders" --slot --within 0 -- touch "$d/ran"
	exec 8< "$m/orders/slot"
	rm "$d/ran"
	run 124 "$m/orders" --slot --within 0 -- touch "$d/ran"
	is 'what it says' "$(cat "$d/err")" "ratefs run: $m/orders: no slot within 0s"
	run 124 "$m/orders" --slot --within 300ms -n 5,tpm=7 -- touch "$d/ran"
	[ ! -e "$d/ran" ] || fail 'it ran'
	# The tokens of work that is left out come back.
	counts orders granted 7
	counts orders returned 6
	counts orders returned.tpm 7
	(run 0 "$m/orders" --slot --within 1min -- touch "$d/ran") 8<&- &
	local job=$!
	waiting orders 1
	exec 8<&-
	wait $job
	[ -e "$d/ran" ] || fail 'it did not run'
}

case_a_slot_that_is_not_there_is_a_failure() {
	fake
	rm "$f/slot"
	run 125 "$f" --slot -- touch "$d/ran"
	says 'slot: No such file'
	[ ! -e "$d/ran" ] || fail 'it ran'
}

# told LINE STATUS VERDICT: the command prints LINE and exits with 0.
told() {
	: > "$f/feedback"
	run "$2" "$f" --output -- printf "$1"
	silent
	is "output of '$1'" "$(cat "$d/out"; echo .)" "$(printf "$1"; echo .)"
	is "verdict of '$1'" "$(cat "$f/feedback")" "$3"
}

case_the_first_line_of_the_output_says_how_it_went() {
	fake
	told 'ok\n' 0 ok
	told 'ok 5\n' 0 'ok 5'
	told 'throttled\n' 75 throttled
	told 'throttled 3 retry-after=2s' 75 'throttled 3 retry-after=2s'
	told 'error 2\nmore\n' 0 'error 2'
	told '200' 0 ok
	told ' 204 \n' 0 ok
	told '302\n' 0 ok
	told '429\n' 75 throttled
	told '503' 75 throttled
	told '429 retry-after=120\n' 75 'throttled retry-after=2min'
	told '429 retry-after=1500ms' 75 'throttled retry-after=1500ms'
	told '429 retry-after=' 75 throttled
	told '429 retry-after=Wed, 21 Oct 2026 07:28:00 GMT\n' 75 throttled
	told '200 retry-after=3' 0 ok
	told '000' 0 error
	told '404\n' 0 error
	told '200\r\n429\n' 0 ok
}

case_a_silent_command_is_judged_by_its_exit_status() {
	local text
	fake
	for text in '' '\n200\n' 'okay\n' '20\n' '2000\n' 'done\n' '+20\n'; do
		: > "$f/feedback"
		run 0 "$f" --output -- printf -- "$text"
		says 'printf.*output'
		reported ok
	done
	: > "$f/feedback"
	run 75 "$f" --output -- sh -c 'echo busy; exit 75'
	reported throttled
}

case_a_repeated_command_prints_nothing() {
	fake
	run 0 "$f" --retry 5 --output -- sh -c "echo >> $d/tries
		[ \$(wc -l < $d/tries) = 3 ] && echo 200 && echo body ||
			{ echo 503 && echo sorry; }"
	is output "$(cat "$d/out")" $'200\nbody'
	reported $'throttled\nthrottled\nok'
	run 75 "$f" --retry 1 --output -- sh -c 'echo 503; echo sorry'
	is output "$(cat "$d/out")" $'503\nsorry'
}

case_output_is_passed_on_whole() {
	fake
	run 0 "$f" --output -- sh -c 'echo ok; seq 300000'
	is output "$(md5sum < "$d/out")" "$({ echo ok && seq 300000; } | md5sum)"
	run 0 "$f" --output -- head -c 1000000 /dev/zero
	is bytes "$(wc -c < "$d/out")" 1000000
}

case_the_end_of_the_outputs_reader_is_not_the_end_of_the_report() {
	fake
	"$RATEFS" run "$f" --output -- sh -c 'echo ok; seq 300000' 2> "$d/err" |
		head -n 1 > "$d/out" || :
	is output "$(cat "$d/out")" ok
	eventually 20 [ -s "$f/feedback" ]
	reported ok
}

case_it_waits_as_long_as_the_service_says() {
	local began
	fake
	began=$(milliseconds)
	run 0 "$f" --retry 1 --output -- \
		sh -c "mkdir $d/tried 2> /dev/null && echo 429 retry-after=1500ms || echo 200"
	[ $(($(milliseconds) - began)) -ge 1500 ] || fail 'it did not wait'
}

case_a_service_cannot_ask_for_more_than_retry_max() {
	start
	mkdir "$m/orders" "$m/orders/eu"
	echo 'linear initial=1ms retry-max=10ms' > "$m/orders/backoff"
	run 0 "$m/orders/eu" --retry 1 --output -- \
		sh -c "mkdir $d/tried 2> /dev/null && echo 429 retry-after=1h || echo 200"
	counts orders backoff_pauses 2
}

case_words_say_that_a_command_that_fails_was_throttled() {
	fake
	run 0 "$f" --retry 5 --throttled-if 'Throttl(ing|ed)' -- sh -c "echo >> $d/tries; echo out
		[ \$(wc -l < $d/tries) = 3 ] && exit
		echo 'An error: ThrottlingException' >&2; exit 254"
	reported $'throttled\nthrottled\nok'
	is output "$(cat "$d/out")" $'out\nout\nout'
	is 'lines of standard error' "$(grep -c '^An error: ThrottlingException$' "$d/err")" 2
	: > "$f/feedback"
	run 0 "$f" --throttled-if slow -- echo slow
	run 3 "$f" --throttled-if slow -- sh -c 'echo fast; exit 3'
	run 75 "$f" --throttled-if slow -- sh -c 'exit 75'
	run 1 "$f" --throttled-if '^too slow$' -- \
		sh -c 'seq 100000; printf "not\ntoo slow"; exit 1'
	is lines "$(wc -l < "$d/out")" 100001
	run 1 "$f" --throttled-if slow -- sh -c 'printf "%5000s\n" slow; exit 1'
	run 1 "$f" --throttled-if '^slow$' -- sh -c 'printf "1%%\rs\0low\r\n"; exit 1'
	run 143 "$f" --throttled-if slow -- sh -c 'echo slow; kill -TERM $$'
	run 9 "$f" --throttled-if slow --throttled 9 --retry 1 -- sh -c 'exit 9'
	run 4 "$f" --throttled-if slow --retry 1 -- sh -c 'echo slow; exit 4'
	reported "$(printf '%s\n' ok error throttled throttled error throttled error throttled \
		throttled throttled throttled)"
	run 2 "$f" --throttled-if '(' -- true
	says "'\('"
	run 2 "$f" --throttled-if '' -- true
	run 2 "$f" --throttled-if x --output -- true
	says 'not with --output'
	run 2 "$f" --throttled-if x --headers "$d/dump" -- true
	run 2 "$f" --throttled-if x --throttled-if y -- true
}

case_output_that_is_looked_through_is_passed_on_whole() {
	fake
	run 0 "$f" --throttled-if x -- sh -c 'head -c 1000000 "$1"; head -c 1000000 "$1" >&2' sh \
		"$RATEFS"
	is output "$(md5sum < "$d/out")" "$(head -c 1000000 "$RATEFS" | md5sum)"
	is 'standard error' "$(md5sum < "$d/err")" "$(head -c 1000000 "$RATEFS" | md5sum)"
	# A reader that goes ends the command, as it would without us.
	"$RATEFS" run "$f" --throttled-if x -- yes 2> "$d/err" | head -n 1 > "$d/out" || :
	is output "$(cat "$d/out")" y
	silent
	"$RATEFS" run "$f" --throttled-if x -- seq 100000 > /dev/full 2> "$d/err" &&
		fail 'it cannot be written'
	says 'cannot pass on what the command prints: No space'
	# A process that is left behind is not waited for once run was told to end.
	local with=(--throttled-if x)
	local left status=0
	for left in 'sleep 100' 'while :; do echo; sleep 0.1; done' 'yes'; do
		at_work "trap 'exit 7' TERM; { trap '' TERM; $left; } & echo \$! > $d/left
			touch $d/ready; while :; do sleep 0.02; done"
		kill $!
		status=0
		gone $! 20 || status=$?
		is "exit status with '$left' left behind" $status 7
		kill -9 "$(cat "$d/left")" 2> /dev/null || :
	done
}

case_a_wait_is_announced() {
	local eta about
	fake
	mkdir "$f/eta" "$f/keys/alice/eta"
	echo 500 > "$f/take/500"
	while read -r eta about; do
		echo "$eta" > "$f/eta/500"
		run 0 "$f" -v -n 500 true
		says "^ratefs run: waiting for 500 tokens of $f, $about\$"
	done <<- 'END'
		0.001 about 0.0 s
		5.25 about 5.2 s
		10.4 about 10 s
		119.5 about 120 s
		120.000 about 2 min
		7300 about 2 h
		1000000 about 12 d
		inf for ever unless its settings change
	END
	run 0 "$f" -n 500 true
	silent
	echo 0.000 > "$f/eta/500"
	run 0 "$f" -v -n 500 true
	silent
	run 0 "$f" -v true
	silent
	echo 7.5 > "$f/keys/alice/eta/1"
	run 0 "$f/keys/alice" -v true
	says "waiting for 1 token of $f/keys/alice, about 7.5 s\$"
	echo 3.000 | tee "$f/take/500,within=2s" > "$f/eta/500"
	run 0 "$f" -v -n 500 --within 2s true
	silent
}

case_a_wait_is_announced_by_the_eta_of_the_limiter() {
	start
	limiter orders 1/h 20
	echo 50 > "$m/orders/charge"
	"$RATEFS" run -v "$m/orders" -n 20 true 2> "$d/err" &
	eventually 10 grep -q . "$d/err"
	says "waiting for 20 tokens of $m/orders, about 2 d\$"
	kill $!
	gone $! 20 || :
}

case_on_a_terminal_a_long_wait_is_announced() {
	fake
	mkdir "$f/eta"
	echo 2 > "$f/take/2"
	echo 4.999 > "$f/eta/2"
	echo 5.000 > "$f/eta/1"
	/usr/bin/python3 "$CASES/screen.py" announces_a_long_wait "$RATEFS" "$f"
}

case_a_wait_for_a_slot_is_told_while_it_lasts() {
	start
	limiter orders
	echo 1 > "$m/orders/concurrency"
	echo 2/d:2 > "$m/orders/rate"
	# It takes the last token: the next reader would wait, and no opener.
	run 0 "$m/orders" -n 2 --slot -v -- sleep 0.3
	silent
	echo max > "$m/orders/rate"
	exec 7< "$m/orders/slot"
	run 124 "$m/orders" --slot -v --within 2s -- true
	says "ratefs run: waiting for a slot of $m/orders: orders slots 1 of 1: pid "
	exec 7<&-
	/usr/bin/python3 "$CASES/screen.py" tells_of_a_slot "$RATEFS" "$m/orders"
}

case_a_long_wait_is_told() {
	start
	limiter orders 1000/s
	run 0 "$m/orders" -- true
	silent
	run 0 "$m/orders" --tell 0s -- true
	says 'orders: waited [0-9]+\.[0-9] s for tokens$'
	run 0 "$m/orders" --tell 0 --slot -- true
	says 'orders: waited [0-9]+\.[0-9] s for tokens, [0-9]+\.[0-9] s for the slot$'
	run 2 "$m/orders" --tell soon -- true
}

# service: on localhost:$port; it answers the first two requests with 429, the first of them with
# Retry-After, and all others with 200.
service() {
	cat > "$d/service" << 'END'
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    tries = 0
    def do_GET(self):
        Handler.tries += 1
        self.send_response(200 if Handler.tries > 2 else 429)
        if Handler.tries == 1: self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(b"try %d" % Handler.tries)
    def log_message(self, *arguments): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
open(sys.argv[1], "w").write(str(server.server_port))
server.serve_forever()
END
	python3 "$d/service" "$d/port" &
	eventually 20 [ -s "$d/port" ]
	port=$(cat "$d/port")
}

case_curl_is_repeated_as_a_service_asks() {
	fake
	service
	run 0 "$f" --retry 20 --output -- \
		curl -s -o "$d/answer" -w '%{http_code} retry-after=%header{retry-after}\n' \
		"http://127.0.0.1:$port/"
	is output "$(cat "$d/out")" '200 retry-after='
	is answer "$(cat "$d/answer")" 'try 3'
	reported $'throttled retry-after=1s\nthrottled\nok'
}

case_below_xargs_a_refusal_is_no_success() {
	local status=0
	fake
	service
	seq 3 | xargs -I {} "$RATEFS" run "$f" --output -- \
		curl -s -o /dev/null -w '%{http_code}\n' "http://127.0.0.1:$port/{}" \
		> "$d/out" 2> "$d/err" || status=$?
	is 'exit status of xargs' $status 123
	silent
	is output "$(cat "$d/out")" $'429\n429\n200'
	reported $'throttled\nthrottled\nok'
	# The page warns of this: the percent sign is gone, and run says that it does not know.
	: > "$f/feedback"
	seq 1 | xargs -I % "$RATEFS" run "$f" --output -- curl -s -o /dev/null -w '%{http_code}\n' \
		"http://127.0.0.1:$port/" > "$d/out" 2> "$d/err"
	says 'the output does not begin with how it went'
}

case_a_quota_alone_says_nothing_of_how_it_went() {
	fake
	run 0 "$f" --output -- echo 'quota remaining=1 reset=1s'
	says 'the output does not begin with how it went'
	reported ok
}

case_the_terminal_interrupts_the_command_once() {
	fake
	/usr/bin/python3 "$CASES/screen.py" interrupt_once "$RATEFS" "$f"
}

case_a_path_that_is_no_limiter_is_refused() {
	fake
	run 125 "$d/nowhere" -- true
	says 'nowhere: No such file'
	run 125 "$d" -- true
	says 'not a limiter'
	run 125 "$f/token" -- true
	says 'Not a directory|not a limiter'
	: > "$f/token"
	run 125 "$f" -- true
	says 'no token'
}

case_header_fields_say_how_it_went_and_what_is_left() {
	start
	limiter orders 1000/s 1000
	run 0 "$m/orders" --headers "$d/dump" -- sh -c "printf 'HTTP/1.1 302 Found\r\n\r\n\
HTTP/2 200\r\nx-ratelimit-remaining: 12\r\nx-ratelimit-reset: 3600\r\n\r\n' > '$d/dump'"
	silent
	counts orders ok 1
	counts orders service_left 12
	# Those of an earlier run do not count.
	run 3 "$m/orders" -n 2 --headers "$d/dump" -- sh -c 'exit 3'
	says 'no header fields: .*dump'
	counts orders error 2
	counts orders service_left 10
}

case_header_fields_about_tokens_are_of_a_unit() {
	start
	limiter orders '1000/s:1000 tpm=1000/s:1000'
	local dump="printf 'HTTP/2 200\r\nx-ratelimit-remaining-tokens: 12\r\n\
x-ratelimit-reset-tokens: 3600\r\n\r\n' > '$d/dump'"
	run 0 "$m/orders" --headers "$d/dump" -- sh -c "$dump"
	counts orders service_left.tpm max
	run 0 "$m/orders" --headers "$d/dump" --unit tokens=tpm -- sh -c "$dump"
	counts orders service_left.tpm 12
	echo '1000/s:1000 tokens=1000/s:1000' > "$m/orders/rate"
	run 0 "$m/orders" --headers "$d/dump" -- sh -c "$dump"
	silent
	counts orders service_left.tokens 12
	counts orders service_left max
	run 125 "$m/orders" --headers "$d/dump" --unit tokens=tpm -- sh -c "$dump"
	says "its rate has no unit 'tpm'"
	run 2 "$m/orders" --headers "$d/dump" --unit tokens -- true
	says 'not HEADER=UNIT'
	run 2 "$m/orders" --unit tokens=tpm -- true
	says 'only with --headers'
}

case_header_fields_that_say_throttled_have_it_run_again() {
	fake
	echo 5 > "$f/take/5"
	# shellcheck disable=SC2016
	run 0 "$f" -n 5 --retry 3 --headers "$d/dump" -- bash -c '
		echo x >> "$0.runs"
		[[ $(wc -l < "$0.runs") -gt 1 ]] || status="429
retry-after-ms: 20"
		printf "HTTP/1.1 %s\n\n" "${status-204}" > "$0"' "$d/dump"
	silent
	reported $'throttled 5 retry-after=20ms\nok 5'
	: > "$f/feedback"
	run 75 "$f" --headers "$d/dump" -- sh -c "echo 'HTTP/1.1 503 Busy' > '$d/dump'"
	run 22 "$f" --headers "$d/dump" -- sh -c "echo 'HTTP/1.1 404 None' > '$d/dump'; exit 22"
	reported $'throttled\nerror'
}

case_a_file_of_header_fields_that_cannot_be_leaves_it_to_the_exit_status() {
	fake
	local file
	mkfifo "$d/pipe"
	printf 'ok\n' > "$d/text"
	head -c 70000 /dev/zero > "$d/long"
	for file in "$d/pipe" "$d/none" "$d" /dev/null; do
		run 75 "$f" --headers "$file" -- sh -c 'exit 75'
		says 'no header fields: '
	done
	run 0 "$f" --headers "$d/dump" -- cp "$d/text" "$d/dump"
	says 'HTTP/... STATUS'
	run 0 "$f" --headers "$d/dump" -- cp "$d/long" "$d/dump"
	says 'more than 65536 bytes'
	reported $'throttled\nthrottled\nthrottled\nthrottled\nok\nok'
	run 2 "$f" --headers "$d/dump" --output -- true
	says 'not with --output'
}

case_wrong_arguments_are_refused() {
	local text
	fake
	run 2 -- true
	says 'no limiter'
	run 2
	says 'no limiter'
	run 2 "$f"
	says 'no command'
	run 2 "$f" --
	says 'no command'
	run 2 "$f" -n 3
	says 'no command'
	run 2 "$f" -n --
	says "without its value.*'--'"
	run 2 "$f" --throttled-if -- true
	says "without its value.*'--'"
	run 2 "$f" --bogus -- true
	says bogus
	run 2 "$(head -c 5000 /dev/zero | tr '\0' x)" -- true
	says 'too long'
	for text in 0 -1 x '' 11T; do run 2 "$f" -n "$text" -- true && says "'$text'"; done
	for text in 5m x '' -1s; do run 2 "$f" --within "$text" -- true && says "'$text'"; done
	for text in -1 x '' 1000001 max; do
		run 2 "$f" --retry "$text" -- true && says "'$text'"
	done
	for text in 0 256 x '' -1; do run 2 "$f" --throttled "$text" -- true && says "'$text'"; done
	reported ''
}

case_its_help_is_told() {
	run 0 --help
	like help "$(cat "$d/out")" 'ratefs run LIMITER'
	run 0 -h
	silent
}

case_it_takes_amounts_of_several_units() {
	start
	limiter llm '1/d:9 tpm=1/d:1000'
	run 0 "$m/llm" -n 1,tpm=600 -- true
	counts llm granted 1
	is tpm "$(sed -n 's/^granted.tpm //p' "$m/llm/stat")" 600
	run 124 "$m/llm" -n tpm=401 --within 1s -- touch "$d/ran"
	[ ! -e "$d/ran" ] || fail 'it ran'
	run 0 "$m/llm" -n tpm=400 -- true
	counts llm granted 1
}
