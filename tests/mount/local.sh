# shellcheck shell=bash
# The source local:DIR keeps the settings, whatever happens to the daemon.

case_settings_outlive_the_daemon() {
	start "local:$d/kept"
	limiter orders '10/s:20 5000/h:100' 7
	limiter orders/eu 5/s
	limiter bookings
	echo shadow > "$m/orders/enforcement"
	echo 4 > "$m/orders/partitions/count"
	echo 200ms > "$m/orders/release_interval"
	local before
	before=$(cat "$m/orders/config" "$m/orders/eu/config" "$m/bookings/config")
	stop
	start "local:$d/kept"
	is settings "$(cat "$m/orders/config" "$m/orders/eu/config" "$m/bookings/config")" "$before"
	is limiters "$(find "$m" -name waiters | wc -l)" 3
}

case_tokens_left_in_the_buckets_outlive_the_daemon() {
	start "local:$d/kept"
	limiter orders 1/h 10
	is taken "$(cat "$m/orders/take/4")" 4
	stop
	start "local:$d/kept"
	is left "$(tokens orders)" 6
}

# fails ARGUMENTS…: a start with them fails at once.
fails() {
	local status=0
	timeout 20 "$RATEFS" -f "$@" > "$d/said" 2>&1 || status=$?
	like "exit status with $* ($(cat "$d/said"))" "$status" '^[12]$'
}

case_a_start_that_fails_uses_no_tokens_up() {
	start "local:$d/kept"
	limiter orders 1/h 10
	is taken "$(cat "$m/orders/take/4")" 4
	stop
	echo '[mail' > "$d/limiters"
	local option
	for option in typo config="$d/limiters" config="$d/nowhere" user=no-such-user fd=x; do
		fails -o "$option" "local:$d/kept" "$m"
		[ -e "$d/kept/.levels" ] || fail "they are used up with $option"
	done
	rm "$d/limiters"
	start "local:$d/kept"
	is left "$(tokens orders)" 6
}

case_owners_and_modes_outlive_the_daemon() {
	start "local:$d/kept"
	limiter orders
	chmod 750 "$m/orders"
	chown nobody:nogroup "$m/orders"

	local before
	before=$(stat -c %U:%G:%a "$m/orders" "$m/orders/token" "$m/orders/rate")
	stop
	start "local:$d/kept"
	is 'owner and mode' "$(stat -c %U:%G:%a "$m/orders" "$m/orders/token" "$m/orders/rate")" \
		"$before"
}

case_a_removed_or_renamed_limiter_stays_so() {
	start "local:$d/kept"
	limiter orders 5/s
	limiter orders/eu 6/s
	limiter bookings 7/s
	rmdir "$m/bookings"
	mv "$m/orders" "$m/sales"
	stop
	start "local:$d/kept"
	[ ! -e "$m/orders" ] && [ ! -e "$m/bookings" ] || fail 'back again'
	is rate "$(cat "$m/sales/rate")" 5/s
	is rate "$(cat "$m/sales/eu/rate")" 6/s
}

case_a_write_that_returned_outlives_a_killed_daemon() {
	local i
	start "local:$d/kept"
	limiter orders
	for i in {1..10}; do
		echo "$i/s" > "$m/orders/rate"
		mkdir "$m/l$i"
		crash
		umount -l "$m" || :
		start "local:$d/kept"
		is rate "$(cat "$m/orders/rate")" "$i/s"
		[ -e "$m/l$i/token" ] || fail "l$i is gone"
	done
	local kept
	kept=$(find "$d/kept" -type f | wc -l)
	[ "$kept" -le 30 ] || fail "$kept files are left: $(ls -A "$d/kept")"
}

case_a_daemon_killed_amid_writes_keeps_an_old_or_a_new_value() {
	local i rate
	start "local:$d/kept"
	limiter orders 1/s
	for i in 1 2 3 4 5; do
		(for _ in {1..100000}; do
			for rate in 1/s 2/s 3/s; do echo $rate > "$m/orders/rate" || exit 0; done
		done) 2> /dev/null &
		local writer=$!
		sleep 0.2
		crash
		wait $writer 2> /dev/null || :
		umount -l "$m" || :
		start "local:$d/kept"
		like rate "$(cat "$m/orders/rate")" '^[123]/s$'
	done
}

case_a_second_daemon_on_the_same_directory_is_refused() {
	start "local:$d/kept"
	limiter orders 5/s
	mkdir "$d/other"
	local status=0 said
	said=$(timeout 20 "$RATEFS" "local:$d/kept" "$d/other" 2>&1) || status=$?
	is "exit status ($said)" "$status" 1
	like said "$said" "kept"
	! mountpoint -q "$d/other" || fail 'mounted'
	is rate "$(cat "$m/orders/rate")" 5/s
	stop
	start "local:$d/kept"
	is rate "$(cat "$m/orders/rate")" 5/s
}

