# shellcheck shell=bash
# What each user and all of them may have at most, and what one who has too much of it is told.

# bound OPTIONS [SOURCE]: everybody may make limiters.
bound() {
	start -o "allow_other,$1" "${@:2}"
	chmod 711 "$d" "$(dirname "$d")" "$(dirname "$CLIENT")"
	chmod 755 "$CLIENT"
	chmod 777 "$m"
}

# told USER REGEX: the user's last_error.
told() { like "last_error of $1" "$(as "$1" head -n 1 "$m/last_error")" "$2"; }

case_a_user_may_have_so_many_limiters_and_root_more() {
	bound user_limiters_max=2
	as nobody mkdir "$m/a" "$m/a/b"
	is 'a third' "$(as nobody "$CLIENT" mkdir "$m/c")" ENOSPC
	told nobody '^user 65534 has 2 limiters and partitions, the most a user can have$'
	mkdir "$m/c" "$m/d" "$m/e"
	as daemon mkdir "$m/f"
	chown daemon "$m/a/b"
	as nobody mkdir "$m/g" || fail 'one was given away'
	as daemon rmdir "$m/f"
	is 'what was given counts' "$(as daemon mkdir "$m/h" && as daemon "$CLIENT" mkdir "$m/i")" \
		ENOSPC
	like status "$(cat "$m/status")" $'\nuser_limiters_max 2\n'
}

case_partitions_count_for_the_user_that_opens_them_first() {
	bound user_limiters_max=3
	limiter orders 1000/s
	echo 4 > "$m/orders/partitions/count"
	local i
	for i in 0 1 1 2 0; do
		is "partition $i" "$(as nobody "$CLIENT" read "$m/orders/partitions/$i/token")" 1
	done
	is 'a fourth' "$(as nobody "$CLIENT" read "$m/orders/partitions/3/token")" ENOSPC
	told nobody '^user 65534 has 3 limiters and partitions, the most a user can have$'
	like 'what takes nothing' "$(as nobody cat "$m/orders/partitions/3/state")" '^(held|free)$'
	is 'of another user' "$(as daemon "$CLIENT" read "$m/orders/partitions/3/token")" 1
	is 'one that is there' "$(as nobody "$CLIENT" read "$m/orders/partitions/3/token")" 1
	is 'a limiter' "$(as nobody "$CLIENT" mkdir "$m/a")" ENOSPC
	is partitions "$(status_of partitions)" 4
	echo 2 > "$m/orders/partitions/count"
	is 'partitions that are left' "$(status_of partitions)" 2
	as nobody mkdir "$m/a" || fail 'one partition went'
	is 'a second limiter' "$(as nobody "$CLIENT" mkdir "$m/b")" ENOSPC
	rmdir "$m/orders"
	as nobody mkdir "$m/b" "$m/c" || fail 'the others went with their limiter'
	is 'a fourth limiter' "$(as nobody "$CLIENT" mkdir "$m/d")" ENOSPC
}

case_partitions_that_are_open_outlive_a_server_whatever_the_bound() {
	bound user_limiters_max=2
	limiter orders 1000/s
	echo 4 > "$m/orders/partitions/count"
	as nobody bash -c 'exec 5< "$0/0/token" 6< "$0/1/token"; echo open; exec sleep 100' \
		"$m/orders/partitions" > "$d/open" &
	local sleeper=$!
	eventually 20 [ -s "$d/open" ]
	is 'a third' "$(as nobody "$CLIENT" read "$m/orders/partitions/2/token")" ENOSPC
	is 'one that is closed again' "$("$CLIENT" read "$m/orders/partitions/3/token")" 1
	is partitions "$(status_of partitions)" 3
	"$RATEFS" --reload "$m"
	is 'partitions that are open' "$(status_of partitions)" 2
	is 'after a reload' "$(as nobody "$CLIENT" read "$m/orders/partitions/2/token")" ENOSPC
	kill $sleeper
	wait $sleeper 2> /dev/null || :
}

