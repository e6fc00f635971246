# shellcheck shell=bash
# Tools that read all they find: each ends, fills no disk, and takes a token or two, or file(1)
# three, of each file that gives some. ratefs(5) prints this table; tests/docs compares them.

limit_s=120 # for hangs
room_mib=8  # for what a tool writes; the tree has some 400 files of 4 KiB

# tree RATE: a mount with three limiters of it, that have no tokens left, and room for what a tool
# writes.
tree() {
	local limiter
	start local
	for limiter in orders mail batch; do
		limiter $limiter "$1"
		[ "$1" = max ] || : "$(cat "$m/$limiter/token")"
	done
	mkdir "$d/out"
	mount -t tmpfs -o size=${room_mib}m none "$d/out"
}

# untree: ends what tree began.
untree() {
	# A tool that has ended is busy there for a moment.
	eventually 20 umount "$d/out"
	rmdir "$d/out"
	stop
}

granted() { awk '$1 == "granted" { sum += $2 } END { print sum }' "$m"/*/stat; }

# begin COMMAND: a tool in the background, as a user would type it in the mount; its pid in $tool.
begin() {
	: > "$d/said"
	(cd "$m" && exec env --default-signal out="$d/out" timeout -k 5 $limit_s bash -c "$1") \
		< /dev/null > /dev/null 2> "$d/said" &
	tool=$!
}

# has_ended RATE: by itself, whatever it says of files that it may not read or that are shorter than
# their size.
has_ended() {
	local status=0
	gone $tool $((limit_s + 10)) || status=$?
	[ $status -lt 124 ] || fail "at $1 it did not end: status $status, $(tail -n 3 "$d/said")"
	! grep -i 'no space left' "$d/said" || fail "at $1 it fills the disk"
	[ "$(df --output=avail -k "$d/out" | tail -n 1)" -ge $((room_mib * 256)) ] ||
		fail "at $1 it wrote $(du -sk "$d/out")"
}

# takes_at RATE TOKENS COMMAND: it ends at that rate, with so many tokens of each file that gives
# some, or fewer.
takes_at() {
	local files before taken
	tree "$1"
	files=$(find "$m" -name token -o -name try | wc -l)
	[ "$files" -ge 9 ] || fail "only $files files give tokens"
	before=$(granted)
	begin "$3"
	has_ended "$1"
	taken=$(($(granted) - before))
	echo "# at $1: $taken tokens of $files files"
	[ $taken -le $(($2 * files)) ] || fail "at $1 it took $taken tokens of $files files"
	[ "$2" = 0 ] || [ "$1" != max ] || [ $taken -gt 0 ] ||
		fail 'it took no token: what did it read?'
	untree
}

# waits_at_token COMMAND: with no tokens left it waits for one, and for nothing else: with tokens it
# goes on, and ends.
waits_at_token() {
	local limiter line thread file files
	tree 1/h
	begin "$1"
	eventually 60 eval '[ "$(status_of waiters)" = 1 ] || ! alive $tool' ||
		fail 'it waits, and not for a token'
	alive $tool || fail "it ended without a token: $(tail -n 3 "$d/said")"
	line=$(cat "$m"/*/waiters | grep -v '^#')
	like 'who waits' "$line" '^[0-9]+ 0 1 [0-9.]+ [0-9.]+ [^ ]+$'
	thread=${line%% *}
	files=$(for file in "/proc/$thread/fd/"*; do [ ! -f "$file" ] || readlink "$file"; done |
		grep -F "$m/") || fail 'it reads no file'
	is 'what else it reads' "$(grep -v '/token$' <<< "$files" || :)" ''
	for limiter in "$m"/*/; do echo max > "$limiter/rate"; done
	has_ended 1/h
	untree
}

# passes TOOL TOKENS 'ends'|'waits for a token' COMMAND: a row of the table, and what the tool does
# where no token is left.
passes() {
	takes_at 100/s "$2" "$4"
	takes_at max "$2" "$4"
	if [ "$3" = ends ]; then
		takes_at 1/h 0 "$4"
	else
		waits_at_token "$4"
	fi
}

# shellcheck disable=SC2016
{
	case_ls_ends() { passes 'ls -lR' 0 'ends' 'ls -lR .'; }
	case_find_ends() { passes 'find' 0 'ends' 'find . -newer / -size +1'; }
	case_du_ends() { passes 'du' 0 'ends' 'du -a .'; }
	case_stat_ends() { passes 'stat' 0 'ends' 'find . -exec stat {} +'; }
	case_updatedb_ends() {
		passes 'updatedb' 0 'ends' \
			'updatedb -l 0 -U "${PWD%/*}" -o "$out/db" --prunefs "" --prunepaths ""'
	}
	case_file_takes_three_tokens_of_each_and_waits_for_none() {
		passes 'file' 3 'ends' 'file $(find . -type f)'
	}
	case_cat_takes_a_token_of_each() {
		passes 'cat *' 1 'waits for a token' 'cat $(find . -type f)'
	}
	case_head_takes_a_token_of_each() {
		passes 'head *' 1 'waits for a token' 'head $(find . -type f)'
	}
	case_wc_takes_a_token_of_each() {
		passes 'wc *' 1 'waits for a token' 'wc $(find . -type f)'
	}
	case_md5sum_takes_a_token_of_each() {
		passes 'md5sum *' 1 'waits for a token' 'md5sum $(find . -type f)'
	}
	case_grep_takes_a_token_of_each_and_waits_for_none() {
		passes 'grep -r' 1 'ends' 'grep -r nothing-is-like-this .'
	}
	case_diff_takes_a_token_of_each() {
		passes 'diff -r' 1 'waits for a token' 'diff -r orders mail'
	}
	case_cp_takes_a_token_of_each() {
		passes 'cp -r' 1 'waits for a token' 'cp -r . "$out/copy"'
	}
	case_cp_as_it_is_takes_a_token_of_each() {
		passes 'cp -a' 1 'waits for a token' 'cp -a . "$out/copy"'
	}
	case_tar_takes_a_token_of_each() {
		passes 'tar' 1 'waits for a token' 'tar cf "$out/tar" .'
	}
	case_zip_takes_a_token_of_each() {
		passes 'zip -r' 1 'waits for a token' 'zip -qr "$out/zip" .'
	}
	case_rsync_takes_a_token_of_each() {
		passes 'rsync -a' 1 'waits for a token' 'rsync -a ./ "$out/copy"'
	}
	case_tail_takes_two_tokens_of_each() {
		passes 'tail *' 2 'waits for a token' 'tail $(find . -type f)'
	}
}

case_tools_that_go_by_the_size_end_on_files_without_an_end() {
	local file command before
	tree max
	for file in events orders/stream; do
		# shellcheck disable=SC2016
		for command in 'tar cf "$out/tar"' 'rsync -t' 'tail' 'wc -c'; do
			before=$(granted)
			begin "$command $file $([[ $command != rsync* ]] || echo '"$out/copy"')"
			has_ended max
			[ $(($(granted) - before)) -le 2 ] ||
				fail "$command $file took $(($(granted) - before)) tokens"
		done
	done
	is 'in the archive' "$(tar xOf "$d/out/tar" orders/stream)" 1
	# With size 0 sendfile(2) would tell of an end.
	is 'of a stream' "$(timeout $limit_s busybox cat "$m/orders/stream" | head -n 3 | wc -l)" 3
	untree
}

case_a_mount_that_is_pruned_is_in_no_database_of_names() {
	tree max
	updatedb -l 0 -U "$d" -o "$d/out/all" --prunefs '' --prunepaths ''
	updatedb -l 0 -U "$d" -o "$d/out/pruned" --prunefs fuse.ratefs --prunepaths ''
	plocate -d "$d/out/all" orders/token > "$d/found" || fail 'it is not found'
	! plocate -d "$d/out/pruned" orders/token || fail 'it is found'
	is 'what was taken' "$(granted)" 0
	untree
}

case_a_file_that_is_safe_to_read_costs_no_token() {
	tree 1/h
	local before limiter
	before=$(granted)
	for limiter in orders mail batch; do
		cat "$m/$limiter/config" "$m/$limiter/stat" > "$d/out/$limiter"
		[ -s "$d/out/$limiter" ] || fail 'nothing was read'
	done
	is 'what was taken' "$(($(granted) - before))" 0
	untree
}
