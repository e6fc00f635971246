# shellcheck shell=bash
# Keys: any name below keys/ has a bucket of its own.

# keyed [SETTING=VALUE…]: limiter orders with key_rate=1/h and these.
keyed() {
	mkdir "$m/orders"
	printf '%s\n' key_rate=1/h "$@" > "$d/config"
	cp "$d/config" "$m/orders/config"
}

# of_key KEY NAME: a counter of a key.
of_key() {
	awk -v name="$2" \
		'$1 == name { print $2; found = 1 } END { exit !found }' "$m/orders/keys/$1/stat"
}

forgotten() { has orders keys 0; }

case_keys_are_used_from_shells_and_scripts() {
	start
	keyed key_burst=10
	local _ shell
	for shell in bash dash; do
		"$shell" -c 'read -r line < "$1"/orders/keys/alice/token && [ "$line" = 1 ]' - "$m"
	done
	is take "$(cat "$m/orders/keys/alice/take/3")" 3
	is try "$(cat "$m/orders/keys/alice/try")" 1
	is stream "$(head -n 2 "$m/orders/keys/alice/stream" | tr '\n' ' ')" '1 1 '
	is python "$(python3 -c 'import sys
print(open(sys.argv[1], "rb", buffering=0).read().decode(), end="")' \
		"$m/orders/keys/alice/token")" 1
	is granted "$(of_key alice granted)" 9
	is 'of another' "$(of_key bob granted)" 0
	counts orders granted 9
	is 'what is listed' "$(find "$m/orders/keys" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort |
		tr '\n' ' ')" 'alice bob '
	is 'files of a key' "$(LC_ALL=C ls -m "$m/orders/keys/alice")" \
		'burst, eta, holders, rate, slot, stat, take, token, try, why'
}

case_each_key_has_its_own_rate_and_the_limiter_its_own() {
	start
	keyed rate=1/d burst=3
	is first "$(cat "$m/orders/keys/a/try")" 1
	denied EBUSY read "$m/orders/keys/a/try"
	denied EBUSY read "$m/orders/keys/a/take/1,within=1min"
	is second "$(cat "$m/orders/keys/b/take/1,within=0s")" 1
	is third "$(cat "$m/orders/try")" 1
	denied EBUSY read "$m/orders/keys/c/try"
	like 'eta of a key' "$(cat "$m/orders/keys/a/eta/1")" '^86[0-9]{3}\.[0-9]{3}$'
	is 'refused of a' "$(of_key a refused)" 2
	is 'refused of c' "$(of_key c refused)" 1
}

case_a_reader_of_a_key_that_is_empty_blocks_and_can_be_killed() {
	start
	keyed
	: "$(cat "$m/orders/keys/a/token")"
	reader orders/keys/a/token
	waiting orders 1
	is 'waiting of the key' "$(of_key a waiting)" 1
	like waiters "$(rows "$m/orders/waiters")" "^$reader [0-9]+ 1 "
	denied EBUSY rmdir "$m/orders"
	kill -9 "$reader"
	gone "$reader" 10 || :
	waiting orders 0
	reader orders/keys/a/token
	waiting orders 1
	echo max > "$m/orders/key_rate"
	gone "$reader" 10
	is 'what it got' "$(cat "$d/got")" "1"
}

case_two_openings_of_a_key_share_its_bucket() {
	start
	keyed key_burst=2
	exec 5< "$m/orders/keys/a/try" 6< "$m/orders/keys/a/try"
	is one "$(cat <&5)" 1
	is two "$(cat <&6)" 1
	exec 5<&- 6<&-
	denied EBUSY read "$m/orders/keys/a/try"
}

