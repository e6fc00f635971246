# shellcheck shell=bash
# Every usual way to write a file sets a value.

# sets COMMAND…: it writes 7/s to $rate.
sets() {
	start
	limiter orders 500/s
	rate=$m/orders/rate "$@" || fail "exit status $?"
	is rate "$(cat "$m/orders/rate")" 7/s
	is 'last error' "$(cat "$m/last_error")" ''
}

# shellcheck disable=SC2016
{
	case_bash_echo_sets_a_value() { sets bash -c 'echo 7/s > "$rate"'; }
	case_dash_echo_sets_a_value() { sets dash -c 'echo 7/s > "$rate"'; }
	case_busybox_echo_sets_a_value() { sets busybox sh -c 'echo 7/s > "$rate"'; }
	case_zsh_echo_sets_a_value() { sets zsh -c 'echo 7/s > "$rate"'; }
	case_printf_without_a_newline_sets_a_value() { sets bash -c 'printf 7/s > "$rate"'; }
	case_appending_sets_a_value() { sets bash -c 'echo 7/s >> "$rate"'; }
	case_reading_and_writing_redirection_sets_a_value() { sets bash -c 'echo 7/s 1<> "$rate"'; }
	case_tee_sets_a_value() { sets bash -c 'echo 7/s | tee "$rate" > /dev/null'; }
	case_tee_appending_sets_a_value() { sets bash -c 'echo 7/s | tee -a "$rate" > /dev/null'; }
	case_dd_sets_a_value() { sets bash -c 'echo 7/s | dd of="$rate" status=none'; }
	case_dd_at_an_offset_sets_a_value() {
		sets bash -c 'echo 7/s | dd of="$rate" bs=4 seek=100 conv=notrunc status=none'
	}
	case_dd_in_a_padded_block_sets_a_value() {
		sets bash -c 'echo 7/s | dd of="$rate" bs=4095 cbs=4095 conv=block status=none'
	}
	case_cp_sets_a_value() {
		sets bash -c 'echo 7/s > "$TMPDIR/new" && cp "$TMPDIR/new" "$rate"'
	}
	case_cat_sets_a_value() {
		sets bash -c 'echo 7/s > "$TMPDIR/new" && cat "$TMPDIR/new" > "$rate"'
	}
	case_awk_sets_a_value() { sets awk 'BEGIN { print "7/s" > ENVIRON["rate"] }'; }
	case_perl_sets_a_value() {
		sets perl \
			-e 'open(my $f, ">", $ENV{rate}) or die; print $f "7/s\n"; close($f) or die'
	}
}

case_python_sets_a_value() {
	sets python3 -c 'import os; open(os.environ["rate"], "w").write("7/s\n")'
}
case_python_appending_sets_a_value() {
	sets python3 -c 'import os; open(os.environ["rate"], "a").write("7/s")'
}

case_node_sets_a_value() {
	command -v node > /dev/null || skip 'no node'
	sets node -e 'require("fs").writeFileSync(process.env.rate, "7/s\n")'
}

