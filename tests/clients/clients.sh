# shellcheck shell=bash disable=SC2154,SC2164
# Runs the programs of `table`, and compares what they do with its rows. A row is observed as it is
# written there, so a case that fails shows what the row should say.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
busy='resource busy|file busy|EBUSY'
hang_s=60 # a program that still runs then hangs

# read_table: frames of the clients; and by numbers from 1 on, the client of each row, its columns,
# its way and its text.
declare -A frame
clients=() columns=() ways=() texts=()
read_table() {
	local line client='' number=0 in_frame=''
	while IFS= read -r line; do
		case $line in
		'#'* | '') ;;
		'= '*) client=${line#= } in_frame=yes ;;
		$'\t'*)
			if [ -n "$in_frame" ]; then
				frame[$client]+=${line#?}$'\n'
			else
				texts[number]+=${line#?}$'\n'
			fi
			;;
		*)
			number=$((number + 1)) in_frame=
			clients[number]=$client ways[number]=$(cut -d ' ' -f 5- <<< "$line")
			columns[number]=$(cut -d ' ' -f 1-4 <<< "$line") texts[number]=
			;;
		esac
	done < "$here/table"
}

# framed CLIENT TEXT: that frame around it.
framed() {
	local line
	while IFS= read -r line; do
		if [[ $line =~ ^[[:blank:]]*@$ ]]; then
			printf %s "$2"
		else
			printf '%s\n' "$line"
		fi
	done <<< "${frame[$1]}"
}

# arms CLIENT: the texts of all of its rows, each as what is done for its number.
arms() {
	local number
	for number in "${!clients[@]}"; do
		[ "${clients[number]}" = "$1" ] || continue
		case $1 in
		Go) printf 'case "%d":\n%s' "$number" "${texts[number]}" ;;
		Rust) printf '%d => {\n%s}\n' "$number" "${texts[number]}" ;;
		*) printf 'case %d: {\n%sbreak;\n}\n' "$number" "${texts[number]}" ;;
		esac
	done
}

# prepare CLIENT: compiles its programs as one, if it is a compiler.
prepare() {
	local source=$d/Client.${1,,}
	framed "$1" "$(arms "$1")"$'\n' > "$source"
	case $1 in
	C) cc -std=gnu11 -o "$d/client" "$source" ;;
	Java) javac -J-XX:-UsePerfData -d "$d" "$source" ;;
	Go) go build -o "$d/client" "$source" ;;
	Rust) rustc -o "$d/client" "$source" ;;
	esac
}

# command_of NUMBER: $command is what runs that row.
command_of() {
	local client=${clients[$1]}
	framed "$client" "${texts[$1]}" > "$d/program"
	case $client in
	bash | dash) command=("$client" "$d/program") ;;
	zsh) command=(zsh -f "$d/program") ;;
	fish) command=(fish --no-config "$d/program") ;;
	busybox | coreutils | sed | mawk | gawk) command=(sh "$d/program") ;;
	Perl) command=(perl "$d/program") ;;
	Python) command=(python3 "$d/program") ;;
	Node.js) command=(node "$d/program") ;;
	Ruby) command=(ruby "$d/program") ;;
	PHP) command=(php -n -d display_errors=stderr "$d/program") ;;
	Lua) command=(lua5.4 "$d/program") ;;
	Tcl) command=(tclsh "$d/program") ;;
	# Without figures in /tmp, where a JVM in another process namespace may have its number.
	Java) command=(java -XX:-UsePerfData -XX:TieredStopAtLevel=1 -cp "$d" Client) ;;
	C | Go | Rust) command=("$d/client") ;;
	*) fail "nothing runs $client" ;;
	esac
}

# run FILE: the row in $number on that file of the mount, to its end: $status, what it printed in
# $d/got, and messages in $d/said.
run() {
	status=0
	file=$m/$1 way=$number timeout -k 5 $hang_s "${command[@]}" \
		< /dev/null > "$d/got" 2> "$d/said" || status=$?
}

# begin FILE: the same in the background as a job of a terminal is, in a process group of its own:
# $job.
begin() {
	file=$m/$1 way=$number setsid env --default-signal "${command[@]}" \
		< /dev/null > "$d/got" 2> "$d/said" &
	job=$!
}

