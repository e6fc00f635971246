# shellcheck shell=bash
# Storms of all operations while servers are killed and reloaded. STORM_S=N: for so many seconds;
# STORM_SEED=N: with that seed. The state that a server could not restore is kept in the folder
# `storms` beside the program.

storm() {
	local keep seed=${STORM_SEED:-$RANDOM}
	keep=$(dirname "$RATEFS")/storms
	mkdir -p "$keep"
	death '[0-9]+ signal 9'
	python3 "$(dirname "${BASH_SOURCE[0]}")/storm.py" "$m" "$d/log" "$keep" "${STORM_S:-15}" \
		"$seed" ||
		fail "seed $seed, see $keep"
	[ -r "$m/status" ] || fail 'the mount is gone'
}

case_all_is_restored_in_a_storm_of_all_operations() {
	outlives
	storm
}

case_all_is_restored_in_a_storm_on_a_directory() {
	outlives "local:$d/kept"
	storm
}
