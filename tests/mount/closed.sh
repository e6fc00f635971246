# shellcheck shell=bash
# What is closed to a user: its files, and what the files at the top tell of it.

# secrets [SOURCE]: a limiter that is daemon's alone, with one below it that is open to all by its
# mode; and one for everybody.
secrets() {
	start -o allow_other "$@"
	chmod 711 "$d" "$(dirname "$d")" "$(dirname "$CLIENT")"
	chmod 755 "$CLIENT"
	mkdir "$m/secret" "$m/secret/inner" "$m/public"
	chmod 700 "$m/secret"
	chown daemon:daemon "$m/secret"
	chown daemon:daemon "$m/secret/inner"
}

case_a_closed_limiter_can_neither_be_used_nor_tuned_nor_seen() {
	secrets
	local file
	for file in token try stream slot take/5 eta/5 stat waiters rate config partitions/held \
		partitions/0/token keys/one/token; do
		is "reading $file" "$(as nobody "$CLIENT" read "$m/secret/$file")" EACCES
		is "reading $file below" "$(as nobody "$CLIENT" read "$m/secret/inner/$file")" \
			EACCES
	done
	for file in rate config charge feedback enforcement partitions/count key_rate; do
		is "writing $file" "$(as nobody "$CLIENT" write "$m/secret/$file" 1)" EACCES
		is "writing $file below" "$(as nobody "$CLIENT" write "$m/secret/inner/$file" 1)" \
			EACCES
	done
	is 'making one in it' "$(as nobody "$CLIENT" mkdir "$m/secret/mine")" EACCES
	is 'removing it' "$(as nobody "$CLIENT" rmdir "$m/secret/inner")" EACCES
	is 'opening it up' "$(as nobody chmod 777 "$m/secret" 2>&1 | grep -c 'not permitted')" 1
	is 'taking it' "$(as nobody chown nobody "$m/secret" 2>&1 | grep -c 'not permitted')" 1
	is 'its owner' "$(as daemon cat "$m/secret/token")" 1
	as daemon sh -c 'echo 5/s > "$1/secret/rate"' - "$m"
	counts secret granted 1
}

case_a_limiter_that_was_given_away_is_its_owners() {
	secrets
	mkdir "$m/lent"
	chmod 750 "$m/lent"
	chown nobody:games "$m/lent"
	as nobody sh -c 'echo 7/s > "$1/lent/rate" && mkdir "$1/lent/child" &&
		chmod 700 "$1/lent/child"' - "$m"
	is 'of the group' \
		"$(setpriv --reuid=daemon --regid=daemon --groups=games cat "$m/lent/rate")" 7/s
	is 'of the group, tuning' "$(setpriv --reuid=daemon --regid=daemon --groups=games \
		"$CLIENT" write "$m/lent/rate" 9/s)" EACCES
	is 'of the group, the child' "$(setpriv --reuid=daemon --regid=daemon --groups=games \
		"$CLIENT" read "$m/lent/child/rate")" EACCES
	is 'another' "$(as daemon "$CLIENT" read "$m/lent/rate")" EACCES
	as nobody chmod 770 "$m/lent"
	is 'of the group, then' "$(setpriv --reuid=daemon --regid=daemon --groups=games "$CLIENT" \
		write "$m/lent/rate" 9/s)" ''
}

# limiters USER-COMMAND…: whose metrics are shown to one who reads so.
limiters() {
	"$@" cat "$m/metrics" | sed -n 's/^ratefs_granted_total{limiter="\(.*\)"}.*/\1/p' | sort |
		tr '\n' ' '
}

case_metrics_leave_out_what_is_closed() {
	secrets
	is root "$(limiters env)" 'public secret secret/inner '
	is nobody "$(limiters as nobody)" 'public '
	is daemon "$(limiters as daemon)" 'public secret secret/inner '
	chmod 711 "$m/secret"
	is 'nobody, who may pass' "$(limiters as nobody)" 'public secret/inner '
	chmod 744 "$m/secret"
	is 'nobody, who may look only' "$(limiters as nobody)" 'public '
	chmod 750 "$m/secret"
	chgrp games "$m/secret"
	is 'by its group' "$(limiters setpriv --reuid=nobody --regid=games --clear-groups)" \
		'public secret secret/inner '
	is 'by one of its groups' "$(limiters setpriv --reuid=nobody --regid=nogroup \
		--groups=mail,games)" 'public secret secret/inner '
	chmod 705 "$m/secret"
	is 'a group that is kept out' \
		"$(limiters setpriv --reuid=nobody --regid=games --clear-groups)" 'public '
	is 'the others' "$(limiters as nobody)" 'public secret secret/inner '
}

case_a_long_page_of_metrics_leaves_out_what_is_closed_too() {
	secrets
	mkdir "$m"/l{1..100}
	chmod 700 "$m"/l{1..50}
	is root "$(limiters env | wc -w)" 103
	is nobody "$(limiters as nobody | wc -w)" 51
}

case_metrics_that_were_opened_by_root_tell_all() {
	secrets
	is 'handed on' "$(setpriv --reuid=nobody --clear-groups grep \
		-c '^ratefs_granted_total{' < "$m/metrics")" 3
}

# lines FILE: prints the events in FILE, without the times.
lines() { sed '/^#/d; s/^[0-9.]* //' "$1"; }

