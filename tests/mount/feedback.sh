# shellcheck shell=bash
# What programs tell of their work, and what a limiter makes of it.

case_bash_dash_and_python_say_how_it_went() {
	start
	limiter orders
	echo ok > "$m/orders/feedback"
	printf 'throttled 2 retry-after=5s\n' > "$m/orders/feedback"
	dash -c 'echo error 3 >> "$1"' dash "$m/orders/feedback"
	busybox sh -c 'echo 204 > "$1"' sh "$m/orders/feedback"
	python3 -c 'import sys
open(sys.argv[1], "w").write("ok 10\nthrottled\n429 retry-after=1\n")' "$m/orders/feedback"
	counts orders ok 12
	counts orders throttled 4
	counts orders error 3
	is 'last error' "$(cat "$m/last_error")" ''
}

case_a_retry_after_makes_no_pause_without_a_backoff() {
	start
	limiter orders 1000/s
	limiter orders/a
	echo '429 retry-after=1h' > "$m/orders/a/feedback"
	is why "$(cat "$m/orders/a/why")" nothing
	is 'a token' "$(cat "$m/orders/a/token")" 1
	echo 'exponential initial=1ms' > "$m/orders/backoff"
	echo '429 retry-after=1h' > "$m/orders/a/feedback"
	like 'why with one above' "$(cat "$m/orders/a/why")" '^orders backoff: pause until '
	denied EBUSY read "$m/orders/a/try"
}

# '%{http_code}' and '%header{retry-after}' of a response, without a newline, with one, and of no
# response at all.
case_the_output_of_curl_is_understood() {
	start
	limiter orders
	local line
	for line in 200 429 503 404 000 '301 retry-after=' '429 retry-after=' '503 retry-after=30' \
		'000 retry-after='; do
		printf '%s' "$line" > "$m/orders/feedback"
		printf '%s\n' "$line" > "$m/orders/feedback"
	done
	counts orders ok 4
	counts orders throttled 8
	counts orders error 6
}

case_curl_itself_can_write_it() {
	command -v curl > /dev/null || skip 'no curl'
	start
	limiter orders
	# No program listens there.
	curl -s -o /dev/null -w '%{http_code}\n' --max-time 5 http://127.0.0.1:1/ \
		> "$m/orders/feedback" || :
	counts orders error 1
}

case_several_lines_in_one_write_all_count_or_none() {
	start
	limiter orders
	printf 'ok\n\n200\r\n  ok 3  \n' > "$d/fine"
	"$CLIENT" write "$m/orders/feedback" - < "$d/fine"
	counts orders ok 5
	printf ' \n\n' > "$m/orders/feedback"
	counts orders ok 5
	printf 'ok\nok\nfine\nok\n' > "$d/wrong"
	refused EINVAL write "$m/orders/feedback" - < "$d/wrong"
	like 'last error' "$(cat "$m/last_error")" "^line 3: 'fine': not an outcome"
	printf 'ok\nok 0\n' > "$d/wrong"
	refused ERANGE write "$m/orders/feedback" - < "$d/wrong"
	counts orders ok 5
}

outcomes() { echo "$(counter "$1" ok) $(counter "$1" throttled) $(counter "$1" error)"; }