# end_job SIGNAL: to each process of it, as a terminal does.
end_job() { kill "-$1" -- "-$job" 2> /dev/null || :; }

# job_ended SECONDS
job_ended() { eventually "$1" eval '! alive $job'; }

# spent LINES FILE [TEXT]: the tokens of `full` that it spends for so many lines, of 1 each.
spent() {
	local before after
	before=$(counter full granted)
	run "full/$2"
	after=$(counter full granted)
	if [ "$1" = 3 ] && [ "$status $(cat "$d/got")" = '0 1' ]; then
		echo short
	elif [ $status != 0 ] || [ "$(cat "$d/got")" != "$(yes "${3-1}" | head -n "$1")" ]; then
		echo "status-$status-printed-'$(tr '\n' ' ' < "$d/got")'"
		cat "$d/said" >&2
	elif [ $((after - before)) -gt 9 ]; then
		echo ahead
	else
		echo $((after - before))
	fi
}

# refusal FILE: prints the refusal that a language sees of a file.
refusal() {
	run "empty/$1"
	if grep -q '[^[:blank:]]' "$d/got"; then
		echo "printed-'$(tr '\n' ' ' < "$d/got")'"
	elif [ $status = 124 ]; then
		echo hangs
	elif grep -qE "$busy" "$d/said"; then
		if [ $status != 0 ]; then echo EBUSY; else echo notice; fi
	elif [ $status != 0 ]; then
		echo status
	else
		echo unseen
	fi
}

# A reader, a poller or an opener waits in its limiter. That a process has the file open says less:
# a signal between its open and its read is no signal to a wait.
arrived() { has "${1%/*}" waiting 1; }

# end FILE WANTED: the first signal that ends a wait there. The one that is wanted has all the time
# it needs.
end() {
	local signal limit
	begin "$1"
	eventually $hang_s arrived "$1" || echo -n does-not-wait-
	for signal in INT TERM KILL; do
		end_job $signal
		limit=1
		[ $signal != "$2" ] || limit=$hang_s
		! job_ended $limit || break
	done
	echo $signal
	wait $job 2> /dev/null || :
	eventually $hang_s has "${1%/*}" waiting 0 || echo -n but-still-waits
}

# both A B: one word if they are the same.
both() { if [ "$1" = "$2" ]; then echo "$1"; else echo "$1/$2"; fi; }

# opens_a_slot: `ok` if its reading of a slot opens one, spends no token, and leaves none open.
opens_a_slot() {
	local before
	before=$(counter full slots_opened)
	[ "$(spent 1 slot 0)" = 0 ] && has full slots_opened $((before + 1)) &&
		eventually $hang_s has full slots_used 0 && echo ok
}

# shows_events: `ok` if the first line and two changes are in its output at once.
shows_events() {
	local i
	begin events
	eventually $hang_s eval '[ "$(status_of readers)" = 1 ]' || :
	for i in 1 2; do echo "$i$number" > "$m/told/burst"; done
	! eventually $hang_s eval '[ "$(grep -cE "^#| told burst " "$d/got")" = 3 ]' || echo ok
	end_job KILL
	wait $job 2> /dev/null || :
	eventually $hang_s eval '[ "$(status_of readers)" = 0 ]' || echo but-still-follows
}

# given_up WANTED: whether a wait that its program gives up ends, by itself or with the program, or
# goes on after that.
given_up() {
	local seen=waits
	begin empty/token
	if [ "$1" = waits ]; then
		eventually $hang_s arrived empty/token || echo -n does-not-wait-
		! eventually 3 has empty waiting 0 || seen=ends
	elif job_ended $hang_s && eventually $hang_s has empty waiting 0 &&
		grep -q 'given up' "$d/got"; then
		seen=ends
	fi
	echo $seen
	end_job KILL
	wait $job 2> /dev/null || :
	eventually $hang_s has empty waiting 0 || echo -n but-still-waits
}

