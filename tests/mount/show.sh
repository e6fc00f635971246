# shellcheck shell=bash
# What the files show of the tree: README, status, metrics, events.

case_the_readme_names_every_file() {
	start
	limiter orders 100/s
	local name
	for name in $(ls "$m" "$m/orders" "$m/orders/partitions" "$m/orders/partitions/"[0-9]* |
		grep -v '[:/]' | grep -vxE '[0-9-]+' | grep -vx orders); do
		grep -qw -- "$name" "$m/README" || fail "README does not name $name"
	done
	[ "$(wc -l < "$m/README")" -gt 20 ] || fail 'README is short'
}

# listed HEADING: the files below that heading of README, as paths of the limiter orders, its
# partition 0, its piece 0-4095 and its key one.
listed() {
	awk -v heading="$1" '
		/^[^ ].*:$/ { on = index($0, heading) == 1; next }
		on && $2 ~ /^(r|w|rw)$/ { print $1 }' "$m/README" |
		sed -E 's,^LIMITER/,orders/,; s,/P/,/0/,; s,/A-B/,/0-4095/,; s,/KEY/,/one/,
			s,/N(\[.*)?$,/1,; s,/A-B\[.*$,/1-3,; s,=DURATION$,=0,'
}

# shown_here: of these paths those that this mount has: of partitions with numbers, or of pieces.
shown_here() {
	if [ -e "$m/orders/partitions/0/token" ]; then
		grep -vF /0-4095/
	else
		grep -vF /0/ | sed "s,/0-4095/,/$(a_part)/,"
	fi
}

case_the_readme_sorts_files_by_what_reading_them_costs() {
	start
	empty orders
	local path status
	is 'headings' "$(grep -c '^[^ ].*[a-z)]:$' "$m/README")" 4
	is 'files under a heading' "$(listed Reading | wc -l) $(listed For | wc -l)" \
		"$(awk '$2 ~ /^(r|rw)$/' "$m/README" | wc -l) $(awk '$2 == "w"' "$m/README" |
		wc -l)"
	for path in $(listed 'Reading costs nothing' | shown_here); do
		timeout 10 cat "$m/$path" > "$d/said" || fail "reading $path does not end"
	done
	counts orders granted 1
	echo 1 > "$m/orders/concurrency"
	exec 9< "$m/orders/slot"
	for path in $(listed 'Reading takes tokens' | shown_here); do
		denied 'EAGAIN|EBUSY' peek "$m/$path"
	done
	exec 9<&-
	echo max > "$m/orders/rate"
	for path in $(listed 'Reading may never end'); do
		status=0
		timeout 0.5 cat "$m/$path" > /dev/null || status=$?
		is "status of cat $path after half a second" $status 124
	done
	for path in $(listed 'For writing'); do
		denied 'EACCES|EPERM' read "$m/$path"
	done
}

case_status_tells_of_the_daemon() {
	start -o host=thishost
	limiter orders
	local word
	for word in version host source limiters waiters uptime; do
		grep -qi "^$word" "$m/status" ||
			fail "status does not tell $word: $(cat "$m/status")"
	done
	like status "$(cat "$m/status")" "source ${SOURCE:-local}"
	like status "$(cat "$m/status")" "$("$RATEFS" --version | grep -oE '[0-9]+(\.[0-9]+)+' |
		head -n 1)"
}

case_stat_is_a_name_and_a_number_a_line() {
	start
	limiter orders 100/s
	local name
	is 'other lines' "$(grep -cvE '^[a-z0-9_]+ (-?[0-9.]+|max)$' "$m/orders/stat")" 0
	for name in granted served refused cancelled delayed_seconds shadowed waiting rate \
		effective_rate tokens partitions_held; do
		counter orders $name > /dev/null || fail "no $name"
	done
}

