# shellcheck shell=bash
# ratefs top: its tables as text, and on a terminal.

# top STATUS ARGUMENTS…: ratefs top exits so; its output is in $d/out and $d/err.
top() {
	local wanted=$1 status=0
	shift
	timeout 30 "$RATEFS" top "$@" > "$d/out" 2> "$d/err" < /dev/null || status=$?
	is "exit status of top $* ($(cat "$d/err"))" "$status" "$wanted"
}

says() { like 'what it says' "$(cat "$d/err")" "$1"; }

# limiters: the last column of the table.
limiters() { awk '/GRANTED/ { on = 1; next } on { print $NF }' "$d/out" | paste -s -d ' '; }

# column N LIMITER
column() { awk -v n="$1" -v limiter="$2" '$NF == limiter { print $n }' "$d/out"; }

# fake: a tree of files with the limiters a and b; b has more of everything.
fake() {
	t=$d/tree
	mkdir -p "$t"
	echo 'version 9.9' > "$t/status"
	metrics 10 20 > "$t/metrics"
}

# metrics A B: of a tree in which the limiters a and b have granted so much.
metrics() {
	cat <<- EOF
		# HELP ratefs_granted_total Tokens.
		# TYPE ratefs_granted_total counter
		ratefs_granted_total{limiter="a"} $1
		ratefs_granted_total{limiter="b"} $2
		ratefs_throttled_total{limiter="a"} $1
		ratefs_throttled_total{limiter="b"} $2
		ratefs_granted_min_total{limiter="a"} $1
		ratefs_granted_min_total{limiter="b"} $2
		ratefs_refused_total{limiter="a"} $1
		ratefs_refused_total{limiter="b"} $2
		ratefs_waiting{limiter="a"} 1
		ratefs_waiting{limiter="b"} 2
		ratefs_effective_rate{limiter="a"} 1.5
		ratefs_effective_rate{limiter="b"} +Inf
		ratefs_share{limiter="a"} 0.25
		ratefs_share{limiter="b"} 0.625
	EOF
}

# later A B: as metrics, once those that are there have been read.
later() {
	metrics "$@" > "$t/new"
	rm -f "$d/looks"
	python3 "$CASES/replace.py" "$t/metrics" "$t/new" > "$d/looks" &
	eventually 20 [ -s "$d/looks" ] || fail 'it does not look'
}

case_without_a_terminal_it_is_one_table() {
	start
	limiter orders 5/s
	limiter orders/batch
	empty mail
	reader mail/token
	waiting mail 1
	top 0 "$m"
	like 'first line' "$(head -n 1 "$d/out")" '^ratefs  version [0-9].* limiters 3  waiters 1'
	is tables "$(grep -c GRANTED "$d/out")" 1
	is limiters "$(limiters)" 'mail orders orders/batch'
	is 'rate of orders' "$(column 2 orders)" 5
	is 'rate of orders/batch' "$(column 2 orders/batch)" max
	is 'waiting of mail' "$(column 3 mail)" 1
	! grep -q $'\033' "$d/out" || fail 'escapes in a text'
}

case_counters_are_shown_as_rates() {
	fake
	later 1010 3020
	top 0 -d 2 "$t"
	# At most 1000 and 3000 in 2 s, less if the machine is slow.
	[ "$(awk '$NF == "a" { print ($1 > 20 && $1 <= 500) }' "$d/out")" = 1 ] ||
		fail "$(cat "$d/out")"
	[ "$(awk '$NF == "b" { print ($1 > 60 && $1 <= 1500) }' "$d/out")" = 1 ] ||
		fail "$(cat "$d/out")"
	is 'granted and throttled' "$(column 1 a)" "$(column 4 a)"
	is 'granted and granted under min' "$(column 1 a)" "$(column 6 a)"
	is 'granted and refused' "$(column 1 a)" "$(column 7 a)"
	is 'share of a' "$(column 5 a)" 25
	is 'share of b' "$(column 5 b)" 62.5
	is 'rate of a' "$(column 2 a)" 1.5
}

