# shellcheck shell=bash
# What is refused, how, and that nothing has changed by it.

# keeps FILE ERRNO TEXT…: writing each TEXT is refused so, and the file reads as before.
keeps() {
	local file=$1 errno=$2 before text
	shift 2
	before=$(cat "$m/orders/$file")
	for text; do
		refused "$errno" write "$m/orders/$file" "$text"
		is "$file after '$text'" "$(cat "$m/orders/$file")" "$before"
	done
}

case_a_rate_that_is_not_understood_is_refused() {
	start
	limiter orders 500/s
	keeps rate EINVAL x 5/ /s 5/x 5//s 5s '5 /s x' -5/s 5/-1s 1e 0x5/s 5,5/s '5/s max' 5/s/s \
		nan inf none $'5/s\n6/x' 5/s: 5/s:x '500/s 20' '5 0/s' '0 5/s' '5 / s'
}

case_a_rate_out_of_bounds_is_refused() {
	start
	limiter orders 500/s
	keeps rate ERANGE 99999999999999999999999999/s 1000T/ms 5/0s 1/100000000d 5/s:0 \
		'1/s 2/s 3/s 4/s 5/s 6/s 7/s 8/s 9/s'
}

case_a_burst_that_is_not_understood_is_refused() {
	start
	limiter orders 500/s 5
	keeps burst EINVAL x -1 '1 2' 0x10 5/s none
}

case_a_burst_out_of_bounds_is_refused() {
	start
	limiter orders 500/s 5
	keeps burst 'EINVAL|ERANGE' 1.5
	keeps burst ERANGE 0 99999999999999999999999999
}

case_a_release_interval_that_is_not_understood_is_refused() {
	start
	limiter orders 500/s
	keeps release_interval EINVAL x 5m -1s '1s 2s' 1x none max
}

case_a_release_interval_out_of_bounds_is_refused() {
	start
	limiter orders 500/s
	keeps release_interval ERANGE 99999999999999999d 1us 100d
}

case_an_enforcement_that_does_not_exist_is_refused() {
	start
	limiter orders 500/s
	keeps enforcement EINVAL x Enforce 'open closed' 1 none
}

case_a_count_of_partitions_that_cannot_be_is_refused() {
	start
	limiter orders 500/s
	keeps partitions/count EINVAL x -1 1.5 '1 2' none
	keeps partitions/count ERANGE 0 4097 99999999999999999999999999
}

case_a_lease_that_cannot_be_is_refused() {
	start
	limiter orders 500/s
	keeps partitions/lease EINVAL x 5m -1s '1s 2s' none
	keeps partitions/lease ERANGE 0s 99999999999999999d
}

case_a_reserve_that_cannot_be_is_refused() {
	start
	limiter orders 500/s
	keeps partitions/reserve EINVAL x 10/s hosts=8 '10/s hosts=x' '10/s hosts=8 more' \
		'10/s guests=8'
	keeps partitions/reserve ERANGE '10/s hosts=0' '100/s hosts=8' '0 hosts=8' 'max hosts=8'
}

case_a_charge_that_is_not_understood_is_refused() {
	start
	limiter orders 1/h 10
	local text before
	before=$(counter orders tokens)
	for text in x '1 2' 5/s max --5; do
		refused EINVAL write "$m/orders/charge" "$text"
	done
	refused ERANGE write "$m/orders/charge" 99999999999999999999999999
	like 'last error' "$(reason)" 'a charge is a whole number, -1e13 to 1e13$'
	refused 'EINVAL|ERANGE' write "$m/orders/charge" 1.5
	refused ERANGE write "$m/orders/charge" -99999999999999999999999999
	counts orders tokens "$before"
}

case_no_more_can_be_given_back_than_was_taken() {
	start
	limiter orders 1/h 10
	refused ERANGE write "$m/orders/charge" -1
	cat "$m/orders/take/4" > /dev/null
	echo 2 > "$m/orders/charge"
	refused ERANGE write "$m/orders/charge" -7
	echo -6 > "$m/orders/charge"
	refused ERANGE write "$m/orders/charge" -1
	is 'all of it' "$(cat "$m/orders/take/10,within=0s")" 10
	denied EBUSY read "$m/orders/try"
}