case_metrics_are_prometheus_text() {
	start
	limiter orders 1/h 5
	limiter orders/eu
	mkdir "$m/quote\"d" "$m/back\\slash" "$m/é €"
	: "$(cat "$m/orders/take/5")"
	denied EBUSY read "$m/orders/try"
	limiter waits 10/s
	echo 1 > "$m/waits/concurrency"
	cat "$m/waits/token" "$m/waits/token" > /dev/null
	exec 5< "$m/waits/slot"
	cat "$m/waits/slot" > /dev/null 5<&- &
	waiting waits 1
	exec 5<&-
	wait $!
	cp "$m/metrics" "$d/metrics"
	python3 - "$d/metrics" <<- 'EOF'
		import re, sys
		text = open(sys.argv[1], encoding="utf-8", newline="\n").read()
		assert text.endswith("\n")
		name = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
		label = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\\\|\\"|\\n)*"'
		number = r"-?[0-9.]+(?:e[+-]?[0-9]+)?|[+-]Inf|NaN"
		sample = re.compile(rf"({name})(?:\{{({label}(?:,{label})*)?,?\}})? ({number})")
		kind = "counter|gauge|histogram|summary|untyped"
		types, helps, seen, current = {}, set(), set(), None
		le = re.compile(r'^(.*),le="([^"]+)"$')
		buckets = {}
		for line in text.split("\n")[:-1]:
		    if m := re.fullmatch(rf"# HELP ({name}) (.+)", line):
		        assert m[1] not in helps, line
		        helps.add(m[1])
		    elif m := re.fullmatch(rf"# TYPE ({name}) ({kind})", line):
		        assert m[1] not in types, line
		        types[m[1]] = m[2]
		        current = m[1]
		    else:
		        m = sample.fullmatch(line)
		        assert m, "no sample: " + line
		        assert m[1].startswith("ratefs_"), line
		        is_part = types[current] == "histogram"
		        family = re.sub("_(bucket|sum|count)$", "", m[1]) if is_part else m[1]
		        assert family == current and family in helps, "not below its TYPE: " + line
		        assert (m[1], m[2]) not in seen, "twice: " + line
		        seen.add((m[1], m[2]))
		        if m[1].endswith("_bucket"):
		            labels, bound = le.match(m[2]).groups()
		            buckets.setdefault(labels, []).append((float(bound), float(m[3])))
		        if types[family] == "counter":
		            assert m[1].endswith("_total"), "a counter without _total: " + line
		            assert float(m[3]) >= 0
		samples = dict(line.rsplit(" ", 1) for line in text.split("\n")
		               if line and line[0] != "#")
		granted = samples['ratefs_granted_total{limiter="orders"}']
		assert granted == "5", granted
		assert any('limiter="orders/eu"' in k for k in samples)
		assert any('quote\\"d' in k for k in samples)
		assert any("back\\\\slash" in k for k in samples)
		for labels in ('limiter="waits",for="token"', 'limiter="waits",for="slot"'):
		    counts = buckets[labels]
		    assert counts == sorted(counts) and len(counts) == 24, (labels, counts)
		    assert counts[-1] == (float("inf"), 2), (labels, counts)
		    assert samples["ratefs_wait_seconds_count{%s}" % labels] == "2"
		    assert float(samples["ratefs_wait_seconds_sum{%s}" % labels]) > 0
	EOF
}

case_events_follow_what_is_done() {
	start
	cat "$m/events" > "$d/events" &
	local pid=$!
	eventually 20 eval 'grep -qs "^#" "$d/events"' || fail 'no head'
	mkdir "$m/orders"
	echo 500/s > "$m/orders/rate"
	echo closed > "$m/orders/enforcement"
	mv "$m/orders" "$m/bookings"
	rmdir "$m/bookings"
	eventually 10 eval '[ "$(grep -c -E "orders|bookings" "$d/events")" -ge 5 ]' ||
		fail "events: $(cat "$d/events")"
	like rate "$(cat "$d/events")" 'rate[^a-z].*500/s'
	like enforcement "$(cat "$d/events")" 'enforcement[^a-z].*closed'
	sed 's/^/# /' "$d/events"
	kill $pid
	wait $pid 2> /dev/null || :
}

case_every_reader_of_events_gets_every_event() {
	start
	local i pids=()
	for i in 1 2 3; do
		cat "$m/events" > "$d/events$i" &
		pids+=($!)
		eventually 20 eval 'grep -qs "^#" "$d/events$i"' || fail 'no head'
	done
	mkdir "$m/first" "$m/second"
	for i in 1 2 3; do
		# The head has "seconds" in it.
		eventually 10 grep -q ' second created$' "$d/events$i" ||
			fail "reader $i: $(cat "$d/events$i")"
		grep -q ' first created$' "$d/events$i" || fail "reader $i: $(cat "$d/events$i")"
	done
	kill "${pids[@]}"
	wait "${pids[@]}" 2> /dev/null || :
}

