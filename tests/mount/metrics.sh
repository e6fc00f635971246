# shellcheck shell=bash
# The file metrics: which series it has.

# everything_is_on: a limiter that has each feature, and a child, in which readers have waited.
everything_is_on() {
	mkdir -p "$m/all/child"
	cat > "$m/all/config" <<- 'END'
		rate=1000/s:1000 1000000/year@jan-1 tpm=1000/s:100000
		concurrency=1
		key_rate=1000/s
		backoff=exponential
		queue_max=100
		wait_max=1h
		min=1/s
	END
	: "$(cat "$m/all/take/1,tpm=1" "$m/all/keys/one/token")"
	echo 1 > "$m/all/charge"
	echo '200 limit=240 remaining=12 reset=1h window=60s' > "$m/all/feedback"
	echo '200 unit=tpm limit=90000 remaining=1200 reset=59m60s window=60s' > "$m/all/feedback"
	exec 5< "$m/all/slot"
	cat "$m/all/slot" > /dev/null 5<&- &
	waiting all 1
	exec 5<&-
	wait $!
	echo shadow > "$m/all/enforcement"
}

case_each_series_is_listed_in_ratefs_5() {
	start
	everything_is_on
	cp "$m/metrics" "$d/metrics"
	python3 - "$d/metrics" "$(dirname "${BASH_SOURCE[0]}")/../../fs/ratefs.5" \
		"${SOURCE+fleet}" <<- 'PYTHON' || fail 'the list in ratefs(5) and the page differ'
		import re, sys
		page, listed, series = sys.argv[1:3], {}, {}
		section = open(page[1]).read().split(".Ss Metrics\n")[1].split("\n.Ss ")[0]
		if sys.argv[3] != "fleet":
		    section = section.split("\nIn a fleet ")[0]
		for name, kind, labels, text in re.findall(
		        r"^\.It Va (\S+) Pq (\w+)(?: ; Cm (.*))?\n((?:[^.].*\n)+)", section, re.M):
		    labels = frozenset((labels or "").replace(",", " ").split())
		    assert name not in listed, f"{name} is there twice"
		    listed[name] = (kind, labels, " ".join(text.split()))
		helps = {}
		for line in open(page[0]):
		    if m := re.match(r"# HELP (\S+) (.*)", line):
		        helps[m[1]] = m[2]
		    elif m := re.match(r"# TYPE (\S+) (\w+)", line):
		        kind, name = m[2], m[1]
		        series[name] = (kind, frozenset(), helps[name])
		    else:
		        labels = re.findall(r'(\w+)="(?:[^"\\]|\\.)*"', line)
		        series[name] = (kind, series[name][1] | set(labels), helps[name])
		for name in sorted(listed.keys() | series.keys()):
		    has, shows = listed.get(name), series.get(name)
		    if has != shows:
		        print(f"{name}: ratefs(5) has {has}, metrics {shows}")
		sys.exit(listed != series or len(series) < 30)
	PYTHON
}

# series LIMITER: names of the series that it has, without ratefs_ and the histogram.
series() {
	sed -nE "s|^ratefs_([a-z_]*)\{limiter=\"$1\"[,}].*|\1|p" "$m/metrics" | grep -v ^wait_ |
		sort -u
}

# also LIMITER [NAME…]: it has these series and those that each has; in a fleet two more.
also() {
	local limiter=$1 all=(granted_total served_total refused_total cancelled_total
		delayed_seconds_total waiting rate effective_rate tokens)
	shift
	[ -z "${SOURCE-}" ] || all+=(share partitions_held)
	is "series of $limiter" "$(series "$limiter")" "$(printf '%s\n' "${all[@]}" "$@" | sort)"
}

case_a_limiter_has_no_series_of_what_is_off() {
	start
	limiter plain 10/s
	limiter other
	also plain
	also other
	echo 5 > "$m/other/concurrency"
	mkdir "$m/other/child"
	also other slots_opened_total slots slots_used waiting_below
	also other/child
	also plain
}

case_a_counter_outlives_the_setting_that_it_came_with() {
	outlives
	empty orders
	echo 0 > "$m/orders/queue_max"
	also orders refused_queue_max_total
	denied EBUSY read "$m/orders/token"
	echo max > "$m/orders/queue_max"
	also orders refused_queue_max_total
	local counted=(refused_queue_max_total ok_total throttled_total error_total backoff_seconds
		backoff_{up,down,pauses}_total backoff_paused_seconds_total)
	echo exponential > "$m/orders/backoff"
	echo throttled > "$m/orders/feedback"
	echo none > "$m/orders/backoff"
	also orders "${counted[@]}"
	killed
	also orders "${counted[@]}"
}
