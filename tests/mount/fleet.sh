# shellcheck shell=bash
# A source zk://: refusals of its options, and how mount(8) and a line of fstab mount it.

# shellcheck source=SCRIPTDIR/command.sh
. "$(dirname "${BASH_SOURCE[0]}")/command.sh"

nobody=zk://127.0.0.1:1/x

case_weights_out_of_bounds_are_refused() {
	for weight in 0 1001 -1 1.5 x 99999999999999999999 ''; do
		cannot 2 "not a weight \(1 to 1000\): '$weight'" -o "weight=$weight" $nobody "$m"
	done
}

case_constants_out_of_bounds_are_refused() {
	for right in 1999ms 601s 0 x ''; do
		cannot 2 "not a right \(2s to 10min\): '$right'" -o "right=$right" $nobody "$m"
	done
	for session in 1999ms 301s 0 x ''; do
		cannot 2 "not a session \(2s to 5min\): '$session'" -o "session=$session" $nobody \
			"$m"
	done
}

case_options_of_a_fleet_are_refused_without_one() {
	for option in credentials=/etc/x weight=2 right=8s session=6s nowait; do
		cannot 2 "only for a fleet \(zk://\): '${option%%=*}" -o $option local "$m"
	done
}

case_credentials_that_are_missing_or_open_to_others_are_refused() {
	cannot 2 'no file given' -o credentials= $nobody "$m"
	cannot 1 "$d/missing: No such file" -o "credentials=$d/missing" $nobody "$m"
	cannot 1 "$d: not a regular file" -o "credentials=$d" $nobody "$m"
	for mode in 604 640 620 602; do
		echo user:password > "$d/open"
		chmod $mode "$d/open"
		cannot 1 "$d/open: others may read or write it: chmod 600" \
			-o "credentials=$d/open" $nobody "$m"
	done
	for text in '' user user: :password $'user:password\nanother:one'; do
		(umask 077 && echo "$text" > "$d/wrong")
		cannot 1 "$d/wrong: it (is not USER:PASSWORD|has more than one line)" \
			-o "credentials=$d/wrong" $nobody "$m"
	done
}

case_servers_that_cannot_be_are_refused() {
	cannot 2 "a server is missing in the source: ''" zk:// "$m"
	cannot 2 'a server is missing' zk:///x "$m"
	cannot 2 'a server is missing' zk://a,,b/x "$m"
	cannot 2 'a server is missing' zk://a,/x "$m"
	cannot 2 'a server is missing|not the name of a server' zk://:2181/x "$m"
	cannot 2 "not the name of a server: 'a b'" 'zk://a b/x' "$m"
	cannot 2 'not the name of a server' 'zk://user@a/x' "$m"
	cannot 2 'not the name of a server' zk://127.0.0.256/x "$m"
	cannot 2 'an IPv6 address must be in brackets' zk://::1/x "$m"
	cannot 2 'a bracket is missing' 'zk://[::1/x' "$m"
	cannot 2 'not an IPv6 address' 'zk://[a]/x' "$m"
	for port in 0 65536 x ''; do
		cannot 2 "not a port \(1 to 65535\)" "zk://a:$port/x" "$m"
	done
}

case_paths_that_cannot_be_are_refused() {
	cannot 2 "an empty name in the path of the source: '/'" zk://a/ "$m"
	cannot 2 "an empty name in the path of the source: '/'" zk://a/x/ "$m"
	cannot 2 'an empty name' zk://a//x "$m"
	cannot 2 "'.' and '..' are not allowed" zk://a/x/../y "$m"
	cannot 2 "'.' and '..' are not allowed" zk://a/. "$m"
	cannot 2 "/zookeeper is ZooKeeper's own" zk://a/zookeeper "$m"
	cannot 2 "/zookeeper is ZooKeeper's own" zk://a/zookeeper/x "$m"
	cannot 2 'a character in the path' 'zk://a/x y' "$m"
	cannot 2 'a character in the path' $'zk://a/x\ny' "$m"
	cannot 2 'path in the source is too long' "zk://a/$(printf '%0300d' 0)" "$m"
}

case_without_any_server_the_addresses_tried_are_named() {
	cannot 1 'no coordinator within 10 s: tried nobody.invalid,127.0.0.1:1 .*-o nowait' \
		zk://nobody.invalid,127.0.0.1:1/x "$m"
}

# mounted HOST: it works, is a host of that name, and is unmounted.
mounted() {
	like host "$(cat "$m/status")" $'\n'"host $1"$'\n'
	mkdir "$m/orders"
	is token "$(cat "$m/orders/token")" 1
	rmdir "$m/orders"
	is type "$(findmnt -n -o FSTYPE,SOURCE "$m" | tr -s ' ')" "fuse.ratefs $source"
	umount "$m"
	eventually 20 none_left || fail 'the daemon is still there'
}