# Of four lines two are ok, one is throttled and one an error.
case_a_log_counts_as_programs_write_it() {
	start
	limiter orders
	python3 - "$d" <<- 'EOF'
		import sys
		lines = ["200", "503 retry-after=0s", "404 ", "201 remaining=max"]
		with open(sys.argv[1] + "/access.log", "w") as log:
		    for i in range(5000):
		        status = lines[i % 4].split()[0]
		        log.write(f'- - - - [28/Nov/2026:12:00:00] "GET / HTTP/1" {status} {i}\n')
		with open(sys.argv[1] + "/statuses", "w") as statuses:
		    statuses.writelines(lines[i % 4] + "\n" for i in range(40000))
		with open(sys.argv[1] + "/copy", "w") as copy:
		    copy.write("import sys\nfor line in sys.stdin: print(*line.split())\n")
		with open(sys.argv[1] + "/at_once", "w") as at_once:
		    at_once.write("import os, sys\ntext = b'x' + sys.stdin.buffer.read()\n"
		                  "for i, j in (1, 262150), (262150, len(text)):\n"
		                  "    assert os.write(1, memoryview(text)[i:j]) == j - i\n")
	EOF
	local count=1250 program
	awk '{print $9}' "$d/access.log" > "$m/orders/feedback"
	is 'outcomes after awk' "$(outcomes orders)" '2500 1250 1250'
	for program in cat 'dd bs=512 status=none' 'dd bs=1M status=none' 'sed -n p' 'perl -pe 1' \
		'busybox cat' "python3 $d/copy" "python3 $d/at_once"; do
		env -u PYTHONUNBUFFERED $program < "$d/statuses" > "$m/orders/feedback"
		count=$((count + 10000))
		is "outcomes after $program" "$(outcomes orders)" "$((2 * count)) $count $count"
	done
}

case_a_line_that_is_cut_goes_on_in_the_next_write() {
	start
	limiter orders
	echo 'exponential initial=1ms' > "$m/orders/backoff"
	python3 - "$m/orders/feedback" <<- 'EOF'
		import errno, os, sys
		def refused(file, text):
		    try:
		        sys.exit("%d bytes are taken" % os.write(file, text))
		    except OSError as error:
		        assert error.errno == errno.EINVAL, error
		file, other = (os.open(sys.argv[1], os.O_WRONLY) for i in range(2))
		os.write(file, b"200\n" * 127 + b"429 ")
		os.write(other, b"200")
		os.write(file, b"retry-after=7\n20")
		os.write(file, b"1\n")
		# A line without an end is not kept whole, and no value counts in part.
		os.write(file, b"200\n" * 127 + b"503 " + b"x" * 200 + b" retry-after=" + b"9" * 99)
		os.write(file, b"y" * 512)
		os.write(file, b"z\n204\n")
		os.write(file, b"200\n" * 127 + b"\nok " + b" " * 600)
		refused(file, b"5\n")
		os.write(file, b"200\n" * 127 + b"nope")
		refused(file, b"s\n200\n")
		os.write(file, b"200\n" * 128)
	EOF
	is outcomes "$(outcomes orders)" "$((127 + 2 + 127 + 1 + 127 + 127 + 128)) 2 0"
	counts orders backoff_paused_seconds 7.000000000
	like 'last error' "$(cat "$m/last_error")" "^'nopes': not an outcome"
}

case_a_line_that_is_cut_ends_where_its_file_is_closed() {
	start
	limiter orders
	{ printf 'ok\n%.0s' {1..170}; printf ok; } > "$d/uncut"
	dd if="$d/uncut" of="$m/orders/feedback" conv=notrunc status=none
	eventually 20 has orders ok 171
	{ printf 'ok\n%.0s' {1..170}; printf no; } > "$d/uncut"
	dd if="$d/uncut" of="$m/orders/feedback" conv=notrunc status=none
	eventually 20 grep -q "^'no': not an outcome" "$m/last_error"
	counts orders ok 341
	exec 5> "$m/orders/feedback"
	dd if="$d/uncut" status=none >&5
	rmdir "$m/orders"
	exec 5>&-
	eventually 20 grep -q 'the limiter is gone' "$m/last_error"
}

case_a_word_that_is_no_outcome_is_refused() {
	start
	limiter orders
	local text
	for text in x OK 'ok five' 'ok 1 2' 20 2000 'ok retry-after=1s' \
		'throttled retry-after=soon'; do
		refused EINVAL write "$m/orders/feedback" "$text"
	done
	for text in 'ok 0' 'throttled 1000000001' 'throttled retry-after=3651d'; do
		refused ERANGE write "$m/orders/feedback" "$text"
	done
	is 'with a zero byte' "$(printf 'ok\0' | "$CLIENT" write "$m/orders/feedback" -)" EINVAL
	denied EACCES read "$m/orders/feedback"
	counts orders ok 0
	counts orders throttled 0
}

