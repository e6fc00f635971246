# shellcheck shell=bash
# ratefs simulate: the readers of a log, or of a load, on the limiters of a file.

# simulate STATUS ARGUMENTS…: ratefs simulate -c $d/ini exits so, with standard input as the log;
# its output is in $d/out and $d/err.
simulate() {
	local wanted=$1 status=0
	shift
	timeout 60 "$RATEFS" simulate -c "$d/ini" --from-log - "$@" > "$d/out" 2> "$d/err" ||
		status=$?
	is "exit status of simulate $* ($(cat "$d/err"))" "$status" "$wanted"
}

# simulate_load STATUS LOAD…: the same of loads in place of a log.
simulate_load() {
	local wanted=$1 status=0 load loads=()
	shift
	for load; do loads+=(--load "$load"); done
	timeout 60 "$RATEFS" simulate -c "$d/ini" "${loads[@]}" > "$d/out" 2> "$d/err" || status=$?
	is "exit status of simulate $* ($(cat "$d/err"))" "$status" "$wanted"
}

# value LIMITER COLUMN: from the table.
value() {
	awk -v limiter="$1" -v column="$2" '
		$1 == "limiter" { for (i = 1; i <= NF; i++) number[$i] = i }
		$1 == limiter { print $number[column] }' "$d/out"
}

# row LIMITER COLUMN=VALUE…: the table has them.
row() {
	local limiter=$1 each
	shift
	for each; do
		is "${each%=*} of $limiter" "$(value "$limiter" "${each%=*}")" "${each#*=}"
	done
}

# limits LINE…: the file of limiters.
limits() { printf '%s\n' "$@" > "$d/ini"; }

# every SECONDS N REST: N lines, from second 0 on.
every() { awk -v s="$1" -v n="$2" -v r="$3" 'BEGIN { for (i = 0; i < n; i++) print i * s, r }'; }

first_line() { is 'the first line' "$(head -n 1 "$d/out")" "$1"; }

says() { like 'what it says' "$(cat "$d/err")" "$1"; }

case_readers_within_the_rate_do_not_wait() {
	limits '[orders]' rate=10/s
	every 0.1 1000 'orders 1' | simulate 0
	row orders asked=1000 tokens=1000 at_once=1000 waited=0 never=0 sum_s=0.000 most_s=0.000
	first_line '1000 lines over 99.900 s; 0 left out, 0 out of order'
	is 'what it says' "$(cat "$d/err")" ''
}

case_readers_above_the_rate_wait_in_turn() {
	limits '[orders]' rate=1/s
	# The reader of number i, from 0 on, is granted at i s and came at i / 2 s.
	every 0.5 101 'orders 1' | simulate 0
	row orders at_once=1 waited=100 sum_s=2525.000 mean_s=25.250 most_s=50.000
	like 'the median' "$(value orders p50_s)" '^25\.[0-2]'
	like 'nine tenths' "$(value orders p90_s)" '^45\.[0-4]'
}

case_a_burst_is_there_at_the_beginning() {
	limits '[orders]' rate=1/h burst=20
	every 0 25 'orders 1' | simulate 0
	row orders at_once=20 waited=5 most_s=18000.000
}

case_a_reader_may_take_several_or_none() {
	limits '[orders]' rate=100/s burst=50
	printf '%s\n' '0 orders 50' '0 orders 0' '0 orders 1Ki' '20 orders -' | simulate 0
	row orders asked=4 tokens=1074 waited=1 most_s=10.240
}

case_a_reader_that_allows_less_time_is_refused() {
	limits '[orders]' rate=1/s
	every 0 10 'orders 1' | simulate 0 -w 4s
	row orders at_once=1 waited=4 within=5 tokens=5 most_s=4.000
	every 0 10 'orders 1' | simulate 0 --within 0
	row orders at_once=1 waited=0 within=9
}