case_with_servers_mount_and_a_line_of_fstab_mount_a_fleet() {
	[ -x /sbin/mount.fuse3 ] || skip 'no /sbin/mount.fuse3'
	mount -t tmpfs none /usr/local/bin
	ln -s "$RATEFS" /usr/local/bin/ratefs
	source=$SOURCE/deep/$(date +%s%N)
	mount -t fuse.ratefs -o host=mounted,weight=2,right=9s "$source" "$m"
	mounted mounted
	local options=noauto,nofail,_netdev,nowait,x-systemd.automount,noatime,host=there
	echo "$source $m fuse.ratefs $options 0 0" > "$d/fstab"
	mount --fstab "$d/fstab" "$m"
	eventually 10 grep -qx 'coordinator ready' "$m/status" || fail "$(cat "$m/status")"
	mounted there
}

# pieces DIRECTORY: the names in it that begin with a digit, in order.
pieces() { ls "$1" | grep '^[0-9]' | sort -n; }

# all_parts DIRECTORY: whether its pieces are all parts, each once.
all_parts() {
	pieces "$1" | awk -F - '$1 != next_part + 0 { exit 1 } { next_part = $NF + 1 }
		END { exit next_part != 4096 }'
}

case_with_servers_a_piece_is_a_directory_that_comes_and_goes() {
	local held piece free= of_other rate files
	start -o host=first
	mkdir "$d/other"
	"$RATEFS" -o host=second "$(sed -n 's/^source //p' "$m/status")" "$d/other"
	limiter orders 100/s
	is token "$(cat "$m/orders/token")" 1
	eventually 20 grep -q . "$m/orders/partitions/held" || fail 'nothing is held'
	eventually 20 [ -e "$d/other/orders/token" ] || fail 'the other host has no limiter'
	of_other=$d/other/orders/partitions
	# A piece may grow, and be split, between two looks.
	shown() {
		held=$(awk 'NR == 1 { print $1 }' "$m/orders/partitions/held")
		[ "$(cat "$of_other/$held/holder" "$of_other/$held/state")" = $'first\nheld' ] &&
			rate=$(cat "$of_other/$held/rate") &&
			files=$(ls "$of_other/$held" | paste -sd ' ') && [ -n "$files" ]
	}
	opened() {
		piece=$(pieces "$of_other" | head -n 1)
		[ -n "$piece" ] && exec 7< "$of_other/$piece/holder"
	}
	eventually 20 shown || fail "$held: $(grep -s . "$of_other"/*/*)"
	like 'rate of a piece' "$rate" '^[0-9.]+/'
	is 'files of a piece' "$files" 'holder rate state'
	eventually 20 all_parts "$of_other" || fail "pieces: $(pieces "$of_other")"
	for piece in $(pieces "$of_other"); do
		[ "$(cat "$of_other/$piece/state" 2> /dev/null)" != free ] || free=$piece
	done
	[ -z "$free" ] || is 'holder of a free piece' "$(cat "$of_other/$free/holder")" ''
	! ls "$of_other/4096" "$of_other/0-4096" "$of_other/00" 2> /dev/null ||
		fail 'a piece that cannot be'
	eventually 20 opened || fail 'no piece can be opened'
	echo 10 > "$m/orders/partitions/count"
	eventually 20 [ -e "$of_other/9/token" ] || fail 'no partition 9'
	! cat <&7 2> "$d/said" || fail 'a piece that is gone was read'
	like said "$(cat "$d/said")" 'No such device|Stale'
	exec 7<&-
	is 'partitions' "$(pieces "$of_other" | paste -sd ' ')" '0 1 2 3 4 5 6 7 8 9'
	is 'token of partition 3' "$(timeout 60 cat "$of_other/3/token")" 1
	is 'holder of partition 3' "$(cat "$m/orders/partitions/3/holder")" second
	grep -qwF 3 "$of_other/held" || fail "held: $(cat "$of_other/held")"
	fusermount3 -u "$d/other"
}

case_with_servers_each_part_of_the_reserve_names_its_holder() {
	local reader partitions
	start -o host=first
	mkdir "$d/other"
	"$RATEFS" -o host=second "$(sed -n 's/^source //p' "$m/status")" "$d/other"
	mkdir "$m/orders"
	printf 'rate=100/s\npartitions.reserve=1/s hosts=40\n' > "$m/orders/config"
	while read -r _ < "$m/orders/token"; do :; done &
	reader=$!
	# Its pieces reach far above the numbers of the reserve.
	eventually 40 grep -q '[0-9]-[0-9].* r[0-9]' "$m/orders/partitions/held" ||
		fail "held: $(cat "$m/orders/partitions/held")"
	eventually 40 grep -q '^r[0-9]' "$d/other/orders/partitions/held" ||
		fail "held by second: $(cat "$d/other/orders/partitions/held")"
	for partitions in "$m/orders/partitions" "$d/other/orders/partitions"; do
		is "holders in $partitions" "$(cat "$partitions"/r*/holder | sort | uniq -c |
			awk '{ print $1, $2 }' | paste -sd ,)" '38 ,1 first,1 second'
	done
	kill $reader
	fusermount3 -u "$d/other"
}
