# shellcheck shell=bash
# ratefs plot: samples as text and as images.

# plot STATUS ARGUMENTS…: ratefs plot exits so; its output is in $d/out and $d/err.
plot() {
	local wanted=$1 status=0
	shift
	timeout 40 "$RATEFS" plot "$@" > "$d/out" 2> "$d/err" < /dev/null || status=$?
	is "exit status of plot $* ($(cat "$d/err"))" "$status" "$wanted"
}

says() { like 'what it says' "$(cat "$d/err")" "$1"; }

# fake: a limiter's directory, with stat alone.
fake() {
	f=$d/fake
	mkdir "$f"
	printf 'granted %s\nwaiting 3\neffective_rate max\nshare 0.25\n' 100 > "$f/stat"
}

case_samples_are_written_as_text() {
	start
	limiter orders 5/s
	empty mail
	reader mail/token
	waiting mail 1
	plot 0 "$m/orders" "$m/mail" --data -t 500ms -d 100ms
	is names "$(head -n 1 "$d/out" | tr '\t' ' ')" "$(echo limiter seconds granted_per_second \
		waiting effective_rate share throttled_per_second paused backoff_seconds \
		waiting_below unix_time)"
	is 'columns' "$(awk -F '\t' '{ print NF }' "$d/out" | sort -u)" 11
	is 'rate of orders' "$(awk -F '\t' -v l="$m/orders" '$1 == l { print $5 }' "$d/out" |
		sort -u)" 5
	is 'waiting of mail' "$(awk -F '\t' -v l="$m/mail" '$1 == l { print $4 }' "$d/out" |
		sort -u)" 1
	is 'samples' "$(awk -v m="$m/" 'NR > 1 { sub(m, ""); print $1 }' "$d/out" |
		paste -sd ' ')" 'orders mail orders mail orders mail orders mail orders mail'
	# Both are written to the millisecond, each rounded by itself.
	is 'times' "$(awk -F '\t' 'NR == 2 { began = $11 - $2 }
		NR > 1 && ($11 - $2 - began) ^ 2 < 0.0025 ^ 2 { same++ }
		END { print same }' "$d/out")" 10
	[ "$(awk -F '\t' -v now="$(date +%s)" 'NR == 2 { print ($11 <= now + 1 &&
		$11 > now - 3600) }' "$d/out")" = 1 ] || fail "$(cat "$d/out")"
}

case_readers_below_are_counted() {
	start
	empty api
	limiter api/orders
	reader api/orders/token
	waiting api/orders 1
	plot 0 "$m/api" --data -t 200ms -d 100ms
	is 'waiting, and below' "$(awk -F '\t' 'NR > 1 { print $4, $10 }' "$d/out" | sort -u)" '0 1'
}

# Two whole rounds at least are in FILE.
has_rounds() { [ -s "$1" ] && [ "$(wc -l < "$1")" -gt 2 ]; }

case_each_round_of_the_text_is_written_as_it_is_taken() {
	local status=0
	fake
	"$RATEFS" plot "$f" --data -t 1h -d 50ms > "$d/samples" &
	eventually 20 has_rounds "$d/samples"
	kill -9 $!
	gone $! 20 || status=$?
	is 'exit status' $status 137
	is 'columns' "$(awk -F '\t' '{ print NF }' "$d/samples" | sort -u)" 11
	"$RATEFS" plot "$f" --data -t 1h -d 50ms -o "$d/more" &
	eventually 20 has_rounds "$d/more"
	kill $!
	gone $! 20
	{ timeout 40 "$RATEFS" plot "$f" --data -t 1h -d 50ms || :; } | head -n 3 > "$d/few"
	is 'lines of a pipe that is closed' "$(wc -l < "$d/few")" 3
}