case_settings_of_keys_read_back_and_are_bounded() {
	start
	mkdir "$m/orders"
	is defaults "$(cat "$m/orders/key_rate" "$m/orders/key_burst" "$m/orders/keys_max" \
		"$m/orders/key_share" | tr '\n' ' ')" 'max 1 1000000 proportional '
	echo 600/min > "$m/orders/key_rate"
	echo 5 > "$m/orders/key_burst"
	echo 1000 > "$m/orders/keys_max"
	echo leased > "$m/orders/key_share"
	is config "$(grep ^key "$m/orders/config" | tr '\n' ' ')" \
		'key_rate=600/min key_burst=5 keys_max=1000 key_share=leased key_concurrency=max '
	refused EINVAL write "$m/orders/key_rate" '1/s 2/h'
	refused EINVAL write "$m/orders/key_rate" '1/s:5'
	refused EINVAL write "$m/orders/key_rate" fast
	refused ERANGE write "$m/orders/key_rate" 1/27d
	refused ERANGE write "$m/orders/key_burst" 0
	refused EINVAL write "$m/orders/key_burst" max
	refused ERANGE write "$m/orders/keys_max" 0
	refused ERANGE write "$m/orders/keys_max" max
	refused ERANGE write "$m/orders/keys_max" 10000001
	refused EINVAL write "$m/orders/keys_max" many
	refused EINVAL write "$m/orders/key_share" half
	is rate "$(cat "$m/orders/key_rate")" 600/min
}

case_nothing_can_be_made_or_removed_in_keys() {
	start
	keyed
	denied EEXIST mkdir "$m/orders/keys/a" # every name is there
	refused EPERM mkdir "$m/orders/keys/.a"
	refused EPERM rmdir "$m/orders/keys/a"
	denied 'EPERM|EEXIST' rename "$m/orders/keys/a" "$m/orders/keys/b"
	denied 'EPERM|EEXIST' create "$m/orders/keys/a"
	denied 'EPERM|EISDIR' unlink "$m/orders/keys/a"
	denied EPERM unlink "$m/orders/keys/a/token"
	denied EPERM mkdir "$m/orders/keys/a/b"
	denied EACCES write "$m/orders/keys/a/token" 1
	denied ENOENT read "$m/orders/keys/.a/token"
	denied ENOENT read "$m/orders/keys/a/key_rate"
	denied ENAMETOOLONG read "$m/orders/keys/$(printf 'n%.0s' {1..256})/token"
	is 'the longest name' "$(cat "$m/orders/keys/$(printf 'n%.0s' {1..255})/token")" 1
}

case_hostile_names_are_names_like_others() {
	start
	keyed
	python3 - "$m/orders/keys" <<- 'END'
		import errno, os, sys
		keys = sys.argv[1].encode()
		names = [bytes([b]) for b in range(1, 256) if b not in b"/."]
		names += [b"\xff" * 255, b"a" * 254 + b"\n", b"-rf", b"* ?", b"token", b"stat",
		          b"%s%n", b"\x1b[2J", b"n.", b"\xc3("]
		for name in names:
		    for last in (False, True):
		        fd = os.open(keys + b"/" + name + b"/try", os.O_RDONLY)
		        try:
		            assert os.read(fd, 64) == b"1\n" and not last, name
		        except OSError as error:
		            assert last and error.errno == errno.EBUSY, name
		        os.close(fd)
		listed = os.listdir(keys)
		assert sorted(listed) == sorted(set(names)), set(listed) ^ set(names)
	END
}

case_a_key_that_is_full_and_idle_is_forgotten() {
	start
	keyed key_rate=10/s
	exec 5< "$m/orders/keys/a/token" 6< "$m/orders/keys/b/stat"
	: "$(cat <&5)" "$(cat <&6)"
	counts orders keys 2
	exec 5<&- 6<&-
	eventually 10 forgotten || fail "still $(counter orders keys) keys"
	is 'nothing is listed' "$(ls "$m/orders/keys")" ''
	is 'it is there again' "$(cat "$m/orders/keys/a/token")" 1
	is 'and counts anew' "$(of_key a granted)" 1
}

case_one_key_too_many_has_the_oldest_forgotten_and_gives_no_user_more() {
	start
	keyed keys_max=2
	local key
	for key in a b c; do : "$(cat "$m/orders/keys/$key/try" 2> /dev/null || :)"; done
	counts orders keys 2
	is 'what is left' "$(find "$m/orders/keys" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort |
		tr '\n' ' ')" 'b c '
	denied EBUSY read "$m/orders/keys/a/try"
}

case_when_all_keys_are_open_there_is_no_room_for_another() {
	start
	keyed keys_max=2
	exec 5< "$m/orders/keys/a/token" 6< "$m/orders/keys/b/token"
	refused ENOSPC read "$m/orders/keys/c/token"
	is 'one of them' "$(cat "$m/orders/keys/a/token")" 1
	exec 5<&-
	eventually 20 of_key c granted > "$d/granted" || fail "no room"
	is "of another" "$(cat "$d/granted")" 0
	exec 6<&-
}

