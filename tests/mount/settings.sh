# shellcheck shell=bash
# What the settings mean, seen through the mount.

case_a_new_limiter_gates_nothing() {
	start
	limiter orders
	is rate "$(cat "$m/orders/rate")" max
	is burst "$(cat "$m/orders/burst")" 1
	is release_interval "$(cat "$m/orders/release_interval")" 0s
	is enforcement "$(cat "$m/orders/enforcement")" enforce
	is take "$(cat "$m/orders/take/1000000")" 1000000
}

case_rates_are_read_back_as_they_were_written() {
	start
	local rate number=0
	# Each is the first of its limiter: in a fleet a second one soon after may be EBUSY.
	for rate in 500/s 0.5/s 1000/90s '10/s 5000/h' '10/s:20 5000/h:100' max; do
		limiter $((++number))
		echo "$rate" > "$m/$number/rate"
		is rate "$(cat "$m/$number/rate")" "$rate"
	done
	limiter orders
	echo 500 > "$m/orders/rate"
	is 'a plain number' "$(cat "$m/orders/rate")" 500/s
}

case_a_rate_means_the_same_when_written_back() {
	start
	limiter orders
	local rate first
	for rate in 500 20000/min 2GiB/min 64KiB/s 1/day 1/d 0.5/s 1000/90s 0 0/s 1e3 60/min \
		3600/h 1.50/s 1G/s 1000/100ms '10/s:20 5000/h:100'; do
		"$CLIENT" write "$m/orders/rate" "$rate" > "$d/got" ||
			{ echo "# $rate: $(cat "$d/got")"; continue; }
		first=$(cat "$m/orders/rate" && counter orders rate)
		echo "$(cat "$m/orders/rate")" > "$m/orders/rate"
		is "$rate, written back" "$(cat "$m/orders/rate" && counter orders rate)" "$first"
	done
}

case_the_gauges_of_rate_are_tokens_a_second() {
	start
	limiter orders
	local pair
	for pair in 500/s=500 60/min=1 0.5/s=0.5 64KiB/s=65536 64k/s=64000 2GiB/min=35791394; do
		echo "${pair%=*}" > "$m/orders/rate"
		like "rate after ${pair%=*}" "$(counter orders rate)" "^${pair#*=}(\$|\.)"
	done
}

case_several_limits_all_hold() {
	start
	limiter small '1/h:3 5/d:5'
	is three "$(cat "$m/small/take/3")" 3
	denied EBUSY read "$m/small/try"
	counts small granted 3
	limiter large '10/s:3 5/h:5'
	is three "$(cat "$m/large/take/3")" 3
	is 'the fourth and fifth' "$(cat "$m/large/take/2")" 2
	sleep 0.3
	denied EBUSY read "$m/large/try"
	counts large granted 5
}

case_raising_burst_adds_no_tokens_and_lowering_it_spills() {
	start
	limiter orders 1/h 10
	: "$(cat "$m/orders/take/8")"
	echo 1000 > "$m/orders/burst"
	denied EBUSY read "$m/orders/take/3,within=0s"
	is two "$(cat "$m/orders/take/2,within=0s")" 2
	echo -10 > "$m/orders/charge"
	echo 4 > "$m/orders/burst"
	echo 1000 > "$m/orders/burst"
	denied EBUSY read "$m/orders/take/5,within=0s"
	is four "$(cat "$m/orders/take/4,within=0s")" 4
}

case_a_shadow_limiter_grants_and_counts_what_would_have_waited() {
	start
	limiter orders 1/h 2
	echo shadow > "$m/orders/enforcement"
	local i
	for i in 1 2 3 4 5; do
		is "token $i" "$(cat "$m/orders/token")" 1
	done
	counts orders granted 5
	# In a fleet those that came before there was a lease would have waited, too.
	like shadowed "$(counter orders shadowed)" "^[3${SOURCE:+45}]\$"
}

case_an_open_limiter_grants_at_once() {
	start
	empty orders 1
	reader orders/token
	waiting orders 1
	echo open > "$m/orders/enforcement"
	gone $reader 20
	is token "$(cat "$m/orders/take/1000")" 1000
	counts orders shadowed 0
}

case_a_closed_limiter_grants_nothing_until_it_opens() {
	start
	limiter orders
	echo closed > "$m/orders/enforcement"
	denied EBUSY read "$m/orders/try"
	reader orders/token
	waiting orders 1
	echo 1000/s > "$m/orders/rate"
	counts orders waiting 1
	echo enforce > "$m/orders/enforcement"
	gone $reader 20
	counts orders granted 1
}

