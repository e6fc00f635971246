# shellcheck shell=bash
# ratefs status: a verdict, and what it rests on.

# status WANTED ARGUMENTS…: ratefs status exits so; its output is in $d/out and $d/err.
status() {
	local wanted=$1 status=0
	shift
	timeout 60 "$RATEFS" status "$@" > "$d/out" 2> "$d/err" < /dev/null || status=$?
	is "exit status of status $* ($(cat "$d/out" "$d/err"))" "$status" "$wanted"
}

# verdict TEXT: that is the first line.
verdict() { is 'the first line' "$(head -n 1 "$d/out")" "$1"; }

says() { is 'what it says' "$(cat "$d/err")" "$1"; }

# json EXPRESSION: of the object o that --json prints, by Python.
json() {
	local status=0
	timeout 60 "$RATEFS" status --json "$m" > "$d/json" || status=$?
	[ $status -lt 2 ] || fail "exit status $status"
	python3 -c '
import json, sys
def wrong(text): raise ValueError(text)
o = json.loads(open(sys.argv[1], "rb").read().decode(), parse_constant=wrong)
print(json.dumps(eval(sys.argv[2])))' "$d/json" "$1"
}

# row LIMITER: its line, with single blanks.
row() { awk -v limiter="$1" '$4 == limiter { $1 = $1; print }' "$d/out"; }

case_nothing_is_wrong() {
	start -o host=here
	limiter orders 5/s
	status 0 "$m"
	verdict ok
	like 'what it prints' "$(cat "$d/out")" \
		$'\nhost +here\nsource +.*\nlimiters +1\nwaiters +0\nup +[0-9]+(s|m[0-9]+s)'
	is 'wrong' "$(json '[o["verdict"], o["wrong"], o["limiters"], o["host"]]')" \
		'["ok", [], [], "here"]'
	is 'numbers' "$(json '[o["limiter_count"], o["waiters"], len(o["limiters"])]')" \
		'[1, 0, 0]'
	stop
}

case_readers_that_wait_for_their_turn_are_no_trouble() {
	start
	empty orders
	reader orders/token
	waiting orders 1
	status 0 "$m"
	verdict ok
	like 'its line' "$(row orders)" \
		'^1 1\.2e-05 1 orders orders rate 1/d: 2 tokens to come'
	is 'its object' "$(json '[[l["path"], l["stuck"], l["waiting"], l["granted"], l["share"]]
		for l in o["limiters"]]')" '[["orders", false, 1, 1, 1]]'
	kill "$reader"
	stop
}

case_a_closed_limiter_is_wrong_when_readers_wait() {
	start
	limiter a
	limiter b 5/s
	limiter b/c 5/s
	limiter none 0
	echo closed > "$m/a/enforcement"
	status 0 "$m"
	verdict ok
	is 'its line' "$(row a)" '0 0 0 a a enforcement closed: nothing is granted'
	like 'the line of none' "$(row none)" '^0 0 0 none '
	is limiters "$(json '[[l["path"], l["stuck"]] for l in o["limiters"]]')" \
		'[["a", false], ["none", false]]'
	echo closed > "$m/b/enforcement"
	reader b/c/token
	waiting b/c 1
	status 1 "$m"
	verdict 'readers wait and nothing is granted: b/c: b enforcement closed: nothing is granted'
	is 'the second line' "$(sed -n 2p "$d/out")" ''
	is limiters "$(json '[[l["path"], l["stuck"]] for l in o["limiters"]]')" \
		'[["b/c", true], ["a", false], ["b", false], ["none", false]]'
	is 'what is wrong' "$(json '[o["verdict"] == o["wrong"][0], len(o["wrong"])]')" '[true, 1]'
	echo enforce > "$m/b/enforcement"
	wait "$reader"
	stop
}

case_a_wait_that_ends_by_itself_is_not_wrong() {
	start
	limiter orders 5/s
	echo 'exponential initial=1s max=1min' > "$m/orders/backoff"
	echo 'throttled retry-after=500' > "$m/orders/feedback"
	reader orders/token
	waiting orders 1
	status 0 "$m"
	verdict ok
	like 'its line' "$(row orders)" ' orders orders backoff: pause until '
	kill "$reader"
	stop
}

# More readers wait elsewhere, in more limiters than have a line.
case_a_stuck_reader_is_not_lost_among_many() {
	local i readers=()
	start
	mkdir "$m"/busy{1..30} "$m/zzz"
	echo 1/d | tee "$m"/busy{1..30}/rate > "$m/zzz/rate"
	echo closed > "$m/zzz/enforcement"
	for i in {1..30}; do
		: "$(cat "$m/busy$i/token")"
		reader "busy$i/token"
		readers+=("$reader")
	done
	reader zzz/token
	eventually 20 eval '[ "$(status_of waiters)" = 31 ]'
	status 1 "$m"
	verdict "readers wait and nothing is granted: zzz: zzz enforcement closed: nothing is\
 granted"
	is 'the end' "$(tail -n 1 "$d/out")" 'and 11 more'
	kill "$reader" "${readers[@]}"
	stop
}

