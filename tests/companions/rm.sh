# shellcheck shell=bash
# ratefs rm: limiters are removed, and nothing else is.

# rm_ STATUS ARGUMENTS…: ratefs rm exits so; $d/err has its messages.
rm_() {
	local wanted=$1 status=0
	shift
	timeout 60 "$RATEFS" rm "$@" > "$d/out" 2> "$d/err" < /dev/null || status=$?
	is "exit status of rm $* ($(cat "$d/err"))" "$status" "$wanted"
	is 'what it prints' "$(cat "$d/out")" ''
}

# says TEXT: on standard error.
says() { is 'what it says' "$(cat "$d/err")" "$1"; }

# left: the limiters of the tree.
left() { (cd "$m" && find . -name config -type f -printf '%h\n' | sort | paste -sd ' '); }

case_a_limiter_goes_with_its_files() {
	start
	limiter orders 5/s
	limiter mail
	: "$(cat "$m/orders/token" "$m/orders/keys/bob/token")"
	rm_ 0 "$m/orders"
	says ''
	is 'what is left' "$(left)" ./mail
	cd "$m"
	rm_ 0 mail/
	is 'what is left' "$(left)" ''
	cd /
	stop
}

case_one_with_limiters_in_it_goes_with_r_alone() {
	start
	mkdir -p "$m/old/deep/deeper" "$m/old/a b" "$m/older"
	rm_ 1 "$m/old"
	says "ratefs rm: $m/old: it has limiters in it; -r removes them"
	is limiters "$(status_of limiters)" 5
	rm_ 0 -r "$m/old/"
	says ''
	is 'what is left' "$(left)" ./older
	stop
}

case_the_deepest_tree_is_removed() {
	start
	mkdir -p "$m/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16"
	rm_ 0 -r "$m/1"
	is 'what is left' "$(left)" ''
	stop
}

case_one_that_is_used_stays_and_all_others_go() {
	start
	mkdir -p "$m"/old/{a,slots,z/y}
	empty old/busy
	limiter free
	echo 1 > "$m/old/slots/concurrency"
	exec {slot}< "$m/old/slots/slot"
	reader old/busy/token
	waiting old/busy 1
	cd "$m"
	rm_ 1 -r old// free
	says "$(printf "ratefs rm: old/%s\n" \
		"busy: 1 reader waits in 'busy'" "slots: 1 slot of 'slots' is open")"
	is 'what is left' "$(left)" './old ./old/busy ./old/slots'
	exec {slot}<&-
	kill "$reader"
	waiting old/busy 0
	eventually 10 has old/slots slots_used 0
	rm_ 0 -r old
	is 'what is left' "$(left)" ''
	cd /
	stop
}

# refused PATH: it is no limiter, with -r and without.
refused() {
	rm_ 1 "$1"
	says "ratefs rm: $1: not a limiter of a mounted tree"
	rm_ 1 -r "$1"
	says "ratefs rm: $1: not a limiter of a mounted tree"
}

case_all_that_is_no_limiter_is_refused() {
	local path
	start
	limiter orders
	limiter orders/batch
	# Such keys have the names of what a limiter has.
	: "$(cat "$m"/orders/keys/{config,token,bob}/token)"
	mkdir "$d/plain"
	ln -s "$m/orders" "$d/link"
	for path in "$m" / "$m/orders/keys" "$m/orders/keys/bob" \
		"$m/orders/partitions" "$m/orders/partitions/0" "$m/orders/rate" \
		"$m/orders/rate/0" "$m/status" "$d/plain" "$d/link" "$d/plain/../plain" ''; do
		refused "$path"
	done
	rm_ 1 "$d/link/"
	says "ratefs rm: $d/link: not a limiter of a mounted tree"
	rm_ 1 -r "$m/nothing" "$d/nowhere/at/all"
	says "ratefs rm: $m/nothing: No such file or directory
ratefs rm: $d/nowhere/at/all: No such file or directory"
	rm_ 0 -rf "$m/nothing" "$d/nowhere/at/all"
	says ''
	rm_ 1 -f "$d/plain" ''
	says "ratefs rm: $d/plain: not a limiter of a mounted tree
ratefs rm: : not a limiter of a mounted tree"
	cd "$m/orders"
	for path in . .. "$m/orders/." "$m/orders/batch/.."; do
		rm_ 1 -r "$path"
		says "ratefs rm: $path: a limiter is removed by its name"
	done
	cd /
	[ -d "$d/plain" ] && [ -L "$d/link" ] || fail 'something is gone'
	is 'what is left' "$(left)" './orders ./orders/batch'
	stop
}

