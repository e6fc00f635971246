# shellcheck shell=bash
# Slots: an open file holds one, and whoever finds none free waits in open(2).

# holder NAME: opens slot of orders in the background and keeps it; its pid in $holder, and $d/NAME
# is there once it has it. It inherits none of the slots of the case.
holder() {
	env --default-signal \
		bash -c "exec 3< '$m/orders/slot'; : > '$d/$1'; exec sleep 100" 3<&- 4<&- 5<&- &
	holder=$!
}

# has_slot NAME
has_slot() { eventually 20 [ -e "$d/$1" ] || fail "$1 did not get a slot"; }

case_a_slot_is_open_until_it_is_closed() {
	start
	limiter orders
	echo 2 > "$m/orders/concurrency"
	is concurrency "$(cat "$m/orders/concurrency")" 2
	exec 3< "$m/orders/slot" 4< "$m/orders/slot"
	counts orders slots 2
	counts orders slots_used 2
	holder third
	waiting orders 1
	[ ! -e "$d/third" ] || fail 'a third slot of two'
	exec 3<&-
	has_slot third
	counts orders slots_used 2
	kill $holder
	exec 4<&-
	eventually 20 has orders slots_used 0
	counts orders slots_opened 3
	counts orders granted 0
}

case_reading_an_open_slot_takes_nothing() {
	start
	limiter orders
	is 'read of a slot' "$(cat "$m/orders/slot")" 0
	exec 3< "$m/orders/slot"
	read -r got <&3
	is 'read of descriptor 3' "$got" 0
	is 'the rest' "$(cat <&3)" ''
	exec 3<&-
	counts orders granted 0
	counts orders slots max
	is 'by python, with poll' "$(python3 -c '
import os, select, sys
slot = os.open(sys.argv[1], os.O_RDONLY)
poll = select.poll()
poll.register(slot, select.POLLIN)
assert poll.poll(5000) == [(slot, select.POLLIN)]
print([os.pread(slot, 1, at) for at in (0, 1, 2, 0)])' "$m/orders/slot")" \
		"[b'0', b'\\n', b'', b'0']"
}

case_each_open_slot_has_a_number_of_its_own() {
	start
	limiter gpu
	mkdir "$m/gpu/train" "$m/gpu/infer"
	echo 4 > "$m/gpu/concurrency"
	exec 3< "$m/gpu/train/slot" 4< "$m/gpu/infer/slot" 5< "$m/gpu/slot" 6< "$m/gpu/slot"
	is 'in the order of reading' "$(read_of 5) $(read_of 4) $(read_of 3) $(read_of 6)" '0 1 2 3'
	exec 4<&-
	is 'that which came free' "$("$CLIENT" read "$m/gpu/train/slot")" 1
	echo 1 > "$m/gpu/train/concurrency"
	is 'it stays as it is' "$(read_of 3)" 2
	exec 3<&-
	is 'of the nearest that has some' "$("$CLIENT" read "$m/gpu/train/slot")" 0
	exec 5<&- 6<&-
}

case_slots_of_keys_have_numbers_of_their_own() {
	start
	limiter gpu
	echo 2 > "$m/gpu/key_concurrency"
	exec 3< "$m/gpu/slot" 4< "$m/gpu/keys/ann/slot" 5< "$m/gpu/keys/ann/slot"
	is 'and of a key' "$(read_of 3) $(read_of 4) $(read_of 5)" '0 0 1'
	exec 3<&- 4<&- 5<&-
}

case_a_holder_killed_with_sigkill_frees_its_slot() {
	start
	limiter orders
	echo 1 > "$m/orders/concurrency"
	holder first
	has_slot first
	local first=$holder
	holder second
	waiting orders 1
	kill -9 $first
	has_slot second
	counts orders slots_used 1
	kill -9 $holder
	eventually 20 has orders slots_used 0
}

case_a_slot_is_freed_by_the_last_process_that_inherited_it() {
	start
	limiter orders
	echo 1 > "$m/orders/concurrency"
	exec 3< "$m/orders/slot"
	sleep 100 &
	local child=$!
	exec 4<&3 3<&-
	counts orders slots_used 1
	exec 4<&-
	is 'held by the child' "$(counter orders slots_used)" 1
	denied EAGAIN peek "$m/orders/slot"
	kill $child
	wait $child 2> /dev/null || :
	eventually 20 has orders slots_used 0
	is 'free again' "$(cat "$m/orders/slot")" 0
}

case_an_open_that_may_not_block_is_refused() {
	start
	limiter orders
	echo 1 > "$m/orders/concurrency"
	exec 3< "$m/orders/slot"
	denied EAGAIN peek "$m/orders/slot"
	counts orders refused 1
	exec 3<&-
	is 'once it is free' "$("$CLIENT" peek "$m/orders/slot")" 0
}

