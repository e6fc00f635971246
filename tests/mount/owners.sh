# shellcheck shell=bash
# Owner, group and mode of limiters: recursive tools, inherited groups, and the answers to rm -r.

# team: a limiter with all kinds of files in it, and one below it, in a tree that is open to others.
team() {
	start -o allow_other "$@"
	chmod 711 "$d" "$(dirname "$d")" "$(dirname "$CLIENT")"
	chmod 755 "$CLIENT"
	limiter orders 500/s 10
	limiter orders/batch 50/s
	echo 3 > "$m/orders/partitions/count"
}

# denials COMMAND…: how often nobody is told that it may not.
denials() { as nobody "$@" 2>&1 | grep -c 'not permitted'; }

# everything: how many files and directories there are in orders.
everything() { find "$m/orders" | wc -l; }

# silent COMMAND…: it succeeds and says nothing.
silent() {
	local said status=0
	said=$("$@" 2>&1) || status=$?
	is "exit status of $* ($said)" $status 0
	is "what $* says" "$said" ''
}

# whose OWNER:GROUP: all of orders is theirs, as soon as the kernel asks again.
whose() {
	local wanted=$1
	eventually 20 eval '[ "$(find "$m/orders" -printf "%U:%G\n" | sort -u)" = "$wanted" ]' ||
		fail "owners of orders, not all $wanted: $(find "$m/orders" -printf '%U:%G %P\n')"
}

case_a_recursive_chown_says_nothing_and_gives_all_away() {
	team
	: "$(cat "$m/orders/keys/one/stat")"
	silent chown -R daemon:games "$m/orders"
	whose "$(id -u daemon):$(getent group games | cut -d : -f 3)"
	silent busybox chown -R 12:34 "$m/orders"
	whose 12:34
	silent chgrp -R 56 "$m/orders"
	whose 12:56
	silent busybox chgrp -R 78 "$m/orders"
	whose 12:78
	silent find "$m/orders" -depth -exec chown 21:43 {} +
	whose 21:43
	silent python3 -c 'import os, sys
os.chown(sys.argv[1], 65, 87)
for directory, directories, files in os.walk(sys.argv[1]):
    for name in directories + files: os.chown(os.path.join(directory, name), 65, 87)' "$m/orders"
	whose 65:87
}

case_an_owner_gives_its_group_another_one_of_its_own_recursively() {
	team
	chown -R nobody:nogroup "$m/orders"
	silent setpriv --reuid=nobody --regid=nogroup --groups=nogroup,games \
		chgrp -R games "$m/orders"
	whose "$(id -u nobody):$(getent group games | cut -d : -f 3)"
	is 'a group that is not its own' "$(denials chgrp -R mail "$m/orders")" "$(everything)"
}

case_a_recursive_chmod_says_nothing_and_the_files_follow() {
	local mode tool
	team
	: "$(cat "$m/orders/keys/one/stat")"
	for tool in '' busybox; do
		for mode in 750 0700 g+w o= a+rX go-w g=u u=rwX,go=rX 2775 u+s 6775 g-s,o-rx \
			+t ug+rw,o-w 1777 \
			a-w u+w a=rx 755; do
			silent $tool chmod -R "$mode" "$m/orders"
		done
	done
	is 'the limiter' "$(stat -c %a "$m/orders")" 755
	# stat asks the daemon for what the kernel has known for a second.
	eventually 20 eval '[ "$(find "$m/orders" -type d ! -perm 755 ! -perm 555)" = "" ]' ||
		fail "$(find "$m/orders" -type d -printf '%m %P\n')"
	silent chmod -R 2770 "$m/orders"
	is 'limiters' "$(stat -c %a "$m/orders" "$m/orders/batch" | tr '\n' ' ')" '2770 2770 '
	is 'files' "$(cd "$m/orders/batch" && stat -c %a token rate config charge take |
		tr '\n' ' ')" \
		'440 660 660 220 550 '
}

case_a_chmod_of_a_file_that_is_to_differ_from_its_directory_is_refused() {
	local file mode
	team
	chmod 750 "$m/orders"
	while read -r file mode; do
		refused EPERM chmod "$m/orders/$file" "$mode"
		like 'last error' "$(cat "$m/last_error")" 'change its directory'
	done <<- 'EOF'
		token 644
		rate 666
		rate 2640
		charge 222
		take/5 447
		keys 777
		partitions/0 1555
	EOF
	is 'the files' "$(cd "$m/orders" && stat -c %a token rate charge take/5 keys |
		tr '\n' ' ')" \
		'440 640 220 440 550 '
}

