# shellcheck shell=bash
# The file metrics: which series it has.

# everything_is_on: a limiter that has each feature, and a child, in which readers have waited.
everything_is_on() {
	mkdir -p "$m/all/child"
	cat > "$m/all/config" <<- 'END'
		rate=1000/s:1000 1000000/day tpm=1000/s:100000
		concurrency=1
		key_rate=1000/s
		backoff=exponential
		enforcement=enforce
		queue_max=100
		wait_max=1h
		min=1/s
	END
	: "$(cat "$m/all/take/1,tpm=1" "$m/all/keys/one/token")"
	echo '200 limit=240 remaining=12 reset=1h window=60s' > "$m/all/feedback"
	echo '200 unit=tpm limit=90000 remaining=1200 reset=59m60s window=60s' > "$m/all/feedback"
	exec 5< "$m/all/slot"
	cat "$m/all/slot" > /dev/null 5<&- &
	waiting all 1
	exec 5<&-
	wait $!
	echo 1/h:1 > "$m/all/child/rate"
	echo 1h > "$m/all/child/wait_max"
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
		for name, kind, labels, text in re.findall(
		        r"^\.It Va (\S+) Pq (\w+)(?: ; Cm (.*))?\n((?:[^.].*\n)+)", section, re.M):
		    labels = frozenset((labels or "").replace(",", " ").split())
		    assert name not in listed, f"{name} is there twice"
		    listed[name] = (kind, labels, " ".join(text.split()))
		if sys.argv[3] != "fleet":
		    listed = {name: row for name, row in listed.items()
		              if not name.startswith("ratefs_fleet_")}
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
