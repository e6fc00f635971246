# shellcheck shell=bash
# ratefs save and ratefs apply: a tree is what a file says, and the file is what the tree was.

# apply STATUS ARGUMENTS…: ratefs apply exits so; its output is in $d/out and $d/err.
apply() {
	local wanted=$1 status=0
	shift
	timeout 60 "$RATEFS" apply "$@" > "$d/out" 2> "$d/err" < /dev/null || status=$?
	is "exit status of apply $* ($(cat "$d/out" "$d/err"))" "$status" "$wanted"
}

# saved FILE [MOUNTPOINT]: ratefs save writes FILE, without a message.
saved() {
	timeout 60 "$RATEFS" save "${2-$m}" > "$1" 2> "$d/err" < /dev/null ||
		fail "save: $(cat "$d/err")"
	is 'what save says' "$(cat "$d/err")" ''
}

# says TEXT: apply printed TEXT.
says() { is 'what it prints' "$(cat "$d/out")" "$1"; }

# same A B: two files.
same() { diff -u "$1" "$2" > "$d/difference" || fail "$(cat "$d/difference")"; }

# second: another tree, on $d/second.
second() {
	mkdir "$d/second"
	timeout 20 "$RATEFS" -o allow_other local "$d/second"
}

# every_setting LIMITER: none of them has its default.
every_setting() {
	cat > "$1/config" <<- 'EOF'
		rate=500/s 5000/h:100
		burst=20
		concurrency=40
		adapt=cubic min=2/s
		backoff=exponential initial=1s max=1min
		key_rate=10/s
		key_burst=3
		keys_max=1000
		key_share=leased
		weight=300
		min=2/s
		priority=7
		queue_max=500
		wait_max=30s
		key_concurrency=4
		partitions.count=7
		partitions.lease=20s
		partitions.reserve=1/h hosts=2
		key.bob.rate=100/s
		key.a%20b%3D.burst=7
	EOF
	local name
	# Those that are left: a value that is not the default, whatever they are called.
	while IFS='=' read -r name _; do
		case $(cat "$1/$name") in
		enforce) echo shadow > "$1/$name" ;;
		block) echo share:3 > "$1/$name" ;;
		0s) echo 200ms > "$1/$name" ;;
		esac
	done < <(grep -vE '^(partitions|key)\.' "$1/config")
}

case_every_setting_owner_and_mode_comes_back() {
	start -o allow_other
	second
	limiter orders
	mkdir -p "$m/orders/batch/deep" "$m/mail"
	every_setting "$m/orders/batch"
	is 'defaults that are left' "$(sort "$m/mail/config" "$m/orders/batch/config" | uniq -d)" ''
	chown daemon:games "$m/orders"
	chown 12345:54321 "$m/orders/batch"
	chgrp games "$m" "$m/mail"
	chmod 3770 "$m/orders"
	chmod 0 "$m/orders/batch"
	chmod 2775 "$m/mail"
	chmod 1777 "$m"
	saved "$d/one"
	is 'owners in it' "$(sed -n '/^\[orders/,/^mode/p' "$d/one" | head -n 8 | tr '\n' ' ')" \
		'[orders] owner=daemon group=games mode=3770 '\
'[orders/batch] owner=12345 group=54321 mode=0000 '
	apply 1 "$d/one" "$d/second"
	saved "$d/two" "$d/second"
	same "$d/one" "$d/two"
	is config "$(cat "$d/second/orders/batch/config")" "$(cat "$m/orders/batch/config")"
	apply 0 --prune "$d/one" "$d/second"
	says ''
	umount "$d/second"
}