case_all_users_may_have_so_many_limiters() {
	bound limiters_max=2
	as nobody mkdir "$m/a"
	mkdir "$m/b"
	refused ENOSPC mkdir "$m/c"
	is 'another user' "$(as daemon "$CLIENT" mkdir "$m/c")" ENOSPC
	rmdir "$m/b"
	as daemon mkdir "$m/c"
}

case_limiters_that_were_kept_are_counted_too() {
	start -o allow_other,user_limiters_max=1 "local:$d/kept"
	chmod 777 "$m"
	mkdir "$m/a" "$m/b"
	chown nobody "$m/a" "$m/b"
	stop
	bound user_limiters_max=1 "local:$d/kept"
	is 'a third' "$(as nobody "$CLIENT" mkdir "$m/c")" ENOSPC
}

case_so_many_readers_of_a_user_wait_and_the_next_are_told_to_come_again() {
	bound user_readers_max=3
	empty orders
	echo 1 > "$m/orders/concurrency"
	as nobody "$CLIENT" crowd 3 "$m/orders/token" > "$d/crowd" &
	local crowd=$!
	waiting orders 3
	exec 9< "$m/orders/slot"
	is 'a fourth' "$(as nobody "$CLIENT" read "$m/orders/token")" EBUSY
	told nobody '^user 65534 has 3 readers that wait, the most a user can have$'
	is 'in a line with a time' "$(as nobody "$CLIENT" read "$m/orders/take/1,within=20d")" EBUSY
	is 'one who would open a slot' "$(as nobody "$CLIENT" read "$m/orders/slot")" EBUSY
	is 'one who follows events' "$(as nobody "$CLIENT" read "$m/events")" EBUSY
	exec 9<&-
	eventually 20 has orders slots_used 0 || fail 'the slot was not closed'
	is 'a slot that is free' "$(as nobody "$CLIENT" read "$m/orders/slot")" 0
	is 'a text' "$(as nobody cat "$m/orders/rate")" 1/d
	reader orders/token
	waiting orders 4
	as daemon "$CLIENT" read "$m/orders/token" > /dev/null &
	waiting orders 5
	echo 1000/s > "$m/orders/rate"
	gone $crowd 20
	like crowd "$(cat "$d/crowd")" '^granted 3 '
	waiting orders 0
	is 'now' "$(as nobody "$CLIENT" read "$m/orders/token")" 1
}

# memory_blocks: the size of the state kept for the next server, in blocks of 512 bytes.
memory_blocks() {
	local file
	for file in "/proc/$daemon/fd/"*; do
		[[ $(readlink "$file") != *ratefs-state* ]] || stat -L -c %b "$file"
	done
}

case_a_reader_that_comes_back_and_finds_no_room_leaves_no_place_behind() {
	local before grown
	bound user_readers_max=1
	empty orders
	# A reader of events, which has no place, takes the room whenever this one is interrupted.
	cat > "$d/rounds.py" <<- 'EOF'
		import ctypes, errno, os, signal, sys
		limiter = sys.argv[1]
		libc = ctypes.CDLL(None, use_errno=True)
		def read(fd):
		    buffer = ctypes.create_string_buffer(16)
		    assert libc.read(fd, buffer, 16) < 0, "a token out of nothing"
		    return errno.errorcode[ctypes.get_errno()]
		def waiting():
		    with open(limiter + "/../status") as status:
		        return "\nreaders 1\n" in status.read()
		def interrupts(seconds):
		    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
		signal.signal(signal.SIGALRM, lambda *_: None)
		signal.siginterrupt(signal.SIGALRM, True)
		fd = os.open(limiter + "/token", os.O_RDONLY)
		for _ in range(int(sys.argv[2])):
		    interrupts(0.002)
		    assert read(fd) == "EINTR"
		    interrupts(0)
		    other = os.fork()
		    if not other:
		        events = os.open(limiter + "/../events", os.O_RDONLY)
		        os.read(events, 128)
		        read(events)
		        os._exit(1)
		    while not waiting():
		        assert not os.waitpid(other, os.WNOHANG)[0], "the other one does not wait"
		    assert read(fd) == "EBUSY"
		    os.kill(other, signal.SIGKILL)
		    os.waitpid(other, 0)
	EOF
	as nobody /usr/bin/python3 - "$m/orders" 1 < "$d/rounds.py"
	before=$(memory_blocks)
	as nobody /usr/bin/python3 - "$m/orders" 300 < "$d/rounds.py"
	grown=$(($(memory_blocks) - before))
	[ $grown -lt 36 ] || fail "what is kept has grown by $grown blocks"
}

