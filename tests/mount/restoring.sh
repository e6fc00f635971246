# shellcheck shell=bash
# What the next server restores of files that were gone already, and what it gives up when servers
# die of it.

# reloaded: replaces the server by one of the program on disk.
reloaded() {
	local before
	before=$(server)
	"$RATEFS" --reload "$m"
	[ "$before" != "$(server)" ] || fail 'the same server'
}

# all_is_restored: no server found anything that it had to leave behind.
all_is_restored() {
	! grep -E 'is damaged|kept aside|could not be (taken over|restored)' "$d/log" ||
		fail 'something was left behind'
}

# partition_goes PARTITION COMMAND…: its token is open when COMMAND has it go; reads of that get
# ENODEV from every server.
partition_goes() {
	exec 7< "$m/orders/partitions/$1/token"
	shift
	"$@"
	is 'in the server before' "$(read_of 7)" ENODEV
	killed
	is 'in the next server' "$(read_of 7)" ENODEV
	reloaded
	is 'in the one after a reload' "$(read_of 7)" ENODEV
	exec 7<&-
	all_is_restored
	echo 1000/s > "$m/orders/rate"
	is 'a new read' "$(cat "$m/orders/token")" 1
}

# orders FILE TEXT: writes that.
orders() { echo "$2" > "$m/orders/$1"; }

case_a_file_of_a_partition_above_a_lowered_count_is_gone_in_the_next_server() {
	outlives
	limiter orders 1000/s
	orders partitions/count 20
	partition_goes 15 orders partitions/count 5
}

case_a_file_of_a_partition_that_auto_does_not_make_any_more_is_gone_in_the_next_server() {
	outlives
	limiter orders 1000/s
	if [ -z "${SOURCE-}" ]; then
		orders partitions/count auto
		partition_goes 19 orders rate 1/h
	else
		orders partitions/count 20
		partition_goes 19 orders partitions/count auto
	fi
}

case_a_file_of_a_reserve_that_was_taken_back_is_gone_in_the_next_server() {
	outlives
	limiter orders 1000/s
	orders partitions/reserve '10/s hosts=8'
	partition_goes r2 orders partitions/reserve none
}

case_a_file_of_the_reserve_stays_one_whatever_the_count_is() {
	local count
	outlives
	limiter orders 1000/s
	orders partitions/reserve '10/s hosts=8'
	orders partitions/count 4
	exec 7< "$m/orders/partitions/r2/rate" 8< "$m/orders/partitions/r2/token"
	for count in 8 3 100; do
		orders partitions/count "$count"
		is "its rate beside $count" "$(read_of 7)" 10/s
		is "partitions beside $count" "$(ls "$m/orders/partitions" | grep -c '^r[0-7]$')" 8
		killed
		is "its rate beside $count, in the next server" "$(read_of 7)" 10/s
	done
	is 'a token of it' "$(read_of 8)" 1
	exec 7<&- 8<&-
	all_is_restored
}

case_a_file_of_the_reserve_beyond_4096_partitions_is_open_in_the_next_server() {
	outlives
	limiter orders 1000000/s
	orders partitions/reserve '10/s hosts=8'
	orders partitions/count 4096
	exec 7< "$m/orders/partitions/r2/rate" 8< "$m/orders/partitions/r2/token"
	killed
	is 'its rate' "$(read_of 7)" 10/s
	exec 7<&- 8<&-
	all_is_restored
}

case_keys_that_are_open_are_restored_whatever_keys_max_is_by_now() {
	outlives
	limiter orders 1000/s
	exec 7< "$m/orders/keys/anna/token" 8< "$m/orders/keys/bob/token"
	orders keys_max 1
	is 'in the server before' "$(read_of 7)$(read_of 8)" 11
	killed
	is 'in the next server' "$(read_of 7)$(read_of 8)" 11
	exec 7<&- 8<&-
}

# outlives_dying [OPTIONS…] [SOURCE]: as outlives; servers die when $DYING says so, see dying.c.
outlives_dying() {
	cc -std=gnu11 -D_GNU_SOURCE -O1 -w -fPIC -shared -o "$d/dying.so" \
		"$(dirname "${BASH_SOURCE[0]}")/dying.c"
	export DYING=$d/dying
	LD_PRELOAD="$LD_PRELOAD $d/dying.so" outlives "$@"
}

# dying PART DEATHS: the server is killed, and the next ones die as they restore that part: 1 open
# files, 2 buckets, 3 all. By SIGABRT for each `a` in DEATHS, and SIGKILL for each `k`, from the
# last on.
dying() {
	local before
	before=$(server)
	sleep 0.12 # or it would seem not to stay up
	kill -STOP "$before"
	[[ $2 != *a* ]] || death '[0-9]+ signal 6'
	[[ $2 != *k* ]] || death '[0-9]+ signal 9'
	echo -n "$1$2" > "$DYING"
	death_by_kill "$before"
	eventually 20 eval "[ \"\$(server)\" != $before ]" || fail 'no other server'
	is 'deaths that are to come yet' "$(cat "$DYING")" "$1"
}