case_an_empty_write_is_refused() {
	start
	limiter orders 500/s 5
	local file
	for file in rate burst release_interval enforcement partitions/count partitions/lease \
		partitions/reserve config; do
		keeps $file EINVAL $'\n' ' ' $' \t\n'
	done
	refused EINVAL write "$m/orders/charge" ' '
}

case_a_nul_byte_is_refused() {
	start
	limiter orders 500/s
	is errno "$(printf '7/s\0' | "$CLIENT" write "$m/orders/rate" -)" EINVAL
	is errno "$(printf '7\0/s' | "$CLIENT" write "$m/orders/rate" -)" EINVAL
	is errno "$(printf 'rate=7/s\0\nburst=7' | "$CLIENT" write "$m/orders/config" -)" EINVAL
	is rate "$(cat "$m/orders/rate")" 500/s
}

case_too_long_a_write_is_refused() {
	start
	limiter orders 500/s 5
	local file before size
	for file in rate burst release_interval enforcement charge partitions/count; do
		before=$(cat "$m/orders/config")
		for size in 4096 5000 65536 100000; do
			is "errno of $size bytes to $file" "$(head -c $size /dev/zero |
				tr '\0' ' ' | "$CLIENT" write "$m/orders/$file" -)" E2BIG
			like 'last_error' "$(cat "$m/last_error")" '^[^ ]+( [^ ]+){2,}$'
		done
		is 'config after it' "$(cat "$m/orders/config")" "$before"
	done
	before=$(cat "$m/orders/config")
	{ echo rate=7/s; head -c 65536 /dev/zero | tr '\0' '\n'; } > "$d/long"
	is 'errno of config' "$("$CLIENT" write "$m/orders/config" - < "$d/long")" E2BIG
	is 'config after it' "$(cat "$m/orders/config")" "$before"
}

case_config_tells_which_line_it_refused() {
	start
	limiter orders 500/s
	keeps config EINVAL nonsense=1 rate 'rate 5/s' =5 $'rate=7/s\nburst=x' granted=5 token=1 \
		rate=
	keeps config ERANGE burst=0 $'rate=7/s\npartitions.count=4097'
	refused EINVAL write "$m/orders/config" $'rate=7/s\nburst=wrong'
	like last_error "$(cat "$m/last_error")" 'burst|wrong'
	refused EINVAL write "$m/orders/config" nonsense=1
	like last_error "$(cat "$m/last_error")" nonsense
}

case_the_sentence_names_what_was_wrong() {
	start
	limiter orders 500/s
	refused EINVAL write "$m/orders/rate" plenty
	like last_error "$(cat "$m/last_error")" 'plenty|rate'
	refused EINVAL write "$m/orders/enforcement" sometimes
	like last_error "$(cat "$m/last_error")" 'sometimes|enforce'
	refused EPERM create "$m/orders/rat"
	like last_error "$(cat "$m/last_error")" "'rat': there is no such file"
	is lines "$(wc -l < "$m/last_error")" 2
}

case_files_that_tell_cannot_be_written() {
	start
	limiter orders 500/s
	local file
	for file in orders/token orders/try orders/stream orders/take/5 orders/eta/5 orders/stat \
		orders/waiters \
		orders/partitions/held README status metrics hosts events last_error; do
		denied 'EACCES|EPERM' write "$m/$file" 5
	done
	counts orders granted 0
}

case_charge_cannot_be_read() {
	start
	limiter orders 500/s
	denied 'EACCES|EPERM' read "$m/orders/charge"
}

