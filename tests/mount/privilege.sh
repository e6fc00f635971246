# shellcheck shell=bash
# Who the daemon is: one that root starts gives up what it does not need, and ordinary users mount
# by fusermount3.

# open_up: other users find their way to the mount point and to the client.
open_up() {
	chmod 711 "$d" "$(dirname "$d")" "$(dirname "$CLIENT")"
	chmod 755 "$CLIENT"
}

as_nobody() { setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"; }

# of_threads FIELD: prints the field as /proc has it for all threads of the daemon, each value once.
of_threads() {
	awk -v field="$1:" '$1 == field { $1 = ""; print }' /proc/"$daemon"/task/*/status |
		sort -u | tr -s '\t ' ' '
}

# The number of each capability is its bit.
sys_admin=$((1 << 21)) dac_read_search=$((1 << 2)) dac_override=$((1 << 1))

# of_daemon FIELD: prints the field as /proc has it for the first thread of the daemon.
of_daemon() { awk -v field="$1:" '$1 == field { print $2 }' "/proc/$daemon/status"; }

# may_only BITS: in all threads, now and for ever. Where one talks to ZooKeeper it may do nothing.
may_only() {
	local field
	for field in CapEff CapPrm; do
		is "$field of the first thread" "$((16#$(of_daemon $field)))" "$1"
		is "$field of other threads" \
			"$(of_threads $field | grep -vcE "^ (0+|$(printf '%016x' "$1"))\$")" 0
	done
	is CapInh "$((16#$(of_threads CapInh | tr -d ' ')))" 0
	is CapAmb "$((16#$(of_threads CapAmb | tr -d ' ')))" 0
	is 'bounding set' \
		"$((16#$(of_daemon CapBnd) & ~(sys_admin | dac_read_search | dac_override)))" 0
	is NoNewPrivs "$(of_threads NoNewPrivs)" ' 1'
}

# sanitized: the leak checker needs what the daemon has given up.
sanitized() { export ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0; }

case_a_daemon_of_root_keeps_what_it_unmounts_with() {
	sanitized
	start
	may_only $sys_admin
	is uid "$(of_threads Uid)" ' 0 0 0 0'
	limiter orders 500/s
	is token "$(cat "$m/orders/token")" 1
	stop TERM
}

case_with_a_directory_it_does_too() {
	sanitized
	start "local:$d/kept"
	may_only $sys_admin
	limiter orders 500/s
	mkdir "$m"/l{1..100}
	cat "$m/metrics" > /dev/null
	may_only $sys_admin
	stop INT
	start "local:$d/kept"
	is rate "$(cat "$m/orders/rate")" 500/s
}

case_it_unmounts_and_writes_where_only_another_user_may() {
	sanitized
	mkdir -m 700 "$d/closed" "$d/closed/kept" "$d/closed/m"
	chown -R nobody "$d/closed"
	m=$d/closed/m
	start "local:$d/closed/kept"
	may_only $((sys_admin | dac_read_search | dac_override))
	limiter orders 500/s
	stop TERM
	is kept "$(grep -c '^rate=500/s' "$d/closed/kept/orders/.config")" 1
}

case_a_closed_way_to_the_settings_needs_no_privilege() {
	sanitized
	mkdir -m 700 "$d/closed" "$d/closed/kept"
	chown nobody "$d/closed"
	outlives "local:$d/closed/kept"
	may_only $sys_admin
	limiter orders 500/s
	killed
	echo 6/s > "$m/orders/rate"
	is kept "$(grep -c '^rate=6/s' "$d/closed/kept/orders/.config")" 1
	stop
}

case_with_user_it_is_that_user() {
	sanitized
	open_up
	start -o user=nobody,allow_other "local:$d/kept"
	may_only $sys_admin
	is uid "$(of_threads Uid)" \
		" $(id -u nobody) $(id -u nobody) $(id -u nobody) $(id -u nobody)"
	is gid "$(of_threads Gid)" \
		" $(id -g nobody) $(id -g nobody) $(id -g nobody) $(id -g nobody)"
	is groups "$(of_threads Groups | tr -d ' ')" "$(id -G nobody | tr -d ' ')"
	is 'whose directory' "$(stat -c %U "$d/kept")" nobody
	limiter orders 500/s
	is 'whose limiter' "$(stat -c %U "$m/orders")" root
	is 'who keeps it' "$(stat -c %U "$d/kept/orders/.config")" nobody
	is token "$(as_nobody cat "$m/orders/token")" 1
	stop TERM
	start -o user=nobody "local:$d/kept"
	is rate "$(cat "$m/orders/rate")" 500/s
	echo 6/s > "$m/orders/rate"
	umount "$m"
	ended
	is kept "$(grep -c '^rate=6/s' "$d/kept/orders/.config")" 1
}

case_with_user_the_limiters_of_a_file_are_kept_by_that_user() {
	sanitized
	open_up
	install -m 600 /dev/null "$d/ini"
	printf '[/]\nmode=750\n[orders]\nrate=5/s\n[orders/eu]\n' > "$d/ini"
	start -o "user=nobody,config=$d/ini" "local:$d/kept"
	is 'files of others' "$(find "$d/kept" ! -user nobody -printf '%P ')" ''
	is 'groups of others' "$(find "$d/kept" ! -group "$(id -g nobody)" -printf '%P ')" ''
	is 'whose limiter' "$(stat -c %U "$m/orders/eu")" root
	echo 6/s > "$m/orders/rate"
	mkdir "$m/orders/us"
	stop TERM
	start -o user=nobody "local:$d/kept"
	is rate "$(cat "$m/orders/rate")" 6/s
	is limiters "$(stat -c %a "$m" "$m/orders/eu" "$m/orders/us" | tr '\n' ' ')" '750 755 755 '
	stop
}

case_a_program_that_the_user_may_not_execute_has_no_successor() {
	sanitized
	start
	must_outlive
	stop
	install -m 700 "$RATEFS" "$d/own"
	RATEFS=$d/own start -o user=nobody
	is outlives "$(status_of outlives_server)" no
	like said "$(cat "$d/log")" "$d/own may not be executed by this user"
	stop
}

case_with_user_no_other_file_than_its_directory_is_given_away() {
	local status=0 kind command
	sanitized
	mkdir -m 777 "$d/open"
	mkdir -m 700 "$d/secret"
	touch "$d/secret/file"
	for kind in file directory link; do
		# It makes the directory, and something else is there before it looks again.
		timeout 60 strace -qq -o "$d/trace" -e 'inject=/^mkdir:delay_exit=5000000' \
			"$RATEFS" -f -o user=nobody "local:$d/open/kept" "$m" > "$d/said" 2>&1 &
		command=$!
		eventually 20 [ -d "$d/open/kept" ] || fail "no directory: $(cat "$d/said")"
		rmdir "$d/open/kept"
		case $kind in
		file) ln "$d/secret/file" "$d/open/kept" ;;
		directory) mv "$d/secret" "$d/open/kept" ;;
		link) ln -s "$d/secret" "$d/open/kept" ;;
		esac
		status=0
		gone $command 20 || status=$?
		is "exit status with a $kind" $status 1
		like "what it says of a $kind" "$(cat "$d/said")" 'cannot give away'
		is "whose $kind" "$(stat -L -c %U "$d/open/kept")" root
		[ $kind = directory ] && mv "$d/open/kept" "$d/secret" || rm "$d/open/kept"
	done
	chmod 2777 "$d/open"
	start -o user=nobody "local:$d/open/kept"
	is 'whose directory below one that gives its group' "$(stat -c %U "$d/open/kept")" nobody
	stop
}

case_with_user_it_unmounts_where_the_user_does_not_get_to() {
	sanitized
	mkdir -m 700 "$d/closed" "$d/closed/m"
	m=$d/closed/m
	start -o user=nobody
	may_only $((sys_admin | dac_read_search))
	stop TERM
}

# successor: kills the server; once another one is there it is $daemon, and the keeper is $keeper.
successor() {
	local before
	must_outlive
	keeper=$daemon
	before=$(server)
	death_by_kill "$before"
	eventually 20 eval "daemon=\$(server); [ \$daemon != $before ]" || fail 'no other server'
}

case_the_next_server_may_do_no_more() {
	sanitized
	mkdir -m 700 "$d/closed" "$d/closed/kept" "$d/closed/m"
	chown -R nobody "$d/closed"
	m=$d/closed/m
	start "local:$d/closed/kept"
	limiter orders 500/s
	successor
	may_only $((sys_admin | dac_read_search | dac_override))
	is rate "$(cat "$m/orders/rate")" 500/s
	echo 6/s > "$m/orders/rate"
	daemon=$keeper
	stop TERM
	is kept "$(grep -c '^rate=6/s' "$d/closed/kept/orders/.config")" 1
}

case_with_user_every_server_is_that_user() {
	sanitized
	open_up
	start -o user=nobody,allow_other "local:$d/kept"
	limiter orders 500/s
	chmod 777 "$m"
	local first
	first=$(server)
	is 'uid of the first' "$(awk '$1 == "Uid:" { print $2, $3 }' "/proc/$first/status")" \
		"$(id -u nobody) $(id -u nobody)"
	successor
	may_only $sys_admin
	is uid "$(of_threads Uid)" \
		" $(id -u nobody) $(id -u nobody) $(id -u nobody) $(id -u nobody)"
	is gid "$(of_threads Gid)" \
		" $(id -g nobody) $(id -g nobody) $(id -g nobody) $(id -g nobody)"
	is 'whose mount' "$(stat -c %U "$m")" root
	as_nobody mkdir "$m/new"
	is 'who keeps it' "$(stat -c %U "$d/kept/new/.config")" nobody
	is token "$(as_nobody cat "$m/orders/token")" 1
	kill -9 "$keeper"
	wait "$keeper" 2> /dev/null || :
	eventually 20 eval '! mountpoint -q "$m"' ||
		fail 'the server did not unmount without its keeper'
	eventually 20 eval '! alive $daemon' || fail 'still there'
	daemon=
	minor=
}

case_a_server_that_became_another_user_ends_with_its_keeper() {
	sanitized
	start -o user=nobody
	kill -9 "$daemon"
	wait "$daemon" 2> /dev/null || :
	daemon=
	eventually 20 eval '! mountpoint -q "$m"' ||
		fail 'the server did not unmount without its keeper'
}

# cannot STATUS REGEX ARGUMENT…: it does not mount, and says why.
cannot() {
	local wanted=$1 regex=$2 status=0 said
	shift 2
	said=$(timeout 20 "$@" 2>&1 < /dev/null) || status=$?
	is "exit status of $* ($said)" "$status" "$wanted"
	like "what $* says" "$said" "$regex"
	! mountpoint -q "$m" || fail "$* has mounted"
}

case_a_user_that_cannot_be_is_refused() {
	sanitized
	open_up
	cp "$RATEFS" "$d/ratefs"
	cannot 2 'user=nosuchuser: there is no such user' "$RATEFS" -f -o user=nosuchuser local "$m"
	cannot 2 'user=daemon: only root can become another user' \
		setpriv --reuid=nobody --regid=nogroup --clear-groups "$d/ratefs" \
		-f -o user=daemon local "$m"
	mkdir -m 700 "$d/kept"
	cannot 1 "cannot open $d/kept: Permission denied" "$RATEFS" -f -o user=nobody \
		"local:$d/kept" "$m"
}

case_noallow_other_and_its_opposites_exclude_each_other() {
	local option
	for option in allow_other allow_root; do
		cannot 2 'not with allow_other or allow_root' \
			"$RATEFS" -f -o "$option,noallow_other" local "$m"
		cannot 2 'not with allow_other or allow_root' \
			"$RATEFS" -f -o "noallow_other,$option" local "$m"
	done
}

case_a_directory_that_the_user_may_only_read_is_refused() {
	sanitized
	open_up
	mkdir -m 755 "$d/kept"
	cannot 1 'Permission denied' "$RATEFS" -f -o user=nobody "local:$d/kept" "$m"
}

# mounted_by_nobody [OPTIONS…]: by fusermount3, as an ordinary user. The device may be root's alone
# here.
mounted_by_nobody() {
	open_up
	mknod "$d/fuse" c 10 229
	chmod 666 "$d/fuse"
	mount --bind "$d/fuse" /dev/fuse
	cp "$RATEFS" "$d/ratefs"
	chown nobody "$m"
	setpriv --reuid=nobody --regid=nogroup --clear-groups env --default-signal "$d/ratefs" \
		-f "$@" local "$m" >> "$d/log" 2>&1 &
	daemon=$!
	# Not even root can look at the mount point itself.
	eventually 10 eval 'grep -q " $m " /proc/self/mountinfo || ! alive $daemon' ||
		fail 'not mounted'
	alive $daemon || fail "the daemon ended before it mounted: $(cat "$d/log")"
	minor=$(awk -v m="$m" '$5 == m { sub(".*:", "", $3); print $3 }' /proc/self/mountinfo)
}

# unmounted: and the daemon has ended.
unmounted() {
	eventually 10 eval '! grep -q " $m " /proc/self/mountinfo' || fail 'still mounted'
	ended
}

case_an_ordinary_user_mounts_and_unmounts() {
	mounted_by_nobody
	as_nobody mkdir "$m/orders"
	as_nobody sh -c 'echo 500/s > "$1/orders/rate"' - "$m"
	is token "$(as_nobody cat "$m/orders/token")" 1
	is owner "$(as_nobody stat -c %U "$m" "$m/orders" | tr '\n' ' ')" 'nobody nobody '
	is 'another user' \
		"$(setpriv --reuid=daemon --clear-groups "$CLIENT" read "$m/orders/token")" EACCES
	is root "$("$CLIENT" read "$m/orders/token")" EACCES
	is 'tokens granted' "$(as_nobody awk '$1 == "granted" { print $2 }' "$m/orders/stat")" 1
	as_nobody fusermount3 -u "$m"
	unmounted
}

case_a_daemon_of_an_ordinary_user_unmounts_on_sigterm() {
	mounted_by_nobody
	is uid "$(of_threads Uid | cut -d ' ' -f 2)" "$(id -u nobody)"
	is CapEff "$((16#$(of_threads CapEff | tr -d ' ')))" 0
	as_nobody mkdir "$m/orders"
	kill -TERM $daemon
	unmounted
}

case_an_ordinary_user_is_not_bound_in_its_own_mount() {
	mounted_by_nobody -o user_limiters_max=1,limiters_max=3
	as_nobody mkdir "$m/a" "$m/b" "$m/c"
	is 'a fourth' "$(as_nobody "$CLIENT" mkdir "$m/d")" ENOSPC
}

case_the_server_of_an_ordinary_user_has_a_successor() {
	local before after
	mounted_by_nobody
	as_nobody mkdir "$m/orders"
	before=$(as_nobody awk '$1 == "server" { print $2 }' "$m/status")
	death_by_kill "$before"
	is token "$(as_nobody cat "$m/orders/token")" 1
	after=$(as_nobody awk '$1 == "server" { print $2 }' "$m/status")
	[ "$after" != "$before" ] || fail "it is still $before"
	as_nobody fusermount3 -u "$m"
	unmounted
}