case_events_can_be_polled_and_read_without_blocking() {
	start
	python3 - "$m" <<- 'EOF'
		import os, select, sys
		mount = sys.argv[1]
		fd = os.open(mount + "/events", os.O_RDONLY | os.O_NONBLOCK)
		poll, epoll = select.poll(), select.epoll()
		poll.register(fd, select.POLLIN)
		epoll.register(fd, select.EPOLLIN)
		assert poll.poll(0) and epoll.poll(0), "the head is there"
		head = b"# seconds path change, from here on; cat follows them, tail -f does not\n"
		assert os.read(fd, 10) + os.read(fd, 4096) == head
		assert not poll.poll(100) and not epoll.poll(0)
		try:
		    os.read(fd, 4096)
		    assert False, "an event out of nothing"
		except BlockingIOError:
		    pass
		os.mkdir(mount + "/orders")
		assert poll.poll(10000) and epoll.poll(10) and select.select([fd], [], [], 10)[0]
		line = os.read(fd, 4096)
		assert b"orders" in line and line.endswith(b"\n"), line
		assert not poll.poll(0)
	EOF
}

case_events_from_before_it_was_opened_are_not_told() {
	start
	limiter before
	python3 - "$m" <<- 'EOF'
		import os, sys
		fd = os.open(sys.argv[1] + "/events", os.O_RDONLY | os.O_NONBLOCK)
		os.mkdir(sys.argv[1] + "/after")
		assert os.read(fd, 65536).startswith(b"#")
		said = os.read(fd, 65536)
		assert b"after" in said and b"before" not in said, said
	EOF
}

case_an_events_file_that_is_never_read_is_no_burden() {
	start
	exec 9< "$m/events"
	limiter orders
	local i
	for i in {1..3000}; do
		echo "$i/s" > "$m/orders/rate"
	done
	is rate "$(cat "$m/orders/rate")" 3000/s
	# The head, how much was lost, and a line.
	dd bs=65536 count=3 status=none <&9 > "$d/events"
	grep -q '/s' "$d/events" || fail 'nothing of it was told'
	exec 9<&-
}

case_tail_of_events_says_at_once_how_they_are_followed() {
	start
	tail -f "$m/events" > "$d/told" &
	local pid=$!
	eventually 20 grep -qs '^# .*cat follows them, tail -f does not$' "$d/told" ||
		fail 'it says nothing'
	alive $pid || fail 'tail has ended'
	kill $pid
	wait $pid 2> /dev/null || :
	is 'tail of it' "$(timeout 20 tail -n 3 "$m/events")" "$(cat "$d/told")"
}

case_a_shell_that_reads_events_line_by_line_gets_each() {
	start
	local i shell told
	for shell in bash dash zsh 'busybox sh'; do
		told=$d/${shell% *}
		# shellcheck disable=SC2016
		events=$m/events $shell -c 'while read -r line; do echo "$line"; sleep 0.1
			done < "$events"' > "$told" &
		local pid=$!
		eventually 20 eval 'grep -qs "^#" "$told"' || fail "$shell: no head"
		for i in 1 2 3 4 5; do mkdir "$m/l$i"; done
		for i in 1 2 3 4 5; do rmdir "$m/l$i"; done
		eventually 20 grep -q 'l5 removed' "$told" || fail "$shell: $(cat "$told")"
		is "$shell" "$(grep -c ' l[1-5] ' "$told")" 10
		kill $pid
		wait $pid 2> /dev/null || :
	done
}

case_a_blocked_reader_of_events_can_be_killed() {
	start
	local signal
	for signal in INT TERM KILL; do
		env --default-signal cat "$m/events" > "$d/got" &
		local pid=$!
		eventually 20 eval '[ "$(status_of readers)" = 1 ]' || fail 'it does not wait'
		kill -$signal $pid
		eventually 10 eval "! alive $pid" || fail "still there after $signal"
		wait $pid 2> /dev/null || :
	done
}

