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
	cannot 1 'no coordinator within 10 s: tried nobody.invalid,127.0.0.1:1' \
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