case_an_opener_waits_for_as_long_as_it_says() {
	start
	limiter orders
	echo 1 > "$m/orders/concurrency"
	# In a fleet a slot is leased first.
	exec 3< "$m/orders/slot,within=0"
	counts orders slots_used 1
	is 'read of a slot' "$(python3 -c 'import os; print(os.pread(3, 9, 0))')" "b'0\\n'"
	denied EBUSY read "$m/orders/slot,within=0"
	denied EBUSY read "$m/orders/slot,within=200ms"
	denied EBUSY read "$m/orders/keys/bob/slot,within=0s"
	denied EAGAIN peek "$m/orders/slot,within=10s"
	local shell
	for shell in bash dash; do
		! "$shell" -c ': 3< "$1/orders/slot,within=0"' - "$m" 2> "$d/said" ||
			fail "a second slot of one, in $shell"
		like "what $shell says" "$(cat "$d/said")" 'busy$'
	done
	counts orders waiting 0
	counts orders refused 5
	# An opener that does not wait is none too many; one that would is.
	echo 0 > "$m/orders/queue_max"
	denied EBUSY read "$m/orders/slot,within=0"
	denied EAGAIN peek "$m/orders/slot"
	counts orders refused_queue_max 0
	refused EBUSY read "$m/orders/slot,within=1s"
	echo max > "$m/orders/queue_max"
	"$CLIENT" read "$m/orders/slot,within=1min" > "$d/got" 2>&1 3<&- &
	local opener=$!
	waiting orders 1
	like waiters "$(rows "$m/orders/waiters")" '^[0-9]+ [0-9]+ slot '
	exec 3<&-
	wait $opener
	is 'read of its slot' "$(cat "$d/got")" 0
	eventually 20 has orders slots_used 0
	exec 3< "$m/orders/keys/bob/slot,within=1s"
	counts orders slots_used 1
	exec 3<&-
	refused ENOENT read "$m/orders/slot,within="
	refused ENOENT read "$m/orders/slot,within=soon"
	refused ERANGE read "$m/orders/slot,within=4000d"
	denied ENOENT read "$m/orders/slot,within"
	denied ENOENT read "$m/slot,within=0"
	refused EEXIST mkdir "$m/orders/slot,within=1s"
}

case_a_signal_with_a_handler_interrupts_a_blocked_open() {
	start
	limiter orders
	echo 1 > "$m/orders/concurrency"
	exec 3< "$m/orders/slot"
	python3 - "$m/orders/slot" <<- 'EOF'
		import ctypes, errno, os, signal, sys
		libc = ctypes.CDLL(None, use_errno=True)
		signal.signal(signal.SIGALRM, lambda *_: None)
		signal.siginterrupt(signal.SIGALRM, True)
		signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
		got = libc.open(os.fsencode(sys.argv[1]), os.O_RDONLY)
		error = ctypes.get_errno()
		signal.setitimer(signal.ITIMER_REAL, 0) # at its end Python takes the handler away
		assert (got, error) == (-1, errno.EINTR), (got, error)
	EOF
	counts orders cancelled 1
	counts orders waiting 0
	counts orders slots_used 1
}

case_an_opener_killed_while_it_waits_gives_up_its_place() {
	start
	limiter orders
	echo 1 > "$m/orders/concurrency"
	exec 3< "$m/orders/slot"
	holder killed
	waiting orders 1
	kill -9 $holder
	waiting orders 0
	exec 3<&-
	holder next
	has_slot next
	[ ! -e "$d/killed" ] || fail 'one who was killed got a slot'
}

case_openers_are_served_in_order_and_are_in_waiters() {
	start
	limiter orders
	echo 1 > "$m/orders/concurrency"
	exec 3< "$m/orders/slot"
	: > "$d/order"
	local i
	for i in 1 2 3; do
		bash -c "exec 3< '$m/orders/slot'; echo $i >> '$d/order'" 3<&- &
		waiting orders $i
	done
	is lines "$(rows "$m/orders/waiters" | wc -l)" 3
	like 'the first line' "$(rows "$m/orders/waiters" | head -n 1)" \
		"^[0-9]+ $UID slot [0-9]+\\.[0-9]{3} - bash\$"
	exec 3<&-
	eventually 20 eval '[ "$(wc -l < "$d/order")" = 3 ]'
	is order "$(tr '\n' ' ' < "$d/order")" '1 2 3 '
}

case_a_smaller_number_takes_no_slot_away_and_a_larger_one_wakes() {
	start
	limiter orders
	echo 3 > "$m/orders/concurrency"
	exec 3< "$m/orders/slot" 4< "$m/orders/slot" 5< "$m/orders/slot"
	echo 1 > "$m/orders/concurrency"
	# A host of a fleet may have to take anew what it has.
	eventually 30 has orders slots 1 || fail "slots $(counter orders slots)"
	counts orders slots_used 3
	holder later
	waiting orders 1
	exec 3<&- 4<&-
	waiting orders 1
	echo 2 > "$m/orders/concurrency"
	has_slot later
	kill $holder
}

case_a_slot_of_a_child_is_a_slot_of_its_parent() {
	start
	limiter all
	limiter all/orders
	limiter all/other
	echo 1 > "$m/all/concurrency"
	exec 3< "$m/all/orders/slot"
	counts all slots_used 1
	denied EAGAIN peek "$m/all/other/slot"
	denied EAGAIN peek "$m/all/slot"
	exec 3<&-
	is other "$("$CLIENT" peek "$m/all/other/slot")" 0
}