case_readers_are_refused_by_the_bounds_of_a_limiter() {
	limits '[short]' rate=1/s queue_max=3 '[quick]' rate=1/s wait_max=2s
	{ every 0 10 'short 1' && every 0 10 'quick 1'; } | simulate 0
	row short at_once=1 waited=3 queue_max=6 wait_max=0
	row quick at_once=1 waited=2 wait_max=7 queue_max=0
}

case_a_limiter_above_counts() {
	limits '[api]' rate=1/s '[api/fast]' rate=100/s '[api/slow]' rate=1/min
	{ every 0 10 'api/fast 1' && every 0 2 'api/slow 1'; } | simulate 0
	row api/fast at_once=1 waited=9
	like 'the other child waits for its own rate' "$(value api/slow most_s)" '^6[0-2]\.'
	is 'a limiter without readers has no row' "$(value api asked)" ''
}

case_keys_do_not_wait_for_each_other() {
	limits '[api]' key_rate=1/s key_burst=2
	printf '%s\n' '0 ann' '0 ann' '0 ann' '0 bob' | simulate 0 -f '$time $key' -l api
	row api asked=4 at_once=3 waited=1 most_s=1.000
}

case_readers_without_room_are_counted() {
	limits '[api]' key_rate=1/d key_burst=1 keys_max=2
	# Keys that readers wait in are not forgotten.
	printf '%s\n' '0 a' '0 a' '0 b' '0 b' '0 c' | simulate 0 -f '$time $key' -l api
	row api asked=5 at_once=2 no_room=1 waited=2
}

case_a_rate_of_0_serves_no_reader() {
	limits '[orders]' rate=0
	every 1 3 'orders 1' | simulate 0
	row orders asked=3 never=3 tokens=0
}

case_an_access_log_is_read() {
	limits '[site]' key_rate=100/s key_burst=100
	printf '%s\n' \
		'10.0.0.1 - - [22/Nov/2026:23:59:59 +0000] "GET / HTTP/1.1" 200 100 "-" "a b"' \
		'10.0.0.1 - joe [23/Nov/2026:01:00:00 +0100] "GET /?x=] HTTP/1.1" 200 250 "-" "-"' \
		'fe80::1 - - [23/Nov/2026:00:00:00 +0000] "-" 408 - "-" "-"' > "$d/log"
	simulate 0 -f combined -l site < "$d/log"
	row site asked=3 tokens=350 at_once=2 waited=1 most_s=1.500
	first_line '3 lines over 1.000 s; 0 left out, 0 out of order'
}

case_times_are_understood() {
	local time
	limits '[a]' rate=1/s
	for time in 2026-11-22T03:42:17Z 2026-11-22T03:42:17 '2026-11-22 04:42:17,000+01:00' \
		2026-11-21t23:42:17.000000000-0400 1795318937 1795318937.0 \
		'22/Nov/2026:03:42:17 +0000' 22/Nov/2026:04:42:17+0100; do
		printf '1795318936.5;\n%s;\n' "$time" | simulate 0 -f '$time;' -l a
		like "$time" "$(head -n 1 "$d/out")" '^2 lines over 0\.500 s; 0 left out, 0 out'
	done
}

case_times_that_are_none_are_left_out() {
	local time
	limits '[a]' rate=1/s
	for time in '' x 12:30 -5 1e9 5. .5 1.0000000001 999999999999 2026-13-01T00:00:00Z \
		2026-02-30T00:00:00Z 2026-11-22T24:00:00Z 2026-11-22T03:42 1969-12-31T23:59:59Z \
		1970-01-01T00:00:00+01:00 2501-01-01T00:00:00Z '22/Nov/2026:03:42:17 GMT' \
		22/nov/2026:03:42:17 2026-11-22T03:42:17+25:00 2026-11-22T03:42:17Zz; do
		printf '%s;\n' "$time" | simulate 1 -f '$time;' -l a
		says "^standard input:1: not a time: '"
	done
	echo 'Nov 22 03:42:17;' | simulate 1 -f '$time;' -l a
	says "^standard input:1: a time without a year: 'Nov 22 03:42:17'\$"
}

