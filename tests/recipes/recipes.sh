# shellcheck shell=bash disable=SC2154,SC2164
# Each recipe of examples/README.md, run as it is printed there, with what it needs around it.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
page=$here/../../examples/README.md

# tree: makes the tree that the page takes for given, a service, and twelve urls of it; stand-ins
# for commands go to $d/bin.
tree() {
	local n
	mount -t tmpfs none /mnt
	m=/mnt/rate
	mkdir $m "$d/work" "$d/bin"
	cd "$d/work"
	PATH=$d/bin:$PATH
	start "$@"
	limiter api 50/s
	"$here/server" "$d/requests" &
	eventually 20 eval '(exec 3<> /dev/tcp/localhost/8080)' 2> /dev/null
	for n in 1 2 3 4 5 6 7 8 9 10 11 12; do echo "http://localhost:8080/$n"; done > urls
}

# block TITLE N: the Nth block of code below that heading; its language is in $d/language.
block() {
	awk -v title="## $1" -v wanted="$2" -v language="$d/language" '
		/^## / { on = $0 == title }
		/^```$/ { inside = 0 }
		inside
		on && /^```[a-z]/ && ++count == wanted {
			inside = 1
			print substr($0, 4) > language
		}' "$page"
}

# recipe TITLE [N [ARGUMENT…]]: runs it in the directory that we are in, changed by sed as $changes
# says.
recipe() {
	local code=$d/code
	rm -f "$d/language"
	block "$1" "${2-1}" | sed "${changes-}" > "$code"
	[ -s "$code" ] || fail "no block ${2-1} below '$1'"
	case $(cat "$d/language") in
	sh) bash -eu "$code" "${@:3}" ;;
	crontab) sh -c "$(cut -d ' ' -f 7- "$code")" ;; # as cron does, without the times
	python) PYTHONPATH=$PWD python3 "$code" ;;
	js) node "$code" ;;
	# Without figures in /tmp, where a JVM in another process namespace may have the same
	# number.
	java) cp "$code" "$d/Fetch.java" && java -XX:-UsePerfData "$d/Fetch.java" ;;
	go) cp "$code" "$d/fetch.go" && HOME=$d go run "$d/fetch.go" ;;
	*) fail "nothing runs $(cat "$d/language")" ;;
	esac
}

# crate NAME EDITION FEATURES CRATES [ARGUMENT…]: compiles a crate of Debian's into $d.
crate() {
	local word arguments=()
	for word in $3; do arguments+=(--cfg "feature=\"$word\""); done
	for word in $4; do arguments+=(--extern "$word=$d/lib$word.rlib"); done
	rustc --crate-name "$1" --crate-type rlib --edition "$2" --cap-lints allow -L "$d" \
		--out-dir "$d" "${arguments[@]}" "${@:5}" \
		"/usr/share/cargo/registry/${1//_/-}"-[0-9]*/src/lib.rs
}

# tokio_is_compiled: as much of it as the recipe needs. The build scripts of the crates are not run:
# their answers are given.
tokio_is_compiled() {
	crate pin_project_lite 2018 '' ''
	crate cfg_if 2018 '' ''
	crate log 2015 '' cfg_if --cfg atomic_cas --cfg has_atomics
	crate libc 2015 extra_traits '' --cfg libc_union --cfg libc_align \
		--cfg libc_core_cvoid --cfg libc_priv_mod_use --cfg libc_const_extern_fn
	crate mio 2018 'os-poll os-ext net' 'libc log'
	crate socket2 2018 all libc
	crate tokio 2018 'net rt libc mio socket2' 'libc mio socket2 pin_project_lite'
}

# command_is NAME: a stand-in, from standard input.
command_is() {
	{ echo '#!/bin/bash' && cat; } > "$d/bin/$1"
	chmod +x "$d/bin/$1"
}

# all_fetched: each url once, and a token for each.
all_fetched() {
	is requests "$(sort -n "$d/requests" | tr '\n' ' ')" \
		"$(sed 's/.*8080//' urls | sort -n | tr '\n' ' ')"
	counts api granted 12
}