# damage TEXT: the file that keeps `orders` is overwritten; its name in $file.
damage() {
	start "local:$d/kept"
	limiter orders 511/s
	limiter bookings 7/s
	stop
	file=$(grep -rlF 511/s "$d/kept" | grep orders)
	printf "$1" > "$file"
	cp "$file" "$d/damaged"
}

# stands_aside: the daemon tells of it, goes on without it, and overwrites nothing.
stands_aside() {
	start "local:$d/kept"
	grep -q "$file" "$d/log" || fail "not named: $(cat "$d/log")"
	is 'damaged settings' "$(status_of damaged_settings)" 1
	[ ! -e "$m/orders" ] || fail 'orders is there'
	is 'the others' "$(cat "$m/bookings/rate")" 7/s
	"$CLIENT" mkdir "$m/orders" > "$d/got" && fail 'orders could be made anew'
	like "last_error ($(cat "$d/got"))" "$(cat "$m/last_error")" '^[^ ]+( [^ ]+){2,}$'
	local aside
	aside=$(find "$d/kept" -type f -path '*orders*' -exec cmp -s {} "$d/damaged" \; -print)
	[ -n "$aside" ] || fail 'the damaged file is gone'
	stop
	start "local:$d/kept"
	[ ! -e "$m/orders" ] || fail 'orders is there after another start'
	aside=$(find "$d/kept" -type f -path '*orders*' -exec cmp -s {} "$d/damaged" \; -print)
	[ -n "$aside" ] || fail 'the damaged file is gone after another start'
	stop
	rm "$aside"
	start "local:$d/kept"
	mkdir "$m/orders" || fail 'orders could not be made after the damaged file was removed'
}

case_a_damaged_file_is_kept_aside_and_named() {
	damage 'garbage\0and more\n'
	stands_aside
}

case_an_empty_file_is_kept_aside_and_named() {
	damage ''
	stands_aside
}

case_a_file_with_a_wrong_value_is_kept_aside_and_named() {
	damage 'rate=plenty\n'
	stands_aside
}

case_a_file_system_whose_rename_takes_no_flags_does() {
	cat > "$d/plain.c" <<- 'EOF'
		#include <errno.h>

		/* As NFS. */
		int renameat2(int from, const char *old, int to, const char *name, unsigned flags)
		{
			errno = EINVAL;
			return -1;
		}
	EOF
	cc -shared -fPIC -w -o "$d/plain.so" "$d/plain.c"
	ASAN_OPTIONS+=:verify_asan_link_order=0
	export LD_PRELOAD="$LD_PRELOAD $d/plain.so"
	start "local:$d/kept"
	limiter mail 3/s
	mv "$m/mail" "$m/post"
	is rate "$(cat "$m/post/rate")" 3/s
	[ -e "$d/kept/post/.config" ] || fail 'the name is not kept'
	rmdir "$m/post"
	[ ! -e "$d/kept/post" ] || fail 'it is still kept'
	stop
	damage 'garbage\n'
	stands_aside
	stop
	# A damaged file takes the place of no other.
	cp "$d/damaged" "$d/kept/orders/.config.damaged"
	echo more > "$d/kept/orders/.config"
	start "local:$d/kept"
	cmp "$d/damaged" "$d/kept/orders/.config.damaged" || fail 'the first one is gone'
	is 'the second one' "$(cat "$d/kept/orders/.config.damaged.1")" more
}

case_a_limiter_takes_the_place_of_no_file() {
	start "local:$d/kept"
	limiter orders 5/s
	mkdir "$d/kept/full"
	echo mine > "$d/kept/full/file"
	echo mine > "$d/kept/file"
	ln -s full "$d/kept/link"
	ln -s nowhere "$d/kept/dangling"
	local name before
	before=$(ls -lR --time-style=+ "$d/kept")
	for name in full file link dangling; do
		denied EEXIST mkdir "$m/$name"
		denied EEXIST rename "$m/orders" "$m/$name"
	done
	is 'what is kept' "$(ls -lR --time-style=+ "$d/kept")" "$before"
	# Nor does a file that has the place of a limiter.
	mv "$d/kept/orders" "$d/orders"
	echo mine > "$d/kept/orders"
	denied ENOTDIR rename "$m/orders" "$m/file"
	is 'the file' "$(cat "$d/kept/file")" mine
	rm "$d/kept/orders"
	mv "$d/orders" "$d/kept/orders"
	# Damaged settings that were cleared away leave an empty directory.
	mkdir "$d/kept/empty" "$d/kept/another"
	mv "$m/orders" "$m/empty"
	mkdir "$m/another"
	stop
	start "local:$d/kept"
	is rate "$(cat "$m/empty/rate")" 5/s
	[ -d "$m/another" ] || fail 'another is not kept'
}