case_a_deep_one_is_told_why_it_stays() {
	local name
	name=$(printf 'n%.0s' {1..240})
	start
	mkdir -p "$m/$name/$name"
	echo 1 > "$m/$name/$name/concurrency"
	exec {slot}< "$m/$name/$name/slot"
	rm_ 1 -r "$m/$name"
	says "ratefs rm: $m/$name/$name: 1 slot of '$name' is open"
	exec {slot}<&-
	stop
}

# strace stops it behind its first removal.
case_another_limiter_of_that_name_stays() {
	local removal
	start
	mkdir -p "$m/old/below"
	export ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0
	strace -f -o "$d/trace" -e trace=unlinkat -e inject=unlinkat:delay_exit=3000000:when=1 \
		"$RATEFS" rm -r "$m/old" 2> "$d/err" &
	removal=$!
	eventually 20 [ ! -d "$m/old/below" ]
	mv "$m/old" "$m/older"
	mkdir "$m/old"
	wait "$removal" && fail 'it is all removed'
	says "ratefs rm: $m/old: another limiter has this name now"
	is 'what is left' "$(left)" './old ./older'
	stop
}

case_a_directory_with_a_limiters_files_is_none() {
	mkdir -p "$d/orders/batch"
	touch "$d/orders/config" "$d/orders/token"
	refused "$d/orders"
	[ -d "$d/orders/batch" ] || fail 'it is gone'
}

case_a_mount_in_a_limiter_is_not_entered() {
	start
	mkdir -p "$m/orders/batch" "$d/kept"
	mount --bind "$m/orders/batch" "$m/orders/batch"
	refused "$m/orders/batch"
	rm_ 1 -r "$m/orders"
	says "ratefs rm: $m/orders/batch: something is mounted on it"
	umount "$m/orders/batch"
	is 'what is left' "$(left)" './orders ./orders/batch'
	stop
}

case_a_user_removes_its_own() {
	local status=0
	start -o allow_other
	chmod 1777 "$m"
	limiter theirs
	chmod 711 "$d" "$(dirname "$d")"
	setpriv --reuid 65534 --regid 65534 --clear-groups mkdir -p "$m/own/below"
	setpriv --reuid 65534 --regid 65534 --clear-groups "$RATEFS" rm -r "$m/theirs" "$m/own" \
		2> "$d/err" || status=$?
	is 'exit status' "$status" 1
	like 'what it says' "$(cat "$d/err")" "^ratefs rm: $m/theirs: [^:]*(permit|denied)[^:]*$"
	is 'what is left' "$(left)" ./theirs
	stop
}

case_many_are_removed() {
	start
	mkdir "$m/old" && (cd "$m/old" && seq -f %g/x 1000 | xargs mkdir -p)
	is limiters "$(status_of limiters)" 2001
	rm_ 0 -r "$m/old"
	is limiters "$(status_of limiters)" 0
	stop
}

case_wrong_arguments_are_refused() {
	rm_ 2
	says $'ratefs rm: no limiter given\nTry \'ratefs rm --help\'.'
	rm_ 2 -x orders
	rm_ 1 -- -r
	says 'ratefs rm: -r: No such file or directory'
}
