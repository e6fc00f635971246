# shellcheck shell=bash
# Cases that have to fail, though each mount goes on and ends well: tests/harness/deaths/run sees to
# it that they do.

# crashes OPTIONS…: its server dies of a segmentation fault.
crashes() {
	local before
	outlives "$@"
	limiter orders 500/s
	before=$(server)
	kill -SEGV "$before"
	eventually 20 eval "[ \"\$(server)\" != $before ]" || skip 'no other server'
	[ "$(cat "$m/orders/token")" = 1 ] || skip 'the next server does not grant'
}

case_a_server_crashes() { crashes; }

case_a_server_of_another_user_crashes() { crashes -o user=nobody,allow_other; }

case_a_server_is_killed_and_the_case_does_not_say_so() {
	local before
	outlives
	before=$(server)
	kill -9 "$before"
	eventually 20 eval "[ \"\$(server)\" != $before ]" || skip 'no other server'
}

case_a_death_does_not_come() {
	start
	death '[0-9]+ signal 9'
}

case_a_sanitizer_reports() {
	start
	echo 'a report' > "${DEATHS%/*}/report.1"
}