case_a_listing_leaves_out_what_never_ends() {
	start
	limiter orders
	: "$(cat "$m/orders/keys/alice/token")"
	is 'what is listed' "$(find "$m" -name events -o -name stream)" ''
	is 'by their names' "$(ls "$m/events" "$m/orders/stream" "$m/orders/keys/alice/stream" |
		wc -l)" 3
	is 'of a stream' "$(head -n 3 "$m/orders/stream" | wc -l)" 3
	is sizes "$(stat -c %s "$m/orders/stream" "$m/orders/token" | tr '\n' ' ')" '2 2 '
	is 'size of events' "$(stat -c %s "$m/events")" "$(head -n 1 "$m/events" | wc -c)"
}

case_hosts_has_one_line_for_this_host() {
	start -o host=thishost
	is lines "$(grep -c thishost "$m/hosts")" 1
}

case_hosts_has_the_id_by_which_nodes_name_a_host() {
	start -o host=thishost
	if [ -z "${SOURCE-}" ]; then
		is id "$(awk '$1 == "thishost" { print $5 }' "$m/hosts")" -
	else
		is id "$(awk '$1 == "thishost" { print $5 }' "$m/hosts")" \
			"$(awk '$1 == "host_id" { print $2 }' "$m/status")"
	fi
}

case_hosts_counts_the_partitions_of_all_limiters() {
	[ -z "${SOURCE-}" ] || skip 'other hosts may hold some'
	start
	limiter orders 1000/s 1000
	mkdir "$m/orders/bulk"
	echo 7 > "$m/orders/partitions/count"
	echo 5 > "$m/orders/bulk/partitions/count"
	is both "$(rows "$m/hosts" | cut -d ' ' -f 3)" 12
	rmdir "$m/orders/bulk"
	is 'one of them' "$(rows "$m/hosts" | cut -d ' ' -f 3)" 7
}

case_a_read_that_begins_in_the_middle_of_any_file_gets_what_is_there() {
	start
	limiter orders 5/s 1000
	find "$m" -type f ! -name token ! -name slot > "$d/files"
	python3 - "$d/files" <<- 'EOF'
		import errno, os, sys
		for path in open(sys.argv[1]).read().splitlines():
		    try:
		        file = os.open(path, os.O_RDONLY)
		    except PermissionError:
		        continue
		    whole, part = os.pread(file, 1 << 20, 0), os.pread(file, 1 << 20, 3)
		    assert part == whole[3:], (path, whole, part)
		    again = os.open(path, os.O_RDONLY)
		    os.pread(again, 10, 5)
		    assert os.pread(again, 10, 1 << 20) == b"", path
	EOF
	local i
	for i in {1..70}; do mkdir "$m/l$i"; done
	is 'a long page from the middle on' \
		"$(dd if="$m/metrics" bs=4096 skip=1 count=1 status=none | wc -c)" 4096
}

case_pages_of_metrics_come_whole_to_many_readers_at_once() {
	start
	# A page of more than 64 is made aside.
	for i in {1..70}; do mkdir "$m/limiter$i"; done
	python3 - "$m/metrics" <<- 'EOF'
		import errno, os, sys, threading
		REQUEST_MAX = 131072  # bytes that the kernel asks for at once
		fd = os.open(sys.argv[1], os.O_RDONLY)
		length = len(os.pread(fd, REQUEST_MAX, 0))
		assert 4096 < length < REQUEST_MAX, f"a page of {length} bytes is not one request"
		wrong = []
		def read():
		    for i in range(50):
		        text = os.pread(fd, REQUEST_MAX, 0)
		        whole = text.startswith(b"# HELP ratefs_build_info") and text[-1:] == b"\n"
		        if not whole:
		            wrong.append(text[:100])
		        os.pread(fd, REQUEST_MAX, 4096)
		threads = [threading.Thread(target=read) for _ in range(8)]
		for thread in threads: thread.start()
		for thread in threads: thread.join()
		assert not wrong, wrong
	EOF
}

case_a_shell_reads_a_long_page_line_by_line_beside_others() {
	local lines=0 line other i name=limiter-with-a-name-that-is-long
	start
	for ((i = 0; i < 1200; i++)); do echo "$m/$name$i"; done | xargs mkdir
	(while :; do cat "$m/metrics"; done > /dev/null) &
	other=$!
	# bash reads a block, goes back to behind the line, and reads the last block many times.
	while read -r line; do
		case $line in
		'# '* | ratefs_*' '*) ;;
		*) fail "a torn line: $line" ;;
		esac
		lines=$((lines + 1))
		[ $((lines % 125)) != 0 ] || echo "$lines/s" > "$m/${name}1/rate"
	done < "$m/metrics"
	kill $other
	[ $lines -gt 10000 ] || fail "$lines lines"
}