case_counters_become_rates() {
	fake
	sed 's/100/1100/' "$f/stat" > "$f/new"
	python3 "$CASES/replace.py" "$f/stat" "$f/new" > "$d/looks" &
	eventually 20 [ -s "$d/looks" ] || fail 'it does not look'
	plot 0 "$f" --data -t 4 -d 2
	# At most 1000 in 2 s, less if the machine is slow; then nothing more.
	[ "$(awk -F '\t' 'NR == 2 { print ($3 > 0 && $3 <= 500) }' "$d/out")" = 1 ] ||
		fail "$(cat "$d/out")"
	is 'granted later' "$(awk -F '\t' 'NR == 3 { print $3 }' "$d/out")" 0
	is 'effective rate' "$(awk -F '\t' 'NR == 3 { print $5 }' "$d/out")" max
}

case_text_can_go_to_a_file() {
	fake
	plot 0 "$f" --data -t 200ms -d 100ms -o "$d/samples"
	is lines "$(wc -l < "$d/samples")" 3
	[ ! -s "$d/out" ]
}

# records PID: that plot has begun, and SIGTERM ends the recording.
records() {
	local caught
	caught=$(sed -n 's/^SigCgt:[[:blank:]]*//p' "/proc/$1/status")
	((0x${caught:-0} & 1 << 14))
}

case_a_file_stays_as_it_is_until_another_is_whole() {
	local status=0 file=$d/image.svg
	fake
	seq 10000 > "$file"
	chmod 640 "$file"
	ln -s image.svg "$d/link.svg"
	"$RATEFS" plot "$f" -t 1h -d 1h -o "$file" 2> "$d/err" &
	eventually 20 records $!
	kill $!
	gone $! 20 || status=$?
	is 'exit status' $status 1
	says 'interrupted before the second sample'
	is 'after it was interrupted' "$(tail -n 1 "$file")" 10000
	mv "$f/stat" "$f/away"
	plot 1 "$f" -t 1h -o "$d/link.svg"
	is 'after it failed' "$(tail -n 1 "$file")" 10000
	mv "$f/away" "$f/stat"
	plot 0 "$f" -t 200ms -d 100ms -o "$d/link.svg"
	image "$file" granted
	is 'mode and type' "$(stat -c %a "$file") $(stat -c %F "$d/link.svg")" '640 symbolic link'
	ln -sf ahead.svg "$d/link.svg"
	plot 0 "$f" -t 200ms -d 100ms -o "$d/link.svg"
	image "$d/ahead.svg" granted
	plot 1 "$f" -t 1h -o "$d/nowhere/image.svg"
	(umask 037 && plot 0 "$f" -t 200ms -d 100ms -o "$d/new.svg")
	is 'mode of a new one' "$(stat -c %a "$d/new.svg")" 640
	is 'what is there' "$(cd "$d" && ls -d ./*.svg)" \
		$'./ahead.svg\n./image.svg\n./link.svg\n./new.svg'
}

case_a_text_stays_if_there_is_no_such_limiter() {
	fake
	echo old > "$d/samples"
	plot 1 "$d/nowhere" --data -t 1h -o "$d/samples"
	is 'after it failed' "$(cat "$d/samples")" old
	plot 1 "$f" --data -t 1h -o "$d/nowhere/"
	plot 1 "$f" --data -t 1h -o ''
	plot 0 "$f" --data -t 200ms -d 100ms -o "$d/samples"
	is lines "$(wc -l < "$d/samples")" 3
}

case_a_file_that_is_none_of_its_own_stays() {
	local kind
	mkdir "$d/nowhere"
	mkfifo "$d/fifo"
	mknod "$d/full" c 1 7
	exec 8<> "$d/fifo"
	for kind in fifo full nowhere; do
		plot 1 "$d/nowhere" --data -t 1h -o "$d/$kind"
	done
	is 'what is there' "$(stat -c %F "$d"/{fifo,full,nowhere})" \
		$'fifo\ncharacter special file\ndirectory'
	fake
	plot 1 "$f" --data -t 200ms -d 100ms -o "$d/full"
	says 'full: No space left'
	plot 0 "$f" --data -t 200ms -d 100ms -o "$d/fifo"
	is 'in the pipe' "$(head -n 3 <&8 | cut -f 1 | head -n 1)" limiter
}