case_a_chmod_or_chown_that_changes_nothing_succeeds() {
	local file
	team
	chown 12:34 "$m/orders"
	chmod 2750 "$m/orders"
	for file in "" token rate config charge take eta/5 partitions partitions/0/rate \
		keys keys/one \
		keys/one/stat; do
		silent chmod "$(stat -c %a "$m/orders/$file")" "$m/orders/$file"
		silent chown 12:34 "$m/orders/$file"
		silent chown -h 12 "$m/orders/$file"
	done
	silent chmod 444 "$m/README"
	silent chown 0:0 "$m/status"
	is 'owner and mode' "$(stat -c '%u:%g %a' "$m/orders")" '12:34 2750'
}

case_a_chown_of_a_file_gives_nothing_away() {
	team
	chown nobody "$m/orders/token" "$m/orders/rate" "$m/orders/take"
	is 'owner of the limiter' "$(stat -c %u "$m/orders")" 0
	is 'owner of the files' "$(cd "$m/orders" && stat -c %u token rate take | tr '\n' ' ')" \
		'0 0 0 '
	is 'nobody, tuning' "$(as nobody "$CLIENT" write "$m/orders/rate" 9/s)" EACCES
}

case_a_closed_limiter_cannot_be_changed_by_others() {
	team
	is chmod "$(denials chmod -R 777 "$m/orders")" "$(everything)"
	is chown "$(denials chown -R nobody "$m/orders")" "$(everything)"
	whose 0:0
}

# group_limiter: one of a team, whose members are nobody and daemon.
group_limiter() {
	limiter shared 500/s
	chgrp games "$m/shared"
	chmod 2775 "$m/shared"
}

# member USER COMMAND…: as one of the team, who lets it write what is its own.
member() {
	local user=$1
	shift
	(umask 002 && setpriv --reuid="$user" --regid="$(id -g "$user")" --groups=games "$@")
}

case_a_team_tunes_what_its_members_make_in_a_setgid_limiter() {
	team
	group_limiter
	member nobody mkdir -p "$m/shared/one/deep"
	is 'group and mode' "$(cd "$m/shared" && stat -c '%U:%G %a' one one/deep | tr '\n' ' ')" \
		'nobody:games 2775 nobody:games 2775 '
	is 'another member, tuning' \
		"$(member daemon "$CLIENT" write "$m/shared/one/deep/rate" 9/s)" ''
	is rate "$(cat "$m/shared/one/deep/rate")" 9/s
	is 'a member, removing' "$(member daemon "$CLIENT" rmdir "$m/shared/one/deep")" ''
	is 'one who is none' "$(as daemon "$CLIENT" write "$m/shared/one/rate" 9/s)" EACCES
	# As everywhere: bits that the umask takes away are not there.
	setpriv --reuid=nobody --regid=nogroup --groups=games mkdir -m 755 "$m/shared/mine"
	is 'group and mode of what is closed' "$(stat -c '%G %a' "$m/shared/mine")" 'games 2755'
	chmod g-s "$m/shared"
	member nobody mkdir "$m/shared/two"
	is 'without setgid' "$(stat -c '%G %a' "$m/shared/two")" 'nogroup 775'
}

case_setgid_at_the_top_is_inherited_too() {
	team
	chgrp games "$m"
	chmod 3775 "$m"
	member nobody mkdir "$m/mine"
	is 'group and mode' "$(stat -c '%U:%G %a' "$m/mine")" 'nobody:games 2775'
	is 'sticky' "$(member daemon "$CLIENT" rmdir "$m/mine")" EPERM
	is 'its owner' "$(member nobody "$CLIENT" rmdir "$m/mine")" ''
}

case_setgid_and_sticky_outlive_the_daemon() {
	team "local:$d/kept"
	group_limiter
	chmod 3775 "$m/shared"
	chmod 1777 "$m"
	member nobody mkdir "$m/shared/one"
	stop
	start -o allow_other "local:$d/kept"
	is 'modes' "$(cd "$m" && stat -c '%G %a' shared shared/one | tr '\n' ' ')" \
		'games 3775 games 2775 '
	is 'of the top' "$(stat -c %a "$m")" 1777
	member daemon mkdir "$m/shared/two"
	is 'group of another' "$(stat -c '%G %a' "$m/shared/two")" 'games 2775'
	is "another member's" "$(member daemon "$CLIENT" rmdir "$m/shared/one")" EPERM
}