case_nothing_but_limiters_can_be_made() {
	start
	limiter orders
	local place part
	part=orders/partitions/$(a_part)/
	for place in "" orders/ orders/take/ orders/eta/ orders/partitions/ "$part"; do
		denied EPERM create "$m/${place}new"
		denied EPERM fifo "$m/${place}new"
		denied EPERM symlink "$m/${place}new"
		denied EPERM link "$m/orders/rate" "$m/${place}new"
		[ ! -e "$m/${place}new" ] || fail "${place}new exists"
	done
	for place in orders/take/ orders/eta/ orders/partitions/ "$part"; do
		refused EPERM mkdir "$m/${place}new"
		[ ! -e "$m/${place}new" ] || fail "${place}new exists"
	done
}

case_nothing_but_limiters_can_be_removed() {
	start
	limiter orders
	local file part
	part=partitions/$(a_part)
	for file in rate token stat config charge take/5 eta/5 partitions/count "$part/rate"; do
		denied EPERM unlink "$m/orders/$file"
		[ -e "$m/orders/$file" ] || fail "$file is gone"
	done
	for file in README status events; do
		denied EPERM unlink "$m/$file"
	done
	for file in take eta partitions "$part"; do
		refused EPERM rmdir "$m/orders/$file"
	done
	denied 'EPERM|EISDIR' unlink "$m/orders"
	denied 'EPERM|ENOTDIR' rmdir "$m/orders/rate"
	denied ENOENT rmdir "$m/nothing"
	denied ENOENT unlink "$m/orders/nothing"
	[ -e "$m/orders/rate" ] || fail 'orders is gone'
}

case_nothing_but_limiters_can_be_renamed() {
	start
	limiter orders 500/s
	limiter other
	denied EPERM rename "$m/orders/rate" "$m/orders/speed"
	denied EPERM rename "$m/orders/rate" "$m/orders/burst"
	denied EPERM rename "$m/README" "$m/LIESMICH"
	denied EPERM rename "$m/orders/take" "$m/orders/give"
	denied EPERM rename "$m/orders/partitions/$(a_part)" "$m/orders/partitions/1"
	denied 'EPERM|EXDEV' rename "$m/orders" "$m/other/orders"
	denied 'EPERM|EXDEV' rename "$m/orders" "$d/orders"
	denied EXDEV rename "$d/log" "$m/log"
	is rate "$(cat "$m/orders/rate")" 500/s
	is 'left in other' "$([ -e "$m/other/orders" ] && echo there)" ''
}

case_names_that_are_taken_or_not_allowed_are_refused() {
	start
	limiter orders
	local name
	for name in token try stream take eta charge rate burst release_interval enforcement \
		config stat waiters partitions slot feedback offline \
		concurrency adapt backoff key_rate key_burst keys_max keys; do
		denied EEXIST mkdir "$m/orders/$name"
	done
	for name in README status metrics hosts events last_error orders; do
		denied EEXIST mkdir "$m/$name"
	done
	for name in token rate stat; do
		denied EEXIST mkdir "$m/$name"
	done
	for name in .hidden ..x .token $'tab\there' $'line\nbreak' $'\x7f'; do
		refused 'EINVAL|EPERM' mkdir "$m/$name"
	done
	denied ENAMETOOLONG mkdir "$m/$(printf 'n%.0s' {1..256})"
	is limiters "$(find "$m" -mindepth 1 -maxdepth 2 -name token | wc -l)" 1
}

case_a_rename_that_exchanges_or_leaves_something_is_refused() {
	start
	limiter orders
	limiter mail
	python3 - "$m" <<- 'EOF'
		import ctypes, errno, os, sys
		NOREPLACE, EXCHANGE, WHITEOUT = 1, 2, 4
		libc = ctypes.CDLL(None, use_errno=True)
		os.chdir(sys.argv[1])
		def rename(old, new, flags):
		    err = libc.renameat2(-100, old, -100, new, flags)
		    return errno.errorcode[ctypes.get_errno()] if err else None
		assert rename(b"orders", b"mail", EXCHANGE) == "EINVAL"
		assert rename(b"orders", b"new", WHITEOUT) == "EINVAL"
		assert "neither exchanged" in open("last_error").read()
		assert rename(b"orders", b"mail", NOREPLACE) == "EEXIST"
		assert rename(b"orders", b"new", NOREPLACE) is None
	EOF
	is limiters "$(cd "$m" && ls -d ./*/)" $'./mail/\n./new/'
}