# image FILE WORD…: the words of that SVG, and none of those behind a dash.
image() {
	python3 - "$@" <<- 'END'
		import sys, xml.etree.ElementTree as tree
		text = "".join(tree.parse(sys.argv[1]).getroot().itertext())
		wanted, _, others = "\n".join(sys.argv[2:]).partition("\n-")
		for word in wanted.split("\n"):
		    assert word in text, word
		for word in others.split("\n")[1:]:
		    assert word not in text, word
	END
}

case_images_are_drawn() {
	local limiter="$d/it's \"a\" limiter"
	fake
	sed -i 's/max/50/' "$f/stat"
	printf 'waiting_below 2\nthrottled 0\n' >> "$f/stat"
	printf 'backoff_paused_seconds 0\nbackoff_seconds 0.5\n' >> "$f/stat"
	cp -r "$f" "$limiter"
	plot 0 "$f/" "$limiter" -t 300ms -d 100ms -o "$d/image.svg"
	is 'what it says' "$(cat "$d/err")" ''
	image "$d/image.svg" fake, "it's \"a\" limiter" granted 'dashed: the rate' wait \
		'dashed: in limiters below' 'share of the limit' 'delay of back-off, milliseconds' \
		seconds "$(hostname), $(date +%Y-)" - "$d" throttled pauses 'effective rate'
	plot 0 "$f" -t 300ms -d 100ms -o "$d/image.png"
	is 'what it says' "$(cat "$d/err")" ''
	is 'first bytes' "$(head -c 4 "$d/image.png" | tail -c 3)" PNG
}

# saved LINE…: $d/saved, with these lines behind the names of two columns; \t is a tab.
saved() {
	printf 'limiter\tseconds\tgranted_per_second\twaiting\n' > "$d/saved"
	[ $# = 0 ] || printf '%b\n' "$@" >> "$d/saved"
}

case_a_text_is_drawn_later() {
	fake
	mv "$f" "$d/other"
	fake
	plot 0 "$f" "$d/other" --data -t 300ms -d 100ms -o "$d/saved"
	rm -r "$f" "$d/other"
	plot 0 --from "$d/saved" -o "$d/image.svg"
	image "$d/image.svg" fake other granted wait 'share of the limit' \
		"$(date +%Y-)"
	"$RATEFS" plot --from - -o "$d/again.svg" < "$d/saved"
	cmp "$d/again.svg" "$d/image.svg"
	head -n 1 "$d/saved" > "$d/names"
	"$RATEFS" plot --from - -o "$d/no.svg" < "$d/names" 2> "$d/err" && fail 'it draws'
	says '^ratefs plot: standard input:2: no samples are in it'
	waiting_gnuplot
	: > "$d/go"
	saved 'a\t1.0\t7\t-' 'b\t1.0\tmax\t2' 'a\t2.5\t8.25\t3' 'b\t2.5\t0\t4' 'a\t3\t9\t9'
	printf 'b\t3' >> "$d/saved"
	plot 0 --from "$d/saved" -o "$d/image.svg"
	is 'what is drawn of a' "$(sed -n '/^.line0/,/^END/p' "$d/script" | sed '1d;$d' |
		cut -f 1-3)" $'0\t7\t-\n1\t8.25\t3\n2.5\t8.25\t3'
	is 'what is drawn of b' "$(sed -n '/^.line1/,/^END/p' "$d/script" | sed '1d;$d' |
		cut -f 1-3)" $'0\t-\t2\n1\t0\t4\n2.5\t0\t4'
}

# unread PATTERN: $d/saved is refused so.
unread() {
	plot 1 --from "$d/saved" -o "$d/image.svg"
	says "saved:$1"
	[ ! -e "$d/image.svg" ] || fail 'a file is left'
}

