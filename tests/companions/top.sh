# shellcheck shell=bash
# ratefs top: its tables as text, and on a terminal.

# top STATUS ARGUMENTS…: ratefs top, $wide columns wide, exits so; it says $d/out and $d/err.
wide=300
top() {
	local wanted=$1 status=0
	shift
	COLUMNS=$wide timeout 30 "$RATEFS" top "$@" > "$d/out" 2> "$d/err" < /dev/null || status=$?
	is "exit status of top $* ($(cat "$d/err"))" "$status" "$wanted"
}

says() { like 'what it says' "$(cat "$d/err")" "$1"; }

# limiters: the column of their names.
limiters() {
	awk '/GRANTED/ { for (i = 1; $i != "LIMITER"; i++); next } i { print $i }' "$d/out" |
		paste -s -d ' '
}

# column TITLE LIMITER
column() {
	awk -v title="$1" -v limiter="$2" '
		/GRANTED/ { for (i = 1; i <= NF; i++) at[$i] = i; next }
		$at["LIMITER"] == limiter { print at[title] ? $at[title] : "none" }' "$d/out"
}

# fake: a tree of files with the limiters a and b; b has more of everything.
fake() {
	t=$d/tree
	mkdir -p "$t"
	printf '%s\n' 'host h' 'source s' 'limiters 2' 'waiters 3' 'uptime_seconds 500.25' \
		> "$t/status"
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
		ratefs_slots{limiter="b"} 8
		ratefs_slots_used{limiter="b"} 4
		ratefs_share{limiter="a"} 0.25
		ratefs_share{limiter="b"} 0.625
	EOF
}

# between LEAST VALUE MOST
between() {
	awk -v value="$2" -v least="$1" -v most="$3" '
		BEGIN { exit !(value >= least && value <= most) }' || fail "$2: $(cat "$d/out")"
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
	like 'first line' "$(head -n 1 "$d/out")" \
		'^[^ ]+  local  3 limiters  1 wait  up [0-9ms]+$'
	is tables "$(grep -c GRANTED "$d/out")" 1
	is limiters "$(limiters)" 'mail orders orders/batch'
	is 'rate of orders' "$(column RATE/s orders)" 5
	is 'rate of orders/batch' "$(column RATE/s orders/batch)" max
	is 'waiting of mail' "$(column WAITING mail)" 1
	is 'share, on a host alone' "$(column SHARE/% mail)" none
	! grep -q $'\033' "$d/out" || fail 'escapes in a text'
}

case_counters_are_shown_as_rates() {
	fake
	echo 'coordinator ready' >> "$t/status"
	later 1010 3020
	top 0 -d 2 "$t"
	# At most 1000 and 3000 in 2 s, less if the machine is slow.
	between 20 "$(column GRANTED/s a)" 500
	between 60 "$(column GRANTED/s b)" 1500
	is 'granted and throttled' "$(column GRANTED/s a)" "$(column THROTTLED a)"
	is 'granted and granted under min' "$(column GRANTED/s a)" "$(column MIN/s a)"
	is 'granted and refused' "$(column GRANTED/s a)" "$(column REFUSED/s a)"
	is 'share of a' "$(column SHARE/% a)" 25
	is 'share of b' "$(column SHARE/% b)" 62.5
	is 'rate of a' "$(column RATE/s a)" 1.5
	is 'use of a, of its rate' "$(awk -v of="$(column GRANTED/s a)" -v use="$(column USE/% a)" '
		BEGIN { print (of / 1.5 > use / 101 && of / 1.5 < use / 99) }')" 1
	is 'use of b, of its slots' "$(column USE/% b)" 50
}

case_a_counter_that_began_anew_is_no_negative_rate() {
	fake
	later 5 20
	top 0 -d 2 "$t"
	between 0 "$(column GRANTED/s a)" 2.5
	is 'granted of b' "$(column GRANTED/s b)" 0
}

case_an_unknown_value_is_a_minus() {
	fake
	sed -i '/refused/d' "$t/metrics"
	top 0 -d 100ms "$t"
	is 'refused of a' "$(column REFUSED/s a)" -
	is 'waiting of a' "$(column WAITING a)" 1
}