case_setgid_and_sticky_outlive_the_server() {
	team
	must_outlive
	group_limiter
	chmod 3775 "$m/shared"
	killed
	is mode "$(stat -c '%G %a' "$m/shared")" 'games 3775'
	member nobody mkdir "$m/shared/one"
	killed
	is 'group and mode' "$(stat -c '%U:%G %a' "$m/shared/one")" 'nobody:games 2775'
	is "another member's" "$(member daemon "$CLIENT" rmdir "$m/shared/one")" EPERM
}

case_only_a_member_makes_a_limiter_setgid() {
	team
	chown nobody:games "$m/orders"
	as nobody chmod 2775 "$m/orders"
	is 'as Linux has it' "$(stat -c %a "$m/orders")" 775
	setpriv --reuid=nobody --regid=nogroup --groups=games chmod 2775 "$m/orders"
	is 'of a member' "$(stat -c %a "$m/orders")" 2775
}

case_users_of_a_limiter_report_to_it_and_no_others() {
	team
	is 'modes' "$(cd "$m/orders" && stat -c %a charge feedback | tr '\n' ' ')" '222 222 '
	is charge "$(as nobody "$CLIENT" write "$m/orders/charge" 5)" ''
	is feedback "$(as nobody "$CLIENT" write "$m/orders/feedback" ok)" ''
	is 'tuning' "$(as nobody "$CLIENT" write "$m/orders/rate" 5/s)" EACCES
	chmod o-r "$m/orders"
	is 'charge of one who may not use it' \
		"$(as nobody "$CLIENT" write "$m/orders/charge" 5)" EACCES
	is 'feedback' "$(as nobody "$CLIENT" write "$m/orders/feedback" ok)" EACCES
	is token "$(as nobody "$CLIENT" read "$m/orders/token")" EACCES
	is modes "$(cd "$m/orders" && stat -c %a charge feedback | tr '\n' ' ')" '220 220 '
}

case_rm_of_a_limiter_removes_nothing_and_is_told_of_rmdir() {
	team
	rm -r "$m/orders/batch" 2> "$d/said" < /dev/null && fail 'rm removes a limiter'
	like 'what it says' "$(head -n 1 "$d/said")" 'Operation not permitted'
	like 'last error' "$(cat "$m/last_error")" \
		"^'[a-z_]+' is part of the limiter 'batch': rmdir removes that"
	refused EPERM unlink "$m/orders/batch/token"
	like 'last error' "$(reason)" \
		"^'token' is part of the limiter 'batch': rmdir removes that, .*; ratefs rm -r "
	refused EPERM rmdir "$m/orders/batch/take"
	like 'last error' "$(cat "$m/last_error")" "'take' is part of the limiter 'batch'"
	refused EPERM unlink "$m/README"
	is 'last error' "$(reason)" \
		"'README' is part of the tree and stays where it is"
	is rate "$(cat "$m/orders/batch/rate")" 50/s
	rmdir "$m/orders/batch" "$m/orders"
}

case_find_delete_goes_on_to_the_directories_and_removes_limiters() {
	team
	timeout 60 find "$m/orders" -delete 2> "$d/said" && fail 'it says that all was removed'
	like 'what find says' "$(head -n 1 "$d/said")" 'Operation not permitted'
	is 'limiters left' "$(ls "$m" | grep -c orders)" 0
}

case_a_file_of_limiters_gives_them_away_at_mount() {
	cat > "$d/ini" <<- 'EOF'
		[/]
		mode=2775
		group=games
		[orders]
		owner=daemon
		mode=0750
		rate=5/s
		[orders/batch]
		[mail]
		group=12345
	EOF
	chmod 711 "$d" "$(dirname "$d")"
	start -o "allow_other,config=$d/ini" "local:$d/kept"
	is 'the top' "$(stat -c '%U:%G %a' "$m")" 'root:games 2775'
	is limiters "$(cd "$m" && stat -c '%U:%G %a' orders orders/batch mail | tr '\n' ' ')" \
		'daemon:games 750 root:root 755 root:UNKNOWN 2755 '
	is group "$(stat -c %g "$m/mail")" 12345
	chmod 01777 "$m"
	chmod 700 "$m/orders"
	stop
	# Limiters that are kept stay as they are.
	start -o "allow_other,config=$d/ini" "local:$d/kept"
	is 'the top' "$(stat -c '%U:%G %a' "$m")" 'root:games 1777'
	is 'the limiter' "$(stat -c '%U:%G %a' "$m/orders")" 'daemon:games 700'
}