case_a_text_that_is_no_recording_is_refused_with_its_line() {
	local i
	: > "$d/saved"
	unread '1: not what --data writes'
	saved
	unread '2: no samples'
	for i in 'x' '' '-' nan inf -1 1x; do
		saved 'a\t1\t7\t-' "a\\t$i\\t7\\t-"
		unread "3: not the seconds.*'$i'"
	done
	for i in 'x' '' nan inf -1 1x; do
		saved "a\\t1\\t$i\\t-"
		unread "2: not a value: '$i'"
	done
	saved 'a\t1\t7'
	unread '2: not a value'
	saved a
	unread '2: not the seconds'
	saved 'a\t1\t7\t-\t8'
	unread "2: a value that has no name: '8'"
	saved 'a\t1\t7\t-' 'a\t1\t7\t-'
	unread '3: not the seconds'
	saved 'a\t1\t7\t-' 'b\t2\t7\t-'
	unread '3: not the seconds'
	saved 'a\t1\t7\t-' 'b\t1\t7\t-' 'a\t2\t7\t-' 'a\t3\t7\t-'
	unread "5: not the limiter of this line: 'a'"
	saved "$(for i in {1..65}; do echo "$i\\t1\\t7\\t-"; done)"
	unread "66: too many limiters: '65'"
	saved "$(printf '%8000s' a)\\t1\\t7\\t-"
	unread '2: no line of a recording'
	for i in bogus '' "$(printf 'waiting\t%.0s' {1..10})"; do
		printf 'limiter\tseconds\t%s\n' "$i" > "$d/saved"
		unread '1: not a column'
	done
	plot 1 --from "$d" -o "$d/image.svg"
	plot 1 --from "$d/nowhere" -o "$d/image.svg"
	plot 1 --from /dev/zero -o "$d/image.svg"
}

case_a_panel_without_anything_to_show_is_left_out() {
	fake
	sed -i 's/^share .*/share 1/' "$f/stat"
	plot 0 "$f" -t 200ms -d 100ms -o "$d/image.svg"
	is 'what it says' "$(cat "$d/err")" ''
	image "$d/image.svg" granted wait - rate dashed throttled back-off share
}

# script LINE…: of the picture of what is saved with these lines behind the names, in $d/script.
script() {
	saved "$@"
	plot 0 --from "$d/saved" -o "$d/image.svg"
}

case_names_are_as_short_as_they_differ() {
	waiting_gnuplot
	: > "$d/go"
	script 'm/a/x\t1\t7\t0' 'm/a/x\t2\t7\t0'
	like 'one' "$(cat "$d/script")" "label 2 'x' at"
	script 'm/a/x\t1\t7\t0' 'm/ab/x\t1\t7\t0'
	like 'two' "$(cat "$d/script")" "label 2 'a/x'.', '.'ab/x' at"
	script {m/a,m/a/b,m/c,m/d,m/e}'\t1\t7\t0'
	like 'many' "$(cat "$d/script")" "label 2 'a'.', '.'a/b'.', '.'c'.' and 2 more' at"
	script {a/x,/a/x}'\t1\t7\t0'
	like 'of nothing' "$(cat "$d/script")" "label 2 'a/x'.', '.'/a/x' at"
}

case_axes_have_whole_steps() {
	local most wanted
	waiting_gnuplot
	: > "$d/go"
	while read -r most wanted; do
		script "a\\t1\\t$most\\t0" "a\\t2\\t0\\t0"
		is "axis up to $most" "$(sed -n '/^set yrange/{s///p;n;s/.*ytics//p}' "$d/script" |
			head -n 2 | tr -d '\n')" " ${wanted/,/ }"
	done <<- 'END'
		0 [0:1],0.5
		1 [0:1],0.5
		4 [0:4],1
		4.1 [0:6],2
		20 [0:20],5
		21 [0:30],10
		0.3 [0:0.3],0.1
		80000 [0:80000],20000
	END
}