# A number that the kernel remembers of a key that was forgotten never means another one.
case_a_stale_key_is_never_another_one() {
	start
	keyed keys_max=1 key_burst=30
	python3 - "$m/orders/keys" <<- 'END'
		import errno, os, sys
		keys = sys.argv[1]
		a = os.open(keys + "/a", os.O_RDONLY | os.O_DIRECTORY)
		def take(path, dir_fd=None):
		    fd = os.open(path, os.O_RDONLY, dir_fd=dir_fd)
		    try:
		        return os.read(fd, 64)
		    finally:
		        os.close(fd)
		for name in "bcde":
		    assert take(f"{keys}/{name}/take/1") == b"1\n"
		try:
		    take("token", a)
		    raise SystemExit("a forgotten key gave a token")
		except OSError as e:
		    assert e.errno == errno.ESTALE, e
		# By its path it is there, and the names that the kernel knows are looked up again.
		for _ in range(50):
		    for name in "ab":
		        os.stat(f"{keys}/{name}/token")
	END
	is 'what they took' "$(counter orders granted)" 4
}

case_thirty_thousand_keys() {
	start
	keyed
	python3 - "$m/orders/keys" <<- 'END'
		import errno, os, sys
		keys, count = sys.argv[1], 30000
		def take(i):
		    fd = os.open(f"{keys}/user-{i:06}/try", os.O_RDONLY)
		    try:
		        return os.read(fd, 64)
		    except OSError as error:
		        assert error.errno == errno.EBUSY
		        return None
		    finally:
		        os.close(fd)
		for i in range(count):
		    assert take(i) == b"1\n", i
		for i in range(0, count, 101):
		    assert take(i) is None, i
		listed = os.listdir(keys)
		assert len(listed) == count and len(set(listed)) == count, len(listed)
	END
	counts orders keys 30000
	counts orders granted 30000
	rmdir "$m/orders"
	mkdir "$m/orders"
	counts orders keys 0
}

case_names_that_are_only_looked_at_push_out_no_key() {
	start
	keyed keys_max=100
	: "$(cat "$m/orders/keys/user/try")"
	python3 - "$m/orders/keys" <<- 'END'
		import os, sys
		for i in range(20000):
		    os.path.exists(f"{sys.argv[1]}/guess-{i}")
	END
	[ "$(counter orders keys)" -le 100 ] || fail "$(counter orders keys) keys"
	denied EBUSY read "$m/orders/keys/user/try"
}

case_open_files_of_keys_find_their_limiter_gone() {
	start
	keyed
	exec 5< "$m/orders/keys/a/try" 6< "$m/orders/keys/b/stat"
	rmdir "$m/orders"
	is 'a token' "$(read_of 5)" ENODEV
	is 'the stat' "$(read_of 6)" ENODEV
	exec 5<&- 6<&-
	mkdir "$m/orders"
	is 'of the new one' "$(cat "$m/orders/keys/a/try")" 1
}

case_a_renamed_limiter_keeps_its_keys_and_owners_are_the_limiters() {
	start
	keyed
	: "$(cat "$m/orders/keys/a/try")"
	mv "$m/orders" "$m/sales"
	denied EBUSY read "$m/sales/keys/a/try"
	is 'of all' "$(stat -c %a "$m/sales/keys" "$m/sales/keys/a" "$m/sales/keys/a/token" |
		tr '\n' ' ')" '555 555 444 '
	chmod 750 "$m/sales"
	sleep 1.1
	is 'of the group' "$(stat -c %a "$m/sales/keys" "$m/sales/keys/a" "$m/sales/keys/a/token" |
		tr '\n' ' ')" '550 550 440 '
}

case_poll_of_a_key_tells_when_it_has_a_token() {
	start
	keyed
	python3 - "$m/orders" <<- 'END'
		import os, select, sys
		fd = os.open(sys.argv[1] + "/keys/a/token", os.O_RDONLY | os.O_NONBLOCK)
		poll = select.poll()
		poll.register(fd, select.POLLIN)
		def take():
		    assert poll.poll(20000)
		    assert os.pread(fd, 64, 0) == b"1\n"
		take()
		try:
		    os.pread(fd, 64, 0)
		    raise SystemExit("there was one more")
		except BlockingIOError:
		    pass
		with open(sys.argv[1] + "/key_rate", "w") as rate:
		    rate.write("5/s")
		for _ in range(2):
		    take()
	END
}

