# shellcheck shell=bash
# take/A-B: a reader waits for A tokens, and gets as many as are there then, up to B.

case_a_range_gives_as_many_as_are_there() {
	start
	limiter orders 1/d 10
	is 'up to' "$(cat "$m/orders/take/1-4")" 4
	is 'no more than are there' "$(cat "$m/orders/take/2-1k")" 6
	counts orders granted 10
	counts orders served 2
	reader orders/take/3-9
	waiting orders 1
	echo -3 > "$m/orders/charge"
	gone "$reader" 20
	is 'what it waited for' "$(cat "$d/got")" 3
	counts orders granted 13
	is 'of no limit' "$(limiter free && cat "$m/free/take/1-500")" 500
}

case_a_range_gives_what_all_limiters_above_have() {
	start
	limiter orders 1/d 5
	limiter orders/batch 1/d 8
	is 'as many as the parent has' "$(cat "$m/orders/batch/take/1-20")" 5
	is 'those of the child' "$(tokens orders/batch)" 3
	denied EBUSY read "$m/orders/batch/take/1-20,within=1h"
	is 'of a key' "$(limiter people 1/d 9 && echo 1/d > "$m/people/key_rate" &&
		echo 2 > "$m/people/key_burst" && cat "$m/people/keys/ann/take/1-20")" 2
	is 'the rest' "$(cat "$m/people/take/1-20")" 7
}

# Each reads the whole text, however it asks for it; dash reads a byte at a time.
case_every_reader_reads_the_amount() {
	start
	limiter orders 1/d 1000
	local got
	read -r got < "$m/orders/take/1-10"
	is bash "$got" 10
	is dash "$(dash -c 'read -r got < "$1"; echo "$got"' - "$m/orders/take/1-11")" 11
	is 'head -n 1' "$(head -n 1 "$m/orders/take/1-12")" 12
	is 'head -c 1' "$(head -c 1 "$m/orders/take/1-13")" 1
	is dd "$(dd bs=1 if="$m/orders/take/1-14" 2> /dev/null)" 14
	is python "$(python3 -c 'import sys; print(open(sys.argv[1]).read())' \
		"$m/orders/take/1-15" | head -n 1)" 15
	counts orders granted 75
	counts orders served 6
}

# The size is that of the longest text, so that nothing cuts it off; a shorter one just ends.
case_a_range_that_gives_fewer_digits_than_it_might_ends_there() {
	start
	limiter orders 1/d 7
	is size "$(stat -c %s "$m/orders/take/1-1000")" 5
	cat "$m/orders/take/1-1000" > "$d/got"
	is 'a file of it' "$(od -An -c "$d/got" | tr -d ' ')" '7\n'
	counts orders granted 7
}

case_one_open_file_is_a_range_for_each_read_at_its_begin() {
	start
	limiter orders 1/d 30
	python3 - "$m/orders/take/1-12" <<- 'EOF'
		import os, sys
		fd = os.open(sys.argv[1], os.O_RDONLY)
		assert os.pread(fd, 16, 0) == b"12\n"
		assert os.pread(fd, 16, 3) == b""
		assert os.pread(fd, 1, 0) == b"1"
		assert os.pread(fd, 16, 1) == b"2\n"
		assert os.pread(fd, 16, 0) == b"6\n"
		# The rest is of the text of the last one.
		assert os.pread(fd, 16, 1) == b"\n"
		assert os.pread(fd, 16, 2) == b""
	EOF
	counts orders granted 30
}

case_a_range_that_cannot_be_had_is_refused_as_a_take_is() {
	start
	limiter orders 1/d 4
	: "$(cat "$m/orders/take/4")"
	denied EAGAIN peek "$m/orders/take/1-9"
	denied EINVAL peek "$m/orders/take/5-9"
	denied EBUSY read "$m/orders/take/1-9,within=1h"
	counts orders granted 4
	echo -3 > "$m/orders/charge"
	is 'what is there' "$("$CLIENT" peek "$m/orders/take/1-9")" 3
}

case_a_name_that_is_no_range_is_refused_with_a_reason() {
	start
	limiter orders
	local name
	for name in 5-3 0-5 0-0 1-18446744073709551616 1-10000000000001; do
		refused ERANGE read "$m/orders/take/$name"
		like "$name" "$(cat "$m/last_error")" 'of A-B, A is from 1 and B from A to 10T'
	done
	for name in -5 1- - 1-2-3 '1 - 5' ' 1-5' '1-5 ' 1--5 a-b 1-5,with=2s 1-5, 1,2-5; do
		refused ENOENT read "$m/orders/take/$name"
	done
	refused ENOENT read "$m/orders/eta/1-5"
	is 'the same at both ends' "$(cat "$m/orders/take/5-5")" 5
	is units "$(cat "$m/orders/take/1-1Ki")" 1024
	is 'the most' "$(cat "$m/orders/take/1-10T")" 10000000000000
	is listing "$(ls "$m/orders/take")" ''
}

