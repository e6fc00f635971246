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
			s,/N(\[.*)?$,/1,; s,/A-B\[.*$,/1-3,'
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
	is 'other lines' "$(grep -cvE '^[a-z_]+ (-?[0-9.]+|max)$' "$m/orders/stat")" 0
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
		        assert m[1] == current and m[1] in helps, "not below TYPE and HELP: " + line
		        assert (m[1], m[2]) not in seen, "twice: " + line
		        seen.add((m[1], m[2]))
		        if types[m[1]] == "counter":
		            assert m[1].endswith("_total"), "a counter without _total: " + line
		            assert float(m[3]) >= 0
		samples = dict(line.rsplit(" ", 1) for line in text.split("\n")
		               if line and line[0] != "#")
		granted = [v for k, v in samples.items()
		           if k.startswith("ratefs_granted") and 'limiter="orders"' in k]
		assert granted == ["5"], granted
		assert any('limiter="orders/eu"' in k for k in samples)
		assert any('quote\\"d' in k for k in samples)
		assert any("back\\\\slash" in k for k in samples)
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
	for i in {1..100}; do mkdir "$m/limiter$i"; done
	python3 - "$m/metrics" <<- 'EOF'
		import errno, os, sys, threading
		fd = os.open(sys.argv[1], os.O_RDONLY)
		wrong = []
		def read():
		    for i in range(50):
		        try:
		            text = os.pread(fd, 131072, 0)
		        except OSError as error:  # two pages are in the making
		            if error.errno != errno.EBUSY:
		                wrong.append(error)
		            continue
		        whole = text.startswith(b"# HELP ratefs_build_info") and text[-1:] == b"\n"
		        if not whole:
		            wrong.append(text[:100])
		        os.pread(fd, 131072, 4096)
		threads = [threading.Thread(target=read) for _ in range(8)]
		for thread in threads: thread.start()
		for thread in threads: thread.join()
		assert not wrong, wrong
	EOF
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