case_every_block_has_a_case() {
	# Sessions are run by tests/docs.
	is blocks "$(sed -nE "s/^[^#]*(recipe|block) '([^'^]+)'( ([0-9]))?.*/\2, \4/p" \
		"${BASH_SOURCE[0]}" | sed 's/, $/, 1/' | sort -u)" "$(awk '
		/^## / { title = substr($0, 4); n = 0 }
		/^```[a-z]/ && !/console/ { print title ", " ++n }' "$page" | sort -u)"
}

case_script() {
	local status=0
	mount -t tmpfs none /mnt
	m=/mnt/rate
	mkdir $m
	(recipe 'Limiters from a script') 2> "$d/said" || status=$?
	is 'exit status before the mount' $status 1
	is 'what it said' "$(cat "$d/said")" 'nothing is mounted on /mnt/rate'
	is 'left in the directory' "$(ls -A $m)" ''
	start
	recipe 'Limiters from a script'
	recipe 'Limiters from a script'
	is 'rate of mail' "$(cat $m/mail/rate)" 20/min
}

case_on_the_fly() {
	local i makers=()
	tree
	block 'A limiter on the fly' 1 > limiter
	for i in {1..12}; do
		bash -eu limiter >> works &
		makers+=($!)
	done
	for i in "${makers[@]}"; do wait "$i" || :; done
	is works "$(cat works)" work
	counts customer-7 granted 1
	is limiters "$(cd $m && echo c*)" customer-7
	# One that is there is left alone; one that cannot have its rate is not made.
	bash -eu limiter
	counts customer-7 granted 1
	! sed 's,customer-7 5/min,customer-8 5/mni,' limiter | bash -eu 2> said || fail 'it is made'
	is limiters "$(cd $m && echo c*)" customer-7
}

case_git() {
	tree
	ratefs_is_found
	export HOME=$d
	git config --global user.name test && git config --global user.email test@localhost
	recipe 'Limiters from git' > "$d/out"
	is 'what apply prints' "$(cat "$d/out")" 'api: rate=80/s, was 50/s'
	is rate "$(cat $m/api/rate)" 80/s
	is commits "$(git -C limits log --format=%s | tr '\n' ' ')" 'api: 80/s as it is '
	echo 90/s > $m/api/rate
	is 'changed by hand' "$(ratefs save $m | diff limits/limiters.ini - | grep -c '^>')" 1
}

# ratefs_is_found: the commands of a recipe are those of a host on which it is installed.
ratefs_is_found() { [ -e "$d/bin/ratefs" ] || ln -s "$RATEFS" "$d/bin/ratefs"; }

# nginx_logs N: an nginx serves and logs N requests, and ends.
nginx_logs() {
	local n
	cat > "$d/nginx.conf" <<- END
		pid $d/nginx.pid;
		error_log $d/nginx.log;
		events {}
		http {
			access_log $PWD/access.log combined;
			server { listen 127.0.0.1:8090; location / { return 204; } }
		}
	END
	nginx -p "$d" -c "$d/nginx.conf"
	for ((n = 1; n <= $1; n++)); do
		curl -s -g -A 'a "name"' "http://127.0.0.1:8090/$n?[x]"
	done
	kill -QUIT "$(cat "$d/nginx.pid")"
	eventually 30 eval '[ ! -e "$d/nginx.pid" ]' || fail 'nginx is still there'
}

case_an_access_log() {
	mkdir "$d/work" "$d/bin"
	cd "$d/work"
	PATH=$d/bin:$PATH
	ratefs_is_found
	nginx_logs 45
	# So slow a limit that the time between the requests does not matter.
	changes='s,key_rate=20/s,key_rate=20/d,' recipe 'Limits tried on an access log' > "$d/out"
	is 'asked, tokens, at once, by wait_max' \
		"$(awk '$1 == "site" { print $2, $3, $4, $7 }' "$d/out")" '45 40 40 5'
	changes= recipe 'Limits tried on an access log' > "$d/out"
	like 'with the limit of the recipe' "$(cat "$d/out")" '^45 lines .*; 0 left out'
}

# play: ansible-playbook on this host, with the recipe.
play() {
	block 'Limiters from Ansible' 1 > play.yml
	HOME=$d LC_ALL=C.UTF-8 ANSIBLE_NOCOLOR=1 ansible-playbook -i localhost, -c local \
		-e ansible_python_interpreter=/usr/bin/python3 play.yml > "$d/out" 2>&1
}

case_ansible() {
	tree
	ratefs_is_found
	# An /etc of its own: the files of the recipe there are gone with the case.
	cp -a /etc "$d/etc" && mount --bind "$d/etc" /etc && mkdir -p /etc/ratefs
	mkdir $m/old
	printf '[api]\nrate=80/s\n' > limiters.ini
	play || fail "$(cat "$d/out")"
	like 'the recap' "$(grep localhost "$d/out" | tail -n 1)" 'changed=2 .*failed=0'
	is 'rate and limiters' "$(cat $m/api/rate) $(status_of limiters)" '80/s 1'
	play || fail "$(cat "$d/out")"
	like 'the second recap' "$(grep localhost "$d/out" | tail -n 1)" 'changed=0 .*failed=0'
	printf '[api]\nrate=plenty\n' > limiters.ini
	play && fail 'a file with a mistake is taken'
	is 'the file' "$(cat /etc/ratefs/limiters.ini)" $'[api]\nrate=80/s'
	is rate "$(cat $m/api/rate)" 80/s
}

case_copy_of_a_limiter() {
	tree
	echo 7 > $m/api/burst
	recipe 'A copy of a limiter'
	is config "$(cat $m/api2/config)" "$(cat $m/api/config)"
	is 'burst and rate' "$(cat $m/api2/{burst,rate})" $'7\n50/s'
	echo 3/s > $m/api2/rate
	recipe 'A copy of a limiter'
	is 'rate of a copy that is there' "$(cat $m/api2/rate)" 3/s
	rmdir $m/api2
	mkdir "$d/failing"
	ln -s /bin/false "$d/failing/cp"
	(PATH=$d/failing:$PATH && recipe 'A copy of a limiter') && fail 'it was copied'
	is limiters "$(status_of limiters)" 1
}

case_many_removed() {
	tree
	ratefs_is_found
	mkdir -p $m/old/deep/deeper "$m/old/a b" $m/older
	empty old/busy
	reader old/busy/token
	waiting old/busy 1
	: "$(cat $m/old/keys/config/stat)"
	{ recipe 'Many limiters removed'; } 2> "$d/said" && fail 'it does not say that one is left'
	is 'what it says' "$(cat "$d/said")" "ratefs rm: $m/old/busy: 1 reader waits in 'busy'"
	is 'what is left' "$(cd $m && find . -name config -type f -printf '%h\n' | sort |
		tr '\n' ' ')" \
		'./api ./old ./old/busy ./older '
	kill $reader
	waiting old/busy 0
	recipe 'Many limiters removed'
	is 'what is left' "$(ls -d $m/*/ | xargs -n 1 basename | tr '\n' ' ')" 'api older '
}

case_xargs() {
	tree
	recipe 'xargs -P'
	all_fetched
	is page "$(cat 7)" 'page /7'
}

case_parallel() {
	tree
	recipe 'GNU parallel'
	all_fetched
}

case_how_far_a_batch_is() {
	tree
	recipe 'How far a batch is' > said
	all_fetched
	like 'what is said before' "$(head -n 1 said)" '^12 urls, [0-9]+\.[0-9]+ s$'
	is 'what is said last' "$(tr '\r' '\n' < said | tail -n 1)" '12 of 12'
	ratefs_is_found
	limiter net 1G/s
	head -c 300000 /dev/urandom > big
	recipe 'How far a batch is' 2 2> told
	cmp big copy
	like progress "$(cat told)" '^300000 bytes \(100 %\) copied, '
}

case_make() {
	tree
	echo one > one.md
	echo two > two.md
	block 'make -j' 1 > Makefile
	recipe 'make -j' 2
	is 'what was made' "$(cat one.html two.html)" $'ONE\nTWO'
	counts api granted 2
	rm one.html two.html
	ratefs_is_found
	block 'make -j' 3 > GNUmakefile
	make -j 8
	is 'what was made' "$(cat one.html two.html)" $'ONE\nTWO'
	counts api granted 6
}

case_cron() {
	local first second
	tree
	command_is make-report <<- 'SH'
		echo begin >> reports
		until [ -e goes_on ]; do sleep 0.02; done
		echo end >> reports
	SH
	ratefs_is_found
	recipe 'cron instead of flock' 1
	recipe 'cron instead of flock' 2 & first=$!
	eventually 20 test -s reports
	for second in 2 3; do
		! recipe 'cron instead of flock' $second 2> said || fail 'a second job'
		like "what job $second says" "$(cat said)" 'no slot within 0s$|busy$'
	done
	touch goes_on
	wait $first
	recipe 'cron instead of flock' 3
	is reports "$(tr '\n' ' ' < reports)" 'begin end begin end '
	counts report slots_opened 2
}

case_retry_after() {
	tree
	recipe 'curl and Retry-After'
	is requests "$(cat "$d/requests")" $'/busy\n/busy'
	is page "$(cat page)" 'page /busy'
	counts api throttled 1
	counts api ok 1
	[ "$(counter api backoff_paused_seconds | cut -d . -f 1)" -ge 2 ] ||
		fail 'Retry-After was not honoured'
}

case_pages() {
	tree
	# Three pages of two keys.
	command_is aws <<- 'SH'
		next=1
		[ "${7-}" != --starting-token ] || next=$8
		token=
		[ $next = 3 ] || token=", \"NextToken\": \"$((next + 1))\""
		echo "{\"Contents\": [{\"Key\": \"$next/a\"}, {\"Key\": \"$next/b\"}]$token}"
	SH
	recipe 'Page after page'
	is keys "$(tr '\n' ' ' < keys)" '1/a 1/b 2/a 2/b 3/a 3/b '
	counts api granted 3
}

case_python() {
	tree
	is 'answers of 200' "$(recipe 'Python')" 12
	all_fetched
}

# twelve_wait COMMAND…: its twelve tasks stand in the queue, in one thread; then there are tokens
# for all. The output is in $d/out.
twelve_wait() {
	local pid
	rmdir $m/api
	empty api
	"$@" > "$d/out" 2>&1 & pid=$!
	eventually 60 has api waiting 12 ||
		fail "$(counter api waiting) wait, not 12: $(cat "$d/out")"
	is threads "$(awk '/^Threads/ { print $2 }' \
		"/proc/$(pgrep -f "$d/(code|turns)\$")/status")" 1
	echo 50/s > $m/api/rate
	wait $pid || fail "it ends with status $?"
	counts api granted 13
}

case_asyncio() {
	tree
	block 'asyncio' 1 > turn.py
	twelve_wait recipe 'asyncio' 2
	is 'answers of 200' "$(cat "$d/out")" 12
	is requests "$(wc -l < "$d/requests")" 12
}

case_tokio() {
	tree
	tokio_is_compiled
	block 'tokio' 1 > turns.rs
	rustc --edition 2021 -D warnings -L "$d" --extern "tokio=$d/libtokio.rlib" \
		-o "$d/turns" turns.rs
	twelve_wait "$d/turns"
	is 'output' "$(cat "$d/out")" '12 turns'
}

case_gevent() {
	tree
	block 'gevent and eventlet' 1 > greenlets.py
	twelve_wait recipe 'gevent and eventlet' 2
	is 'answers of 200' "$(cat "$d/out")" 12
	is requests "$(wc -l < "$d/requests")" 12
}

case_eventlet() {
	tree
	block 'gevent and eventlet' 1 > with_gevent
	sed 's/gevent.socket import wait_read/eventlet.hubs import trampoline/
		s/wait_read(fd)/trampoline(fd, read=True)/' with_gevent > greenlets.py
	! grep gevent greenlets.py || fail 'that is gevent'
	changes='s/from gevent import monkey/import eventlet/
		s/monkey.patch_all/eventlet.monkey_patch/
		s/gevent.pool, //; s/)[.]count/)&/
		s/gevent.pool.Pool(12).map/list(eventlet.GreenPool(12).imap/' \
		twelve_wait recipe 'gevent and eventlet' 2
	! grep gevent "$d/code" || fail 'that is gevent'
	is 'answers of 200' "$(cat "$d/out")" 12
	is requests "$(wc -l < "$d/requests")" 12
}

case_nginx() {
	local pid i answers=
	tree -o allow_other
	rmdir $m/api
	limiter api 1/d 3
	block 'nginx' 1 > nginx.conf
	nginx -p . -c nginx.conf -g 'daemon off;' -e "$d/log" & pid=$!
	eventually 60 eval '(exec 3<> /dev/tcp/localhost/8000)' 2> /dev/null ||
		fail "$(cat "$d/log")"
	for i in 1 2 3 4 5; do
		answers+="$(curl -s -o /dev/null -w '%{http_code}' http://localhost:8000/1) "
	done
	kill $pid
	wait $pid || :
	is answers "$answers" '200 200 200 429 429 '
	counts api granted 3
}

# hello: asks the service of FastAPI.
hello() { curl -s -o /dev/null -w '%{http_code} %header{retry-after}' http://localhost:8000/hello; }

case_fastapi() {
	local answer
	tree
	rmdir $m/api
	limiter api 1/min
	block 'asyncio' 1 > turn.py
	block 'FastAPI' 1 > service.py
	recipe 'FastAPI' 2 > "$d/log" 2>&1 &
	eventually 60 eval '(exec 3<> /dev/tcp/localhost/8000)' 2> /dev/null ||
		fail "$(cat "$d/log")"
	is 'with a token' "$(hello)" '200 '
	answer=$(hello)
	like 'without one' "$answer" '^429 [0-9]+$'
	[ "${answer#* }" -ge 1 ] && [ "${answer#* }" -le 60 ] || fail "come back in ${answer#* } s"
	counts api granted 1
	waiting api 0
	rmdir $m/api
	limiter api 1/s
	is 'with a wait' "$(hello; echo; hello)" $'200 \n200 '
	counts api granted 2
}

case_systemd() {
	local service waiter
	tree
	block 'A service of systemd' 1 > report.service
	cp "$here/../../operators/ratefs@.service" .
	is 'what systemd says' "$(SYSTEMD_UNIT_PATH=$PWD:/lib/systemd/system systemd-analyze \
		verify --man=no ./report.service 2>&1 | grep -F report.service)" ''
	command_is make-report <<- 'SH'
		echo begin >> reports
		until [ -e goes_on ]; do sleep 0.02; done
		echo end >> reports
	SH
	limiter report max
	echo 1 > $m/report/concurrency
	sed -n 's/^ExecStart=//p' report.service > start
	sh start & service=$!
	eventually 20 test -s reports
	like 'processes that have the slot' "$(fuser "$m/report/slot" 2> said)" '[0-9]'
	touch goes_on
	sh start & waiter=$!
	wait $service $waiter
	is reports "$(tr '\n' ' ' < reports)" 'begin end begin end '
	counts report slots_opened 2
}

case_terraform() {
	tree
	ratefs_is_found
	command_is terraform <<< 'echo "$@"; grep "^slots_used " /mnt/rate/cloud/stat'
	is 'what is run, in a slot' "$(recipe 'Terraform')" \
		$'apply -parallelism=4 changes.tfplan\nslots_used 1'
	counts cloud slots_used 0
}

# The lines of the job run in one shell, as GitLab has it.
case_ci_jobs() {
	local first second
	tree
	recipe 'CI jobs' 1
	block 'CI jobs' 2 > .gitlab-ci.yml
	python3 -c 'import yaml; print(*yaml.safe_load(open(".gitlab-ci.yml"))["deploy"]["script"],
		sep="\n")' > job
	command_is make <<- 'SH'
		echo "begin $1" >> deployments
		sleep 0.3
		echo "end $1" >> deployments
	SH
	bash -eu job & first=$!
	eventually 20 test -s deployments
	bash -eu job & second=$!
	wait $first $second
	is deployments "$(tr '\n' ' ' < deployments)" \
		'begin deploy end deploy begin deploy end deploy '
	counts deploy slots_opened 2
}

# attempts CODE: how many requests Python makes of a service that is not available.
attempts() {
	: > "$d/requests"
	python3 -c "$1" > "$d/out" 2>&1
	grep -c '^/unavailable' "$d/requests"
}

case_retries_of_sdks() {
	local aws='import botocore.session, retries
config = retries.aws if INSIDE else None
client = botocore.session.Session().create_client("sts", region_name="eu-west-1", config=config,
    endpoint_url="http://localhost:8080/unavailable", aws_access_key_id="a",
    aws_secret_access_key="b")
try: client.get_caller_identity()
except Exception as failure: print(failure)'
	local outside=${aws/INSIDE/False} inside=${aws/INSIDE/True}
	local http='.request("GET", "http://localhost:8080/unavailable")'
	tree
	block 'SDKs that retry by themselves' 1 > environment
	block 'SDKs that retry by themselves' 2 > retries.py
	is 'of boto3, standard' "$(AWS_RETRY_MODE=standard attempts "$outside")" 3
	is 'of boto3, switched off outside' "$(. ./environment && attempts "$outside")" 1
	is 'of boto3, switched off inside' "$(attempts "$inside")" 1
	is 'of urllib3' "$(attempts "import urllib3; urllib3.PoolManager()$http")" 4
	is 'of urllib3, switched off' "$(attempts "import retries; retries.http$http")" 1
	is 'of requests' "$(attempts 'import requests
requests.get("http://localhost:8080/unavailable")')" 1
}

# A slot is one operation: the log has no third one begin before one is done.
case_an_operation() {
	tree
	recipe 'An operation that runs on'
	is 'begun and done' "$(grep -c '^/operations$' "$d/requests") $(
		grep -c '^/operations/.* done$' "$d/requests")" '4 4'
	is 'most at a time' "$(awk '
		/^\/operations$/ && ++now > most { most = now }
		/ done$/ { now-- }
		END { print most }' "$d/requests")" 2
	counts exports slots_opened 4
	counts api granted "$(wc -l < "$d/requests")"
}

case_node() {
	tree
	is 'answers of 200' "$(recipe 'Node.js')" 12
	all_fetched
}

case_java() {
	tree
	is 'answers of 200' "$(recipe 'Java')" 12
	all_fetched
}

case_go() {
	tree
	is 'answers of 200' "$(recipe 'Go')" 12
	all_fetched
	# The take that the page tells of.
	sed 's,api/token,api/take/3,' "$d/code" > "$d/take.go"
	is 'answers of 200' "$(HOME=$d go run "$d/take.go")" 12
	counts api granted 48
}

# all_say WHAT: each way of giving up.
all_say() {
	block 'asyncio' 1 > turn.py
	is sh "$(recipe 'Giving up' 1)" "$1"
	is Python "$(recipe 'Giving up' 2)" "$1"
	is Go "$(recipe 'Giving up' 3)" "$1"
	is Node.js "$(recipe 'Giving up' 4)" "$1"
	is Java "$(recipe 'Giving up' 5)" "$1"
}

# While there are tokens, each of them is one turn; when there is none, none is spent.
case_giving_up() {
	# A second is too short for a program that has to start on a busy machine.
	local changes='s/within=1s/within=60s/; s/time\.Second/time.Minute/
		s/timeout: 1000/timeout: 60000/
		s/waitFor(1,/waitFor(60,/; s/"), 1)$/"), 60)/'
	tree
	all_say work
	changes=
	counts api granted 5
	rmdir $m/api
	empty api
	all_say 'too long'
	eventually 20 has api waiting 0
	counts api granted 1
}

# The stand-in has a root of its own, with nothing of /mnt but what is bound in.
case_container() {
	tree
	command_is docker <<- 'SH'
		[ "${*:1:3} $5" = 'run --rm --volume busybox' ] || exit 125
		root=$(mktemp -d) from=${4%%:*} to=${4##*:}
		exec unshare --mount bash -euc '
			mount -t tmpfs none "$1" && cd "$1"
			cp -P /bin /lib /lib64 .
			mkdir -p usr ".$3"
			mount --bind /usr usr
			mount --bind "$2" ".$3"
			exec chroot . busybox "${@:4}"' bash "$root" "$from" "$to" "${@:6}"
	SH
	is 'what it said' "$(recipe 'A container')" work
	counts api granted 1
}

# The host mounts anew while the container is there, which has the directory above.
case_container_after_another_mount() {
	local container
	tree
	mount --make-shared /mnt
	command_is docker <<- 'SH'
		[ "${*:1:3}" = 'run --rm --mount' ] || exit 125
		[[ $4 =~ ^type=bind,source=(.*),target=(.*),bind-propagation=rslave$ ]] || exit 125
		root=$(mktemp -d)
		exec unshare --mount --propagation slave bash -euc '
			mount -t tmpfs none "$1" && cd "$1"
			cp -P /bin /lib /lib64 .
			mkdir -p usr ".$3"
			mount --bind /usr usr
			mount --rbind "$2" ".$3"
			mount --make-rslave ".$3"
			exec chroot . busybox "${@:4}"' bash "$root" "${BASH_REMATCH[1]}" \
			"${BASH_REMATCH[2]}" "${@:6}"
	SH
	changes="s,sh -c ',&touch /mnt/began; until [ -e /mnt/again ]; do sleep 0.1; done; ," \
		recipe 'A container' 2 > "$d/out" &
	container=$!
	eventually 20 test -e /mnt/began
	stop
	start
	limiter api 50/s
	touch /mnt/again
	wait $container
	is 'what it said' "$(cat "$d/out")" work
	counts api granted 1
}

case_two_limits() {
	tree
	is 'what it said' "$(recipe 'Two limits that overlap')" work
	counts tenants/7 granted 1
	counts regions/eu granted 1
	# The tenant has a token, the region has none for long.
	echo 1/d > $m/tenants/7/rate
	echo -1 > $m/tenants/7/charge
	echo 1/d > $m/regions/eu/rate
	echo 2 > $m/regions/eu/charge
	is 'what it said' "$(recipe 'Two limits that overlap' 2)" ''
	counts tenants/7 granted 2
	is 'tokens of the tenant' "$(tokens tenants/7)" 1
	echo -3 > $m/regions/eu/charge
	is 'what it said' "$(recipe 'Two limits that overlap' 2)" work
	is 'tokens of the tenant' "$(tokens tenants/7)" 0
}

case_users() {
	local user
	tree
	recipe 'Each user' > answers
	is answers "$(cat answers)" \
		$'200 hello alice\n200 hello alice\n429 alice\n200 hello bob\n429 alice\n400'
	counts web granted 3
	# Nothing else passes by the key either, and a name that only looks odd is a key.
	sed '/^mkdir\|^echo\|^for/d' "$d/code" > "$d/answer"
	for user in '' . .. ../.. /.. x/.. x/../bob ./bob bob/ bob/../.. bob/try .bob $'..\n'; do
		is "answer to '$user'" \
			"$(bash -euc '. "$1"; answer "$2"' bash "$d/answer" "$user")" 400
	done
	counts web granted 3
	is 'answer to carol..' \
		"$(bash -euc '. "$1"; answer "$2"' bash "$d/answer" carol..)" '200 hello carol..'
	counts web granted 4
}

# 300,000 bytes are no whole number of pieces.
case_bytes() {
	tree
	ratefs_is_found
	head -c 300000 /dev/urandom > big
	recipe 'Bytes' 1
	cmp big copy
	counts net granted 300000
	rm copy
	recipe 'Bytes' 2
	cmp big copy
	counts net granted 600000
}

# The first hundred are there at once, the others take two seconds each: not all can be done in
# five.
case_deadline() {
	local n loaded left
	tree
	rmdir $m/api
	limiter api 50/s 100
	mkdir night
	for n in 1 2 3 4 5 6 7 8 9; do seq 100 > night/$n; done
	command_is load <<< 'cat "$1" >> rows'
	recipe 'A nightly batch with a deadline' 1 '5 seconds' 2> errors > said
	loaded=$(($(wc -l < rows) / 100))
	left=$(find night -type f | wc -l)
	is 'loaded and left' $((loaded + left)) 9
	[ "$loaded" -ge 1 ] && [ "$left" -ge 1 ] || fail "$loaded loaded, $left left"
	is said "$(cat said)" "$left left"
	counts api granted $((100 * loaded))
}

case_shared_pool() {
	local n readers=()
	tree
	recipe 'A shared pool with two workstreams' 1
	is 'what they did' "$(recipe 'A shared pool with two workstreams' 2)" $'online\nbatch'
	counts db/online granted 1
	counts db/batch granted 10
	counts db granted 11
	is "rate of batch" "$(cat $m/db/batch/rate)" 50/s
	recipe 'A shared pool with two workstreams' 3
	echo 1/h > $m/db/rate # until all wait
	while cat $m/db/try; do :; done > /dev/null 2>&1
	for ((n = 0; n < 20; n++)); do
		(read -r _ < $m/db/batch/token && echo batch >> came) &
		readers+=($!)
	done
	waiting db/batch 20
	(read -r _ < $m/db/online/token && echo online >> came) &
	readers+=($!)
	waiting db/online 1
	echo 20/s > $m/db/rate
	wait "${readers[@]}"
	[ "$(grep -n online came | cut -d : -f 1)" -le 10 ] || fail "$(cat came)"
}