case_a_directory_that_cannot_be_made_is_named() {
	touch "$d/file"
	local status=0 said
	said=$(timeout 20 "$RATEFS" "local:$d/file/kept" "$m" 2>&1) || status=$?
	is "exit status ($said)" "$status" 1
	like said "$said" 'file/kept'
}

case_a_directory_at_below_or_above_the_mount_point_is_refused() {
	local where
	mkdir -p "$m/inner" "$d/up/m"
	ln -s "$m" "$d/link"
	for where in "$m" "$m/" "$m/kept" "$m/inner/../inner" "$d" "$d/link/kept" / .; do
		(cd "$d" && fails "local:$where" "$m")
		like "what it says of $where" "$(cat "$d/said")" \
			'would be hidden|is in the directory'
	done
	is 'what is there' "$(find "$m" -mindepth 1)" "$m/inner"
	rmdir "$m/inner"
	# A path that begins alike is another one.
	start "local:$m-kept"
	stop
}

case_a_directory_in_a_ratefs_is_refused() {
	local where
	mkdir "$d/other"
	start
	limiter orders
	for where in "$m" "$m/kept" "$m/orders/kept"; do
		fails "local:$where" "$d/other"
		like "what it says of $where" "$(cat "$d/said")" 'is in a ratefs'
	done
	is limiters "$(ls -d "$m"/*/)" "$m/orders/"
}

case_names_of_many_kinds_are_kept() {
	start "local:$d/kept"
	local name names=(a 'with space' 'quote"d' 'back\slash' '%41' '-x' 'é€😀' 1 0 '*' 'a=b' \
		'[section]' 'semi;colon' '#x' 'x.tmp' "$(printf 'n%.0s' {1..255})")
	for name in "${names[@]}"; do
		mkdir -- "$m/$name"
		echo 5/s > "$m/$name/rate"
	done
	mkdir "$m/a/a" "$m/a/a/a"
	stop
	start "local:$d/kept"
	for name in "${names[@]}"; do
		is "rate of $name" "$(cat "$m/$name/rate")" 5/s
	done
	[ -e "$m/a/a/a/token" ] || fail 'a/a/a is gone'
	is limiters "$(find "$m" -mindepth 1 -maxdepth 1 -type d | wc -l)" ${#names[@]}
}

case_a_full_disk_refuses_the_write_and_changes_nothing() {
	mkdir "$d/kept"
	mount -t tmpfs -o size=64k,nr_inodes=64 none "$d/kept"
	start "local:$d/kept"
	limiter orders 5/s
	dd if=/dev/zero of="$d/kept/ballast" bs=4096 status=none 2> /dev/null || :
	local got
	got=$("$CLIENT" write "$m/orders/rate" 6/s) && fail 'the write found room on a full disk'
	is errno "$got" ENOSPC
	is rate "$(cat "$m/orders/rate")" 5/s
	rm "$d/kept/ballast"
	echo 6/s > "$m/orders/rate"
	is rate "$(cat "$m/orders/rate")" 6/s
	stop
	umount "$d/kept"
}

case_directories_of_others_are_left_alone() {
	mkdir -p "$d/kept/lost+found" "$d/kept/mine"
	echo mine > "$d/kept/mine/file"
	start "local:$d/kept"
	is limiters "$(find "$m" -name waiters | wc -l)" 0
	denied EEXIST mkdir "$m/mine"
	limiter orders 5/s
	stop
	[ -d "$d/kept/lost+found" ] || fail 'an empty directory was removed'
	is 'what is in the other' "$(cat "$d/kept/mine/file")" mine
	start "local:$d/kept"
	is rate "$(cat "$m/orders/rate")" 5/s
}

# A crash leaves this of a mkdir and of a rmdir under way.
case_a_limiter_half_made_or_half_removed_is_neither() {
	start "local:$d/kept"
	limiter orders 5/s
	stop
	mkdir "$d/kept/.making" "$d/kept/orders/.removed"
	echo rate= > "$d/kept/.making/.config.new"
	cp "$d/kept/orders/.config" "$d/kept/orders/.removed/.config"
	start "local:$d/kept"
	is limiters "$(find "$m" -name waiters | wc -l)" 1
	is 'left in the directory' "$(ls -A "$d/kept" "$d/kept/orders" |
		grep -c -e making -e removed)" 0
	rmdir "$m/orders"
}