case_events_leave_out_what_is_closed() {
	secrets
	as nobody cat "$m/events" > "$d/nobody" &
	local nobody=$!
	as daemon cat "$m/events" > "$d/daemon" &
	local daemon_s=$!
	cat "$m/events" > "$d/root" &
	local root=$!
	eventually 20 eval '[ "$(awk "\$1 == \"readers\" { print \$2 }" "$m/status")" = 3 ]' ||
		fail 'nobody follows'
	echo 5/s > "$m/secret/rate"
	echo 6/s > "$m/secret/inner/rate"
	mkdir "$m/secret/new"
	mv "$m/secret/new" "$m/secret/old"
	rmdir "$m/secret/old"
	echo 7/s > "$m/public/rate"
	chmod 700 "$m/public"
	chmod 755 "$m/public"
	mkdir "$m/other"
	rmdir "$m/other"
	mkdir -m 700 "$m/mine"
	rmdir "$m/mine"
	echo 8/s > "$m/public/rate"
	eventually 20 grep -q 8/s "$d/nobody" && eventually 20 grep -q 8/s "$d/daemon" &&
		eventually 20 grep -q 8/s "$d/root" || fail 'not told'
	is root "$(lines "$d/root" | wc -l)" 13
	# That it was closed is told if it is open again when it is read.
	is nobody "$(lines "$d/nobody" | grep -v 'access 700')" 'public rate 7/s
public uid 0 gid 0 access 755
other created
other removed
public rate 8/s'
	is daemon "$(lines "$d/daemon" | grep -c secret)" 5
	kill $nobody $daemon_s $root
	wait $nobody $daemon_s $root 2> /dev/null || :
}

case_closed_events_files_wake_no_reader() {
	secrets
	as nobody python3 - "$m" > "$d/got" <<- 'EOF' &
		import os, select, sys
		m = sys.argv[1]
		fd = os.open(m + "/events", os.O_RDONLY | os.O_NONBLOCK)
		p = select.poll()
		p.register(fd, select.POLLIN)
		assert p.poll(0) and os.read(fd, 128).startswith(b"#")
		assert not p.poll(0)
		print("polls", flush=True)
		assert p.poll(20000)
		got = b""
		while True:
		    try: got += os.read(fd, 7)
		    except BlockingIOError: break
		assert got.endswith(b"public rate 9/s\n") and b"secret" not in got, got
		assert not p.poll(0)
	EOF
	local poller=$!
	eventually 20 grep -q polls "$d/got" || fail 'it does not poll'
	echo 5/s > "$m/secret/rate"
	echo 9/s > "$m/public/rate"
	gone $poller 30 || fail 'poll'
}

case_last_error_is_one_sentence_and_a_line_whatever_was_written() {
	start
	limiter orders
	refused EINVAL write "$m/orders/enforcement" $'open\nand\e[2Jmore'
	is 'lines of it' "$(wc -l < "$m/last_error")" 2
	like 'last error' "$(reason)" '^.open[?]and[?]\[2Jmore.: '
}

# refused_at FILE ERRNO CLIENT-COMMAND…: it is refused so, at that file as last_error says.
refused_at() {
	local file=$1
	shift
	refused "$@"
	like "last_error after $*" "$(sed -n 2p "$m/last_error")" "^# [0-9]+ s ago: $file\$"
}

case_last_error_says_at_which_file_it_was() {
	start
	limiter orders
	mkdir "$m/orders/batch"
	refused_at orders/rate EINVAL write "$m/orders/rate" wrong
	refused_at orders/batch/config EINVAL write "$m/orders/batch/config" wrong
	refused_at orders/partitions/count EINVAL write "$m/orders/partitions/count" wrong
	refused_at orders/keys/KEY/rate EINVAL write "$m/orders/keys/bob/rate" wrong
	refused_at orders/charge EINVAL write "$m/orders/charge" wrong
	refused_at orders/feedback EINVAL write "$m/orders/feedback" wrong
	refused_at orders/take/ ENOENT read "$m/orders/take/wrong"
	refused_at orders/ EPERM unlink "$m/orders/rate"
	refused_at frozen EINVAL write "$m/frozen" wrong
	refused_at / EPERM unlink "$m/README"
}

case_last_error_has_the_time_of_the_users_own_refusal() {
	secrets
	local file=$m/last_error root before
	before=$(date +%s.%N)
	is root "$("$CLIENT" write "$m/public/rate" rootwrong)" EINVAL
	root=$(stat -c %.9Y "$file")
	awk "BEGIN { exit !($root >= $before - 0.1 && $root <= $(date +%s.%N)) }" ||
		fail "refused after $before, and its time is $root"
	chmod 777 "$m/public"
	is nobody "$(as nobody "$CLIENT" write "$m/public/rate" nobodywrong)" EINVAL
	is 'after that of another user' "$(stat -c %.9Y "$file")" "$root"
	awk "BEGIN { exit !($(as nobody stat -c %.9Y "$file") > $root) }" ||
		fail 'the time of nobody is not later'
}

case_last_error_is_each_users_own() {
	secrets
	is root "$("$CLIENT" write "$m/public/rate" rootwrong)" EINVAL
	is 'of one who did nothing' "$(as nobody cat "$m/last_error")" ''
	chmod 777 "$m/public"
	is nobody "$(as nobody "$CLIENT" write "$m/public/rate" nobodywrong)" EINVAL
	like 'of root' "$(cat "$m/last_error")" rootwrong
	like 'of nobody' "$(as nobody cat "$m/last_error")" nobodywrong
	is 'of daemon' "$(as daemon cat "$m/last_error")" ''
}

case_last_error_goes_with_a_write_that_takes_its_time() {
	secrets "local:$d/kept"
	chmod 777 "$m" "$m/public"
	is nobody "$(as nobody "$CLIENT" mkdir "$m/.x")" EINVAL
	is root "$(cat "$m/last_error")" ''
	[ -n "$(as nobody cat "$m/last_error")" ] || fail 'nobody was not told'
}