case_metrics_that_leave_out_what_is_off_are_those_of_a_limiter_without_it() {
	fake
	echo 'coordinator ready' >> "$t/status"
	sed -i '/throttled\|share\|granted_min/d' "$t/metrics"
	top 0 -d 100ms "$t"
	is 'throttled of a' "$(column THROTTLED a)" 0
	is 'share of a' "$(column SHARE/% a)" 100
	is 'min of a' "$(column MIN/s a)" 0
	is 'below a' "$(column BELOW a)" 0
}

case_a_small_rate_is_told_as_one() {
	fake
	local rate
	for rate in 0.00027777777777777778:0.00028 2.7e-7:2.7e-07 0.25:0.25 0.951:1.0 1.25:1.2; do
		echo "ratefs_effective_rate{limiter=\"a\"} ${rate%:*}" > "$t/metrics"
		top 0 -d 100ms "$t"
		is "rate ${rate%:*}" "$(column RATE/s a)" "${rate#*:}"
	done
}

case_a_column_decides_the_order() {
	fake
	local column
	for column in granted rate use waiting throttled share s WAIT min refused; do
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
	grep -qF ' we"ird\na me' "$d/out" && grep -q ' größe' "$d/out" &&
		grep -qF ' \xff' "$d/out" || fail "$(cat "$d/out")"
}

case_a_name_that_could_move_the_cursor_is_not_shown_as_it_is() {
	fake
	printf 'ratefs_waiting{limiter="%s"} 1\n' $'c\xc2\x9b2J' $'d\xe2\x80\xaee' > "$t/metrics"
	LC_ALL=C.UTF-8 top 0 -d 100ms "$t"
	is limiters "$(limiters)" 'c?2J d?e'
}

case_a_tree_without_limiters_is_an_empty_table() {
	start
	top 0 "$m"
	is lines "$(wc -l < "$d/out")" 2
}