# keeps_learning FILE ERRNO TEXT…
keeps_learning() {
	local file=$1 wanted=$2 before text
	shift 2
	before=$(cat "$m/orders/$file")
	for text; do
		refused "$wanted" write "$m/orders/$file" "$text"
		is "$file after '$text'" "$(cat "$m/orders/$file")" "$before"
	done
}

case_an_adapt_or_backoff_that_cannot_be_is_refused() {
	start
	limiter orders
	is adapt "$(cat "$m/orders/adapt")" none
	is backoff "$(cat "$m/orders/backoff")" none
	echo cubic > "$m/orders/adapt"
	is adapt "$(cat "$m/orders/adapt")" \
		'cubic min=1/s decrease=0.7 scale=0.4 period=1s scope=fleet'
	echo 'exponential jitter=0' > "$m/orders/backoff"
	is backoff "$(cat "$m/orders/backoff")" "$(echo 'exponential initial=500ms max=15min' \
		'up=1.5 down=0.9 after=10 jitter=0 jitter-max=2min retry-max=1d')"
	keeps_learning adapt EINVAL x AIMD 'none min=1/s' 'cubic increase=1%' 'aimd min=slow' \
		'aimd min=1/s min=1/s' ' '
	keeps_learning adapt ERANGE 'aimd min=0' 'aimd decrease=1' 'aimd increase=101%' \
		'cubic scale=0' 'aimd period=2h'
	keeps_learning backoff EINVAL x 'linear up=2' 'exponential step=1s' 'exponential up' \
		'exponential after=1.5' ' '
	keeps_learning backoff ERANGE 'exponential up=1' 'linear initial=0s' \
		'linear initial=16min' 'exponential after=0'
}

case_the_texts_of_adapt_and_backoff_can_be_written_back() {
	start
	limiter orders
	limiter again
	local file text
	for text in 'adapt aimd increase=5/s scope=host' 'adapt cubic scale=0.123456789' \
		'backoff linear step=7ms' \
		'backoff exponential max=1d' 'adapt none' 'backoff none'; do
		file=${text%% *}
		echo "${text#* }" > "$m/orders/$file"
		cat "$m/orders/$file" > "$m/again/$file"
		is "$file" "$(cat "$m/again/$file")" "$(cat "$m/orders/$file")"
		grep -qxF "$file=$(cat "$m/orders/$file")" "$m/orders/config" ||
			fail "config has no $file"
	done
}

case_a_pause_holds_readers_and_is_over() {
	start
	limiter orders
	echo 'linear initial=300ms' > "$m/orders/backoff"
	echo throttled > "$m/orders/feedback"
	denied EAGAIN peek "$m/orders/token"
	local began
	began=$(milliseconds)
	is 'the token after it' "$(cat "$m/orders/token")" 1
	echo "# $(($(milliseconds) - began)) ms later"
	counts orders backoff_pauses 1
	counts orders backoff_up 1
	counts orders backoff_paused_seconds 0.300000000
	counts orders backoff_seconds 0.3
}

case_a_pause_ends_when_backoff_is_switched_off() {
	start
	limiter orders
	echo 'linear initial=15min' > "$m/orders/backoff"
	echo 429 > "$m/orders/feedback"
	denied EBUSY read "$m/orders/try"
	denied EBUSY read "$m/orders/take/1,within=1min"
	reader orders/token
	waiting orders 1
	like 'seconds to go' "$(cat "$m/orders/waiters")" ' [89][0-9][0-9]\.[0-9]+ [^ ]+$'
	echo none > "$m/orders/backoff"
	gone $reader 20
	is 'what it got' "$(cat "$d/got")" 1
}