case_a_stream_without_a_token_is_not_ready() {
	start
	empty orders
	python3 - "$m/orders/stream" <<- 'EOF'
		import os, select, sys
		fd = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)
		try:
		    os.read(fd, 1)
		    sys.exit("there was a token")
		except BlockingIOError:
		    pass
		poll = select.poll()
		poll.register(fd, select.POLLIN)
		assert not poll.poll(200)
	EOF
}

# averages LIMITER: the three of its pressure.
averages() { sed -nE 's/^some avg10=(.*) avg60=(.*) avg300=(.*) total=[0-9]+$/\1 \2 \3/p' \
	"$m/$1/pressure"; }

total() { sed 's/.*total=//' "$m/$1/pressure"; }

case_pressure_tells_that_a_reader_waits_here_or_below() {
	start
	limiter orders 1/d
	limiter orders/eu
	is 'at first' "$(cat "$m/orders/pressure")" \
		'some avg10=0.00 avg60=0.00 avg300=0.00 total=0'
	: "$(cat "$m/orders/token")"
	reader orders/eu/token
	waiting orders/eu 1
	counts orders waiting 0
	counts orders waiting_below 1
	eventually 60 eval '[[ $(averages orders) =~ ^([1-9].*)\ ([0-9.]+)\ ([0-9.]+)$ ]]' ||
		fail "no pressure: $(cat "$m/orders/pressure")"
	local before
	before=$(total orders)
	eventually 60 eval '[ "$(total orders)" -gt '"$before"' ]'
	if [ "$(status_of outlives_server)" = yes ]; then
		killed
		waiting orders/eu 1
		[ "$(total orders)" -gt "$before" ] || fail 'another server begins at 0'
	fi
	kill "$reader"
	waiting orders/eu 0
	before=$(total orders)
	is 'once no reader waits' "$(total orders)" "$before"
}

# threshold CODE [ARGUMENT...]: runs CODE in Python with pressure of orders open as own, which has a
# threshold of 300 ms in 500 ms, and told(SECONDS): the events of a poll, or 0.
threshold() {
	python3 - "$m/orders" "$@" <<- 'EOF'
		import errno, os, select, sys, textwrap, time
		def refused(act, *args):
		    try:
		        act(*args)
		    except OSError as e:
		        return errno.errorcode[e.errno]
		def told(seconds, fd=None):
		    poll = select.poll()
		    poll.register(own if fd is None else fd, select.POLLPRI)
		    events = poll.poll(seconds * 1000)
		    return events[0][1] if events else 0
		file = sys.argv[1] + "/pressure"
		PRI, ERR = select.POLLPRI, select.POLLERR
		own = os.open(file, os.O_RDWR)
		assert told(0) == PRI | ERR, "without a threshold"
		began = time.monotonic()
		assert os.write(own, b"some 300000 500000\0") == 19
		exec(textwrap.dedent(sys.argv[2]))
	EOF
}

case_a_poll_for_pressure_wakes_when_readers_wait_for_its_threshold() {
	start
	limiter orders 1/d
	limiter orders/eu
	: "$(cat "$m/orders/token")"
	threshold '
		open(sys.argv[3], "w")
		assert told(60) == PRI
		line = os.pread(own, 100, 0)
		assert int(line.split(b"total=")[1]) >= 300000, line
		for i in range(4):
		    assert told(60) == PRI
		assert time.monotonic() - began >= 2.3, "more than one in a window"' "$d/set" &
	local watcher=$!
	eventually 60 test -e "$d/set"
	reader orders/eu/token
	wait "$watcher" || fail 'no event'
}

case_a_poll_for_pressure_sleeps_while_no_reader_waits() {
	start
	limiter orders 1/d
	threshold 'assert not told(1.5)'
}