case_a_counter_that_began_anew_is_no_negative_rate() {
	fake
	later 5 20
	top 0 -d 2 "$t"
	[ "$(awk '$NF == "a" { print ($1 >= 0 && $1 <= 2.5) }' "$d/out")" = 1 ] ||
		fail "$(cat "$d/out")"
	is 'granted of b' "$(column 1 b)" 0
}

case_an_unknown_value_is_a_minus() {
	fake
	sed -i '/refused/d' "$t/metrics"
	top 0 -d 100ms "$t"
	is 'refused of a' "$(column 7 a)" -
	is 'waiting of a' "$(column 3 a)" 1
}

case_metrics_that_leave_out_what_is_off_are_those_of_a_limiter_without_it() {
	fake
	sed -i '/throttled\|share\|granted_min/d' "$t/metrics"
	top 0 -d 100ms "$t"
	is 'throttled of a' "$(column 4 a)" 0
	is 'share of a' "$(column 5 a)" 100
	is 'min of a' "$(column 6 a)" 0
	is 'below a' "$(column 8 a)" 0
}

case_a_column_decides_the_order() {
	fake
	local column
	for column in granted rate waiting throttled share s WAIT min refused; do
		case $column in granted | throttled | min | refused) later 11 1000 ;; esac
		top 0 -d 1 -s $column "$t"
		is "order by $column" "$(limiters)" 'b a'
		metrics 10 20 > "$t/metrics"
	done
	top 0 -d 100ms -s limiter "$t"
	is 'order by limiter' "$(limiters)" 'a b'
}

case_there_can_be_several_tables() {
	fake
	top 0 -b -n 3 -d 100ms "$t"
	is tables "$(grep -c GRANTED "$d/out")" 3
}

case_names_are_shown_as_they_are() {
	start
	mkdir "$m/we\"ird\\na me" "$m/größe" "$m/"$'\xff'
	LC_ALL=C.UTF-8 top 0 "$m"
	grep -qF ' we"ird\na me' "$d/out" && grep -q ' größe$' "$d/out" &&
		grep -qF ' \xff' "$d/out" || fail "$(cat "$d/out")"
}

case_a_name_that_could_move_the_cursor_is_not_shown_as_it_is() {
	fake
	printf 'ratefs_waiting{limiter="%s"} 1\n' $'c\xc2\x9b2J' > "$t/metrics"
	LC_ALL=C.UTF-8 top 0 -d 100ms "$t"
	is limiters "$(limiters)" 'c?2J'
}

case_a_tree_without_limiters_is_an_empty_table() {
	start
	top 0 "$m"
	is lines "$(wc -l < "$d/out")" 2
}

case_the_second_table_has_the_share_of_each_host() {
	start -o host=here
	limiter orders 100/s
	limiter orders/batch 1/d
	in_use
	top 0 -p "$m"
	grep -qE '^ +100 +100 +20  here +orders +0-19$' "$d/out" || fail "$(cat "$d/out")"
	grep -q 'HOLDER' "$d/out"
}

case_partitions_of_several_holders_are_told_apart() {
	local partition
	fake
	for partition in 0 1 2 4 5 7 10 11 r0 r1 r3; do
		mkdir -p "$t/a/partitions/$partition"
		echo h1 > "$t/a/partitions/$partition/holder"
	done
	for partition in 3 6 r2; do
		mkdir "$t/a/partitions/$partition"
		echo h2 > "$t/a/partitions/$partition/holder"
	done
	mkdir "$t/a/partitions/8" "$t/a/partitions/9"
	echo | tee "$t/a/partitions/8/holder" > "$t/a/partitions/9/holder"
	echo auto > "$t/a/partitions/count"
	top 0 -p -d 100ms "$t"
	is holders "$(holders)" \
		$'16.7 - 2 - a 8 9\n66.7 - 11 h1 a 0-2 4 5 7 10 11 r0 r1 r3\n16.7 - 3 h2 a 3 6 r2'
}