has_log() { grep -qF -- "$1" "$d/log" || fail "no line '$1' in the log"; }

case_a_file_whose_open_was_answered_just_now_is_open_in_the_next_server() {
	local file before
	outlives_dying
	limiter orders 10/s 10
	for file in events metrics orders/slot orders/token; do
		before=$(server)
		death '[0-9]+ signal 9'
		echo -n o > "$DYING"
		exec 5< "$m/$file"
		eventually 20 eval "[ \"\$(server)\" != $before ]" || fail 'no other server'
		[ "$(read_of 5)" != ENODEV ] || fail "$file is not open any more"
		exec 5<&-
	done
}

case_open_files_that_servers_die_of_are_given_up() {
	outlives_dying
	limiter orders 1/d 100
	cat "$m/orders/take/30" > "$d/taken"
	exec 5< "$m/orders/token" 6< "$m/orders/slot"
	reader orders/take/90
	waiting orders 1
	python3 -c '
import select, sys
with open(sys.argv[1]) as file:
    poll = select.poll()
    poll.register(file, select.POLLIN)
    assert poll.poll(0) == []
    print("polls", flush=True)
    print(poll.poll(20000)[0][1] == select.POLLERR)' "$m/orders/token" > "$d/polled" &
	local poller=$!
	eventually 10 grep -q polls "$d/polled" || fail 'it does not poll'
	dying 1 aa
	has_log 'open files could not be taken over: they are given up, and reads of them '\
'get ENODEV'
	gone "$reader" 20 || :
	is 'what the reader got' "$(cat "$d/got")" ENODEV
	gone $poller 20 || fail "$(cat "$d/polled")"
	is 'it was told of an error' "$(tail -n 1 "$d/polled")" True
	is 'through a file that was open' "$(read_of 5)" ENODEV
	counts orders slots_used 0
	is 'tokens of orders' "$(tokens orders)" 70
	killed
	is 'in the server after' "$(read_of 5)" ENODEV
	is 'a new read' "$(cat "$m/orders/take/10")" 10
	is 'tokens of orders' "$(tokens orders)" 60
	exec 5<&- 6<&-
}

# open_files: so many are known to the server, by what it has written for the next one.
open_files() {
	local here file flags
	here=$(dirname "${BASH_SOURCE[0]}")
	read -ra flags <<< "$(pkg-config --cflags fuse3)"
	[ -x "$d/open_files" ] ||
		cc -std=gnu11 -D_GNU_SOURCE -DFUSE_USE_VERSION=35 -I"$here/../.." "${flags[@]}" \
			-o "$d/open_files" "$here/open_files.c"
	file=$(find "/proc/$daemon/fd" -lname '*ratefs-state*' | head -n 1)
	"$d/open_files" "$file"
}

# stopped_server: the pid of the server that is stopped.
stopped_server() {
	local child
	for child in $(pgrep -P "$daemon"); do
		! grep -q '^State:.*T' "/proc/$child/status" || echo "$child"
	done
}

is_any_stopped() { [ "$(stopped_server)" ]; }
no_file_is_open() { [ "$(open_files)" = 0 ]; }

case_an_opener_that_is_killed_while_servers_die_leaves_no_open_file() {
	outlives_dying
	limiter orders
	echo 1 > "$m/orders/concurrency"
	exec 5< "$m/orders/slot"
	env --default-signal bash -c "exec 3< '$m/orders/slot'" 5<&- &
	local opener=$! before
	waiting orders 1
	is 'open files' "$(open_files)" 2
	before=$(server)
	sleep 0.12
	echo -n 1aas > "$DYING"
	death '[0-9]+ signal 6'
	death_by_kill "$before"
	# The kernel is about to send its request again, and takes it back.
	eventually 20 is_any_stopped || fail 'no server restores open files'
	kill -9 $opener
	gone $opener 20 || :
	death_by_kill "$(stopped_server)"
	eventually 20 grep -q 'open files could not be taken over' "$d/log" ||
		fail 'they are not given up'
	is 'through a file that was open' "$(read_of 5)" ENODEV
	exec 5<&-
	counts orders slots_used 0
	eventually 20 no_file_is_open || fail "$(open_files) are open still"
}

case_openers_with_a_time_and_their_slots_survive_servers() {
	outlives
	limiter orders
	echo 2 > "$m/orders/concurrency"
	exec 5< "$m/orders/slot,within=0" 6< "$m/orders/keys/bob/slot,within=5s"
	"$CLIENT" read "$m/orders/slot,within=1min" > "$d/got" 2>&1 5<&- 6<&- &
	local opener=$!
	waiting orders 1
	killed
	waiting orders 1
	counts orders slots_used 2
	is 'through a file that was open' "$(read_of 6) $(read_of 5)" '0 1'
	denied EBUSY read "$m/orders/slot,within=0"
	killed
	exec 5<&-
	wait $opener
	is 'what the opener got' "$(cat "$d/got")" 1
	is 'the number that it had before' "$(read_of 6)" 0
	eventually 20 has orders slots_used 1
	exec 6<&-
	eventually 20 has orders slots_used 0
}