case_lines_that_are_not_understood_are_counted() {
	limits '[orders]' rate=1/s
	{
		printf '%s\n' '0 orders 1' '1 orders' '2 mail 1' '3 orders few' '4 orders -1' \
			'' '5 orders 1 1' '6 orders 1'
		printf '7 orders \0 1\n'
		head -c 70000 /dev/zero | tr '\0' x && echo
		printf '%s\r\n' '8  orders	1 '
		printf '9 orders 1'
	} | simulate 1
	is lines "$(cut -d : -f 2 "$d/err" | paste -s -d ' ')" '2 3 4 5 6 7 9 10'
	says "3: no limiter of $d/ini: 'mail'"
	says '9: not a text: it has a zero byte'
	says '10: longer than 65535 bytes'
	row orders asked=4 at_once=4
	first_line '12 lines over 9.000 s; 8 left out, 0 out of order'
	every 1 25 x | simulate 1
	is 'lines that are reported' "$(grep -c '^standard input:' "$d/err")" 10
	says '15 more lines are left out$'
}

case_control_characters_of_a_log_reach_no_terminal() {
	limits '[orders]' rate=1/s
	printf '1 \033]0;mail\a\177 1\n1 orders 1\033[2J\n1\033c orders 1\n' | simulate 1
	says "1: no limiter of $d/ini: '\?\]0;mail\?\?'"
	is 'control characters' "$(tr -d '\n' < "$d/err" | tr -dc '[:cntrl:]' | wc -c)" 0
}

case_lines_out_of_order_are_taken_up_to_a_minute() {
	limits '[orders]' rate=1/s
	printf '%s orders 1\n' 100 99 40 39.9 100.5 | simulate 1
	first_line '5 lines over 0.500 s; 1 left out, 2 out of order'
	says '^standard input:4: 60100ms before an earlier line$'
	row orders asked=4 waited=3 most_s=2.500
	printf '%s orders 1\n' 0 9999999999 5 | simulate 1
	says '^standard input:2: more than ten years after the first line$'
}

# Four limiters, which get a reader each in turn, 250 a second.
case_a_million_lines_are_read() {
	limits '[within]' rate=500/s '[even]' rate=250/s '[free]' rate=1/d '[short]' rate=200/s
	awk 'BEGIN {
		for (i = 0; i < 1000000; i += 4) {
			printf "%.3f within 1\n%.3f even 1\n", i / 1000, (i + 1) / 1000
			printf "%.3f free 0\n%.3f short 1\n", (i + 2) / 1000, (i + 3) / 1000
		}
		print "999.999 none 1\nit is not"
	}' | simulate 1
	row within asked=250000 tokens=250000 at_once=250000 waited=0 never=0 most_s=0.000
	row even asked=250000 tokens=250000 at_once=250000 waited=0 never=0 most_s=0.000
	row free asked=250000 tokens=0 at_once=250000 waited=0 never=0 most_s=0.000
	# The reader of number i, from 0 on, comes at i / 250 s and is granted at i / 200 s.
	row short asked=250000 tokens=250000 at_once=1 waited=249999 never=0 most_s=249.999 \
		sum_s=31249875.000
	first_line '1000002 lines over 999.999 s; 2 left out, 0 out of order'
}

case_mistakes_in_the_file_of_limiters_are_told() {
	limits '[orders]' rate=plenty '[token]' rate=1/s
	simulate 2 < /dev/null
	says "^$d/ini:2: .*plenty"
	says "$d/ini:3: 'token' is the name of a control file"
	is output "$(cat "$d/out")" ''
	rm "$d/ini"
	simulate 2 < /dev/null
	says 'No such file'
	limits '[orders]' rate=1/s
	simulate 2 -f '$time' -l mail < /dev/null
	says "no limiter of $d/ini: 'mail'"
	"$RATEFS" simulate -c - --load 'mail 1/s for 1s' < "$d/ini" 2> "$d/err" && fail 'it works'
	says "standard input.*'mail'"
}

