# shellcheck shell=bash
# Whatever opens and reads a token file spends exactly one token for each reading.

# one_each COMMAND…: reads $token, prints what it got; with no limit and with tokens to count.
one_each() {
	local path i before got
	start
	limiter free
	limiter few 1/h 10
	for path in free few; do
		export token=$m/$path/token
		for i in 1 2 3; do
			before=$(counter $path granted)
			got=$("$@") || fail "reading $i of $path: exit status $?"
			is "reading $i of $path" "$got" 1
			counts $path granted $((before + 1))
		done
	done
}

needs() { command -v "$1" > /dev/null || skip "no $1"; }

# The quotes hold back $token for the program that is started.
# shellcheck disable=SC2016
{
	case_bash_read_spends_one_token() { one_each bash -c 'read -r x < "$token" && echo "$x"'; }
	case_bash_substitution_spends_one_token() { one_each bash -c 'echo "$(< "$token")"'; }
	case_bash_mapfile_spends_one_token() {
		one_each bash -c 'mapfile -t x < "$token"; echo "${x[@]}"'
	}
	case_dash_read_spends_one_token() { one_each dash -c 'read -r x < "$token" && echo "$x"'; }
	case_busybox_read_spends_one_token() {
		needs busybox; one_each busybox sh -c 'read -r x < "$token" && echo "$x"'
	}
	case_zsh_read_spends_one_token() {
		needs zsh; one_each zsh -c 'read -r x < "$token" && echo "$x"'
	}
	case_cat_spends_one_token() { one_each sh -c 'cat "$token"'; }
	case_head_spends_one_token() { one_each sh -c 'head "$token"'; }
	case_head_of_one_byte_spends_one_token() { one_each sh -c 'head -c 1 "$token"'; }
	case_dd_byte_by_byte_spends_one_token() {
		one_each sh -c 'dd bs=1 if="$token" 2> /dev/null'
	}
	case_dd_in_one_block_spends_one_token() {
		one_each sh -c 'dd bs=64K if="$token" 2> /dev/null'
	}
	case_sed_spends_one_token() { one_each sh -c 'sed -n p "$token"'; }
	case_awk_spends_one_token() { one_each sh -c 'awk "{ print }" "$token"'; }
	case_awk_getline_spends_one_token() {
		one_each awk 'BEGIN { getline x < ENVIRON["token"]; print x }'
	}
	case_grep_spends_one_token() { one_each sh -c 'grep . "$token"'; }
	case_cp_spends_one_token() {
		one_each sh -c 'cp "$token" "$TMPDIR/copy" && cat "$TMPDIR/copy"'
	}
	case_xargs_spends_one_token() { one_each sh -c 'xargs -a "$token" echo'; }
}

case_python_spends_one_token() {
	one_each python3 -c 'import os; print(open(os.environ["token"]).read(), end="")'
}

case_python_readline_spends_one_token() {
	one_each python3 -c '
import os
with open(os.environ["token"]) as token:
    print(token.readline(), end="")'
}

case_python_iteration_spends_one_token() {
	one_each python3 -c '
import os, pathlib
for line in open(os.environ["token"]):
    print(line, end="")'
}

case_python_unbuffered_spends_one_token() {
	one_each python3 -c \
		'import os; print(os.read(os.open(os.environ["token"], os.O_RDONLY), 1).decode())'
}

case_perl_spends_one_token() {
	one_each perl -e 'open(my $f, "<", $ENV{token}) or die; my $x = <$f>; print $x'
}

case_perl_slurping_spends_one_token() {
	one_each perl -e 'open(my $f, "<", $ENV{token}) or die; local $/; print <$f>'
}

case_node_readfilesync_spends_one_token() {
	needs node
	one_each node -e 'process.stdout.write(require("fs").readFileSync(process.env.token))'
}

case_node_readfile_spends_one_token() {
	needs node
	one_each node -e 'require("fs").promises.readFile(process.env.token, "utf8")
		.then(x => process.stdout.write(x))'
}

case_node_readline_spends_one_token() {
	needs node
	one_each node -e '
		const input = require("fs").createReadStream(process.env.token)
		require("readline").createInterface({ input }).on("line", x => console.log(x))'
}

# Never the end of a file in place of a token: a program that would splice is told that it cannot be
# done, and reads.
case_copying_by_sendfile_is_refused_and_spends_nothing() {
	start
	limiter orders 1/h 10
	python3 - "$m/orders/token" <<- 'EOF'
		import errno, os, sys
		token = os.open(sys.argv[1], os.O_RDONLY)
		readable, writable = os.pipe()
		try:
		    os.sendfile(writable, token, None, 4096)
		    sys.exit("it gave something")
		except OSError as error:
		    assert error.errno == errno.EINVAL, error
	EOF
	counts orders granted 0
}

case_a_read_of_busybox_cat_is_never_empty() {
	start
	limiter orders 5/s
	is 'rate' "$(busybox cat "$m/orders/rate")" 5/s
	: > "$m/orders/rate"
	is 'rate after it was cut' "$(busybox cat "$m/orders/rate")" 5/s
	is 'token' "$(busybox cat "$m/orders/token")" 1
	counts orders granted 1
}

case_a_c_program_spends_one_token() { one_each sh -c '"$CLIENT" read "$token"'; }

case_reading_blocks_until_a_token_is_there() {
	start
	empty orders
	reader orders/token
	waiting orders 1
	is 'read so far' "$(cat "$d/got")" ''
	echo 100/s > "$m/orders/rate"
	gone $reader 20
	is 'read' "$(cat "$d/got")" 1
	counts orders waiting 0
	counts orders granted 2
}

case_a_trap_ends_the_read_of_dash_and_no_token_is_spent() {
	start
	empty orders
	dash -c 'trap : USR1; read -r _ < "$1" || exit 9' - "$m/orders/token" &
	local shell=$! status=0
	waiting orders 1
	kill -USR1 "$shell"
	wait "$shell" || status=$?
	is status $status 9
	counts orders cancelled 1 granted 1
}