case_waiters_and_eta_count_the_least_that_a_range_waits_for() {
	start
	limiter orders 1/h
	cat "$m/orders/token" > /dev/null
	reader orders/take/3-40
	waiting orders 1
	like waiters "$(rows "$m/orders/waiters")" "^$reader 0 3-40 0\.[0-9]+ 1[0-9]{4}\.[0-9]+ "
	like eta "$(cat "$m/orders/eta/1")" '^14[0-9]{3}\.'
}

case_a_poll_of_a_range_keeps_what_it_was_granted() {
	start
	limiter orders 1/d 10
	cat "$m/orders/take/10" > /dev/null
	python3 - "$m/orders" <<- 'EOF'
		import os, select, sys
		limiter = sys.argv[1]
		def charge(text):
		    with open(limiter + "/charge", "w") as file:
		        file.write(text)
		fd = os.open(limiter + "/take/2-6", os.O_RDONLY | os.O_NONBLOCK)
		poll = select.poll()
		poll.register(fd, select.POLLIN)
		assert not poll.poll(10)
		charge("-1")
		assert not poll.poll(10)
		charge("-3")
		assert poll.poll(20000)
		charge("-2")
		# It was granted 4; if it comes late these go back, and it reads what is there.
		assert os.pread(fd, 16, 0) in (b"4\n", b"6\n")
	EOF
}

case_a_reader_of_a_range_keeps_its_place_after_a_signal() {
	start
	empty orders
	python3 - "$m/orders/take/1-5" > "$d/first" 2>&1 <<- 'EOF' &
		import os, signal, sys, threading, time
		def disturb():
		    for turn in range(5):
		        time.sleep(0.1)
		        os.kill(os.getpid(), signal.SIGUSR1)
		    print("calm", flush=True)
		signal.signal(signal.SIGUSR1, lambda *_: None)
		threading.Thread(target=disturb).start()
		print(open(sys.argv[1]).read().strip(), flush=True)
	EOF
	local first=$!
	waiting orders 1
	reader orders/token
	waiting orders 2
	eventually 20 grep -q calm "$d/first" || fail 'it is disturbed for ever'
	waiting orders 2
	echo -1 > "$m/orders/charge"
	gone "$first" 20
	like 'what came first' "$(cat "$d/first")" '1$'
	counts orders waiting 1
}

case_a_killed_reader_of_a_range_takes_nothing() {
	start
	empty orders 3
	reader orders/take/2-9
	waiting orders 1
	kill -9 "$reader"
	eventually 20 has orders waiting 0 || fail 'it waits on'
	counts orders granted 3
	counts orders cancelled 1
	echo -3 > "$m/orders/charge"
	is tokens "$(cat "$m/orders/take/1-9")" 3
}

case_a_successor_goes_on_with_a_range() {
	outlives
	limiter orders 1/d 300
	python3 - "$m/orders/take/1-123" "$d/go" > "$d/read" 2>&1 <<- 'EOF' &
		import os, sys, time
		fd = os.open(sys.argv[1], os.O_RDONLY)
		print(os.read(fd, 1).decode(), flush=True)
		while not os.path.exists(sys.argv[2]):
		    time.sleep(0.02)
		print(os.read(fd, 16).decode(), os.pread(fd, 16, 0).decode(), flush=True)
	EOF
	local half=$!
	eventually 20 grep -q 1 "$d/read"
	: "$(cat "$m/orders/take/1-177")"
	reader orders/take/2-9
	waiting orders 1
	killed
	waiting orders 1
	echo -2 > "$m/orders/charge"
	gone "$reader" 20
	is 'a reader that waited on' "$(cat "$d/got")" 2
	echo -7 > "$m/orders/charge"
	touch "$d/go"
	gone "$half" 20
	is 'one that had read half' "$(xargs < "$d/read")" '1 23 7'
	counts orders granted 309
}

# The server is stopped while tokens come due and the connection ends: its grant then has no reader
# to go to.
case_a_range_granted_as_the_mount_ended_is_not_spent() {
	start "local:$d/kept"
	limiter orders 5/3s 5
	is taken "$(cat "$m/orders/take/1-5")" 5
	cat "$m/orders/take/1-5" > "$d/reader" 2>&1 &
	eventually 20 has orders waiting 1
	local server
	server=$(server)
	kill -STOP "$server"
	sleep 3.2
	echo 1 > "/sys/fs/fuse/connections/$minor/abort"
	kill -CONT "$server"
	eventually 20 eval '! alive $daemon' || fail 'the daemon is still there'
	umount -l "$m" 2> /dev/null || :
	ended
	start "local:$d/kept"
	is left "$(tokens orders)" 5
}