case_wrong_arguments_are_told() {
	local status=0
	limits '[orders]' rate=1/s
	simulate 2 -f '$limiter' < /dev/null
	says 'a format without \$time'
	simulate 2 -f '$time$limiter' < /dev/null
	says 'no text between two fields'
	simulate 2 -f '$time $time' < /dev/null
	says 'a field that is there twice'
	simulate 2 -f '$time $' < /dev/null
	says 'a field needs a name'
	simulate 2 -f '$time' < /dev/null
	says 'a format without it needs -l'
	simulate 2 -l orders < /dev/null
	says '-l is for a format, see -f, without: .\$limiter'
	simulate 2 -c - < /dev/null
	says 'cannot both be standard input'
	simulate 2 -w soon < /dev/null
	says 'not a time that a reader waits at most'
	simulate 2 more < /dev/null
	says "an argument too many: 'more'"
	"$RATEFS" simulate -c "$d/ini" 2> "$d/err" || status=$?
	is 'exit status without a log' $status 2
	says 'no readers given'
	status=0
	"$RATEFS" simulate --from-log - 2> "$d/err" || status=$?
	is 'exit status without limiters' $status 2
	says 'no file of limiters given'
}

case_a_log_that_cannot_be_read_is_told() {
	local status=0
	limits '[orders]' rate=1/s
	"$RATEFS" simulate -c "$d/ini" --from-log "$d" > "$d/out" 2> "$d/err" || status=$?
	is 'exit status' $status 2
	says "^ratefs simulate: $d: Is a directory"
	is output "$(cat "$d/out")" ''
}

case_an_even_load_is_as_lines_of_a_log() {
	limits '[api]' rate=10/s burst=3 '[api/bulk]' rate=100/s key_rate=4/s
	{ every 0.0625 960 'api k 2' && every 0.2 300 'api/bulk bob 1'; } | sort -n > "$d/log"
	simulate 0 -f '$time $limiter $key $cost' < "$d/log"
	sed 1d "$d/out" > "$d/of_log"
	simulate_load 0 'api/keys/k 16/s of 2 for 1min even' 'api/bulk/keys/bob 5/s for 1min even'
	first_line '1260 readers over 60.000 s'
	is 'the table' "$(sed 1d "$d/out")" "$(cat "$d/of_log")"
	row api asked=960 tokens=1920
}

# Of a server that takes 1/m for each of l customers a second those wait for l / (2 m (m - l)) in
# the mean (Pollaczek and Khinchine).
case_a_load_by_chance_waits_as_queues_do() {
	limits '[orders]' rate=25/s burst=1
	simulate_load 0 'orders 20/s for 20h'
	awk -v sum="$(value orders sum_s)" -v n="$(value orders asked)" 'BEGIN {
		exit !(n > 20 * 72000 * 0.99 && n < 20 * 72000 * 1.01 &&
			sum / n > 0.08 * 0.97 && sum / n < 0.08 * 1.03)
	}' || fail "$(cat "$d/out")"
}

case_a_load_by_chance_waits_about_as_queues_do() {
	limits '[orders]' rate=25/s burst=1
	simulate_load 0 'orders 20/s for 1h'
	awk -v sum="$(value orders sum_s)" -v n="$(value orders asked)" 'BEGIN {
		exit !(n > 72000 * 0.98 && n < 72000 * 1.02 &&
			sum / n > 0.08 * 0.9 && sum / n < 0.08 * 1.1)
	}' || fail "$(cat "$d/out")"
}

case_a_load_is_the_same_each_time_and_beside_others() {
	local alone
	limits '[a]' rate=10/s '[b]' rate=10/s
	simulate_load 0 'a 9/s for 1h'
	alone=$(grep '^a ' "$d/out")
	simulate_load 0 'a 9/s for 1h' 'b 9/s for 2h' 'b 1/min for 10s even'
	is 'the row of a' "$(grep '^a ' "$d/out")" "$alone"
	first_line "$(($(value a asked) + $(value b asked))) readers over 7200.000 s"
	[ "$(value b sum_s)" != "$(value a sum_s)" ] || fail 'two loads have the same chance'
}

