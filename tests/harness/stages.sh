# shellcheck shell=bash disable=SC2034
# stages.sh: to source, by tests/run. Runs stages of programs that print TAP, counts their tests,
# runs once more what may have failed for what ran beside it, and says in the end what has failed.
#
# The caller sets: all (every stage, not only those of the gate), only (a pattern of stages), list
# (print their names), whole_s (the seconds of all stages, for hangs).

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'kill $(jobs -p) 2> /dev/null; exit 130' INT TERM
passed=0 failed=0 skipped=0

# Stages, with the least number of their tests; those that are not run.
stages=() left=() current=''
declare -A least=() ran=() begun=() ended=() computed=()

# Failures: the name, the stage, the command that repeats it, the file with its output, and whether
# it may be run again.
failures=() failure_stages=() failure_commands=() failure_outputs=() failure_again=()
alone=() # the tests that passed when they were run again
again_max=2

# stage NAME LEAST LEAST_OF_ALL: whether that stage is to be run. The whole fails if fewer than
# LEAST of its tests have run, with `all` LEAST_OF_ALL. A LEAST of - is no stage of the gate.
stage() {
	local least_now=$2
	[ -z "$all" ] || least_now=$3
	if [ "$least_now" = - ] || ! [[ $1 =~ $only ]]; then
		left+=("$1")
		return 1
	fi
	stages+=("$1")
	[ -z "$list" ] || { echo "$1"; return 1; }
	current=$1 least[$1]=$least_now ran[$1]=0 computed[$1]=0
	begun[$1]=$SECONDS ended[$1]=$SECONDS
	printf '\n== %s (%d s)\n' "$1" $SECONDS
}

# within SECONDS: so many, or what is left of the whole.
within() { echo $(($1 < whole_s - SECONDS ? $1 : whole_s - SECONDS > 1 ? whole_s - SECONDS : 1)); }