case_so_many_readers_of_all_users_wait() {
	bound readers_max=2
	empty orders
	as nobody "$CLIENT" read "$m/orders/token" > "$d/other" &
	waiting orders 1
	reader orders/token
	waiting orders 2
	refused EBUSY read "$m/orders/token"
	is 'another user' "$(as daemon "$CLIENT" read "$m/orders/stream")" EBUSY
	kill $reader
	waiting orders 1
	reader orders/token
	waiting orders 2
}

case_a_user_may_have_so_many_keys_and_loses_its_own_first() {
	bound user_keys_max=2
	limiter a max
	limiter b max
	echo 1/d | tee "$m/a/key_rate" > "$m/b/key_rate"
	# A key from which something was taken stays for a day.
	as nobody cat "$m/a/keys/one/stat" "$m/a/keys/two/try" "$m/a/keys/three/try" > /dev/null
	is 'the oldest gave way' "$(ls "$m/a/keys" | sort | tr '\n' ' ')" 'three two '
	is 'another limiter' "$(as nobody "$CLIENT" read "$m/b/keys/four/try")" ENOSPC
	told nobody '^user 65534 has 2 keys, the most a user can have$'
	as daemon cat "$m/b/keys/five/stat" > /dev/null || fail 'another user has no key'
	cat "$m/b/keys/six/stat" "$m/b/keys/seven/stat" "$m/b/keys/eight/stat" > /dev/null
	is 'another limiter, still' "$(as nobody "$CLIENT" read "$m/b/keys/four/try")" ENOSPC
}

case_all_users_may_have_so_many_keys() {
	bound keys_max=2
	limiter a max
	limiter b max
	echo 1/d | tee "$m/a/key_rate" > "$m/b/key_rate"
	# A key from which something was taken stays for a day.
	cat "$m/a/keys/one/try" > /dev/null
	as nobody cat "$m/a/keys/two/try" > /dev/null
	refused ENOSPC read "$m/b/keys/three/try"
	like last_error "$(cat "$m/last_error")" 'there are 2 keys'
}

case_a_user_may_have_so_many_open_files() {
	bound user_files_max=3
	limiter orders
	as nobody bash -c 'exec 3< "$1" 4< "$1" 5< "$1" && "$2" read "$1"' - "$m/orders/token" \
		"$CLIENT" > "$d/got" || :
	is 'a fourth' "$(cat "$d/got")" ENOSPC
	told nobody '^user 65534 has 3 open files, the most a user can have$'
	like 'slots, too' "$(as nobody bash -c 'exec 3< "$1" 4< "$1" 5< "$1" && "$2" read "$1"' - \
		"$m/orders/slot" "$CLIENT")" ENOSPC
	counts orders slots_used 0
	bash -c 'exec 3< "$1" 4< "$1" 5< "$1" 6< "$1"' - "$m/orders/token" ||
		fail 'root is no such user'
	is 'when they are closed' "$(as nobody cat "$m/orders/token")" 1
}

case_all_users_may_have_so_many_open_files() {
	bound files_max=3
	limiter orders
	exec 3< "$m/orders/token" 4< "$m/orders/token" 5< "$m/orders/token"
	denied ENOSPC read "$m/orders/token"
	is 'another user' "$(as nobody "$CLIENT" read "$m/orders/rate")" ENOSPC
	exec 3<&- 4<&- 5<&-
	like last_error "$(cat "$m/last_error")" '^there are 3 open files'
}