case_names_of_all_kinds_come_back() {
	start
	second
	local name deep=
	for name in 'a b' ' leading' 'trailing ' "it's" '"quoted"' '[' ']' '[a]' 'a]b' '#hash' \
		';semicolon' 'a=b' 'rate=5' '*' '?' '$HOME' '`x`' 'back\slash' '\n' '%s' '~' '-n' \
		'--prune' \
		'grün' '日本' $'\xff\xfe' "$(head -c 255 /dev/zero | tr '\0' n)" \
		"$(printf 'é%.0s' {1..127})"; do
		mkdir -- "$m/$name"
	done
	for _ in {1..16}; do deep+=/$(head -c 255 /dev/zero | tr '\0' d); done
	(
		cd "$m" && IFS=/
		for name in ${deep#/}; do mkdir "$name" && cd "$name" || exit 1; done
		echo 5/s > rate
	)
	saved "$d/one"
	timeout 20 "$RATEFS" check "$d/one"
	apply 1 "$d/one" "$d/second"
	saved "$d/two" "$d/second"
	same "$d/one" "$d/two"
	is limiters "$(awk '$1 == "limiters" { print $2 }' "$d/second/status")" 44
	apply 0 --prune "$d/one" "$d/second"
	umount "$d/second"
}

case_the_file_is_sorted_and_has_what_is_not_the_default() {
	start
	mkdir "$m/b" "$m/a" "$m/a/z" "$m/a/y" "$m/a b"
	echo 5/s > "$m/a/y/rate"
	saved "$d/one"
	is 'the file' "$(grep -v '^#' "$d/one")" "
[/]
owner=root
group=root
mode=0755

[a]
owner=root
group=root
mode=0755

[a/y]
owner=root
group=root
mode=0755
rate=5/s

[a/z]
owner=root
group=root
mode=0755

[a b]
owner=root
group=root
mode=0755

[b]
owner=root
group=root
mode=0755"
}

case_a_mount_takes_the_file_too() {
	start
	mkdir -p "$m/orders/batch"
	every_setting "$m/orders/batch"
	chown daemon:games "$m/orders"
	chmod 2750 "$m/orders"
	chmod 1777 "$m"
	saved "$d/one"
	mkdir "$d/second"
	timeout 20 "$RATEFS" -o "config=$d/one" local "$d/second"
	saved "$d/two" "$d/second"
	same "$d/one" "$d/two"
	umount "$d/second"
}

case_apply_changes_and_tells_the_differences_and_nothing_else() {
	start
	limiter orders 5/s 7
	limiter other 9/s
	cat > "$d/ini" <<- 'EOF'
		# a comment
		[orders]
		rate=60/60s
		burst = 7

		[new/child]
		mode=0700
		owner=daemon
		rate=1/s
	EOF
	apply 1 "$d/ini" "$m"
	says "orders: rate=60/min, was 5/s
new: created
new/child: created
new/child: rate=1/s
new/child: owner=daemon
new/child: mode=0700"
	is 'the new one' "$(cd "$m/new" && stat -c '%U:%G %a' child && cat child/rate)" \
		$'daemon:root 700\n1/s'
	is 'above it' "$(stat -c '%U:%G %a' "$m/new") $(cat "$m/new/rate")" 'root:root 755 max'
	is 'not named' "$(cat "$m/other/rate")" 9/s
	apply 0 "$d/ini" "$m"
	says ''
	# A setting that is not given has its default; owner and mode stay.
	chmod 750 "$m/orders"
	printf '[orders]\n' > "$d/ini"
	apply 1 "$d/ini" "$m"
	says "orders: rate=max, was 60/min
orders: burst=1, was 7"
	is mode "$(stat -c %a "$m/orders")" 750
	printf '[/]\nmode=1777\n[orders]\nmode=0711\ngroup=games\n' > "$d/ini"
	apply 1 "$d/ini" "$m"
	says "/: mode=1777, was 0755
orders: group=games, was root
orders: mode=0711, was 0750"
	apply 0 "$d/ini" "$m"
}

case_settings_that_hold_each_other_are_changed_in_one_write() {
	start
	limiter orders 100/s
	printf 'concurrency=10\npartitions.count=10\n' | dd of="$m/orders/config" bs=4k 2> /dev/null
	# Neither can come before the other.
	printf '[orders]\nrate=100/s\nconcurrency=3\npartitions.count=3\n' > "$d/ini"
	apply 1 "$d/ini" "$m"
	is count "$(cat "$m/orders/partitions/count")" 3
	printf '[orders]\nrate=100/s\nconcurrency=30\npartitions.count=30\n' > "$d/ini"
	apply 1 "$d/ini" "$m"
	is count "$(cat "$m/orders/partitions/count")" 30
}

case_a_dry_run_prints_the_same_and_changes_nothing() {
	start
	limiter orders 5/s
	mkdir -p "$m/old/child"
	cat > "$d/ini" <<- 'EOF'
		[orders]
		group=games
		rate=6/s
		[new/a]
		rate=1/s
		mode=2770
		[new/b]
	EOF
	saved "$d/before"
	apply 1 -n --prune "$d/ini" "$m"
	cp "$d/out" "$d/would"
	saved "$d/after"
	same "$d/before" "$d/after"
	apply 1 --prune --dry-run "$d/ini" "$m"
	same "$d/would" "$d/out"
	apply 1 --prune "$d/ini" "$m"
	same "$d/would" "$d/out"
	like 'what it prints' "$(cat "$d/out")" 'old/child: removed'
	apply 0 -n --prune "$d/ini" "$m"
}

case_a_limiter_that_the_file_leaves_out_goes_with_prune_alone() {
	start
	mkdir -p "$m/old/child" "$m/keep/this" "$m/keep/that"
	printf '[keep/this]\n' > "$d/ini"
	apply 0 "$d/ini" "$m"
	apply 2 --prune "$d/ini"
	like 'what it says' "$(cat "$d/err")" 'name the MOUNTPOINT'
	apply 2 "$d/ini" ''
	like 'what it says' "$(cat "$d/err")" 'not a mount point'
	apply 1 --prune "$d/ini" "$m"
	says "keep/that: removed
old/child: removed
old: removed"
	is 'what is left' "$(cd "$m" && find . -name config -printf '%h\n' | sort | tr '\n' ' ')" \
		'./keep ./keep/this '
	# The section of the top is one, too.
	printf '[/]\n' > "$d/ini"
	apply 1 --prune "$d/ini" "$m"
	is 'limiters' "$(status_of limiters)" 0
}

case_an_empty_file_prunes_nothing() {
	start
	limiter orders
	printf '# nothing\n' > "$d/ini"
	apply 0 "$d/ini" "$m"
	apply 2 --prune "$d/ini" "$m"
	like 'what it says' "$(cat "$d/err")" 'would remove every limiter'
	is 'limiters' "$(status_of limiters)" 1
}

case_a_limiter_that_cannot_be_removed_is_named_and_the_others_go() {
	start
	empty busy
	mkdir "$m/busy/child" "$m/above" "$m/zoo"
	empty above/waited
	reader busy/token
	waiting busy 1
	"$CLIENT" read "$m/above/waited/token" > "$d/other" &
	waiting above/waited 1
	printf '[/]\n' > "$d/ini"
	apply 2 --prune "$d/ini" "$m"
	says "busy/child: removed
zoo: removed"
	local busy='rmdir: Device or resource busy'
	is 'what it says' "$(cat "$d/err")" \
		"ratefs apply: above/waited: $busy: 1 reader waits in 'waited'
ratefs apply: above: $busy: 'above' has limiters below it
ratefs apply: busy: $busy: 1 reader waits in 'busy'"
	is 'what is left' "$(ls -d "$m"/*/ | xargs -n 1 basename | tr '\n' ' ')" 'above busy '
}

case_a_mistake_is_named_with_its_line_and_nothing_is_changed() {
	local text line
	start
	limiter orders 5/s
	mkdir "$m/old"
	saved "$d/before"
	while IFS='|' read -r text line; do
		printf '[first]\n[orders]\nrate=9/s\n%b\n[last]\n' "$text" > "$d/ini"
		apply 2 --prune "$d/ini" "$m"
		is "what is printed for '$text'" "$(cat "$d/out")" ''
		like "what is said of '$text'" "$(cat "$d/err")" "^$d/ini:$line: "
		saved "$d/after"
		same "$d/before" "$d/after"
	done <<- 'EOF'
		rate=plenty|4
		speed=5|4
		burst=0|4
		mode=rwx|4
		mode=7777|4
		owner=|4
		owner=no-such-user|2
		group=no-such-group|2
		owner=4294967295|2
		partitions.reserve=10/s hosts=8|2
		[a\nrate=1/s|4
		[a//b]|4
		[keys]|4
		[orders]\nrate=7/s|4
		[/]\nrate=5/s|5
		[/]\n[b]\n[/]|6
	EOF
	printf 'rate=5/s\n' > "$d/ini"
	apply 2 "$d/ini" "$m"
	like 'what it says' "$(cat "$d/err")" ':1: a setting outside of a section'
}

case_a_file_that_cannot_be_read_changes_nothing() {
	start
	limiter orders
	apply 2 --prune "$d/nowhere" "$m"
	like 'what it says' "$(cat "$d/err")" 'nowhere: No such file'
	apply 2 --prune "$d" "$m"
	like 'what it says' "$(cat "$d/err")" 'Is a directory'
	printf '[a]\n\0' > "$d/ini"
	apply 2 --prune "$d/ini" "$m"
	like 'what it says' "$(cat "$d/err")" 'zero byte'
	truncate -s 16M "$d/ini"
	apply 2 --prune "$d/ini" "$m"
	like 'what it says' "$(cat "$d/err")" 'too large'
	is 'limiters' "$(status_of limiters)" 1
}

case_a_path_that_is_no_tree_is_refused() {
	printf '[a]\n' > "$d/ini"
	apply 2 --prune "$d/ini" "$m"
	like 'what it says' "$(cat "$d/err")" 'not where a tree of ratefs is mounted'
	[ ! -e "$m/a" ] || fail 'a directory was made'
	apply 2 "$d/ini" "$d/nowhere"
	like 'what it says' "$(cat "$d/err")" 'nowhere: No such file'
	"$RATEFS" save "$m" > "$d/out" 2> "$d/err" && fail 'save of no tree'
	like 'what it says' "$(cat "$d/err")" 'not where a tree'
	start
	limiter orders
	apply 2 "$d/ini" "$m/orders"
	like 'what it says' "$(cat "$d/err")" 'not where a tree'
}

# as_nobody COMMAND…
as_nobody() { setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"; }

case_a_user_changes_what_it_may_and_is_told_of_the_rest() {
	local status=0
	start -o allow_other
	chmod 711 "$d" "$(dirname "$d")" "$(dirname "$RATEFS")"
	mkdir "$m/mine" "$m/roots"
	chown nobody:nogroup "$m/mine"
	cat > "$d/ini" <<- 'EOF'
		[roots]
		rate=5/s
		[new]
		[mine]
		owner=daemon
		mode=0750
		rate=6/s
		[mine/child]
		group=games
		mode=0770
		rate=7/s
	EOF
	chmod 644 "$d/ini"
	cp "$RATEFS" "$d/ratefs" && chmod 755 "$d/ratefs"
	as_nobody "$d/ratefs" apply --prune "$d/ini" "$m" > "$d/out" 2> "$d/err" || status=$?
	is 'exit status' $status 2
	says "mine: rate=6/s, was max
mine: mode=0750, was 0755
mine/child: created
mine/child: rate=7/s
mine/child: mode=0770"
	is 'what it says' "$(cat "$d/err")" "ratefs apply: roots: settings: Permission denied
ratefs apply: new: mkdir: Permission denied
ratefs apply: mine: owner and group: Operation not permitted
ratefs apply: mine/child: owner and group: Operation not permitted"
	is 'the child' "$(stat -c '%U:%G %a' "$m/mine/child")" 'nobody:nogroup 770'
	chmod 700 "$m/roots"
	status=0
	as_nobody "$d/ratefs" save "$m" > "$d/out" 2> "$d/err" || status=$?
	is 'exit status of save' $status 2
	is 'what it says' "$(cat "$d/err")" 'ratefs save: roots: Permission denied'
	is 'what it saves' "$(grep -c '^\[' "$d/out")" 3
}

case_a_user_does_not_change_the_place_of_its_limiter_among_the_siblings() {
	local status=0
	start -o allow_other
	chmod 711 "$d" "$(dirname "$d")" "$(dirname "$RATEFS")"
	mkdir -p "$m/roots/mine"
	chown nobody:nogroup "$m/roots/mine"
	echo 5/s > "$m/roots/mine/min"
	printf '[roots/mine]\nrate=6/s\n' > "$d/ini"
	chmod 644 "$d/ini"
	cp "$RATEFS" "$d/ratefs" && chmod 755 "$d/ratefs"
	as_nobody "$d/ratefs" apply "$d/ini" "$m" > "$d/out" 2> "$d/err" || status=$?
	is 'exit status' $status 2
	says ''
	is 'what it says' "$(cat "$d/err")" "ratefs apply: roots/mine: settings: Operation not \
permitted: min is set by those who may tune the limiter above"
	echo min=5/s >> "$d/ini"
	status=0
	as_nobody "$d/ratefs" apply "$d/ini" "$m" > "$d/out" 2> "$d/err" || status=$?
	is "exit status ($(cat "$d/err"))" $status 1
	says 'roots/mine: rate=6/s, was max'
}

case_an_owner_whose_settings_are_refused_has_its_mode_and_then_the_settings() {
	local status=0
	start -o allow_other
	chmod 711 "$d" "$(dirname "$d")" "$(dirname "$RATEFS")"
	mkdir "$m/mine"
	chown nobody:nogroup "$m/mine"
	chmod 555 "$m/mine"
	printf '[mine]\nmode=0755\nrate=6/s\n' > "$d/ini"
	chmod 644 "$d/ini"
	cp "$RATEFS" "$d/ratefs" && chmod 755 "$d/ratefs"
	as_nobody "$d/ratefs" apply "$d/ini" "$m" > "$d/out" 2> "$d/err" || status=$?
	is 'exit status' $status 2
	is 'what it says' "$(cat "$d/err")" 'ratefs apply: mine: settings: Permission denied'
	says 'mine: mode=0755, was 0555'
	status=0
	as_nobody "$d/ratefs" apply "$d/ini" "$m" > "$d/out" 2> "$d/err" || status=$?
	is 'exit status of the second run' $status 1
	says 'mine: rate=6/s, was max'
}

# nobodys: the top is nobody's, and so is what apply_as_nobody makes in it.
nobodys() {
	start -o allow_other
	chmod 711 "$d" "$(dirname "$d")"
	chown nobody:nogroup "$m"
	cp "$RATEFS" "$d/ratefs" && chmod 755 "$d/ratefs"
}

# apply_as_nobody STATUS ARGUMENTS…
apply_as_nobody() {
	local status=0
	as_nobody "$d/ratefs" apply "${@:2}" > "$d/out" 2> "$d/err" < "$d/ini" || status=$?
	is "exit status ($(cat "$d/out" "$d/err"))" $status "$1"
}

case_an_owner_makes_limiters_below_one_that_it_may_not_write() {
	nobodys
	cat > "$d/ini" <<- 'EOF'
		[a]
		mode=0555
		[a/b]
		mode=0000
		rate=5/s
		[a/b/c]
		[a/d]
		mode=0511
		[a/d/e/f]
	EOF
	apply_as_nobody 1 /dev/stdin "$m"
	is 'what it says' "$(cat "$d/err")" ''
	is modes "$(cd "$m" && stat -c '%n %a' a a/b a/b/c a/d a/d/e a/d/e/f | tr '\n' ' ')" \
		'a 555 a/b 0 a/b/c 755 a/d 511 a/d/e 755 a/d/e/f 755 '
	is rate "$(cat "$m/a/b/rate")" 5/s
	# Root sees that nothing is left to do.
	apply 0 --prune "$d/ini" "$m"
}

case_a_umask_that_closes_limiters_to_their_owner_closes_them_when_all_are_made() {
	nobodys
	printf '[a/b/c]\nrate=5/s\n' > "$d/ini"
	(umask 0333 && apply_as_nobody 1 --prune /dev/stdin "$m")
	is modes "$(cd "$m" && stat -c '%a' a a/b a/b/c | tr '\n' ' ')" '444 444 444 '
	is rate "$(cat "$m/a/b/c/rate")" 5/s
}

case_a_limiter_that_cannot_be_opened_is_removed_again() {
	local status=0
	# No file can be opened once a directory was made.
	cc -std=gnu11 -D_GNU_SOURCE -w -fPIC -shared -x c -o "$d/closing.so" - <<- 'EOF'
		#include <sys/resource.h>
		#include <sys/stat.h>
		#include <sys/syscall.h>
		#include <unistd.h>

		int mkdirat(int directory, const char *name, mode_t mode)
		{
			int result = syscall(SYS_mkdirat, directory, name, mode);

			setrlimit(RLIMIT_NOFILE, &(struct rlimit){.rlim_cur = 0});
			return result;
		}
	EOF
	start
	printf '[orders]\nrate=5/s\n' > "$d/ini"
	# Without a file to open, the search for leaks waits for ever.
	ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 LD_PRELOAD="${LD_PRELOAD-} $d/closing.so" \
		"$RATEFS" apply "$d/ini" "$m" > "$d/out" 2> "$d/err" || status=$?
	is 'exit status' $status 2
	is 'what it says' "$(cat "$d/err")" 'ratefs apply: orders: open: Too many open files'
	[ ! -e "$m/orders" ] || fail 'the limiter is still there'
	apply 1 "$d/ini" "$m"
}

case_a_mount_on_a_limiter_is_left_alone_and_no_older_refusal_is_told() {
	start
	limiter orders
	mount -t tmpfs none "$m/orders"
	mkdir "$m/orders/precious"
	mkdir "$m/other"
	refused EINVAL write "$m/other/rate" plenty
	printf '[other]\n' > "$d/ini"
	apply 2 --prune "$d/ini" "$m"
	says ''
	is 'what it says' "$(cat "$d/err")" 'ratefs apply: orders: open: Invalid cross-device link'
	[ -d "$m/orders/precious" ] || fail 'a directory of another mount was removed'
	umount "$m/orders"
}

case_apply_reads_from_a_pipe_the_text_that_save_writes() {
	start
	second
	limiter orders 5/s
	"$RATEFS" save "$m" | timeout 60 "$RATEFS" apply - "$d/second" > "$d/out" || :
	grep -qx 'orders: rate=5/s' "$d/out" || fail "$(cat "$d/out")"
	is rate "$(cat "$d/second/orders/rate")" 5/s
	umount "$d/second"
}

case_a_limiter_made_by_apply_is_as_mkdir_makes_it() {
	start
	mkdir "$m/team"
	chgrp games "$m/team"
	chmod 2775 "$m/team"
	printf '[plain]\n[team/one]\nrate=5/s\n[team/two]\nmode=0700\ngroup=root\n' > "$d/ini"
	(umask 027 && apply 1 "$d/ini" "$m")
	is 'group and mode' "$(cd "$m" && stat -c '%G %a' plain team/one team/two | tr '\n' ' ')" \
		'root 750 games 2750 root 700 '
	apply 0 "$d/ini" "$m"
}

case_a_setgid_that_the_kernel_leaves_out_is_told() {
	local status=0
	start -o allow_other
	chmod 711 "$d" "$(dirname "$d")"
	mkdir "$m/mine"
	chown nobody:games "$m/mine"
	printf '[mine]\nmode=2775\n' > "$d/ini"
	cp "$RATEFS" "$d/ratefs" && chmod 755 "$d/ratefs"
	as_nobody "$d/ratefs" apply "$d/ini" "$m" > "$d/out" 2> "$d/err" || status=$?
	is 'exit status' $status 2
	is 'what it says' "$(cat "$d/err")" 'ratefs apply: mine: mode: Operation not permitted'
	says ''
}

case_a_large_tree_is_saved_and_made_again() {
	start
	second
	(
		cd "$m" && mkdir l{1..1000}
		for ((i = 1; i <= 1000; i += 10)); do mkdir l$i/child && echo $i/s > l$i/rate; done
	)
	saved "$d/one"
	is sections "$(grep -c '^\[' "$d/one")" 1101
	apply 1 "$d/one" "$d/second"
	is lines "$(grep -c ': created$' "$d/out")" 1100
	saved "$d/two" "$d/second"
	same "$d/one" "$d/two"
	umount "$d/second"
}

case_wrong_arguments_are_refused() {
	local arguments
	for arguments in '' 'a b c' '--bogus a b' '-x a b'; do
		# shellcheck disable=SC2086
		apply 2 $arguments
		like 'what it says' "$(cat "$d/err")" "Try 'ratefs apply --help'"
	done
	for arguments in 'a b' --bogus; do
		# shellcheck disable=SC2086
		"$RATEFS" save $arguments > "$d/out" 2> "$d/err" && fail "save $arguments"
		like 'what it says' "$(cat "$d/err")" "Try 'ratefs save --help'"
	done
}

case_a_full_standard_output_is_trouble() {
	start
	limiter orders
	local status=0
	"$RATEFS" save "$m" > /dev/full 2> "$d/err" || status=$?
	is 'exit status of save' $status 2
	like 'what it says' "$(cat "$d/err")" 'standard output: No space left'
	printf '[orders]\nrate=5/s\n' > "$d/ini"
	status=0
	"$RATEFS" apply "$d/ini" "$m" > /dev/full 2> "$d/err" || status=$?
	is 'exit status of apply' $status 2
	like 'what it says' "$(cat "$d/err")" 'standard output'
}

case_minima_move_between_siblings() {
	start
	mkdir -p "$m/a/one" "$m/a/other"
	echo 10/s > "$m/a/rate"
	echo 8/s > "$m/a/other/min"
	printf '[a]\nrate=10/s\n[a/one]\nmin=9/s\n[a/other]\nmin=1/s\n' > "$d/ini"
	apply 1 --dry-run "$d/ini" "$m"
	cp "$d/out" "$d/dry"
	apply 1 "$d/ini" "$m"
	says $'a/other: min=1/s, was 8/s\na/one: min=9/s, was none'
	same "$d/dry" "$d/out"
	# The other is to be removed at the end: meanwhile it has no min.
	printf '[a]\nrate=10/s\n[a/new]\nmin=10/s\n[a/one]\n' > "$d/ini"
	apply 1 --prune --dry-run "$d/ini" "$m"
	cp "$d/out" "$d/dry"
	apply 1 --prune "$d/ini" "$m"
	says "$(printf '%s\n' 'a/one: min=none, was 9/s' 'a/other: min=none, was 1/s' \
		'a/new: created' 'a/new: min=10/s' 'a/other: removed')"
	same "$d/dry" "$d/out"
	apply 0 --prune "$d/ini" "$m"
}

case_every_file_of_minima_is_reached_from_every_other() {
	start
	local from to
	printf '[a]\nrate=10/s\n[a/x]\nmin=10/s\n[a/y]\n[a/y/z]\nmin=10/s\n' > "$d/1"
	printf '[a]\nrate=100/s 30/s\n[a/x]\n[a/y]\nrate=20/s\nmin=30/s\n[a/y/z]\nmin=20/s\n' \
		> "$d/2"
	printf '[a]\nrate=3/s\n[a/x]\nmin=1/s\n[a/y]\nrate=1/s\nmin=2/s\n[a/y/z]\nmin=1/s\n' \
		> "$d/3"
	printf '[a]\n[a/x]\nmin=50/s\n[a/y]\nmin=60/s\nrate=90/s\n[a/y/z]\nmin=90/s\n' > "$d/4"
	printf '[a]\nrate=0\n[a/x]\nmin=5/s\n[a/y]\nrate=7/s\nmin=70/s\n[a/y/z]\nmin=7/s\n' > "$d/5"
	printf '[a]\nrate=5/s\n' > "$d/6"
	for from in {1..6}; do
		for to in {1..6}; do
			timeout 60 "$RATEFS" apply --prune "$d/$from" "$m" > "$d/out" 2>&1 ||
				[ $? = 1 ] || fail "$to to $from: $(cat "$d/out")"
			timeout 60 "$RATEFS" apply --prune "$d/$to" "$m" > "$d/out" 2>&1 ||
				[ $? = 1 ] || fail "$from to $to: $(cat "$d/out")"
			apply 0 --prune "$d/$to" "$m"
		done
	done
}

case_minima_above_a_rate_are_refused_before_anything_changes() {
	start
	printf '[a]\nrate=10/s\n[a/x]\nmin=6/s\n[a/y]\nmin=5/s\n' > "$d/ini"
	apply 2 "$d/ini" "$m"
	is 'what it says' "$(cat "$d/err")" "$d/ini:1: the min of all limiters in 'a' together is \
11/s: more than its rate, 10/s"
	[ ! -e "$m/a" ] || fail 'it began'
	# Those of which the file does not know count, too.
	mkdir -p "$m/a/z"
	echo 5/s > "$m/a/z/min"
	printf '[a]\nrate=10/s\n[a/x]\nmin=6/s\n' > "$d/ini"
	apply 2 "$d/ini" "$m"
	like 'what it says' "$(cat "$d/err")" "together is 11/s: more than its rate, 10/s"
}