# failure NAME COMMAND FILE [AGAIN]: is counted by the caller. FILE is copied.
failure() {
	# One that passes alone leaves `failures`, and no other has its number.
	local number=${#failure_outputs[@]}
	tail -n 200 "$3" > "$scratch/failure.$number"
	failures[number]=$1 failure_stages[number]=$current failure_commands[number]=$2
	failure_outputs[number]=$scratch/failure.$number failure_again[number]=${4-}
}

# verdict OK|NOT OK NAME [COMMAND FILE]: one test. COMMAND repeats it, FILE is what it printed.
verdict() {
	echo "$1 - $2"
	ran[$current]=$((ran[$current] + 1))
	if [ "$1" = ok ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		failure "$2" "${3-tests/run --only '^$current\$'}" "${4-/dev/null}"
	fi
}

# check NAME COMMAND…: one test; its output is shown if it fails. COMMAND has a limit of its own.
check() {
	local name=$1 out=$scratch/check since=${EPOCHREALTIME/[.,]/}
	shift
	if "$@" < /dev/null > "$out" 2>&1; then
		verdict ok "$name"
	else
		verdict 'not ok' "$name" "tests/run${all:+ --all} --only '^$current\$'" "$out"
		tail -n 80 "$out" | sed 's/^/    /'
	fi
	seconds "$since" "$current: $name"
	ended[$current]=$SECONDS
}

# seconds MICROSECONDS NAME: since then, as a line of the table of what is slowest.
seconds() {
	awk -v us="$((${EPOCHREALTIME/[.,]/} - $1))" -v name="$2" \
		'BEGIN { printf "%.1f %s\n", us / 1e6, name }' >> "$scratch/times"
}

# start NAME SECONDS COMMAND…: a program that prints TAP, beside those that were started before, of
# whichever stage; finish counts their tests. SECONDS are for hangs only: three times what it takes
# where the machine has other work. A program that computes is started by `chrt --idle` in --all, so
# that those that wait have the processor when they want it. Before start:
#	lane=LANE	it begins when the one that was started before it in that lane has ended.
#	pattern=PATTERN	COMMAND takes a pattern of the names of its tests as its last word, and is
#			given this one now (if it is not empty). So one test can be run by itself.
names=() limits=() of=() pids=() commands=() choosy=()
declare -A last=() # the number of the last program in a lane
start() {
	local number=${#names[@]} seconds=$2 before='' lock words
	if [ -n "${lane-}" ]; then
		before=${last[$lane]-}
		last[$lane]=$number
	fi
	names+=("$1") limits+=("$seconds") of+=("$current") choosy+=("${pattern+yes}")
	shift 2
	words=("$@" ${pattern:+"$pattern"})
	commands+=("$(words "$@")")
	# Locked until it has ended: the next one of its lane waits so without looking.
	exec {lock}> "$scratch/program.$number.lock"
	flock "$lock"
	{
		[ -z "$before" ] || flock "$scratch/program.$before.lock" true
		since=$SECONDS TIMEFORMAT='%U %S'
		{ time TIMES=$scratch/program.$number.times timeout -k 10 "$(within "$seconds")" \
			"${words[@]}" < /dev/null > "$scratch/program.$number" 2>&1 {lock}>&-; } \
			2> "$scratch/program.$number.time"
		# By its name all of it is there.
		echo $? $since $SECONDS "$(tail -n 1 "$scratch/program.$number.time")" \
			> "$scratch/program.$number.ended"
		mv "$scratch/program.$number.ended" "$scratch/program.$number.status"
	} &
	pids+=($!)
	exec {lock}>&-
}

# words WORD…: as a shell reads them.
words() {
	local word
	for word; do
		if [[ $word =~ ^[a-zA-Z0-9_./:=-]+$ ]]; then printf '%s ' "$word"; else
			printf "'%s' " "${word//\'/\'\\\'\'}"; fi
	done | sed 's/ $//'
}

finish() {
	local number status since until user system
	wait "${pids[@]}"
	for number in "${!names[@]}"; do
		read -r status since until user system < "$scratch/program.$number.status"
		current=${of[number]}
		[ "$until" -le "${ended[$current]}" ] || ended[$current]=$until
		computed[$current]=$((computed[$current] + ${user%.*} + ${system%.*}))
		[ ${#names[@]} = 1 ] ||
			printf '\n-- %s: %s (from %d to %d s, %d s of a processor)\n' "$current" \
				"${names[number]}" "$since" "$until" $((${user%.*} + ${system%.*}))
		[ ! -e "$scratch/program.$number.times" ] ||
			sed "s,^[0-9.]* ,&${names[number]}: ," "$scratch/program.$number.times" \
				>> "$scratch/times"
		count "$number" "$status"
	done
	rm -f "$scratch"/program.*
	names=() limits=() of=() pids=() commands=() choosy=() last=()
}

tap() {
	start "$@"
	finish
}

# forbidden NAME FILE: the skips in the output of a program that tests/harness/skips does not allow.
forbidden() {
	sed -nE "s,^(not )?ok ([0-9]+ )?(- )?(.*) # [Ss][Kk][Ii][Pp] ?(.*),$1: \4 (\5),p" "$2" |
		grep -vxEf <(grep -vE '^(#|$)' tests/harness/skips)
}

# Failures that stay what they are, whatever ran beside them: deaths of servers, reports of
# sanitizers, numbers of tokens.
final='a server died, which|was asked for and did not come|(Address|Leak|Thread)Sanitizer'
final+='|UndefinedBehaviorSanitizer|runtime error:|more was granted than may be'
final+='|(granted|tokens|spent) of .*: got '

# count NUMBER STATUS: each test in the output of that program counts.
count() {
	local name=${names[$1]} limit=${limits[$1]} command=${commands[$1]} status=$2 \
		file=$scratch/program.$1 planned there bad skips line part test own may
	sed -E "s,^(ok|not ok) ([0-9]+ )?(- )?,\1 - $name: ," "$file"
	planned=$(awk -F '[. ]+' '/^1\.\.[0-9]/ { sum += $2 } END { print sum + 0 }' "$file")
	there=$(grep -cE '^(not )?ok ' "$file")
	skips=$(grep -ciE '^(not )?ok .*# skip' "$file")
	# A failure and what is said of it, up to the next test.
	awk -v file="$file.failure" '
		/^(not )?ok / { on = 0 }
		/^not ok / && tolower($0) !~ /# skip/ { on = 1; part = file sprintf(".%05d", ++n) }
		on { print > part }' "$file"
	bad=0
	for part in "$file".failure.*; do
		[ -e "$part" ] || break
		bad=$((bad + 1))
		test=$(sed -E '1s/^not ok ([0-9]+ )?(- )?//; 1q' "$part") own=$command may=''
		if [ -n "${choosy[$1]}" ]; then
			own+=" '^$test\$'"
			grep -qE "$final" "$part" || may=yes
		elif [ "$(wc -l < "$part")" = 1 ]; then
			tail -n 60 "$file" >> "$part"
		fi
		failure "$name: $test" "$own" "$part" $may
	done
	failed=$((failed + bad)) skipped=$((skipped + skips))
	passed=$((passed + there - bad - skips)) ran[$current]=$((ran[$current] + there))
	while read -r line; do
		[ -z "$line" ] || verdict 'not ok' \
			"a skip that tests/harness/skips does not allow: $line" "$command" "$file"
	done <<< "$(forbidden "$name" "$file")"
	if [ "$status" = 124 ] || [ "$status" = 137 ]; then
		verdict 'not ok' "$name: still running after $limit s" "$command" "$file"
	elif [ "$there" = 0 ] || [ "$there" != "$planned" ]; then
		verdict 'not ok' "$name: $there of $planned tests have run, exit status $status" \
			"$command" "$file"
	elif [ "$status" != 0 ] && [ "$bad" = 0 ]; then
		verdict 'not ok' "$name: exit status $status" "$command" "$file"
	fi
}

# run_again: each failure that may have come of what ran beside it is run once more, alone, unless
# there are so many that the run is red in any case.
run_again() {
	local index name output status candidates=()
	for index in "${!failures[@]}"; do
		[ -z "${failure_again[index]}" ] || candidates+=("$index")
	done
	[ ${#candidates[@]} -gt 0 ] || return
	if [ ${#candidates[@]} -gt $again_max ]; then
		printf '\n%d tests could be run again; more than %d are red in any case\n' \
			${#candidates[@]} $again_max
		return
	fi
	for index in "${candidates[@]}"; do
		name=${failures[index]} output=$scratch/again.$index status=0
		printf '\n== again, alone: %s (%d s)\n' "$name" $SECONDS
		echo 'It said, beside others:'
		tail -n 60 "${failure_outputs[index]}" | sed 's/^/    /'
		bash -c "exec timeout -k 10 $(within 1200) ${failure_commands[index]}" \
			< /dev/null > "$output" 2>&1 || status=$?
		echo "It says, alone (exit status $status):"
		tail -n 60 "$output" | sed 's/^/    /'
		if [ $status = 0 ] && grep -q '^ok ' "$output" &&
			! grep -q '^not ok' "$output"; then
			alone+=("$name")
			passed=$((passed + 1)) failed=$((failed - 1))
			unset 'failures[index]'
		else
			failure_outputs[index]=$output
		fi
	done
}

# summary: prints the times of the stages, the slowest tests and the stages that were left out; and
# in the last lines, which a reader of a long log sees first, each failure and the command that
# repeats it.
summary() {
	local stage index first=yes
	for stage in "${stages[@]}"; do
		current=$stage
		[ "${ran[$stage]}" -ge "${least[$stage]}" ] || verdict 'not ok' \
			"$stage: ${ran[$stage]} tests have run, of ${least[$stage]}"
	done
	printf '\nslowest, in seconds\n'
	sort -rn "$scratch/times" | head -n 20 | sed 's/^/    /'
	printf '\nstages                from    to  processor  tests\n'
	for stage in "${stages[@]}"; do
		printf '    %-18s %4d  %4d  %9d  %5d\n' "$stage" "${begun[$stage]}" \
			"${ended[$stage]}" "${computed[$stage]}" "${ran[$stage]}"
	done
	[ ${#left[@]} = 0 ] || {
		printf '\nnot run%s: ' "$([ -n "$all" ] || echo ' (tests/run --all)')"
		printf '%s, ' "${left[@]}" | sed 's/, $/\n/'
	}
	[ ${#alone[@]} = 0 ] || {
		printf '\n%d passed alone after they failed beside others:\n' ${#alone[@]}
		printf '    %s\n' "${alone[@]}"
	}
	[ ${#failures[@]} = 0 ] || {
		for index in "${!failures[@]}"; do
			[ -n "$first" ] || continue
			first=''
			printf '\nof the first failure, %s:\n' "${failures[index]}"
			tail -n 40 "${failure_outputs[index]}" | cut -c 1-200 | sed 's/^/    /'
		done
		printf '\nwhat failed, and the command that repeats it\n'
		for index in "${!failures[@]}"; do
			printf '    %s: %s\n        %s\n' "${failure_stages[index]}" \
				"${failures[index]}" "${failure_commands[index]}"
		done | head -n 14
		[ ${#failures[@]} -le 7 ] || echo "    and $((${#failures[@]} - 7)) more"
	}
	printf '\n%d passed, %d failed, %d skipped\n' $passed $failed $skipped
}