case_names_of_any_bytes_are_json() {
	local name=$'"q\\ \xc3\xa9\xc2\x9b \xff \xf0\x9f\x98\x80'
	start
	limiter "$name" 0
	reader "$name/token"
	waiting "$name" 1
	is path "$(json 'o["limiters"][0]["path"]')" \
		'"\"q\\ \u00e9\u009b \\xff \ud83d\ude00"'
	grep -q $'\xc2\x9b' "$d/json" && fail 'a control character'
	like why "$(json 'o["limiters"][0]["why"]')" 'rate 0.*never'
	status 1 "$m"
	kill "$reader"
	stop
}

case_a_server_that_was_replaced_is_told() {
	outlives
	killed
	status 0 "$m"
	like 'the line of up' "$(cat "$d/out")" $'\nup +[0-9]+s, servers before it: 1\n?$'
	is 'servers before' "$(json 'o["servers_before"]')" 1
	stop
}

case_a_frozen_tree_is_told_first() {
	start
	limiter orders
	echo closed > "$m/orders/enforcement"
	reader orders/token
	waiting orders 1
	exec {frozen}> "$m/frozen"
	status 1 "$m"
	like 'the first line' "$(head -n 1 "$d/out")" \
		'^frozen by process [0-9]+: nothing is granted$'
	like 'the second line' "$(sed -n 2p "$d/out")" '^readers wait '
	exec {frozen}>&-
	kill "$reader"
	stop
}

# fleet: a tree of files, of a fleet of which h2 is silent, and h3 holds nothing.
fleet() {
	t=$d/tree
	mkdir -p "$t/idle" "$t/lost"
	: > "$t/last_error"
	printf '%s\n' 'version 9.9' 'host h1' 'source zk://x' "coordinator $1" "degraded $2" \
		'limiters 2' "waiters 2" 'right_seconds 3.200' 'lease_right_seconds 8.000' \
		'uptime_seconds 4000' 'servers_before 0' > "$t/status"
	printf '%s\n' '# host weight held seconds id' 'h1 1 20 1 a' \
		'h2 2 5 23 b' 'h3 1 0 400 c' > "$t/hosts"
	printf 'ratefs_%s{limiter="%s"} %s\n' effective_rate idle 0 effective_rate lost 0 \
		share idle 0 share lost 0 waiting idle 0 waiting lost 2 rate idle 5 rate lost 5 \
		> "$t/metrics"
	echo nothing > "$t/idle/why"
	echo 'lost no partition: 3 hosts share 20, claimed since 1.2 s' > "$t/lost/why"
	m=$t
}

case_hosts_of_a_fleet_that_are_silent_are_told() {
	fleet ready no
	status 1 "$t"
	verdict '1 of 3 hosts silent: h2 for 23 s'
	like 'what it prints' "$(cat "$d/out")" $'\nfleet +ready\n.*\nhosts +3, 1 silent: h2\n'
	is hosts "$(json '[[h["name"], h["weight"], h["held"], h["silent_seconds"], h["silent"]]
		for h in o["hosts"]]')" \
		'[["h1", 1, 20, 1, false], ["h2", 2, 5, 23, true], ["h3", 1, 0, 400, false]]'
	is limiters "$(json '[[l["path"], l["stuck"]] for l in o["limiters"]]')" \
		'[["lost", false]]'
	sed -i '1s/.*/# as of 23 s ago: ZooKeeper does not answer/' "$t/hosts"
	status 0 "$t"
	verdict ok
}

case_a_fleet_without_its_coordinator_is_told() {
	fleet disconnected yes
	status 1 "$t"
	is 'what is wrong' "$(sed '/^$/,$d' "$d/out")" "ZooKeeper does not answer:\
 the file offline of each limiter is in force
readers wait and nothing is granted: lost: lost no partition: 3 hosts share 20, claimed since 1.2 s"
	fleet disconnected no
	status 1 "$t"
	verdict 'ZooKeeper does not answer: the right to leases lasts 3.200 s more'
	fleet joining no
	status 1 "$t"
	verdict 'the fleet cannot be used yet: joining'
}

case_without_a_tree_it_is_trouble() {
	mkdir "$d/plain"
	status 2 "$d/plain"
	says "ratefs status: $d/plain: not where a tree of ratefs is mounted"
	status 2 "$d/nowhere"
	status 2 "$m" "$m"
	status 2 --jso=x
	is 'what it prints' "$(cat "$d/out")" ''
}

case_output_that_cannot_be_written_is_trouble() {
	local status=0
	start
	"$RATEFS" status "$m" > /dev/full 2> "$d/err" || status=$?
	is 'exit status' "$status" 2
	says 'ratefs status: standard output: No space left on device'
	stop
}

case_a_thousand_limiters_have_a_reason() {
	start
	mkdir "$m/many"
	cd "$m/many"
	seq 1100 | xargs mkdir
	echo closed | tee {1..1100}/enforcement > "$d/tee"
	cd /
	status 0 "$m"
	verdict ok
	is lines "$(grep -c ' many/' "$d/out")" 20
	is 'the end' "$(tail -n 1 "$d/out")" 'and 1080 more'
	is limiters "$(json '[len(o["limiters"]), len([l for l in o["limiters"] if l["why"]])]')" \
		'[1100, 1000]'
	stop
}