case_a_text_has_eighty_columns_or_those_of_the_environment() {
	fake
	sed -i 's/^source .*/source zk:\/\/one:2181,two:2181,three:2181,four:2181\/rates/' \
		"$t/status"
	local of options
	for of in 80: 80:x 80:0 40:40 200:200; do
		wide=${of#*:}
		for options in '' -p; do
			# shellcheck disable=SC2086
			top 0 $options -d 100ms "$t"
			awk -v most="${of%:*}" 'length($0) > most { exit 1 }' "$d/out" ||
				fail "$of: $(cat "$d/out")"
		done
		top 0 -d 100ms "$t"
		like 'first line' "$(head -n 1 "$d/out")" '^h  zk.*s  2 limiters  3 wait  up 8m20s$'
		is "limiters of $of" "$(limiters)" 'a b'
		is "waiting of $of" "$(column WAITING b)" 2
	done
	wide=40 top 0 -s below -d 100ms "$t"
	is 'the column that sorts' "$(column BELOW a)" 0
}

# paths PATH…: of limiters in metrics.
paths() { printf 'ratefs_waiting{limiter="%s"} 0\n' "$@" > "$t/metrics"; }

case_limiters_never_look_the_same() {
	fake
	local long width
	long=$(printf 'team/%.0s' {1..30})
	paths "${long}reads" "${long}writes" "${long}a/${long}" "${long}b/${long}" \
		"a${long}reads" größe grüße 日本語の名前 日本語の名字 "x"
	for width in 40 80 120; do
		wide=$width top 0 -d 100ms "$t"
		is "names at $width" "$(sed '1,2d' "$d/out" | sort -u | wc -l)" 10
		LC_ALL=C.UTF-8 wide=$width top 0 -d 100ms "$t"
		is "names at $width in UTF-8" "$(sed '1,2d' "$d/out" | sort -u | wc -l)" 10
		grep -q '~' "$d/out" || fail 'nothing is cut'
	done
	like 'the end of a path' "$(grep -c 'team/writes$' "$d/out")" '^1$'
}

case_a_name_does_not_change_with_the_order() {
	fake
	local long names
	long=$(printf 'team/%.0s' {1..30})
	paths "${long}a/${long}" "${long}b/${long}" "${long}c/${long}"
	sed -i '3s/0$/2/; 2s/0$/1/' "$t/metrics"
	wide=40 top 0 -s limiter -d 100ms "$t"
	names=$(awk 'NR > 2 { print $2, $NF }' "$d/out" | sort)
	like 'names by path' "$names" $'^0 .*\n1 .*~2\n2 .*~3$'
	wide=40 top 0 -s waiting -d 100ms "$t"
	is 'names by waiting' "$(awk 'NR > 2 { print $2, $NF }' "$d/out" | sort)" "$names"
}

case_wide_letters_are_two_columns() {
	fake
	paths 日本 abcd
	mkdir -p "$t/日本" "$t/abcd"
	sed -i 's/0$/1/' "$t/metrics"
	echo 'because' | tee "$t/日本/why" > "$t/abcd/why"
	LC_ALL=C.UTF-8 top 0 -d 100ms "$t"
	grep -q ' 日本    because$' "$d/out" && grep -q ' abcd    because$' "$d/out" ||
		fail "$(cat "$d/out")"
}

case_a_wait_is_told_with_its_length_and_cause() {
	start
	empty orders
	limiter orders/batch
	limiter idle 1/h
	reader orders/batch/token
	waiting orders/batch 1
	top 0 "$m"
	like 'wait in orders/batch, behind that' "$(column WAIT orders/batch)" '^(1d23h|2d00h)$'
	like 'why in it' "$(grep ' orders/batch ' "$d/out")" \
		' orders/batch +orders rate 1/d: [12] tokens? to come, [0-9.]+ '
	like 'wait in orders, behind that' "$(column WAIT orders)" '^(1d23h|2d00h)$'
	like 'why in orders' "$(grep ' orders  ' "$d/out")" ' orders +rate 1/d: '
	is 'wait where nobody does' "$(column WAIT idle)" -
	is 'why there' "$(grep -c ' idle$' "$d/out")" 1
}

case_a_wait_is_told_of_names_with_any_bytes() {
	fake
	mkdir -p "$t/"$'\xff/eta' "$t/\\xfe/eta"
	echo 60 > "$t/"$'\xff/eta/1'
	echo 7200 > "$t/\\xfe/eta/1"
	printf '%s\n' 'ratefs_waiting{limiter="\\xff"} 1' 'ratefs_waiting{limiter="\\xfe"} 1' \
		> "$t/metrics"
	top 0 -d 100ms "$t"
	grep -q ' 1m00s .* \\xff$' "$d/out" && grep -q ' 2h00m .* \\xfe$' "$d/out" ||
		fail "$(cat "$d/out")"
}

case_only_files_of_limiters_with_waiters_are_read() {
	fake
	sed -i 's/waiting{limiter="a"} 1/waiting{limiter="a"} 0/' "$t/metrics"
	mkdir -p "$t/a/eta" "$t/b/eta"
	echo 0.0421 | tee "$t/a/eta/1" > "$t/b/eta/1"
	echo 'b rate 1/s' | tee "$t/a/why" > "$t/b/why"
	top 0 -d 100ms "$t"
	is 'wait of a' "$(column WAIT a)" -
	is 'wait of b' "$(column WAIT b)" 42ms
	is 'why, of both' "$(grep -c 'rate 1/s' "$d/out")" 1
	local text
	for text in 'inf never' '0 0s' '0.9996 1.0s' '3.25 3.2s' '59.4 59s' '119 1m59s' \
		'7380 2h03m' '200000 2d07h' ' -'; do
		echo "${text% *}" > "$t/b/eta/1"
		top 0 -d 100ms "$t"
		is "wait of '${text% *}'" "$(column WAIT b)" "${text#* }"
	done
}

case_the_second_table_has_the_share_of_each_host() {
	start -o host=here
	limiter orders 100/s
	limiter orders/batch 1/d
	in_use
	top 0 -p "$m"
	grep -qE '^ +100 +100 +20 here +orders +#{20} +0-19$' "$d/out" || fail "$(cat "$d/out")"
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
		$'16.7 - 2 - a ........##.. 8 9
66.7 - 11 h1 a ###.##.#..## 0-2 4 5 7 10 11 r0 r1 r3\n16.7 - 3 h2 a ...#..#..... 3 6 r2'
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
	local h1='########........########........' free='........########................'
	local gone='........................########'
	is holders "$(holders)" "10 10 1 - a $free 100-199
10 10 1 (host is gone) a $gone 300-399
20 20 3 h1 a $h1 0-99 200-299
60 60 1 h2 a ${gone//#/.} r0"
	# A 32nd of this limiter is 12.5 parts.
	rm -r "$t/a/partitions/200"
	top 0 -p -d 100ms "$t"
	like 'a part of a sign' "$(holders)" ' h1 a #{8}\.{8}\+#{7}\.{8} 0-99 201-299'
	piece 200 '6/min 1000/s:5' held h1
	rm "$t/a/partitions/r0/holder"
	local name
	for name in 0-99 100-199 200 201-299 300-399; do
		echo max > "$t/a/partitions/$name/rate"
	done
	top 0 -p -d 100ms "$t"
	is 'holders without a limit' "$(holders)" \
		"25 max 1 - a $free 100-199
25 max 1 (host is gone) a $gone 300-399
50 max 3 h1 a $h1 0-99 200-299"
}

case_a_path_that_could_move_the_cursor_is_not_told_as_it_is() {
	top 1 "$d/"$'l\e[2Jne'
	says 'l\?\[2Jne: not a mounted tree'
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

with_ncurses() { [[ $(ldd "$RATEFS") == *ncurses* ]]; }

case_text_needs_no_ncurses() {
	fake
	top 0 -d 100ms "$t"
	is limiters "$(limiters)" 'a b'
	with_ncurses ||
		timeout 50 /usr/bin/python3 "$CASES/screen.py" is_refused_without_ncurses \
			"$RATEFS" "$t"
}

case_its_help_is_told() {
	top 0 --help
	like help "$(cat "$d/out")" 'ratefs top'
	top 0 -h
}

# on_screen SCENARIO: of screen.py, with the tree of fake.
on_screen() {
	with_ncurses || skip 'built without ncurses'
	fake
	mkdir -p "$t/a/partitions"
	local partition
	for partition in {0..19}; do
		mkdir "$t/a/partitions/$partition"
		echo h1 > "$t/a/partitions/$partition/holder"
	done
	timeout 50 /usr/bin/python3 "$CASES/screen.py" "$1" "$RATEFS" "$t"
}

case_on_a_terminal_q_quits() { on_screen quits; }
case_on_a_terminal_all_is_as_before_at_the_end() { on_screen restores_the_terminal; }
case_on_a_terminal_it_refreshes() { on_screen refreshes; }
case_on_a_terminal_it_counts_its_tables() { on_screen counts_its_tables; }
case_on_a_terminal_keys_sort_and_the_column_is_marked() { on_screen sorts_by_keys; }
case_on_a_terminal_there_are_two_tables() { on_screen has_two_tables; }
case_on_a_terminal_keys_scroll_through_holders() { on_screen scrolls_through_holders; }
case_on_a_terminal_keys_move_among_two_thousand() { on_screen moves; }
case_on_a_terminal_it_follows_the_size() { on_screen fits_the_screen; }
case_on_a_terminal_a_filter_leaves_limiters_out() { on_screen filters; }
case_on_a_terminal_a_filter_is_typed_where_it_is_seen() { on_screen filters_where_it_is_seen; }
case_on_a_terminal_keys_sort_what_is_seen() { on_screen sorts_what_is_seen; }
case_on_a_terminal_nothing_has_no_waiters() { on_screen has_no_waiters_of_nothing; }
case_on_a_terminal_it_stops_while_it_waits() { on_screen stops_while_it_waits; }
case_on_a_terminal_keys_are_told() { on_screen tells_its_keys; }
case_on_a_terminal_enter_shows_waiters() { on_screen shows_waiters; }
case_on_a_terminal_use_is_a_bar() { on_screen draws_a_bar; }
case_on_a_terminal_NO_COLOR_has_none() { on_screen has_no_color; }
case_on_a_terminal_without_a_cursor_it_is_a_text() { on_screen is_a_text_when_dumb; }
case_on_a_terminal_signals_end_it_cleanly() { on_screen ends_on_signals; }
case_on_a_terminal_it_stops_and_goes_on() { on_screen stops_and_goes_on; }
case_on_a_terminal_it_ends_with_the_tree() { on_screen ends_with_the_tree; }