case_thresholds_of_pressure_are_refused_as_by_psi() {
	start
	limiter orders 1/d
	threshold '
		def write(text):
		    fd = os.open(file, os.O_RDWR)
		    try:
		        return refused(os.write, fd, text)
		    finally:
		        os.close(fd)
		assert refused(os.write, own, b"some 300000 500000") == "EBUSY"
		assert write(b"some 300000 500000\n") is None
		for text in (b"full 1 500000", b"some 1 499999", b"some 1 10000001",
		             b"some 0 500000", b"some 600000 500000", b"some 1 500000 1",
		             b"some 1\0 500000"):
		    assert write(text) == "EINVAL", text
		os.rmdir(sys.argv[1])
		assert told(60) == PRI | ERR
		assert refused(os.write, own, b"some 300000 500000") == "ENODEV"'
	is 'why' "$(reason)" 'the limiter is gone'
}

case_a_user_may_watch_the_pressure_of_what_it_may_read() {
	start -o allow_other
	chmod 711 "$d" "$(dirname "$d")"
	limiter orders 1/d
	chmod 755 "$m/orders"
	as nobody sh -c 'printf "some 300000 500000" 1<> "$1"' - "$m/orders/pressure" ||
		fail 'a reader of pressure may not watch it'
	chmod 750 "$m/orders"
	! as nobody sh -c ': < "$1"' - "$m/orders/pressure" 2> /dev/null ||
		fail 'one that may not read it may'
}

case_a_threshold_of_pressure_outlives_a_server() {
	outlives
	limiter orders 1/d
	: "$(cat "$m/orders/token")"
	threshold '
		open(sys.argv[3], "w")
		assert told(60) == PRI' "$d/set" &
	local watcher=$!
	eventually 60 test -e "$d/set"
	killed
	reader orders/token
	wait "$watcher" || fail 'another server has no threshold'
}

case_quantiles_of_waits_outlive_a_server() {
	outlives
	limiter orders 10/s
	cat "$m/orders/token" "$m/orders/token" > /dev/null
	[ -n "${SOURCE-}" ] || is 'half did not wait' "$(counter orders wait_p50_seconds)" 0
	like 'one did' "$(counter orders wait_p99_seconds)" '^0\.[0-9]+$|^[1-9]'
	grep '^wait' "$m/orders/stat" > "$d/before"
	killed
	is 'after another server' "$(grep '^wait' "$m/orders/stat")" "$(cat "$d/before")"
}

case_users_lists_who_has_had_how_much() {
	start -o allow_other
	chmod 711 "$d" "$(dirname "$d")"
	limiter orders 1/d 100
	is 'users of none' "$(cat "$m/orders/users")" ''
	as nobody cat "$m/orders/take/7" "$m/orders/token" > /dev/null
	: "$(cat "$m/orders/keys/bob/take/30")"
	exec 5< "$m/orders/take/50"
	is 'through a file that is open' "$(head -c 2 <&5)" 50
	local nobody
	nobody=$(id -u nobody)
	like users "$(rows "$m/orders/users" | sed -E 's/^([0-9]+) [^ ]+ /\1 /' | paste -sd ,)" \
		"^0 - 50 0 0,0 bob 30 0 0,$nobody - 8 0 0\$"
	exec 5<&-
	as nobody cat "$m/orders/take/99" > /dev/null &
	waiting orders 1
	like 'who waits' "$(cat "$m/orders/users")" "(^|
)$nobody [^ ]+ - 8 1 0"
	kill %%
}

case_users_shows_no_name_of_a_key_that_is_forgotten() {
	start
	limiter orders
	echo 1000/s > "$m/orders/key_rate"
	is 'tokens' "$(cat "$m/orders/keys/bob/take/3")" 3
	# It is full again after some milliseconds, and forgotten a while later.
	eventually 20 eval 'rows "$m/orders/users" | grep -q "^0 [^ ]* - 3 0 0\$"' ||
		fail "$(cat "$m/orders/users")"
}