case_a_saved_tree_is_tried_with_a_load() {
	start
	limiter api 10/s 5
	mkdir "$m/api/slow" && echo 1/s > "$m/api/slow/rate" && echo 3 > "$m/api/slow/queue_max"
	"$RATEFS" save "$m" | timeout 60 "$RATEFS" simulate -c - --load \
		'api/slow 2/s for 10s even' --load 'api 5/s for 10s even' > "$d/out"
	row api asked=50 tokens=50
	is 'readers of api/slow' "$(value api/slow asked)" 20
	like 'readers that it refuses' "$(value api/slow queue_max)" '^[1-9]'
}

case_a_load_that_is_none_is_told() {
	local load status
	limits '[orders]' rate=1/s
	for load in '' orders 'orders 5/s' 'orders max for 1h' 'orders 0 for 1h' \
		'orders 5/s for 0' 'orders 5/s for 10m' 'orders 5/s of many for 1h' \
		'orders 5/s 1h' \
		'orders 5/s for 1h odd' 'orders 5/s for 1h even more' 'orders/keys/ 1/s for 1h' \
		'orders/keys/a/b 1/s for 1h' 'orders 9999999/s for 1d'; do
		simulate_load 2 "$load"
		says "^ratefs simulate: --load '$load': "
		is output "$(cat "$d/out")" ''
	done
	simulate_load 2 'mail 1/s for 1h'
	says "no limiter of $d/ini: 'mail'"
	simulate 2 --load 'orders 1/s for 1h' < /dev/null
	says 'a log beside a load'
	status=0
	"$RATEFS" simulate -c "$d/ini" -l orders --load 'orders 1/s for 1h' 2> "$d/err" || status=$?
	is 'exit status with -l' $status 2
	says 'an option of a log beside a load'
}

case_an_empty_log_has_no_readers() {
	limits '[orders]' rate=1/s
	simulate 0 < /dev/null
	first_line '0 lines over 0.000 s; 0 left out, 0 out of order'
	is rows "$(wc -l < "$d/out")" 2
}

# close WHAT GOT WANTED: within 1 %.
close() {
	awk -v a="$2" -v b="$3" 'BEGIN { exit !(a >= b * 0.99 && a <= b * 1.01) }' ||
		fail "$1: $2 in the mount, $3 simulated"
}

# The lines are simulated with the times at which they came to the mount: a busy machine, which
# feeds them late, changes both alike.
case_a_mount_that_is_fed_the_lines_at_100_times_the_speed_does_the_same() {
	start
	limiter waits 50/s 5
	limiter bounded 250/s 5
	echo 200ms > "$m/bounded/wait_max"
	{ every 0.8 500 'waits 1' && every 0.2 2000 'bounded 1'; } | sort -n > "$d/log.fed"
	timeout 100 python3 "$CASES/feed.py" 100 "$d/log.fed" "$m" > "$d/came"
	is 'lines that came' "$(wc -l < "$d/came")" 2500
	limits '[waits]' rate=1/2s burst=5 '[bounded]' rate=2.5/s burst=5 wait_max=20s
	simulate 0 < "$d/log.fed"
	sed 1d "$d/out" > "$d/of_log"
	simulate_load 0 'bounded 5/s for 400s even' 'waits 1.25/s for 400s even'
	is 'a load of what it was fed' "$(sed 1d "$d/out")" "$(cat "$d/of_log")"
	simulate 0 < "$d/came"
	counts waits granted 500
	close 'readers that wait, seconds' "$(counter waits delayed_seconds)" \
		"$(awk -v s="$(value waits sum_s)" 'BEGIN { print s / 100 }')"
	close 'tokens of a bounded limiter' "$(counter bounded granted)" "$(value bounded tokens)"
	close 'readers that it refuses' "$(counter bounded refused_wait_max)" \
		"$(value bounded wait_max)"
}
