# shellcheck shell=bash
# ratefs check: every mistake of a settings file, and nothing that a mount takes.

# check STATUS ARGUMENTS…: ratefs check exits so; its output is in $d/out and $d/err.
check() {
	local wanted=$1 status=0
	shift
	timeout 20 "$RATEFS" check "$@" > "$d/out" 2> "$d/err" || status=$?
	is "exit status of check $* ($(cat "$d/out" "$d/err"))" "$status" "$wanted"
}

# lines: the numbers of the lines that it finds wrong.
lines() { cut -d : -f 2 "$d/out" | paste -s -d ' '; }

case_nothing_is_said_of_what_is_right() {
	printf '%s\n' '# services' '[orders]' 'rate = 500/s' 'burst=20' '' '; more' \
		'[orders/batch]' 'rate=50/s' '[mail]' > "$d/ini"
	check 0 "$d/ini"
	is 'what it says' "$(cat "$d/out" "$d/err")" ''
	: > "$d/ini"
	check 0 "$d/ini"
}

case_a_file_commands_no_terminal() {
	printf '[orders]\nrate=\033]0;title\007\n' > "$d/ini"
	check 1 "$d/ini"
	like 'what it says' "$(cat "$d/out" "$d/err")" "'\?]0;title\?': not a rate"
	timeout 20 "$RATEFS" -o "config=$d/ini" local "$d" > "$d/out" 2>&1 && fail 'it mounts'
	like 'what a start says' "$(cat "$d/out")" "'\?]0;title\?': not a rate"
}

case_the_file_may_be_a_link_or_a_pipe() {
	local status=0
	printf '[orders]\nrate=plenty\n' > "$d/ini"
	ln -s ini "$d/link"
	check 1 "$d/link"
	is lines "$(lines)" 2
	timeout 20 "$RATEFS" check /dev/stdin < <(cat "$d/ini") > "$d/out" || status=$?
	is 'exit status' $status 1
	is lines "$(lines)" 2
}

case_a_minus_sign_is_standard_input() {
	printf '[orders]\nrate=5/s\n' > "$d/ini"
	check 0 - < "$d/ini"
	printf '# what is left of\n[orders]\nrate=plenty\n' > "$d/ini"
	{ read -r _ && check 1 -; } < "$d/ini"
	like 'what it says' "$(cat "$d/out")" 'standard input:2: '
	check 1 - < "$d"
	like 'what it says' "$(cat "$d/err")" 'standard input: Is a directory'
	check 1 - <&-
	like 'what it says' "$(cat "$d/err")" 'standard input: Bad file descriptor'
}

case_owners_of_limiters_and_of_the_top_are_right() {
	printf '%s\n' '[/]' 'mode=1777' '[orders]' 'owner=someone-elsewhere' 'group=100' \
		'mode=2775' 'rate=5/s' '[mail]' 'mode = 0' > "$d/ini"
	check 0 "$d/ini"
	is 'what it says' "$(cat "$d/out" "$d/err")" ''
	printf '[/]\nrate=5/s\nowner=root\n[a]\nmode=rwx\nowner=\nmode=7777\nrate=5/s\n[/]\n' \
		> "$d/ini"
	check 1 "$d/ini"
	is lines "$(lines)" '2 5 6 7 9'
	grep -qx "$d/ini:2: the top has an owner, a group and a mode, and no settings" "$d/out" ||
		fail "$(cat "$d/out")"
}