case_a_signal_ends_a_read_in_a_pause_and_spends_nothing() {
	start
	limiter orders
	echo 'linear initial=15min' > "$m/orders/backoff"
	echo 429 > "$m/orders/feedback"
	reader orders/token
	waiting orders 1
	kill -INT $reader
	gone $reader 20 && fail 'it ended well'
	waiting orders 0
	counts orders cancelled 1
	counts orders granted 0
}

case_poll_tells_when_a_pause_is_over() {
	start
	limiter orders
	echo 'linear initial=200ms' > "$m/orders/backoff"
	echo 429 > "$m/orders/feedback"
	python3 - "$m/orders/token" <<- 'EOF'
		import os, select, sys
		fd = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)
		poll = select.poll()
		poll.register(fd, select.POLLIN)
		assert poll.poll(30000), "never ready"
		assert os.pread(fd, 16, 0) == b"1\n"
	EOF
}

case_throttling_halves_the_rate_and_only_work_brings_it_back() {
	start
	limiter orders 1000/s
	in_use
	echo aimd > "$m/orders/adapt"
	echo 'throttled 50' > "$m/orders/feedback"
	local rate
	rate=$(counter orders effective_rate)
	awk -v rate="$rate" 'BEGIN { exit !(rate > 0 && rate <= 500) }' ||
		fail "$rate tokens a second"
	[ -n "${SOURCE-}" ] || is 'the rate that is set' "$(counter orders rate)" 1000
	sleep 1.2
	counts orders effective_rate "$rate"
	echo none > "$m/orders/adapt"
	[ -n "${SOURCE-}" ] || counts orders effective_rate 1000
}

case_feedback_of_a_child_counts_for_all_above() {
	start
	limiter orders
	limiter orders/eu
	limiter orders/us
	echo 'linear initial=15min' > "$m/orders/backoff"
	echo throttled > "$m/orders/eu/feedback"
	counts orders throttled 1
	counts orders/us throttled 0
	denied EBUSY read "$m/orders/us/try"
	echo none > "$m/orders/backoff"
	is 'a token of the other child' "$(cat "$m/orders/us/try")" 1
}