case_a_limiter_with_open_slots_is_not_removed() {
	start
	limiter orders
	exec 3< "$m/orders/slot"
	refused EBUSY rmdir "$m/orders"
	echo 1 > "$m/orders/concurrency"
	holder waits
	waiting orders 1
	refused EBUSY rmdir "$m/orders"
	kill -9 $holder
	waiting orders 0
	exec 3<&-
	rmdir "$m/orders"
}

case_closed_keeps_openers_waiting_and_open_lets_them_in() {
	start
	limiter orders
	echo closed > "$m/orders/enforcement"
	holder first
	waiting orders 1
	echo open > "$m/orders/enforcement"
	has_slot first
	kill $holder
	eventually 20 has orders slots_used 0
	echo 1 > "$m/orders/concurrency"
	exec 3< "$m/orders/slot"
	echo shadow > "$m/orders/enforcement"
	exec 4< "$m/orders/slot"
	counts orders slots_used 2
	counts orders shadowed 1
}

case_an_opener_gets_eshutdown_when_the_daemon_ends() {
	start
	limiter orders
	echo 1 > "$m/orders/concurrency"
	holder first
	has_slot first
	local first=$holder
	"$CLIENT" read "$m/orders/slot" > "$d/got" 2>&1 &
	local opener=$!
	waiting orders 1
	kill -TERM "$daemon"
	gone $opener 20 || :
	is 'the open' "$(cat "$d/got")" ESHUTDOWN
	kill -9 $first
	ended
}

case_slot_and_concurrency_refuse_other_requests() {
	start
	limiter orders
	refused ERANGE write "$m/orders/concurrency" 0
	refused ERANGE write "$m/orders/concurrency" 1000001
	refused EINVAL write "$m/orders/concurrency" some
	refused EINVAL write "$m/orders/concurrency" -5
	refused EINVAL write "$m/orders/concurrency" 'auto 5'
	refused EINVAL write "$m/orders/concurrency" 'auto most=5'
	refused EINVAL write "$m/orders/concurrency" 'auto min=1 min=2'
	refused ERANGE write "$m/orders/concurrency" 'auto min=0'
	refused ERANGE write "$m/orders/concurrency" 'auto min=3 max=2'
	refused ERANGE write "$m/orders/concurrency" 'auto decrease=1'
	refused EINVAL write "$m/orders/concurrency" 'auto decrease=fast'
	is concurrency "$(cat "$m/orders/concurrency")" max
	echo 'auto decrease=0.80 min=2' > "$m/orders/concurrency"
	is concurrency "$(cat "$m/orders/concurrency")" 'auto min=2 max=200 decrease=0.8'
	counts orders slots 2
	cat "$m/orders/concurrency" > "$d/was"
	cat "$d/was" > "$m/orders/concurrency"
}

# key_holder NAME KEY: as holder, of a key of orders.
key_holder() {
	env --default-signal \
		bash -c "exec 3< '$m/orders/keys/$2/slot'; : > '$d/$1'; exec sleep 100" \
		3<&- 4<&- 5<&- &
	holder=$!
}

case_a_key_has_slots_of_its_own() {
	start
	limiter orders
	! fleet_refuses EINVAL key_concurrency 2 || return 0
	echo 2 > "$m/orders/key_concurrency"
	is key_concurrency "$(cat "$m/orders/key_concurrency")" 2
	refused ERANGE write "$m/orders/key_concurrency" 0
	refused ERANGE write "$m/orders/key_concurrency" 1000001
	refused EINVAL write "$m/orders/key_concurrency" auto
	exec 3< "$m/orders/keys/bob/slot" 4< "$m/orders/keys/bob/slot"
	key_holder third bob
	local third=$holder
	waiting orders/keys/bob 1
	[ ! -e "$d/third" ] || fail 'a third slot of two'
	denied EAGAIN peek "$m/orders/keys/bob/slot"
	key_holder other eve
	has_slot other
	is 'slots of the key' "$(awk '/^slots/ { print $2 }' "$m/orders/keys/bob/stat" |
		tr '\n' ' ')" '2 2 '
	counts orders slots_used 3
	is holders "$(rows "$m/orders/keys/eve/holders" | cut -d ' ' -f 2)" "$holder"
	is 'holders of all' "$(rows "$m/orders/holders" | wc -l)" 3
	like why "$(cat "$m/orders/keys/bob/why")" 'bob slots 2 of 2'
	like 'why of all' "$(cat "$m/orders/why")" 'bob slots 2 of 2'
	like waiters "$(rows "$m/orders/waiters")" "^$third [0-9]+ slot "
	like users "$(cat "$m/orders/users")" ' bob '
	denied EBUSY rmdir "$m/orders"
	exec 3<&-
	has_slot third
	kill -9 "$third"
	eventually 20 has orders slots_used 2
	kill -9 "$holder"
	eventually 20 has orders slots_used 1
	exec 4<&-
	eventually 20 has orders slots_used 0
	counts orders slots_opened 4
	rmdir "$m/orders"
}