case_buckets_that_servers_die_of_start_empty() {
	outlives_dying "local:$d/kept"
	limiter orders 1/d 100
	exec 5< "$m/orders/rate" 6< "$m/orders/slot"
	reader orders/take/200
	waiting orders 1
	dying 2 aa
	has_log 'the levels of the buckets could not be restored: they start empty'
	is 'through a file that was open' "$(read_of 5)" 1/d
	counts orders slots_used 1
	waiting orders 1
	[ "$(tokens orders)" -le 0 ] || fail "tokens $(tokens orders)"
	echo 100000/s > "$m/orders/rate"
	gone "$reader" 20
	is 'what the reader got' "$(cat "$d/got")" 200
	exec 5<&- 6<&-
}

case_a_quota_is_kept_where_buckets_start_empty() {
	local far
	far=$(LC_ALL=C date -u -d '+180 days' +year@%b-%-d | tr '[:upper:]' '[:lower:]')
	outlives_dying "local:$d/kept"
	limiter shop
	limiter shop/orders "1000/$far"
	is taken "$(cat "$m/shop/orders/take/400")" 400
	dying 2 aa
	has_log 'the levels of the buckets could not be restored: they start empty'
	is left "$(tokens shop/orders)" 600
	killed
	is 'left after that' "$(tokens shop/orders)" 600
}

case_with_servers_a_host_whose_servers_die_of_its_leases_goes_on_as_a_new_one() {
	outlives_dying -o session=3s,right=3s
	limiter orders 1000/s
	in_use
	exec 5< "$m/orders/rate"
	dying 2 aa
	has_log 'the levels of the buckets could not be restored: they start empty'
	is 'through a file that was open' "$(read_of 5)" 1000/s
	reader orders/token
	gone "$reader" 60
	is 'what the reader got' "$(cat "$d/got")" 1
	exec 5<&-
}

case_all_that_servers_die_of_is_kept_aside() {
	outlives_dying "local:$d/kept"
	limiter orders 1/d 100
	exec 5< "$m/orders/rate"
	reader orders/take/200
	waiting orders 1
	dying 3 aa
	has_log 'the state of the server before could not be restored: kept aside, buckets '\
'start empty'
	is 'through a file that was open' "$(read_of 5)" ENODEV
	gone "$reader" 20 || :
	is 'what the reader got' "$(cat "$d/got")" ENODEV
	is 'tokens of orders' "$(tokens orders)" 0
	echo 1000/s > "$m/orders/rate"
	is 'a new read' "$(cat "$m/orders/token")" 1
	killed
	is rate "$(cat "$m/orders/rate")" 1000/s
	exec 5<&-
}

case_more_is_given_up_as_long_as_servers_die() {
	outlives_dying "local:$d/kept"
	limiter orders 1/d 100
	dying 1 aaaaaa
	has_log 'open files could not be taken over'
	has_log 'the levels of the buckets could not be restored'
	has_log 'the state of the server before could not be restored'
	eventually 20 mkdir -p "$m/again" || fail 'no limiter can be made'
	echo 1000/s > "$m/again/rate"
	is 'a new read' "$(cat "$m/again/token")" 1
}

case_a_server_that_cannot_stay_up_ends_the_mount() {
	local before status=0
	outlives_dying
	empty orders
	reader orders/token
	waiting orders 1
	before=$(server)
	kill -STOP "$before"
	death '[0-9]+ signal 9'
	printf '1%s' kkkkkkkkkkkkkkkkkkkk > "$DYING"
	kill -9 "$before"
	gone "$daemon" 60 || status=$?
	daemon=
	is 'exit status' $status 1
	like log "$(tail -n 1 "$d/log")" 'the server was killed by signal 9, as it did 10 times'
	eventually 20 eval '! mountpoint -q "$m"' || fail 'still mounted'
	gone "$reader" 10 || :
	like 'what the reader got' "$(cat "$d/got")" '^(ECONNABORTED|ENOTCONN|ESHUTDOWN)$'
}

case_one_death_and_any_number_of_kills_give_up_nothing() {
	outlives_dying "local:$d/kept"
	limiter orders 1/d 100
	exec 5< "$m/orders/rate"
	local part
	for part in 1 2 3; do
		dying $part a
		dying $part kkkkkk
	done
	all_is_restored
	is 'through a file that was open' "$(read_of 5)" 1/d
	is 'tokens of orders' "$(tokens orders)" 100
	exec 5<&-
}