# observed NUMBER WANTED…: its columns as they are seen, where those of the table are wanted.
observed() {
	local number=$1 kind=$2 tokens refused ends
	command_of "$number"
	if [ "$kind" = lines ]; then
		tokens=$(spent 3 stream)
		[[ $tokens != [1-9] ]] || [ "$(shows_events)" = ok ] || tokens+=-without-events
		echo "$kind $tokens - $(end empty/stream "$5")"
		return
	fi
	if [ "$kind" = inside ]; then
		echo "$kind - - $(given_up "$5")"
		return
	fi
	tokens=$(spent 1 token)
	[ "$(opens_a_slot)" = ok ] || tokens+=-without-slots
	refused=$(both "$(refusal try)" "$(refusal take/1,within=1ms)")
	ends=$(end empty/token "${5%/*}")
	[ "$kind" = poll ] || ends=$(both "$ends" "$(end taken/slot "${5#*/}")")
	echo "$kind $tokens $refused $ends"
}

# holds CLIENT: its rows do.
holds() {
	local number granted wanted='' got=''
	export HOME=$d
	read_table
	prepare "$1"
	start
	limiter full 1/d 100000
	empty empty
	limiter told 1/d
	limiter taken
	echo 1 > "$m/full/concurrency"
	echo 1 > "$m/taken/concurrency"
	exec 9< "$m/taken/slot"
	granted=$(counter empty granted)
	for number in "${!clients[@]}"; do
		[ "${clients[number]}" = "$1" ] || continue
		wanted+="${columns[number]} ${ways[number]}"$'\n'
		# shellcheck disable=SC2086
		got+="$(observed "$number" ${columns[number]}) ${ways[number]}"$'\n'
	done
	exec 9<&-
	[ -n "$wanted" ] || fail "no row of $1"
	diff -U 0 --label table --label 'what is seen' <(echo "$wanted") <(echo "$got") ||
		fail 'the table says something else'
	counts empty granted "$granted"
}

case_bash_is_as_the_table_says() { holds bash; }
case_dash_is_as_the_table_says() { holds dash; }
case_zsh_is_as_the_table_says() { holds zsh; }
case_fish_is_as_the_table_says() { holds fish; }
case_busybox_is_as_the_table_says() { holds busybox; }
case_coreutils_are_as_the_table_says() { holds coreutils; }
case_sed_is_as_the_table_says() { holds sed; }
case_mawk_is_as_the_table_says() { holds mawk; }
case_gawk_is_as_the_table_says() { holds gawk; }
case_Perl_is_as_the_table_says() { holds Perl; }
case_Python_is_as_the_table_says() { holds Python; }
case_Node_is_as_the_table_says() { holds Node.js; }
case_Ruby_is_as_the_table_says() { holds Ruby; }
case_PHP_is_as_the_table_says() { holds PHP; }
case_Lua_is_as_the_table_says() { holds Lua; }
case_Tcl_is_as_the_table_says() { holds Tcl; }
case_C_is_as_the_table_says() { holds C; }
case_Java_is_as_the_table_says() { holds Java; }
case_Go_is_as_the_table_says() { holds Go; }
case_Rust_is_as_the_table_says() { holds Rust; }

case_each_client_of_the_table_has_a_case() {
	is clients "$(sed -nE 's/.*\{ holds ([^ ]+); \}$/\1/p' "${BASH_SOURCE[0]}" | sort)" \
		"$(sed -n 's/^= //p' "$here/table" | sort)"
}

# listed KIND…: the rows of these kinds as those of a list in ratefs(5), which has the columns that
# say something.
listed() {
	local number kind tokens refusal end way row
	for number in "${!clients[@]}"; do
		read -r kind tokens refusal end <<< "${columns[number]}"
		[[ " $* " == *" $kind "* ]] || continue
		way=${ways[number]//\'/\\(aq}
		row="Ta Li \"${way//\"/\\(dq}\" Ta $tokens Ta $refusal Ta $end"
		echo ".It ${clients[number]} ${row//Ta - /}"
	done
}

# The lines that diff adds are those that the page has to have.
case_ratefs_5_prints_the_table() {
	local page=$here/../../fs/ratefs.5
	read_table
	diff -U 0 <(grep '^\.It .* Ta Li ' "$page") \
		<(listed read poll && listed lines && listed inside) ||
		fail 'ratefs(5) has another table'
}
