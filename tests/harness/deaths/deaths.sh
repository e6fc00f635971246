# shellcheck shell=bash
# deaths.sh: to source. A keeper starts the next server when one dies, and goes on: a test that
# judges the keeper's end does not see a crash. These functions have each death of a server, and
# each report of a sanitizer, fail the test that did not ask for it.

# deaths_library FILE: makes what is preloaded, see deaths.c. Every user has to be able to read it.
deaths_library() {
	cc -std=gnu11 -D_GNU_SOURCE -O1 -fPIC -shared -o "$1" \
		"$(dirname "${BASH_SOURCE[0]}")/deaths.c"
}

# deaths_watch LIBRARY DIRECTORY: from now on, for all that is started. Makes DIRECTORY, for servers
# of every user.
deaths_watch() {
	mkdir -m 1777 "$2" && : > "$2/deaths" && chmod 666 "$2/deaths" || return
	export DEATHS=$2/deaths LD_PRELOAD=$1
	local log=log_path=$2/report
	export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}$log:verify_asan_link_order=0
	export UBSAN_OPTIONS=${UBSAN_OPTIONS:+$UBSAN_OPTIONS:}$log:print_stacktrace=1
	UBSAN_OPTIONS+=:halt_on_error=1
	export TSAN_OPTIONS=${TSAN_OPTIONS:+$TSAN_OPTIONS:}$log:halt_on_error=1
}

# death REGEX: a server is going to die so, as in a line of $DEATHS; asked for by the test.
death() { echo "$1" >> "$DEATHS.asked"; }

# death_by_kill PID: kills that server, as asked for by the test.
death_by_kill() {
	death "$1 signal 9"
	kill -9 "$1"
}

# deaths_verdict: prints each death that was not asked for, each that did not come, and the reports;
# fails if there are any.
deaths_verdict() {
	local line report status=0
	touch "$DEATHS.asked"
	while read -r line; do
		[ -z "$line" ] ||
			{ echo "a server died, which the test did not ask for: $line" && status=1; }
	done <<< "$(grep -vxEf "$DEATHS.asked" "$DEATHS")"
	while read -r line; do
		grep -qxE "$line" "$DEATHS" ||
			{ echo "the death '$line' was asked for and did not come" && status=1; }
	done < "$DEATHS.asked"
	for report in "${DEATHS%/*}"/report*; do
		[ ! -e "$report" ] || { cat "$report" && status=1; }
	done
	return $status
}