case_a_release_interval_releases_tokens_in_even_batches() {
	start
	limiter orders 0
	echo 500ms > "$m/orders/release_interval"
	"$CLIENT" crowd 16 "$m/orders/token" > /dev/null &
	waiting orders 16
	python3 - "$m/orders" <<- 'EOF'
		import sys, time
		with open(sys.argv[1] + "/rate", "w") as rate:
		    rate.write("8/s")
		seen, until = [], time.monotonic() + 30
		while time.monotonic() < until:
		    stat = dict(line.split() for line in open(sys.argv[1] + "/stat"))
		    if not seen or seen[-1] != int(stat["granted"]):
		        seen.append(int(stat["granted"]))
		    if seen[-1] == 16:
		        break
		    time.sleep(0.005)
		print("#", *seen)
		steps = [b - a for a, b in zip(seen, seen[1:])]
		assert seen[-1] == 16, seen
		assert all(step % 4 == 0 for step in steps[2:-1]), seen
		assert len(steps) <= 6, seen
	EOF
}

case_a_rate_of_zero_lets_nothing_pass() {
	start
	limiter orders 5/h 5
	echo 0 > "$m/orders/rate"
	denied EBUSY read "$m/orders/try"
	denied EBUSY read "$m/orders/take/1,within=1000d"
	is eta "$(cat "$m/orders/eta/1")" inf
	reader orders/token
	waiting orders 1
	echo max > "$m/orders/rate"
	gone "$reader" 20
	counts orders granted 1
}

case_a_new_rate_is_felt_by_readers_already_blocked() {
	start
	limiter orders 1/h
	cat "$m/orders/token" > /dev/null
	echo 0 > "$m/orders/rate"
	"$CLIENT" crowd 50 "$m/orders/token" > "$d/got" &
	local crowd=$!
	waiting orders 50
	echo 1000/s > "$m/orders/rate"
	gone $crowd 30
	is ended "$(cat "$d/got")" 'granted 50 interrupted 0 refused 0 other 0'
	counts orders granted 51
	counts orders waiting 0
}

case_config_shows_every_setting_and_writes_back() {
	start
	limiter orders '10/s:20 5000/h:100' 7
	local name before
	for name in rate burst release_interval enforcement partitions.count partitions.lease \
		partitions.reserve; do
		is "$name in config" "$(sed -n "s/^$name=//p" "$m/orders/config")" \
			"$(cat "$m/orders/${name/.//}")"
	done
	before=$(cat "$m/orders/config")
	cat "$m/orders/config" > "$d/config"
	cat "$d/config" > "$m/orders/config"
	is 'written back' "$(cat "$m/orders/config")" "$before"
	limiter copy
	cat "$m/orders/config" > "$m/copy/config"
	is 'written to another' "$(cat "$m/copy/config")" "$before"
}

case_config_takes_some_settings_and_leaves_the_others() {
	start
	limiter orders 10/s 7
	"$CLIENT" write "$m/orders/config" $'rate=20/s\nenforcement=shadow\n'
	is rate "$(cat "$m/orders/rate")" 20/s
	is enforcement "$(cat "$m/orders/enforcement")" shadow
	is burst "$(cat "$m/orders/burst")" 7
}

case_config_applies_all_or_nothing() {
	start
	limiter orders 10/s 7
	local before bad
	before=$(cat "$m/orders/config")
	for bad in 'burst=x' 'nonsense=1' 'burst' '=5' 'burst=8 9' 'enforcement=sometimes' \
		'partitions.count=0' 'granted=5'; do
		denied 'EINVAL|ERANGE' write "$m/orders/config" "rate=20/s
$bad
release_interval=1s"
		is "config after $bad" "$(cat "$m/orders/config")" "$before"
	done
}

case_every_setting_can_be_written_back() {
	start
	limiter orders '10/s:20 5000/h:100' 7
	local file value
	for file in rate burst release_interval enforcement partitions/count partitions/lease \
		partitions/reserve config; do
		value=$(cat "$m/orders/$file")
		cat "$m/orders/$file" > "$d/value"
		cat "$d/value" > "$m/orders/$file"
		is "$file" "$(cat "$m/orders/$file")" "$value"
	done
}