case_many_limiters_are_told_apart() {
	local i
	waiting_gnuplot
	: > "$d/go"
	script "$(for i in {1..64}; do printf 'm%d\\t1\\t7\\t0\n' "$i"; done)"
	is 'kinds of lines of tokens' "$(sed -n '/^plot/{p;q}' "$d/script" |
		grep -o 'with steps [^,]*' | sort -u | wc -l)" 64
	is 'kinds in the legend' "$(grep -o "keyentry with lines [^,]* title" "$d/script" |
		sort -u | wc -l)" 64
}

# stack LINE…: likewise, of the first and its children.
stack() {
	saved "$@"
	plot 0 --from "$d/saved" --children -o "$d/image.svg"
}

case_a_stack_fits_its_axis() {
	waiting_gnuplot
	: > "$d/go"
	stack a'\t1\t1\t0' a/{b,c}'\t1\t9\t0'
	like 'axis' "$(cat "$d/script")" 'yrange \[0:20\]'
	like 'layers' "$(cat "$d/script")" $'0\t9\t18\t18\t18'
	stack a'\t1\t-\t0' a/{1..12}'\t1\t-\t0'
	is 'children with a colour' "$(grep -c '^\$line' "$d/script")" 10
	like 'layers without a value' "$(cat "$d/script")" $'0(\t0){11}\n'
	stack 'a\t1\t7\t0'
	like 'one without children' "$(cat "$d/script")" "label 2 'a' at"
	! grep -q keyentry "$d/script" || fail 'it has a legend'
	stack 'a\t1\t7\t0' 'a/b\t1\t7\t0' 'a/c/b\t1\t7\t0'
	like 'names' "$(cat "$d/script")" "title 'b',.* title 'c/b'"
}

case_a_title_has_the_times_if_they_are_known() {
	local seconds unix wanted
	waiting_gnuplot
	: > "$d/go"
	export TZ=UTC0
	while read -r seconds unix wanted; do
		printf 'limiter\tseconds\tunix_time\na\t%s\t%s\n' "$seconds" "$unix" > "$d/saved"
		plot 0 --from "$d/saved" -o "$d/image.svg"
		is "title of $seconds s until $unix" "$(sed -nE \
			"s/^set label 3 ''.'(.*)' at .*/\\1/p" "$d/script")" "$wanted"
	done <<- 'END'
		5 5 1970-01-01, 00:00:00 to 00:00:05 UTC
		20 86410 1970-01-01, 23:59:50 to 1970-01-02, 00:00:10 UTC
		1e18 0
		1e18 1e18
		5 1e18
	END
}