case_a_rename_to_a_name_that_is_taken_or_not_allowed_is_refused() {
	start
	limiter orders 500/s
	limiter other 7/s
	denied EEXIST rename "$m/orders" "$m/other"
	denied 'EEXIST|ENOTDIR' rename "$m/orders" "$m/status"
	denied 'EINVAL|EPERM' rename "$m/orders" "$m/.hidden"
	denied ENAMETOOLONG rename "$m/orders" "$m/$(printf 'n%.0s' {1..256})"
	is rate "$(cat "$m/orders/rate")" 500/s
	is rate "$(cat "$m/other/rate")" 7/s
}

case_names_of_many_kinds_are_taken() {
	start
	local name long
	long=$(printf 'n%.0s' {1..255})
	for name in a 'with space' 'quote"d' 'back\slash' '%41' '-x' 'é€😀' 1 0 '*' 'a=b' \
		'[section]' 'semi;colon' '#x' "$long"; do
		mkdir -- "$m/$name"
		echo 5/s > "$m/$name/rate"
		is "rate of $name" "$(cat "$m/$name/rate")" 5/s
		is "token of $name" "$(cat "$m/$name/token")" 1
		rmdir -- "$m/$name"
		[ ! -e "$m/$name" ] || fail "$name is still there"
	done
}

case_limiters_nested_too_deeply_are_refused() {
	start
	local path=$m depth=0 got
	while got=$("$CLIENT" mkdir "$path/l"); do
		path=$path/l
		depth=$((depth + 1))
		[ $depth -lt 100 ] || fail 'a hundred levels, and no end'
	done
	echo "# $depth levels"
	is errno "$got" ENOSPC
	like last_error "$(cat "$m/last_error")" '^[^ ]+( [^ ]+){2,}$'
	is token "$(cat "$path/token")" 1
	counts l granted 1
}

case_a_limiter_with_children_cannot_be_removed() {
	start
	limiter orders 500/s
	limiter orders/eu 5/s
	refused EBUSY rmdir "$m/orders"
	is rate "$(cat "$m/orders/eu/rate")" 5/s
	rmdir "$m/orders/eu" "$m/orders"
	[ ! -e "$m/orders" ] || fail 'still there'
}

case_a_limiter_with_blocked_readers_cannot_be_removed() {
	start
	empty orders
	"$CLIENT" crowd 20 "$m/orders/token" > "$d/got" &
	local crowd=$!
	waiting orders 20
	refused EBUSY rmdir "$m/orders"
	waiting orders 20
	echo max > "$m/orders/rate"
	gone $crowd 20
	like ended "$(cat "$d/got")" '^granted 20 '
	rmdir "$m/orders"
	[ ! -e "$m/orders" ] || fail 'still there'
}

case_an_open_file_of_a_removed_limiter_is_no_device() {
	start
	limiter orders 1/h 100
	local file
	for file in token try stream take/5 rate burst stat charge config waiters eta/5; do
		limiter gone 1/h 100
		is "reading and writing gone/$file" \
			"$("$CLIENT" held "$m/gone/$file" "rmdir $m/gone" | sort -u)" ENODEV
	done
	limiter gone
	is 'after it is made anew' "$("$CLIENT" held "$m/gone/token" \
		"rmdir $m/gone && mkdir $m/gone" | sort -u)" ENODEV
	counts gone granted 0
	counts orders granted 0
	exec 5< "$m/gone/token"
	rmdir "$m/gone"
	# The kernel has known its mode for a second.
	eventually 20 is_stale 5 || fail 'its mode is told'
	exec 5<&-
}

# is_stale DESCRIPTOR: its mode is asked for in vain.
is_stale() { [[ $(LC_ALL=C stat -L "/proc/self/fd/$1" 2>&1 <&"$1") == *'Stale file handle' ]]; }