case_a_user_may_have_so_many_names_in_take_and_eta_open() {
	bound user_names_max=3
	limiter orders
	is 'a fourth' "$(as nobody bash -c 'exec 3< "$1/take/1" 4< "$1/take/2" 5< "$1/eta/1" &&
		"$2" read "$1/take/3"' - "$m/orders" "$CLIENT")" ENOSPC
	told nobody \
		'^user 65534 has 3 different names with a number, as take/5, the most .* can have$'
	is 'when they are closed' "$(as nobody cat "$m/orders/take/3")" 3
	as nobody stat "$m/orders/take/2" > /dev/null
	is 'another user' "$(as daemon cat "$m/orders/take/3")" 3
}

case_a_user_takes_more_sizes_than_it_may_have_names() {
	local others
	bound user_names_max=3,names_max=8
	limiter orders
	others=$(as daemon stat -c %i "$m/orders/take/100" "$m/orders/eta/100")
	is 'sizes' "$(as nobody cat "$m"/orders/take/{1..24} "$m"/orders/eta/{1..4} | wc -l)" 28
	is 'sizes of root' "$(cat "$m"/orders/take/{1..24} | wc -l)" 24
	counts orders granted 600
	like status "$(cat "$m/status")" $'\nnames 8\n'
	is 'numbers of the names of another' \
		"$(as daemon stat -c %i "$m/orders/take/100" "$m/orders/eta/100")" "$others"
}

# The kernel relies on a number for a second: in most rounds the one it has is stale by then.
case_programs_see_no_error_from_names_that_gave_way() {
	bound user_names_max=3
	as nobody mkdir "$m/orders"
	as nobody /usr/bin/python3 - "$m/orders/take/" <<- 'EOF'
		import os, select, sys
		def read(file): return os.pread(file, 100, 0).decode().strip()
		def push():
		    global size
		    for i in range(4):
		        size += 1
		        os.stat(sys.argv[1] + str(size))
		size = 1000
		name = sys.argv[1] + "7"
		acts = (lambda: os.stat(name), lambda: os.access(name, os.R_OK),
		        lambda: os.utime(name), lambda: os.close(os.open(name, os.O_RDONLY)),
		        lambda: os.statvfs(name),
		        lambda: open(name).read())
		for act in acts * 20:
		    os.stat(name)
		    push()
		    act()
		file = os.open(name, os.O_RDONLY)
		number = os.fstat(file).st_ino
		for i in range(3):
		    push()
		    os.utime(file)  # has the attributes asked for
		    assert os.fstat(file).st_ino == number == os.stat(name).st_ino
		    assert read(file) == "7"
		    second = os.open(name, os.O_RDONLY)
		    assert read(second) == "7"
		    os.close(second)
		    poll = select.poll()
		    poll.register(file, select.POLLIN)
		    assert poll.poll(10000)
		os.close(file)
		for i in range(100):  # its close takes effect a moment later
		    push()
		    if os.stat(name).st_ino != number: break
		else: assert False
	EOF
}

case_a_user_may_have_so_many_texts_begun() {
	bound user_texts_max=1
	limiter orders
	as nobody /usr/bin/python3 - "$m/metrics" "$m/orders/stat" > "$d/got" << 'END'
import errno, os, sys
def begin(path):
    file = os.open(path, os.O_RDONLY)
    try: return file, os.read(file, 1).decode()
    except OSError as error: return file, errno.errorcode[error.errno]
first, got = begin(sys.argv[1])
print(got, begin(sys.argv[2])[1], begin(sys.argv[1])[1])
whole = os.open(sys.argv[1], os.O_RDONLY)
print(len(os.read(whole, 1 << 20)) > 1000, os.read(whole, 1000))
rest = b""
while more := os.read(first, 1000): rest += more
again = os.pread(first, 1 << 20, 1)
print(rest.decode().endswith("\n"), os.read(first, 1000), rest == again)
second, got = begin(sys.argv[2])
print(got, begin(sys.argv[1])[1])
os.close(second)
print(begin(sys.argv[2])[1])
END
	is 'what was read' "$(cat "$d/got")" \
		$'# ENOSPC ENOSPC\nTrue b\'\'\nTrue b\'\' True\ng ENOSPC\ng'
	told nobody '^user 65534 has [0-9]+ KiB of texts .*, the most a user can have$'
	exec 3< "$m/metrics" 4< "$m/metrics"
	is 'root is no such user' "$(head -c 1 <&3)$(head -c 1 <&4)" '##'
	like 'KiB for two' "$(awk '$1 == "texts" { print $2 }' "$m/status")" '^[1-9]'
	exec 3<&- 4<&-
	is 'KiB for none' "$(awk '$1 == "texts" { print $2 }' "$m/status")" 0
}