case_the_unit_of_time_suits_the_recording() {
	local seconds unit
	waiting_gnuplot
	: > "$d/go"
	for seconds in 299:seconds 300:minutes 14399:minutes 14400:hours; do
		unit=${seconds#*:}
		script "a\\t1\\t1\\t0" "a\\t${seconds%:*}\\t0\\t0"
		like "unit of $seconds" "$(grep xlabel "$d/script")" "'$unit'"
	done
}

case_children_are_stacked() {
	local i
	start
	limiter api 1000/s
	for i in 1 2 3 4 5 6 7 8 9 rare; do
		limiter "api/of <$i>" 1000/s
	done
	for i in 1 2 3 4 5 6 7 8 9; do
		(while cat "$m/api/of <$i>/token"; do sleep 0.01; done) > "$d/reader" &
	done
	plot 0 "$m/api" --children -t 1s -d 100ms -o "$d/image.svg"
	is 'what it says' "$(cat "$d/err")" ''
	image "$d/image.svg" 'api and its children' 'of <1>' 'of <9>' '1 others' \
		'its own readers' 'effective rate' - "$m" 'api/of' 'rare'
	plot 0 "$m/api" --children --data -t 200ms -d 100ms
	is 'limiters' "$(awk -F '\t' 'NR > 1 { print $1 }' "$d/out" | sort -u | wc -l)" 11
}

case_children_are_of_one_limiter_and_not_too_many() {
	fake
	plot 2 "$f" "$f" --children --data
	says 'children of one limiter'
	mkdir "$f"/{1..64}
	plot 1 "$f" --children --data -t 1h
	says 'more than 63 children'
}

# Fifteen throttlings, as in tests/sim/traces/learning/backoff_rows.trace.
case_delay_of_backoff_is_recorded() {
	start
	limiter orders 500/s
	echo 'exponential initial=1ms up=1.5 down=0.6 after=5 jitter=0' > "$m/orders/backoff"
	plot 0 "$m/orders" --data -t 200ms -d 100ms
	is 'delay before' "$(awk -F '\t' 'NR == 2 { print $9 }' "$d/out")" 0
	echo throttled 15 > "$m/orders/feedback"
	plot 0 "$m/orders" --data -t 200ms -d 100ms
	is 'delay in ms' "$(awk -F '\t' 'NR == 2 { printf "%.1f", 1000 * $9 }' "$d/out")" 291.9
	echo ok 5 > "$m/orders/feedback"
	plot 0 "$m/orders" --data -t 200ms -d 100ms
	is 'delay in ms' "$(awk -F '\t' 'NR == 2 { printf "%.1f", 1000 * $9 }' "$d/out")" 175.2
}

# The counter has all of a pause when it begins; the record has it when it is.
case_a_pause_is_told_while_it_lasts() {
	local file
	fake
	echo 'backoff_paused_seconds 2.5' >> "$f/stat"
	sed 's/2.5/3.75/' "$f/stat" > "$f/new"
	cp "$f/stat" "$f/same"
	# When the first round was taken is not told: the pause is to begin in a later one.
	for file in same new; do
		python3 "$CASES/replace.py" "$f/stat" "$f/$file"
	done > "$d/looks" &
	eventually 20 [ -s "$d/looks" ] || fail 'it does not look'
	plot 0 "$f" --data -t 5 -d 500ms
	is 'paused' "$(awk -F '\t' 'NR > 1 { pause += $8 * ($2 - at); at = $2 }
		NR > 1 && $8 > 1 { print "more than all of it" }
		END { printf "%.2f, at the end %s", pause, $8 }' "$d/out")" '1.25, at the end 0'
}

case_without_gnuplot_nothing_is_recorded() {
	fake
	mkdir "$d/empty"
	local status=0
	PATH=$d/empty "$RATEFS" plot "$f" -t 1h -o "$d/image.svg" 2> "$d/err" || status=$?
	is 'exit status' $status 1
	says 'gnuplot is not installed.*--data'
	[ ! -e "$d/image.svg" ] || fail 'an empty file is left'
}

case_a_gnuplot_that_fails_is_told() {
	fake
	mkdir "$d/bin"
	printf '#!/bin/sh\nexit 3\n' > "$d/bin/gnuplot"
	chmod +x "$d/bin/gnuplot"
	PATH=$d/bin:$PATH plot 1 "$f" -t 200ms -d 100ms -o "$d/image.svg"
	says 'gnuplot'
	[ ! -e "$d/image.svg" ] || fail 'an empty file is left'
}

case_a_path_that_is_no_limiter_is_refused() {
	fake
	plot 1 "$d/nowhere" --data -t 1h
	says 'nowhere: No such file'
	plot 1 "$d" --data -t 1h
	says "$d: not a limiter: it has no file stat"
	plot 1 "$f" --data -t 1h -o "$d/nowhere/samples"
	says 'nowhere/samples: No such file'
	: > "$f/stat"
	plot 1 "$f" --data -t 1h
	says 'not a limiter'
}

case_a_mount_point_is_no_limiter() {
	start
	limiter orders
	plot 1 "$m" --data -t 1h
	says "$m: not a limiter but the tree"
	plot 1 "$m/" -t 1h -o "$d/image.svg"
	says 'not a limiter but the tree'
	plot 1 "$m/orders/keys" --data
	says "$m/orders/keys: not a limiter: it has no file stat"
	[ ! -e "$d/image.svg" ] || fail 'an empty file is left'
}

# on_screen SCENARIO PATH: of screen.py, in $d.
on_screen() {
	(cd "$d" && timeout 50 /usr/bin/python3 "$CASES/screen.py" "$1" "$RATEFS" "$2")
}

case_signals_end_the_recording_and_it_is_drawn() {
	fake
	on_screen draws_on_signals "$f"
}

case_without_a_file_a_terminal_has_it_in_signs() {
	fake
	sed -i 's/max/50/' "$f/stat"
	on_screen draws_in_signs "$f"
}

case_limiters_of_a_terminal_have_the_signs_of_their_names() {
	saved m{1,2,3,4,5,6,7,8}'\t1\t-\t0'
	sed -i 's/m\([1-8]\)\t1\t-/m\1\t1\t\1/' "$d/saved"
	on_screen draws_many_in_signs "$d/saved"
}

case_the_progress_fits_the_terminal() {
	fake
	on_screen tells_progress "$f"
}

# waiting_gnuplot: one that reads its script, and then waits for $d/go.
waiting_gnuplot() {
	mkdir "$d/bin"
	cat > "$d/bin/gnuplot" <<- END
		#!/bin/bash
		echo \$\$ > "$d/gnuplot"
		cat > "$d/script"
		echo script >&2
		until [ -e "$d/go" ] || ! kill -0 \$PPID; do sleep 0.05; done
	END
	chmod +x "$d/bin/gnuplot"
	PATH=$d/bin:$PATH
}

case_a_second_control_c_ends_it_at_once() {
	fake
	waiting_gnuplot
	on_screen ends_at_once "$f"
	eventually 20 eval '! alive "$(cat "$d/gnuplot")"'
	[ ! -e "$d/image.svg" ] || fail 'a file is left'
}

case_a_second_sigterm_does_nothing_as_timeout_sends_it_twice() {
	local status=0
	fake
	waiting_gnuplot
	"$RATEFS" plot "$f" -t 100ms -d 50ms -o "$d/image.svg" 2> "$d/err" &
	eventually 20 grep -qx script "$d/err"
	kill $! "$(cat "$d/gnuplot")"
	kill $! "$(cat "$d/gnuplot")"
	: > "$d/go"
	gone $! 20 || status=$?
	is "exit status ($(cat "$d/err"))" $status 0
}

case_a_limiter_that_goes_away_ends_it() {
	start
	limiter orders
	on_screen draws_what_went_away "$m/orders"
}

case_wrong_arguments_are_refused() {
	local text many i
	fake
	plot 2
	says 'no limiter'
	plot 2 "$f"
	says 'no file'
	plot 2 "$f" -o "$d/image.gif"
	says "'.*image.gif'"
	plot 2 "$f" -o .svg
	says "'.svg'"
	plot 2 "$f" --bogus
	says bogus
	for text in 0 9ms 25h x ''; do
		plot 2 "$f" --data -t "$text" && says "'$text'"
		plot 2 "$f" --data -d "$text" && says "'$text'"
	done
	plot 2 "$f" --data -t 1 -d 2
	says shorter
	plot 2 "$f" --data -t 24h -d 10ms
	says 'more than 100000 samples'
	plot 2 "$f" --from "$f" -o "$d/image.svg"
	says 'beside --from'
	plot 2 --from "$f" --data
	says 'reads what --data writes'
	many=$(for ((i = 0; i < 65; i++)); do echo "$f"; done)
	plot 2 $many --data
	says 'more than 64'
}

case_its_help_is_told() {
	plot 0 --help
	like help "$(cat "$d/out")" 'ratefs plot'
	plot 0 -h
}