# holders: the second table without its titles, one blank between.
holders() { sed '1,2d; s/  */ /g; s/^ //' "$d/out"; }

# piece NAME RATE STATE [HOLDER]: of the limiter a.
piece() {
	mkdir -p "$t/a/partitions/$1"
	echo "$2" > "$t/a/partitions/$1/rate"
	echo "$3" > "$t/a/partitions/$1/state"
	echo "${4-}" > "$t/a/partitions/$1/holder"
}

case_pieces_are_added_up_for_each_holder() {
	fake
	piece 0-99 10/s held h1
	piece 100-199 10/s free
	piece 200 '6/min 1000/s:5' held h1
	piece 201-299 9.9/s held h1
	piece 300-399 10/s gone
	piece r0 60/s reserved h2
	top 0 -p -d 100ms "$t"
	is holders "$(holders)" $'10 10 1 - a 100-199\n10 10 1 (host is gone) a 300-399
20 20 3 h1 a 0-99 200-299\n60 60 1 h2 a r0'
	rm "$t/a/partitions/r0/holder"
	local name
	for name in 0-99 100-199 200 201-299 300-399; do
		echo max > "$t/a/partitions/$name/rate"
	done
	top 0 -p -d 100ms "$t"
	is 'holders without a limit' "$(holders)" $'25 max 1 - a 100-199
25 max 1 (host is gone) a 300-399\n50 max 3 h1 a 0-99 200-299'
}

case_a_path_that_is_no_tree_is_refused() {
	top 1 "$d"
	says 'not a mounted tree'
	top 1 "$d/nowhere"
	says 'not a mounted tree'
	start
	crash
	top 1 "$m"
	says "$m: "
	umount -l "$m"
}

case_wrong_arguments_are_refused() {
	local text
	fake
	top 2 "$t" more
	says "'more'"
	top 2 -Z
	says Z
	top 2 -n
	says n
	for text in 0 x '' -1; do top 2 -n "$text" "$t" && says "'$text'"; done
	for text in 0 99ms 61min x '' 5z; do top 2 -d "$text" "$t" && says "'$text'"; done
	for text in '' nothing grantedx; do top 2 -s "$text" "$t" && says "'$text'"; done
}

case_its_help_is_told() {
	top 0 --help
	like help "$(cat "$d/out")" 'ratefs top'
	top 0 -h
}

# on_screen SCENARIO: of screen.py, with the tree of fake.
on_screen() {
	fake
	mkdir -p "$t/a/partitions"
	local partition
	for partition in {0..19}; do
		mkdir "$t/a/partitions/$partition"
		echo h1 > "$t/a/partitions/$partition/holder"
	done
	timeout 50 python3 "$CASES/screen.py" "$1" "$RATEFS" "$t"
}

case_on_a_terminal_q_quits() { on_screen quits; }
case_on_a_terminal_all_is_as_before_at_the_end() { on_screen restores_the_terminal; }
case_on_a_terminal_it_refreshes() { on_screen refreshes; }
case_on_a_terminal_it_counts_its_tables() { on_screen counts_its_tables; }
case_on_a_terminal_keys_sort() { on_screen sorts_by_keys; }
case_on_a_terminal_there_are_two_tables() { on_screen has_two_tables; }
case_on_a_terminal_arrows_scroll() { on_screen scrolls; }
case_on_a_terminal_it_follows_the_size() { on_screen fits_the_screen; }
case_on_a_terminal_signals_end_it_cleanly() { on_screen ends_on_signals; }
case_on_a_terminal_it_stops_and_goes_on() { on_screen stops_and_goes_on; }
case_on_a_terminal_it_ends_with_the_tree() { on_screen ends_with_the_tree; }
