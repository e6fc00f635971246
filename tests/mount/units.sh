# shellcheck shell=bash
# Limits of several units in one limiter, and takes of several amounts.

# spent N UNIT: so many of a unit of llm were granted.
spent() { is "granted.$2" "$(sed -n "s/^granted\.$2 //p" "$m/llm/stat")" "$1"; }

case_a_take_of_several_units_has_all_of_them_or_none() {
	start
	limiter llm '1/d:3 tpm=1/d:1000'
	is rate "$(cat "$m/llm/rate")" '1/d:3 tpm=1/d:1000'
	is 'both' "$(cat "$m/llm/take/1,tpm=600")" 1
	is eta "$(cat "$m/llm/eta/1,tpm=400")" 0.000
	denied EBUSY read "$m/llm/take/1,tpm=401,within=1s"
	counts llm granted 1
	spent 600 tpm
	is 'one unit alone' "$(cat "$m/llm/take/tpm=100")" 0
	is 'what names none' "$(cat "$m/llm/token")" 1
	counts llm granted 2
	spent 700 tpm
	reader llm/take/1,tpm=500
	waiting llm 1
	like waiters "$(cat "$m/llm/waiters")" ' 1,tpm=500 '
	like why "$(cat "$m/llm/why")" '^llm rate tpm=1/d: 200 tokens to come, [0-9.]+ s$'
	echo 'tpm=-200' > "$m/llm/charge"
	gone "$reader" 20
	is 'what it read' "$(cat "$d/got")" 1
	spent 1200 tpm
}

case_a_charge_of_units_is_taken_whole() {
	start
	limiter llm '1/d:9 tpm=1/d:1000'
	: "$(cat "$m/llm/take/1,tpm=600")"
	echo '2 tpm=-312' > "$m/llm/charge"
	counts llm charged 2
	is tokens "$(sed -n 's/^tokens.tpm //p' "$m/llm/stat" | cut -d . -f 1)" 712
	denied ERANGE write "$m/llm/charge" '1 tpm=-289'
	denied EINVAL write "$m/llm/charge" '1 rpm=1'
	like 'last error' "$(cat "$m/last_error")" 'has that unit'
	denied EINVAL write "$m/llm/charge" 'tpm=1 tpm=2'
	counts llm charged 2
}

case_names_of_takes_that_make_no_sense_are_refused() {
	start
	limiter llm '1/d:9 tpm=1/d:1000'
	local name
	for name in 1,rpm=1 1,tpm 1-3,tpm=1 tpm=1,1 1,tpm=1,tpm=2 tpm= 1,within=1s,tpm=1 1,9x=1 \
		1, ,; do
		denied ENOENT read "$m/llm/take/$name"
	done
	denied ENOENT read "$m/llm/eta/1,tpm=1,within=1s"
	denied ERANGE read "$m/llm/take/1,tpm=11T"
	denied EINVAL write "$m/llm/rate" '1/d within=5/s'
	denied EINVAL write "$m/llm/rate" '1/d tpm=max'
	is rate "$(cat "$m/llm/rate")" '1/d:9 tpm=1/d:1000'
	counts llm granted 0
}

case_a_child_takes_units_of_the_limiters_above() {
	start
	limiter llm '1/d:9 tpm=1/d:1000'
	limiter llm/batch 1/d 5
	is child "$(cat "$m/llm/batch/take/2,tpm=300")" 2
	spent 300 tpm
	counts llm granted 2
	echo 2/d > "$m/llm/key_rate"
	echo 4 > "$m/llm/key_burst"
	is key "$(cat "$m/llm/keys/ann/take/1,tpm=100")" 1
	spent 400 tpm
	denied EBUSY read "$m/llm/keys/ann/take/1,tpm=601,within=1s"
}

case_keys_have_units_of_their_own() {
	start
	limiter llm max
	echo '2/d tpm=1/d:1000' > "$m/llm/key_rate"
	echo 5 > "$m/llm/key_burst"
	is key_rate "$(cat "$m/llm/key_rate")" '2/d tpm=1/d:1000'
	is take "$(cat "$m/llm/keys/ann/take/1,tpm=600")" 1
	denied EBUSY read "$m/llm/keys/ann/take/1,tpm=401,within=1s"
	is eta "$(cat "$m/llm/keys/ann/eta/1,tpm=400")" 0.000
	is 'another key' "$(cat "$m/llm/keys/bob/take/1,tpm=1000")" 1
	is granted "$(sed -n 's/^granted.tpm //p' "$m/llm/keys/ann/stat")" 600
	is 'its tokens' "$(sed -n 's/^tokens.tpm //p' "$m/llm/keys/ann/stat" | cut -d . -f 1)" 400
	counts llm granted 2
	denied ENOENT read "$m/llm/take/1,tpm=1"
	denied ENOENT read "$m/llm/keys/ann/take/1,rpm=1"
	echo '3/d tpm=1/d:2000' > "$m/llm/keys/ann/rate"
	is its "$(cat "$m/llm/keys/ann/rate")" '3/d tpm=1/d:2000'
	like config "$(cat "$m/llm/config")" 'key.ann.rate=3/d tpm=1/d:2000'
	refused ERANGE write "$m/llm/keys/ann/rate" 'rpm=1/d'
	reader llm/keys/ann/take/tpm=401
	waiting llm/keys/ann 1
	like why "$(cat "$m/llm/keys/ann/why")" 'tpm=1/d: 1 token to come'
	echo 1/d > "$m/llm/keys/ann/rate"
	gone "$reader" 20
}

case_tokens_without_a_unit_wait_for_none() {
	start
	limiter llm 'rpm=1/d tpm=1/d'
	local i
	for i in 1 2 3; do
		is "token $i" "$(cat "$m/llm/token")" 1
	done
	is 'a unit' "$(cat "$m/llm/take/rpm=1")" 0
	counts llm granted 3
}

case_metrics_have_a_label_for_units() {
	start
	limiter llm '1/d:9 tpm=1/d:1000'
	: "$(cat "$m/llm/take/1,tpm=600")"
	is granted "$(grep -c '^ratefs_granted_total{limiter="llm"} 1$' "$m/metrics")" 1
	is unit "$(grep -c '^ratefs_granted_total{limiter="llm",unit="tpm"} 600$' "$m/metrics")" 1
	python3 - "$m/metrics" <<- 'PYTHON' || fail 'a family is in two places'
		import sys
		seen, last = set(), None
		for line in open(sys.argv[1]):
		    if line.startswith("#"):
		        continue
		    name = line.split("{")[0].split(" ")[0]
		    if name != last and name in seen and not name.startswith("ratefs_wait"):
		        sys.exit(name)
		    seen.add(name)
		    last = name
	PYTHON
}

case_a_poll_keeps_the_units_for_its_read() {
	start
	limiter llm '1/d:9 tpm=1/d:1000'
	: "$(cat "$m/llm/take/1,tpm=600")"
	python3 - "$m/llm" <<- 'PYTHON' || fail 'a poll'
		import os, select, sys
		fd = os.open(sys.argv[1] + "/take/1,tpm=500", os.O_RDONLY | os.O_NONBLOCK)
		poll = select.poll()
		poll.register(fd, select.POLLIN)
		assert not poll.poll(0), "a token that is not there"
		with open(sys.argv[1] + "/charge", "w") as charge:
		    charge.write("tpm=-100")
		assert poll.poll(60000), "no token"
		assert os.pread(fd, 100, 0) == b"1\n"
	PYTHON
	spent 1100 tpm
}

case_units_outlive_their_server() {
	outlives
	limiter llm '1/d:9 tpm=1/d:1000'
	: "$(cat "$m/llm/take/1,tpm=600")"
	echo 'tpm=50' > "$m/llm/charge"
	exec {held}< "$m/llm/take/1,tpm=100"
	reader llm/take/2,tpm=500
	waiting llm 1
	killed
	waiting llm 1
	like waiters "$(cat "$m/llm/waiters")" ' 2,tpm=500 '
	spent 600 tpm
	is tokens "$(sed -n 's/^tokens.tpm //p' "$m/llm/stat" | cut -d . -f 1)" 350
	"$RATEFS" --reload "$m"
	waiting llm 1
	echo 'tpm=-250' > "$m/llm/charge"
	gone "$reader" 20
	spent 1100 tpm
	read -r -u "$held" got
	is 'a file that was open' "$got" 1
	exec {held}<&-
	spent 1200 tpm
	is returned "$(sed -n 's/^returned.tpm //p' "$m/llm/stat")" 250
}

case_a_service_tells_what_is_left_of_a_unit() {
	outlives
	limiter llm '1000/s:1000 tpm=1/d:90000'
	echo '200 unit=tpm limit=90000 remaining=1200 reset=59m60s window=60s' > "$m/llm/feedback"
	is rate "$(sed -n 's/^service_rate.tpm //p' "$m/llm/stat")" 1500
	: "$(cat "$m/llm/take/1,tpm=600")"
	is left "$(sed -n 's/^service_left.tpm //p' "$m/llm/stat")" 600
	is metrics "$(grep -c '^ratefs_service_left{limiter="llm",unit="tpm"} 600$' \
		"$m/metrics")" 1
	is 'the other unit' "$(cat "$m/llm/take/10")" 10
	reader llm/take/1,tpm=601
	waiting llm 1
	like why "$(cat "$m/llm/why")" \
		'^llm service: tpm=600 left until 3[56][0-9]{2}\.[0-9] s from now$'
	refused EINVAL write "$m/llm/feedback" $'ok\nok unit=rpm remaining=0 reset=1h'
	like 'last error' "$(cat "$m/last_error")" 'unit=rpm: the rate of the limiter has no such'
	counts llm ok 1
	killed
	waiting llm 1
	is 'left after a server' "$(sed -n 's/^service_left.tpm //p' "$m/llm/stat")" 600
	echo 'quota unit=tpm remaining=max' > "$m/llm/feedback"
	gone "$reader" 20
	is 'what it got' "$(cat "$d/got")" 1
}