case_a_key_has_a_rate_and_a_burst_of_its_own() {
	start
	keyed
	is rate "$(cat "$m/orders/keys/bob/rate")" 1/h
	echo 100/s > "$m/orders/keys/bob/rate"
	echo 7 > "$m/orders/keys/bob/burst"
	is 'its own' "$(cat "$m/orders/keys/bob/rate" "$m/orders/keys/bob/burst" | tr '\n' ' ')" \
		'100/s 7 '
	is others "$(cat "$m/orders/keys/eve/rate" "$m/orders/key_rate" | tr '\n' ' ')" '1/h 1/h '
	is config "$(grep '^key\.' "$m/orders/config" | tr '\n' ' ')" \
		'key.bob.burst=7 key.bob.rate=100/s '
	is take "$(cat "$m/orders/keys/bob/take/7")" 7
	is 'and more' "$(cat "$m/orders/keys/bob/take/20")" 20
	denied EBUSY read "$m/orders/keys/eve/take/2,within=1s"
	reader orders/keys/eve/take/2
	waiting orders 1
	like why "$(cat "$m/orders/keys/eve/why")" 'eve 1/h'
	echo 50/s > "$m/orders/keys/eve/rate"
	gone "$reader" 10
	is 'what it got' "$(cat "$d/got")" 2
	refused EINVAL write "$m/orders/keys/bob/rate" fast
	refused ERANGE write "$m/orders/keys/bob/burst" 0
	refused EINVAL write "$m/orders/config" 'key.bob.weight=3'
	echo default > "$m/orders/keys/bob/rate"
	is config "$(grep '^key\.' "$m/orders/config" | tr '\n' ' ')" \
		'key.bob.burst=7 key.eve.rate=50/s '
	echo default > "$m/orders/keys/bob/burst"
	is rate "$(cat "$m/orders/keys/bob/rate")" 1/h
}

case_rates_of_single_keys_outlive_the_daemon_and_its_server() {
	outlives "local:$d/kept"
	keyed
	echo 100/s > "$m/orders/keys/a b=%c/rate"
	echo 3 > "$m/orders/keys/bob/burst"
	local before
	before=$(cat "$m/orders/config")
	like config "$before" 'key\.a%20b%3D%25c\.rate=100/s'
	killed
	is 'of the next server' "$(cat "$m/orders/config")" "$before"
	is rate "$(cat "$m/orders/keys/a b=%c/rate")" 100/s
	stop
	start "local:$d/kept"
	is 'after a restart' "$(cat "$m/orders/config")" "$before"
}

case_65536_keys_have_rates_of_their_own() {
	start "local:$d/kept"
	keyed
	python3 - > "$d/ini" <<- 'END'
		print("[orders]\nkey_rate=1/h\nkey.user-1.burst=7")
		for i in range(65536):
		    print(f"key.user-{i}.rate={i + 1}/s")
	END
	# A busy disk may acknowledge a write late: the next apply does the rest.
	until timeout 120 "$RATEFS" apply "$d/ini" "$m" > "$d/out" 2>&1 || [ $? = 1 ]; do
		like refused "$(cat "$d/out")" 'not acknowledged within 2 s'
	done
	is lines "$(grep -c '^key\.' "$m/orders/config")" 65537
	is rate "$(cat "$m/orders/keys/user-65535/rate")" 65536/s
	refused ENOSPC write "$m/orders/keys/more/rate" 1/s
	like 'last error' "$(cat "$m/last_error")" '65536 keys'
	echo default > "$m/orders/keys/user-1/rate"
	echo default > "$m/orders/keys/user-1/burst"
	echo 1/s > "$m/orders/keys/more/rate"
	stop
	start "local:$d/kept"
	is 'after a restart' "$(grep -c '^key\.' "$m/orders/config")" 65536
	timeout 60 "$RATEFS" save "$m" > "$d/saved"
	is saved "$(grep -c '^key\.' "$d/saved")" 65536
}