# The first file is behind 8,192 that were opened later, with 40 tokens of its own.
case_users_counts_tokens_through_very_many_files_when_these_are_closed() {
	start
	limiter orders 1/d 100
	exec 5< "$m/orders/take/40"
	is take "$(head -c 2 <&5)" 40
	python3 - "$m/orders/token" 5<&- > "$d/open" <<- 'END' &
		import os, sys, time
		files = [os.open(sys.argv[1], os.O_RDONLY) for _ in range(8192)]
		os.read(files[0], 16)
		print("open", flush=True)
		time.sleep(1000)
	END
	local crowd=$!
	eventually 40 [ -s "$d/open" ]
	like 'the newer ones' "$(rows "$m/orders/users")" '^0 [^ ]+ - 1 0 0$'
	exec 5<&-
	eventually 20 grep -q '^0 [^ ]* - 41 0 0$' "$m/orders/users" ||
		fail "and the one that is closed: $(cat "$m/orders/users")"
	kill $crowd
	wait $crowd 2> /dev/null || :
}

case_with_servers_fleet_tells_the_share_of_each_host() {
	start -o host=first
	mkdir "$d/other"
	"$RATEFS" -o host=second "$(sed -n 's/^source //p' "$m/status")" "$d/other"
	mkdir "$m/orders"
	printf 'rate=100/s\npartitions.count=4\n' > "$m/orders/config"
	shares() { # the lines of all but the last: they are all of it, and come to the last
		: "$(cat "$m/orders/token")"
		rows "$1/orders/fleet" | awk -v own="$2" 'NR == 1 { first = $1 }
			$1 != "=" { sum += $2; rate += $3; granted += $4; waiting += $5 }
			$1 == "-" { free = $2 }
			$1 == "first" && $2 > 0 && $4 > 0 && $5 == 0 && $6 < 60 { busy = 1 }
			$1 == "second" && $4 == 0 && $5 == 0 { idle = 1 }
			END { close_to = ($4 - granted) ^ 2 < 1e-4 * granted
				exit !($1 == "=" && $2 == 1 - free && sum == 1 && rate == 100 &&
					close_to && $5 == waiting && first == own && busy && idle) }
			'
	}
	eventually 60 shares "$m" first || fail "fleet: $(cat "$m/orders/fleet")"
	eventually 60 shares "$d/other" second ||
		fail "fleet of the other: $(cat "$d/other/orders/fleet")"
	echo 1/h > "$m/orders/rate"
	cat "$d/other/orders/take/100" &
	eventually 60 eval 'grep -qE "^second .* 1 [0-9]+$" "$m/orders/fleet"' ||
		fail "a reader waits on the other: $(cat "$m/orders/fleet")"
	like 'all wait' "$(tail -n 1 "$m/orders/fleet")" '^= .* 1 [0-9]+$'
	kill %%
	eventually 60 fusermount3 -u "$d/other" # when the reader has ended
}

case_fleet_of_a_host_alone_is_that_host() {
	start -o host=alone
	limiter orders 20/s
	: "$(cat "$m/orders/token")"
	like fleet "$(rows "$m/orders/fleet" | head -n 1)" \
		'^alone (1 20|0\.?[0-9]* [0-9.]+) ([0-9.]+|-) 0 [0-9]+$'
}

case_tables_have_headings_as_soon_as_they_have_lines() {
	start
	limiter orders 10/s 10
	echo 5 > "$m/orders/concurrency"
	echo 5/s > "$m/orders/key_rate"
	local file
	for file in waiters holders keys/a/holders; do
		is "$file without lines" "$(cat "$m/orders/$file")" ''
	done
	exec 7< "$m/orders/keys/a/slot"
	cat "$m/orders/token" > "$d/token"
	is hosts "$(head -n 1 "$m/hosts")" '# host weight held seconds id'
	is holders "$(head -n 1 "$m/orders/holders")" '# host pid uid command seconds'
	is 'holders of a key' "$(head -n 1 "$m/orders/keys/a/holders")" \
		'# host pid uid command seconds'
	is users "$(head -n 1 "$m/orders/users")" '# uid command key granted waiting slots'
	is fleet "$(head -n 1 "$m/orders/fleet")" '# host share rate granted waiting seconds'
}

case_commands_are_shown_in_ascii() {
	start
	limiter orders 1/h 1
	cat "$m/orders/token" > "$d/token"
	cp "$(command -v cat)" "$d/gr"$'\xc3\xbc\xff'
	"$d/gr"$'\xc3\xbc\xff' "$m/orders/token" > "$d/token" &
	eventually 10 eval 'has orders waiting 1' || fail 'nobody waits'
	is 'its command' "$(rows "$m/orders/waiters" | cut -d ' ' -f 6)" 'gr???'
	kill $!
}