case_a_text_counts_as_a_quarter_of_the_bound_at_most() {
	local i
	bound user_texts_max=64
	for i in {1..40}; do limiter "$(printf '%0100d' "$i")"; done
	[ "$(wc -c < "$m/metrics")" -gt 32768 ] || fail 'a short page'
	as nobody /usr/bin/python3 - "$m/metrics" > "$d/got" << 'END'
import errno, os, sys
for i in range(5):
    file = os.open(sys.argv[1], os.O_RDONLY)
    try: print(os.read(file, 1).decode())
    except OSError as error: print(errno.errorcode[error.errno])
END
	is 'what was read' "$(cat "$d/got")" $'#\n#\n#\n#\nENOSPC'
}

case_of_texts_that_were_read_the_last_256_are_kept() {
	start
	limiter orders 500/s
	python3 - "$m/orders/rate" "$m/status" <<- 'EOF'
		import os, sys
		files = [os.open(sys.argv[1], os.O_RDONLY) for i in range(300)]
		for file in files: assert os.read(file, 100) == b"500/s\n"
		kept = [line for line in open(sys.argv[2]) if line.startswith("texts ")]
		assert kept == ["texts 256\n"], kept  # a KiB each
		open(sys.argv[1], "w").write("6000/s\n")
		assert os.pread(files[-1], 100, 3) == b"/s\n"  # as it was read
		assert os.pread(files[0], 100, 3) == b"0/s\n"  # as it is now
		assert os.pread(files[1], 100, 6) == b""  # behind the end
	EOF
}

case_bounds_that_are_none_are_refused() {
	local bound status said
	for bound in readers_max=0 readers_max=1000001 user_readers_max=x limiters_max=-1 \
		user_limiters_max=1.5 keys_max=max user_keys_max= \
		files_max=99999999999 user_files_max=0 names_max=1048577 user_names_max=0 \
		texts_max=0 user_texts_max=x; do
		status=0
		said=$(timeout 20 "$RATEFS" -f -o $bound local "$m" 2>&1) || status=$?
		is "exit status with $bound" $status 2
		like "what is said of $bound" "$said" \
			"${bound%%=*}: not a bound \(1 to [0-9]+\): '${bound#*=}'"
	done
}

case_status_has_the_bounds_and_what_there_is() {
	local bounds=readers_max=9,user_readers_max=8,limiters_max=7,user_limiters_max=6
	bounds+=,keys_max=5,user_keys_max=4,files_max=93,user_files_max=2
	bound $bounds,names_max=95,user_names_max=3,texts_max=97,user_texts_max=5
	empty orders
	reader orders/token
	waiting orders 1
	exec 3< "$m/orders/slot"
	: "$(cat "$m/orders/keys/one/stat")"
	like status "$(tr '\n' ' ' < "$m/status")" "$(printf ' %s' \
		'readers 1' 'readers_max 9' 'user_readers_max 8' \
		'limiters_max 7' 'user_limiters_max 6' \
		'keys 1' 'keys_max 5' 'user_keys_max 4' \
		'files 3' 'files_max 93' 'user_files_max 2' \
		'names 1' 'names_max 95' 'user_names_max 3' \
		'texts 0' 'texts_max 97' 'user_texts_max 5') "
	exec 3<&-
}
