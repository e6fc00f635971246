# shellcheck shell=bash
# How companions are reached, and their completion in shells.

case_the_daemon_names_its_companions() {
	local name
	for name in apply check pipe plot rm run save serve simulate status top; do
		"$RATEFS" --help | grep -qE "^    ratefs $name " || fail "$name is not in the help"
		"$RATEFS" $name --help | grep -q "^usage: ratefs $name " ||
			fail "$name is not reached"
	done
}

case_a_source_is_no_companion_to_mount() {
	local status=0 said
	ln -s "$RATEFS" "$d/mount.fuse.ratefs"
	said=$("$d/mount.fuse.ratefs" top "$m" 2>&1) || status=$?
	is 'exit status' $status 2
	like 'what it says' "$said" "source.*'top'"
}

case_other_words_are_sources() {
	local status=0 said
	said=$("$RATEFS" bucket "$m" 2>&1) || status=$?
	is 'exit status' $status 2
	like 'what it says' "$said" "not a source .*'bucket'"
}

case_a_word_that_is_no_command_is_told_which_there_are() {
	local status=0 said word
	said=$("$RATEFS" bucket 2>&1) || status=$?
	is 'exit status' $status 2
	like 'what it says' "$said" "'bucket'"
	for word in $("$RATEFS" --help | sed -nE 's/^    ratefs ([a-z]+) .*/\1/p'); do
		like 'what it says' "$said" "command \(.*\<$word\>.*\)"
	done
}

# refused WORDS… SAID: ratefs refuses the words, and says so.
refused() {
	local status=0 said
	said=$(cd "$d" && "$RATEFS" "${@:1:$#-1}" 2>&1) || status=$?
	is "exit status of ${*:1:$#-1}" $status 2
	like 'what it says' "$said" "${*: -1}"
}

case_a_word_that_is_nearly_a_command_is_told_which() {
	local word
	for word in topp tpo tp tops to; do
		refused $word "$m" "'$word'; did you mean 'ratefs top'\?"
	done
	refused simulte -c x "did you mean 'ratefs simulate'\?"
	refused servr "did you mean 'ratefs serve'\?"
	refused halp "did you mean 'ratefs help'\?"
	refused reload "$m" "command: 'reload'; did you mean 'ratefs --reload'\?"
	refused umount "$m" "did you mean 'umount MOUNTPOINT'\?"
	refused topple "$m" 'not a source \(local'
	refused x "$m" 'not a source \(local'
	refused "$(head -c 5000 /dev/zero | tr '\0' t)" "$m" 'not a source \(local'
	ln -s "$RATEFS" "$d/mount.fuse.ratefs"
	RATEFS=$d/mount.fuse.ratefs refused tpo "$m" 'not a source \(local'
}

case_help_and_version_are_commands_too() {
	local name
	is help "$("$RATEFS" help)" "$("$RATEFS" --help)"
	like 'help of run' "$("$RATEFS" help run)" '^usage: ratefs run '
	is version "$("$RATEFS" version)" "$("$RATEFS" --version)"
	for name in apply check pipe plot rm run save serve simulate status top; do
		is "help of $name" "$("$RATEFS" help $name)" "$("$RATEFS" $name --help)"
	done
	for name in help version; do
		is "help of $name" "$("$RATEFS" help $name)" "$("$RATEFS" --help)"
	done
	refused help topp "not a command: 'topp'; did you mean 'ratefs top'\?"
	refused help umount "did you mean 'umount MOUNTPOINT'\?"
	refused help bucket "not a command: 'bucket'"
	refused help top run "too many: 'run'"
	refused version x "too many: 'x'"
}

# bare STATUS NAME ARGUMENTS…: the companion that is given no mount point exits so; its output is in
# $d/out and $d/err.
bare() {
	local wanted=$1 status=0
	shift
	timeout 30 "$RATEFS" "$@" > "$d/out" 2> "$d/err" < /dev/null || status=$?
	is "exit status of $* ($(cat "$d/err"))" $status "$wanted"
}

case_the_only_mount_needs_no_name() {
	local other kind server
	printf '[orders]\nrate=5/s\n' > "$d/file"
	# Those of others are hidden from this case, which has a mount namespace of its own.
	while read -r _ other kind _; do
		[ "$kind" != fuse.ratefs ] || umount -l "$other"
	done < <(cat /proc/self/mounts)
	bare 1 top
	like 'what it says' "$(cat "$d/err")" 'no tree is mounted'
	bare 2 save
	bare 2 status
	bare 2 apply "$d/file"
	bare 1 serve -l "$d/socket"
	start -o host=here
	bare 0 top -b
	like 'first line' "$(head -n 1 "$d/out")" '^here  '
	bare 1 apply "$d/file"
	is rate "$(cat "$m/orders/rate")" 5/s
	bare 0 status
	is 'first line' "$(head -n 1 "$d/out")" ok
	bare 0 save
	like saved "$(cat "$d/out")" '\[orders\].*rate=5/s'
	env --default-signal "$RATEFS" serve -l "$d/socket" 2> "$d/err" &
	server=$!
	eventually 30 eval '[ -S "$d/socket" ] || ! alive $server'
	is answer "$(curl -s --unix-socket "$d/socket" -o "$d/out" -w '%{http_code}' \
		http://x/v1/take/orders)" 200
	kill $server
	gone $server 20
}