case_every_wrong_line_is_named() {
	cat > "$d/ini" <<- 'EOF'
		rate=1/s
		[orders]
		rate=plenty
		speed=5
		# rate=nothing
		burst=3
		 enforcement = loud
		[orders
		rate=1/s
		burst=0
		[token]
		[.hidden]
		[a//b]
		release_interval=2h
	EOF
	check 1 "$d/ini"
	is lines "$(lines)" '1 3 4 7 8 10 11 12 13 14'
	grep -qE "^$d/ini:4: 'speed': no such setting: .*\\bburst, release_interval, " \
		"$d/out" || fail "$(cat "$d/out")"
	grep -qE "^$d/ini:11: 'token' is the name of a control file" "$d/out" ||
		fail "$(cat "$d/out")"
}

case_settings_that_do_not_fit_together_are_named_with_their_section() {
	printf '[a]\nrate=1/s\n[orders]\nrate=50/s\npartitions.reserve=10/s hosts=8\n' > "$d/ini"
	check 1 "$d/ini"
	is lines "$(lines)" 3
	# In any order, and beside another mistake.
	printf '[orders]\npartitions.reserve=10/s hosts=8\nburst=no\nrate=50/s' > "$d/ini"
	check 1 "$d/ini"
	is lines "$(lines)" '3 1'
}

case_sections_without_effect_are_named() {
	printf '[orders/batch]\nrate=5/s\n[orders]\nrate=7/s\n[orders/batch]\nrate=9/s\n' > "$d/ini"
	check 1 "$d/ini"
	is lines "$(lines)" '3 5'
	# A mount takes it, and they have none.
	start -o "config=$d/ini"
	is 'rate of orders' "$(cat "$m/orders/rate")" max
	is 'rate of orders/batch' "$(cat "$m/orders/batch/rate")" 5/s
}

# as_a_mount TEXT…: a file with TEXT, as printf prints it, is right if a mount with it is.
as_a_mount() {
	local text status mounted
	for text; do
		printf "$text" > "$d/ini"
		status=0 mounted=0
		"$RATEFS" check "$d/ini" > "$d/out" || status=$?
		timeout 20 "$RATEFS" -o "config=$d/ini" local "$m" 2> "$d/err" || mounted=$?
		[ $mounted != 0 ] || fusermount3 -u "$m"
		is "check of '$text' ($(cat "$d/out" "$d/err")), as of a mount" $status $mounted
	done
}

case_a_setting_that_is_set_again_is_told() {
	printf '%s\n' '[/]' mode=755 'mode = 1755' '[orders]' rate=5/s ' rate =6/s' burst=x \
		burst=2 owner=root '# rate=7/s' rate=8/s owner=root '[mail]' rate=9/s > "$d/ini"
	check 1 "$d/ini"
	is lines "$(lines)" '3 6 7 11 12'
	is 'what it says' "$(sed -n '2p;5p' "$d/out" | cut -d : -f 3)" \
		" 'rate' again"$'\n'" 'owner' again"
	like 'what it says' "$(cat "$d/out")" ":11: 'rate' again: line 6 has no effect"
}

case_it_refuses_lines_that_a_mount_refuses_and_no_others() {
	as_a_mount '' '[a]' '[a]\nrate=5' '[a]\n\trate = max \n' \
		'[a]\r\nrate=1/s\r\n' '[a]\n[' ']' '[a]x' '[a]\nname' '[a]\n=5' '[a]\nrate=' \
		'[a]\nrate=5/0s' '[a]\nrate=5/s#'
}

case_it_refuses_names_that_a_mount_refuses_and_no_others() {
	local name
	name=$(head -c 255 /dev/zero | tr '\0' n)
	as_a_mount '[a/b/c]\nburst=5' '[a]\n[b]' "[$name]" "[${name}n]" \
		'[1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16]' \
		'[1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17]' '[]' '[/a]' '[a/]' '[rate]' \
		'[a/keys]' '[feedback]' '[README]' '[status]'
}

case_it_refuses_values_that_a_mount_refuses_and_no_others() {
	as_a_mount '[a]\nrate=1/27d' '[a]\nburst=10T\n[b]\nburst=11T' '[a]\nconfig=x' \
		'[a]\npartitions.count=4097' '[a]\noffline=share:0' \
		'[a]\nenforcement=open\nenforcement=shut' \
		'[a]\nrate=1T/s\nrelease_interval=1h' '[a]\nrelease_interval=1h\nrate=1T/s'
}

case_it_refuses_owners_that_a_mount_refuses_and_no_others() {
	as_a_mount '[/]' '[/]\nmode=1777' '[/]\nrate=5/s' '[a]\nmode=0750\nowner=root' \
		'[a]\nmode=8' '[a]\nmode=4755' '[a]\ngroup=' '[//]'
}

case_an_unreadable_file_is_refused() {
	check 1 "$d/nowhere"
	like 'what it says' "$(cat "$d/err")" 'nowhere: No such file'
	check 1 "$d"
	like 'what it says' "$(cat "$d/err")" 'Is a directory'
	printf '[a]\n\0' > "$d/ini"
	check 1 "$d/ini"
	like 'what it says' "$(cat "$d/out")" 'zero byte'
	truncate -s 16M "$d/ini"
	check 1 "$d/ini"
	like 'what it says' "$(cat "$d/err")" 'too large'
}

case_a_large_file_is_checked_in_no_time() {
	{ echo '[orders]' && seq -f 'rate=wrong%.0f' 200000; } > "$d/ini"
	check 1 "$d/ini"
	is lines "$(wc -l < "$d/out")" 200000
	seq -f '[limiter%.0f]' 100000 > "$d/ini"
	check 0 "$d/ini"
}

case_wrong_arguments_are_refused() {
	check 2
	like 'what it says' "$(cat "$d/err")" 'no file'
	check 2 a b
	like 'what it says' "$(cat "$d/err")" "'b'"
	check 2 ''
	check 2 --bogus
	like 'what it says' "$(cat "$d/err")" "'--bogus'"
}

case_its_help_is_told() {
	check 0 --help
	like help "$(cat "$d/out")" 'ratefs check FILE'
	check 0 -h
}

case_minima_that_do_not_fit_are_wrong_and_the_sum_is_told() {
	printf '%s\n' '[a]' 'rate=10/s 5000/h' '[a/x]' 'min=0.7/s' '[a/y]' 'min=0.7/s' \
		'[b/x]' 'min=9/s' '[b/y]' 'min=9/s' \
		'[c]' 'rate=10/s' '[c/d/e]' 'min=11/s' '[c/d/f]' 'min=1/s' \
		'[g]' 'rate=0' '[g/x]' 'min=1/s' '[h]' 'min=5/s' > "$d/ini"
	check 1 "$d/ini"
	is 'what it says' "$(cat "$d/out")" "\
$d/ini:1: the min of all limiters in 'a' together is 1.4/s: more than its rate, 5000/h
$d/ini:13: the min of all limiters in 'c/d' together is 12/s: more than the rate of 'c', 10/s"
	# A section that is wrong otherwise does not hide it, nor end the check.
	printf '%s\n' '[a]' 'rate=1/s' '[a/token/x]' 'min=5/s' '[a/x]' 'min=2/s' 'speed=5' \
		> "$d/ini"
	check 1 "$d/ini"
	is lines "$(lines)" '3 7 1'
}

case_a_mount_refuses_minima_as_check_does() {
	printf '[a]\nrate=10/s\n[a/x]\nmin=6/s\n[a/y]\nmin=5/s\n' > "$d/ini"
	local status=0 said
	said=$(timeout 20 "$RATEFS" -f -o config="$d/ini" local "$m" 2>&1) || status=$?
	[ $status = 1 ] || fail "exit status $status: $said"
	like 'what it says' "$said" "ini:5: the min of all limiters in 'a' together is 11/s: more \
than its rate, 10/s"
}