case_a_file_of_limiters_with_a_wrong_owner_mounts_nothing() {
	local line said
	for line in owner=no-such-user group=no-such-group mode=rwx mode=4755; do
		printf '[orders]\nrate=5/s\n%s\n' "$line" > "$d/ini"
		said=$("$RATEFS" -f -o "config=$d/ini" local "$m" 2>&1) && fail "$line was taken"
		like "what is said of $line" "$said" "ini:[13]: '${line#*=}'"
	done
	printf '[/]\nrate=5/s\n' > "$d/ini"
	said=$("$RATEFS" -f -o "config=$d/ini" local "$m" 2>&1) && fail 'the top has a rate'
	like 'what is said' "$said" 'ini:1: the top has an owner'
}

# family: orders is daemon's and batch in it nobody's; mail is nobody's, at the top.
family() {
	team
	limiter mail
	chown daemon:games "$m/orders"
	chown nobody:nogroup "$m/orders/batch" "$m/mail"
}

# writes USER OUTCOME FILE TEXT: a write of that user ends so; '' is success.
writes() { is "$1, $4 to $3" "$(as "$1" "$CLIENT" write "$m/$3" "$4")" "$2"; }

case_the_place_among_siblings_is_the_business_of_the_limiter_above() {
	local setting value
	family
	is 'owner and mode' "$(stat -c '%U %a' "$m/orders/batch/"{weight,min,priority,wait_max})" \
		$'daemon 644\ndaemon 644\ndaemon 644\nnobody 644'
	while read -r setting value; do
		writes nobody EACCES "orders/batch/$setting" "$value"
		writes daemon '' "orders/batch/$setting" "$value"
		is "$setting" "$(cat "$m/orders/batch/$setting")" "$value"
		# A limiter at the top shares nothing.
		writes nobody '' "mail/$setting" "$value"
	done <<- 'EOF'
		weight 300
		min 2/s
		priority 9
	EOF
	writes nobody '' orders/batch/queue_max 5
	writes nobody '' orders/batch/rate 40/s
	writes daemon EACCES orders/batch/rate 30/s
	chmod 575 "$m/orders"
	chown daemon:nogroup "$m/orders"
	eventually 20 eval 'as nobody test -w "$m/orders/batch/weight"' ||
		fail 'a group that may tune the limiter above'
}

case_a_config_does_not_change_the_place_among_siblings_for_others() {
	family
	local all=$m/orders/batch/config
	denied_to_nobody() {
		cat > "$d/config"
		chmod 644 "$d/config"
		is "$(cat "$d/config")" \
			"$(as nobody "$CLIENT" write "$all" "$(cat "$d/config")")" EPERM
		like 'last error' "$(as nobody cat "$m/last_error")" \
			"$1 is set by those who may tune the limiter above"
	}
	denied_to_nobody priority <<< $'rate=7/s\npriority=9'
	denied_to_nobody min <<< 'min=1/s'
	denied_to_nobody weight <<< $'weight=10000\nburst=3'
	is 'what changed' "$(cat "$m/orders/batch/rate" "$m/orders/batch/burst")" $'50/s\n1'
	# A value that is so already may be given again.
	echo 2 > "$m/orders/batch/priority"
	cp "$all" "$d/config"
	chmod 644 "$d/config"
	as nobody cp "$d/config" "$all"
	writes nobody '' orders/batch/config $'priority=2\nrate=8/s'
	writes nobody '' mail/config priority=9
	# As the owner of the limiter above, as one of its group, and as another user.
	chmod 777 "$m/orders/batch"
	eventually 20 eval 'as daemon test -w "$all"' || fail 'it is not open to all'
	writes daemon '' orders/batch/config priority=3
	chmod 575 "$m/orders"
	writes daemon EPERM orders/batch/config priority=4
	is 'one of the group' "$(setpriv --reuid=nobody --regid=nogroup --groups=nogroup,games \
		"$CLIENT" write "$all" priority=5)" ''
	chmod 557 "$m/orders"
	writes nobody '' orders/batch/config priority=6
}

case_a_recursive_chmod_leaves_the_place_among_siblings_to_its_owner() {
	family
	is 'files that are refused' "$({ as nobody chmod -R g+w "$m/orders/batch" 2>&1 || :; } |
		grep -o "batch/[a-z]*'" | sort | tr -d "'" | tr '\n' ' ')" \
		'batch/min batch/priority batch/weight '
	silent as nobody chmod -R g+w "$m/mail"
	silent chmod -R 750 "$m/orders"
	silent chmod -R o+rx "$m/orders/batch"
	silent chown -R nobody:games "$m/orders"
	whose "$(id -u nobody):$(getent group games | cut -d : -f 3)"
}