case_without_a_name_several_trees_are_listed() {
	local other name
	start -o fsname=first
	printf '[orders]\n' > "$d/file"
	for other in 'another tree' $'l\e[2Jne'; do
		mkdir "$d/$other"
		"$RATEFS" -o fsname=second local "$d/$other"
	done
	for name in '1 top' '2 status' '2 save' "2 apply $d/file" '1 serve'; do
		# shellcheck disable=SC2086
		bare $name
		like 'what it says' "$(cat "$d/err")" \
			'more than one tree is mounted: name a MOUNTPOINT, one of'
		grep -qxF "    $m  (first)" "$d/err" || fail "$(cat "$d/err")"
		grep -qxF "    $d/another tree  (second)" "$d/err" || fail "$(cat "$d/err")"
		grep -qxF "    $d/l?[2Jne  (second)" "$d/err" || fail "$(cat "$d/err")"
	done
	[ ! -e "$m/orders" ] || fail 'one was made'
	for other in 'another tree' $'l\e[2Jne'; do
		fusermount3 -u "$d/$other"
	done
}

# offers WORDS… OFFERED: the completions of the last of the words are OFFERED.
offers() {
	local offered=${*: -1}
	COMP_WORDS=("${@:1:$#-1}")
	COMP_CWORD=$(($# - 2))
	_ratefs
	is "what is offered for '${COMP_WORDS[*]}'" \
		"$(printf '%s\n' "${COMPREPLY[@]}" | sort -u | paste -s -d ' ')" "$offered"
}

case_words_are_completed() {
	set +eE # as a shell is in which it is used
	# shellcheck disable=SC1091
	. "$CASES/../../companions/ratefs.bash-completion"
	mkdir "$d/here" && cd "$d/here"
	mkdir -p orders/batch && touch orders.ini
	like complete "$(complete -p ratefs)" '_ratefs ratefs'
	offers ratefs r 'rm run'
	offers ratefs ru run
	offers ratefs l local
	offers ratefs v version
	offers ratefs help pi pipe
	offers ratefs o orders
	offers ratefs --h --help
	offers ratefs -o con config=
	offers ratefs -o allow_other,now allow_other,nowait
	offers ratefs -o config = o 'orders orders.ini'
	offers ratefs -o x,loglevel = 'error info warning'
	offers ratefs -o host = a,now a,nowait
	offers ratefs -o loglevel = w warning
	offers ratefs local o orders
	offers ratefs run o orders
	offers ratefs run orders/ orders/batch
	offers ratefs run orders --re '--report --retry'
	offers ratefs run orders -n '' ''
	offers ratefs run orders -- readlin readlink
	offers ratefs run orders -- cat o 'orders orders.ini'
	offers ratefs run orders readlin readlink
	offers ratefs run -n 3 orders --slot readlin readlink
	offers ratefs run orders cat o 'orders orders.ini'
	offers ratefs run --headers x o orders
	offers ratefs run --headers f --unit tokens = tpm o orders
	offers ratefs run --within = 1s o orders
	offers ratefs run orders -n 1,tpm = 250 --sl --slot
	offers ratefs run orders --unit a = b -- readlin readlink
	offers ratefs run orders cat -- o 'orders orders.ini'
	offers ratefs pipe o orders
	offers ratefs pipe --p --progress
	offers ratefs rm -r orders o orders
	offers ratefs top o orders
	offers ratefs st status
	offers ratefs status --j --json
	offers ratefs status o orders
	offers ratefs top -s w waiting
	offers ratefs plot orders -o orders. orders.ini
	offers ratefs check o 'orders orders.ini'
	offers ratefs apply o 'orders orders.ini'
	offers ratefs apply --d --dry-run
	offers ratefs apply -n orders.ini o 'orders orders.ini'
	offers ratefs save o orders
	offers ratefs serve o orders
	offers ratefs se serve
	offers ratefs sa save
	offers ratefs simulate --from --from-log
	offers ratefs simulate -c o 'orders orders.ini'
}

# options COMMAND…: those in its help.
options() {
	"$RATEFS" "$@" --help | sed -nE 's/^    (-[^ ,]*),? ?(--[a-z-]+)?.*/\1 \2/p' | tr ' ' '\n' |
		sort -u | sed '/^$/d'
}

case_the_options_that_are_completed_are_those_of_the_help() {
	# shellcheck disable=SC1091
	. "$CASES/../../companions/ratefs.bash-completion"
	local name
	is 'options of the daemon' "$(tr ' ' '\n' <<< "${_ratefs_options[daemon]}" | sort)" \
		"$(options)"
	is 'mount options' "$(tr ' ' '\n' <<< "$_ratefs_mount_options" | sort)" \
		"$("$RATEFS" --help | sed -nE 's/^    -o ([a-z_]+=?).*/\1/p' | sort)"
	for name in apply check pipe plot rm run save serve simulate status top; do
		is "options of $name" "$(tr ' ' '\n' <<< "${_ratefs_options[$name]}" | sort)" \
			"$(options $name)"
	done
}

one_line() { sort -u | paste -s -d ' '; }

# completed_words: lines, and the words that zsh and fish complete each with, in a directory that
# has orders/ and orders.ini.
completed_words() {
	local name names
	names=$("$RATEFS" --help | sed -nE 's/^    ratefs ([a-z]+) .*/\1/p')
	# shellcheck disable=SC2086
	echo "ratefs |$(printf '%s\n' $names help version local orders | one_line)"
	echo "ratefs -|$(options | one_line)"
	echo "ratefs -o |$("$RATEFS" --help | sed -nE 's/^    -o ([a-z_]+=?).*/\1/p' | one_line)"
	for name in $names; do
		echo "ratefs $name -|$(options "$name" | one_line)"
	done
	cat << 'END'
ratefs r|rm run
ratefs local o|orders
ratefs local:o|local:orders
ratefs -o con|config=
ratefs -o allow_other,now|allow_other,nowait
ratefs -o host=a,now|host=a,nowait
ratefs -o config=o|config=orders config=orders.ini
ratefs -o nowait,loglevel=w|nowait,loglevel=warning
ratefs help pi|pipe
ratefs run o|orders
ratefs run orders/|orders/batch
ratefs run orders --re|--report --retry
ratefs run orders -n 1,tpm=250 --sl|--slot
ratefs run orders -- readlin|readlink
ratefs run orders cat o|orders orders.ini
ratefs run --headers f --unit tokens=tpm o|orders
ratefs run --headers o|orders orders.ini
ratefs plot orders -o orders.|orders.ini
ratefs apply o|orders orders.ini
ratefs top -s w|waiting
ratefs check ~/to|~/totals.ini
END
}

# In zsh as it is used: on a terminal, by its own completion, which puts all words into the line.
zsh_completes() {
	cat > "$d/.zshrc" << 'END'
fpath=($ZDOTDIR/share/zsh/site-functions $fpath)
autoload -Uz compinit && compinit -u -D
all() { compstate[insert]=all compstate[list]=; }
complete_lines() {
	local line
	while IFS= read -r line; do
		BUFFER=$line CURSOR=$#line comppostfuncs=(all)
		zle complete-word
		print -r -- "$line|${BUFFER#${line% *} }"
	done < $ZDOTDIR/lines > $ZDOTDIR/completed
	exit
}
zle -N zle-line-init complete_lines
END
	ZDOTDIR=$d timeout 60 script -qec 'zsh -d -i' /dev/null < /dev/null > "$d/out" 2>&1 ||
		fail "$(tail -c 500 "$d/out")"
	cat "$d/completed"
}

fish_completes() {
	XDG_CONFIG_HOME=$d XDG_DATA_DIRS=$d/share:/usr/share timeout 60 fish -c '
		while read -l line
			printf "%s|%s\n" $line (complete -C $line | string replace -r "\t.*" "" |
				string join " ")
		end' < "$d/lines"
}

# words_are_completed_by SHELL: its completion lies where it is installed.
words_are_completed_by() {
	local companions=$CASES/../../companions line words
	mkdir -p "$d/bin" "$d/here/orders/batch" "$d/share/bash-completion/completions" \
		"$d/share/zsh/site-functions" "$d/share/fish/vendor_completions.d"
	ln -s "$RATEFS" "$d/bin/ratefs" # fish completes commands that are there
	PATH=$d/bin:$PATH
	cp "$companions/ratefs.bash-completion" "$d/share/bash-completion/completions/ratefs"
	cp "$companions/ratefs.zsh-completion" "$d/share/zsh/site-functions/_ratefs"
	cp "$companions/ratefs.fish-completion" "$d/share/fish/vendor_completions.d/ratefs.fish"
	# A file that bash begins with prints into it.
	echo 'echo noise' > "$d/noise"
	export HOME=$d BASH_ENV=$d/noise
	touch "$d/totals.ini"
	cd "$d/here" && touch orders.ini
	completed_words > "$d/expected"
	cut -d '|' -f 1 "$d/expected" > "$d/lines"
	"$1_completes" > "$d/said"
	while IFS='|' read -r line words; do
		# a slash or a comma goes on where it may
		echo "$line|$(tr ' ' '\n' <<< "$words" | sed 's/[/,]$//; /^$/d' | one_line)"
	done < "$d/said" > "$d/offered"
	is "what $1 does not offer, and should not" \
		"$(diff "$d/expected" "$d/offered" | sed -n '/^[<>]/p')" ''
}

case_zsh_completes_the_same_words() { words_are_completed_by zsh; }
case_fish_completes_the_same_words() { words_are_completed_by fish; }