case_an_editor_that_rewrites_in_place_sets_a_value() {
	sets python3 -c '
import os
fd = os.open(os.environ["rate"], os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
os.write(fd, b"7/s\n")
os.fsync(fd)
os.close(fd)'
}

case_truncating_and_then_writing_sets_a_value() {
	sets python3 -c '
import os
os.truncate(os.environ["rate"], 0)
fd = os.open(os.environ["rate"], os.O_WRONLY)
os.ftruncate(fd, 0)
os.write(fd, b"7/s\n")
os.close(fd)'
}

case_several_writes_to_one_open_file_are_commands_of_their_own() {
	sets python3 -c '
import os
fd = os.open(os.environ["rate"], os.O_WRONLY)
for rate in b"5/s\n", b"6/s", b"7/s\n":
    os.write(fd, rate)
os.close(fd)'
}

# in_pieces FILE: writes standard input at once, in a piece for each byte; says how many are taken.
in_pieces() {
	python3 -c '
import os, sys
text = sys.stdin.buffer.read()
fd = os.open(sys.argv[1], os.O_WRONLY)
print(os.writev(fd, [text[i:i + 1] for i in range(len(text))]))' "$1"
}

case_as_many_as_256_pieces_of_one_write_are_one_command() {
	[[ $("$RATEFS" --version) != *' 3.1'[0-3].* ]] || skip 'libfuse before 3.14'
	start
	local size
	limiter orders 500/s
	for size in 32 33 37 256; do
		is 'bytes taken' "$(printf "%${size}s" "$size/s" | in_pieces "$m/orders/rate")" \
			"$size"
		is rate "$(cat "$m/orders/rate")" "$size/s"
	done
	is 'bytes of a config' \
		"$(printf 'rate=7/s\nburst=%241s' 9 | in_pieces "$m/orders/config")" 256
	is settings "$(cat "$m/orders/rate" "$m/orders/burst")" $'7/s\n9'
	is 'bytes of a charge' "$(printf '%256s' 3 | in_pieces "$m/orders/charge")" 256
	is 'bytes of a report' "$(printf 'ok %252s\n' 5 | in_pieces "$m/orders/feedback")" 256
	counts orders ok 5
	# The pieces behind them are a command of their own.
	is 'bytes taken' "$(printf '8/s%253s12' '' | in_pieces "$m/orders/rate")" 258
	is rate "$(cat "$m/orders/rate")" 12/s
	is 'bytes taken' "$(printf '8/s%254s' '' | in_pieces "$m/orders/rate")" 256
	is rate "$(cat "$m/orders/rate")" 8/s
	like 'last error' "$(cat "$m/last_error")" 'no value'
}

case_white_space_at_both_ends_is_ignored() {
	start
	limiter orders 500/s
	local blanks
	blanks=$(printf '\n \t\r%900s' '')
	"$CLIENT" write "$m/orders/rate" $' \t\n 7/s \t\r\n\n'
	is rate "$(cat "$m/orders/rate")" 7/s
	"$CLIENT" write "$m/orders/burst" $'  5\t'
	is burst "$(cat "$m/orders/burst")" 5
	"$CLIENT" write "$m/orders/rate" "${blanks}8/s$blanks"
	is rate "$(cat "$m/orders/rate")" 8/s
	"$CLIENT" write "$m/orders/charge" "${blanks}12$blanks"
	"$CLIENT" write "$m/orders/config" "${blanks}rate =    9/s$blanks"
	is rate "$(cat "$m/orders/rate")" 9/s
}

case_truncating_changes_nothing() {
	start
	limiter orders 500/s 3
	: > "$m/orders/rate"
	truncate -s 0 "$m/orders/burst"
	is rate "$(cat "$m/orders/rate")" 500/s
	is burst "$(cat "$m/orders/burst")" 3
}

case_sed_in_place_is_refused_and_leaves_nothing() {
	start
	limiter orders 500/s
	local before status=0 said
	before=$(ls -A "$m/orders")
	said=$(sed -i s/5/7/ "$m/orders/rate" 2>&1) || status=$?
	[ $status != 0 ] || fail 'sed -i succeeded'
	like 'what sed says' "$said" 'Operation not permitted'
	is rate "$(cat "$m/orders/rate")" 500/s
	is 'the directory' "$(ls -A "$m/orders")" "$before"
}

case_the_largest_write_is_taken() {
	start
	limiter orders 500/s
	python3 -c 'print("7/s".ljust(4095), end="")' | "$CLIENT" write "$m/orders/rate" - ||
		fail 'refused'
	is rate "$(cat "$m/orders/rate")" 7/s
	python3 -c 'print("rate=8/s\n".ljust(65536, "\n"), end="")' |
		"$CLIENT" write "$m/orders/config" - || fail 'refused'
	is rate "$(cat "$m/orders/rate")" 8/s
}

case_size_is_fixed_and_the_time_is_that_of_the_last_change() {
	start
	limiter orders 500/s
	local file first before
	for file in rate:4096 stat:4096 token:2 try:2 take/250:4 charge:0; do
		is "size of ${file%:*}" "$(stat -c %s "$m/orders/${file%:*}")" "${file#*:}"
	done
	first=$(stat -c %i:%Y "$m/orders/rate")
	before=$(stat -c %.Y "$m/orders/rate")
	sleep 1.1
	is 'read twice' "$(stat -c %i:%Y "$m/orders/rate")" "$first"
	echo 7/s > "$m/orders/rate"
	is inode "$(stat -c %i "$m/orders/rate")" "${first%:*}"
	awk "BEGIN { exit !($(stat -c %.Y "$m/orders/rate") > $before) }" ||
		fail 'mtime did not move'
}

case_listing_shows_every_file_and_writes_none() {
	start
	limiter orders 500/s
	limiter orders/eu
	local name
	for name in token try take eta charge rate burst release_interval enforcement config stat \
		waiters partitions eu; do
		[ -e "$m/orders/$name" ] || fail "no $name"
		grep -qx "$name" <(ls "$m/orders") || fail "$name is not listed"
	done
	for name in README status metrics hosts last_error orders; do
		grep -qx "$name" <(ls "$m") || fail "$name is not listed"
	done
	find "$m" -ls > /dev/null
	counts orders granted 0
}