case_metrics_have_what_was_told() {
	start
	limiter orders
	echo 'linear initial=2s after=1' > "$m/orders/backoff"
	printf 'ok 3\nthrottled\nerror 7\n' > "$d/told"
	"$CLIENT" write "$m/orders/feedback" - < "$d/told"
	local wanted
	for wanted in 'ok_total 3' 'throttled_total 1' 'error_total 7' 'backoff_up_total 1' \
		'backoff_down_total 0' \
		'backoff_pauses_total 1' 'backoff_paused_seconds_total 2' 'backoff_seconds 2'; do
		grep -qE "^ratefs_${wanted% *}\{limiter=\"orders\"\} ${wanted#* }(\.0*)?\$" \
			"$m/metrics" ||
			fail "no $wanted: $(grep "^ratefs_${wanted% *}{" "$m/metrics")"
	done
}

case_a_user_of_a_limiter_may_tell_and_not_tune() {
	start -o allow_other
	chmod 711 "$d"
	limiter orders
	chmod 755 "$m/orders"
	chown 0:65534 "$m/orders"
	is 'access of feedback and charge' "$(stat -c %A "$m/orders/feedback")" \
		"$(stat -c %A "$m/orders/charge")"
	is 'access of adapt and rate' "$(stat -c %A "$m/orders/adapt")" \
		"$(stat -c %A "$m/orders/rate")"
}

case_no_more_is_granted_than_the_service_says_is_left() {
	start
	limiter orders 1000/s 1000
	limiter orders/eu
	echo '200 limit=240 remaining=12 reset=1h window=60s' > "$m/orders/feedback"
	counts orders ok 1
	counts orders service_rate 4
	# A host of a fleet has its share of it, which is nothing yet.
	[ -n "${SOURCE-}" ] || counts orders service_left 12
	is 'the child has' "$(cat "$m/orders/eu/take/10")" 10
	is 'two more' "$(cat "$m/orders/take/2")" 2
	counts orders service_left 0
	is 'one more' "$("$CLIENT" read "$m/orders/eu/try" || :)" EBUSY
	like why "$(cat "$m/orders/eu/why")" \
		'^orders service: 0 left until 3[56][0-9]{2}\.[0-9] s from now$'
	# A report that comes late, or says more, changes nothing.
	echo 'quota remaining=200 reset=30min' > "$m/orders/feedback"
	counts orders ok 1
	is 'and now' "$("$CLIENT" read "$m/orders/try" || :)" EBUSY
	reader orders/take/3
	waiting orders 1
	echo 'quota remaining=max' > "$m/orders/feedback"
	gone "$reader" 20
	is 'what it got' "$(cat "$d/got")" 3
	counts orders service_left max
}

case_a_status_counts_whatever_a_service_writes_behind_it() {
	start
	limiter orders
	echo 'exponential initial=1ms max=1h' > "$m/orders/backoff"
	local text count=0
	for text in '429 retry-after=soon' '503 retry-after=-1' '429 retry-after=1e3' \
		'429 retry-after= 30' '429 Too Many Requests' '429 remaining=12' '429 unit=tpm' \
		'429 unit=tpm remaining=0 reset=1h' \
		'429 retry-after=Wed, 21 Oct 2026 07:28:00 GMT' \
		"429 $(printf 'x%.0s' {1..3000})"; do
		echo "$text" > "$m/orders/feedback" || fail "$text"
		count=$((count + 1))
		counts orders throttled $count
	done
	counts orders service_left max
	printf 'ok\n429 retry-after=soon\n429 left=5\n' > "$d/doubtful"
	"$CLIENT" write "$m/orders/feedback" - < "$d/doubtful"
	like 'last error' "$(cat "$m/last_error")" \
		"^line 2: counted, but for 'retry-after=soon': not a duration"
	counts orders throttled $((count + 2))
	echo "429 retry-after=$(($(date +%s) + 600))" > "$m/orders/feedback"
	like 'the pause' "$(counter orders backoff_paused_seconds)" '^(59[0-9]|600)\.'
	echo '429 remaining=0 reset=9999d' > "$m/orders/feedback"
	echo "429 remaining=0 reset=$(date +%s)s" > "$m/orders/feedback"
	counts orders service_left max
	echo "429 remaining=7 reset=$(($(date +%s) + 600))" > "$m/orders/feedback"
	counts orders service_left 7
}

case_a_quota_that_cannot_be_is_refused() {
	start
	limiter orders
	local text
	for text in 'ok remaining=12' 'ok limit=5' 'ok remaining=x reset=1s' 'quota 5' \
		'ok remaining=1 reset=soon' 'ok remaining=1 reset=1s reset=2s' 'ok left=5'; do
		refused EINVAL write "$m/orders/feedback" "$text"
	done
	like 'last error' "$(cat "$m/last_error")" \
		'remaining=N reset=DURATION limit=N window=DURATION'
	for text in 'ok remaining=100000000000000 reset=1s' 'ok remaining=1 reset=999999999' \
		'ok remaining=1 window=0'; do
		refused ERANGE write "$m/orders/feedback" "$text"
	done
	counts orders ok 0
	counts orders service_left max
	echo '200 remaining= reset= limit= window=' > "$m/orders/feedback"
	counts orders ok 1
	counts orders service_left max
}

case_feedback_to_a_limiter_that_is_gone_is_ENODEV() {
	start
	limiter orders
	is errno "$("$CLIENT" held "$m/orders/feedback" "rmdir $m/orders")" ENODEV
}
