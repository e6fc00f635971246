# shellcheck shell=bash
# ratefs serve: tokens over HTTP, for proxies and beside hostile clients.

# serve [OPTIONS…]: ratefs serve on $d/socket; its pid in $serve, what it says in $d/err.
serve() {
	(
		ulimit -n "${files:-$(ulimit -n)}"
		exec env --default-signal "$RATEFS" serve -l "$d/socket" "$@" "$m" 2> "$d/err"
	) &
	serve=$!
	eventually 30 eval '[ -S "$d/socket" ] || ! alive "$serve"'
	alive "$serve" || fail "it ended: $(cat "$d/err")"
}

# serve_alone: as serve, on one processor, so it has one thread for connections.
serve_alone() {
	local processors
	processors=$(taskset -c -p $$ | sed 's/.*: //')
	taskset -c -p "${processors%%[-,]*}" $$ > /dev/null
	serve
	taskset -c -p "$processors" $$ > /dev/null
}

# ask URL [OPTIONS OF CURL…]: the status; the header goes to $d/header, the body to $d/body.
ask() {
	curl -s -m 60 --unix-socket "$d/socket" -D "$d/header" -o "$d/body" -w '%{http_code}' \
		"${@:2}" "http://rate$1" || :
}

# asked STATUS URL [OPTIONS OF CURL…]
asked() {
	: > "$d/body"
	is "status of $2 ${*:3}" "$(ask "${@:2}") $(cat "$d/body")" "$1 $(cat "$d/body")"
}

# field NAME: its value in the last answer.
field() { tr -d '\r' < "$d/header" | sed -n "s/^$1: //Ip"; }

# taken LIMITER N: so many tokens were taken, and not given back.
taken() { is taken $(($(counter "$1" granted) - $(counter "$1" returned))) "$2"; }

# asking URL: in the background; its pid in $asking, its status in $d/asked.
asking() {
	ask "$@" > "$d/asked" &
	asking=$!
}

# end_serve: it ends as a service manager ends it.
end_serve() {
	local status=0
	kill "$serve"
	gone "$serve" 20 || status=$?
	is "exit status ($(cat "$d/err"))" $status 0
	is 'what it says' "$(cat "$d/err")" ''
	[ ! -e "$d/socket" ] || fail 'the socket is left'
}

case_a_token_is_granted_or_refused_at_once() {
	start
	limiter orders 1/min 2
	serve
	asked 200 /v1/take/orders
	is body "$(cat "$d/body")" 1
	is cache "$(field cache-control)" no-store
	asked 200 /v1/take/orders -X POST
	asked 429 /v1/take/orders
	counts orders granted 2
	counts orders refused 1
	end_serve
}

case_a_refusal_says_when_to_come_again() {
	start
	limiter orders '2/90s 5000/h:100'
	mkdir "$m/orders/a \"b"
	echo 1/min > "$m/orders/key_rate"
	: "$(cat "$m/orders/token")"
	serve
	asked 429 /v1/take/orders
	is policy "$(field ratelimit-policy)" '"orders";q=2;w=90'
	like limit "$(field ratelimit)" '^"orders";r=0;t=(4[0-9]|3[0-9])$'
	is 'retry after' "$(field retry-after)" "$(field ratelimit | sed 's/.*t=//')"
	asked 403 '/v1/take/orders/a%20%22b?refuse=403'
	is policy "$(field ratelimit-policy)" ''
	like limit "$(field ratelimit)" '^"orders/a %22b";r=0;t=[0-9]+$'
	asked 503 '/v1/take/orders?key=ann&refuse=503'
	is policy "$(field ratelimit-policy)" '"orders";q=2;w=90, "orders key";q=1;w=60'
	like limit "$(field ratelimit)" '^"orders key";r=0;t=[0-9]+$'
	echo 0 > "$m/orders/rate"
	asked 401 '/v1/take/orders?refuse=401'
	is 'retry after' "$(field retry-after)" ''
	is limit "$(field ratelimit)" '"orders";r=0'
	end_serve
}

case_amounts_of_several_units_are_taken_together() {
	start
	limiter llm '1/d:9 tpm=1/d:1000'
	serve
	asked 200 '/v1/take/llm?n=1,tpm=600'
	is body "$(cat "$d/body")" 1
	is tpm "$(sed -n 's/^granted.tpm //p' "$m/llm/stat")" 600
	asked 429 '/v1/take/llm?n=1,tpm=401'
	asked 200 '/v1/take/llm?n=1,tpm=400'
	asked 400 '/v1/take/llm?n=tpm=1'
	asked 400 '/v1/take/llm?n=1-2,tpm=1'
	counts llm granted 2
}

case_several_tokens_are_taken_at_a_time() {
	start
	limiter orders 1/d 100
	serve
	asked 200 '/v1/take/orders?n=60'
	is body "$(cat "$d/body")" 60
	asked 200 '/v1/take/orders?n=1-250'
	is body "$(cat "$d/body")" 40
	asked 429 '/v1/take/orders?n=2'
	asked 400 '/v1/take/orders?n=101'
	like body "$(cat "$d/body")" 'larger than the burst'
	taken orders 100
	end_serve
}

case_a_request_waits_for_its_turn() {
	start
	empty orders
	serve
	asking '/v1/take/orders?wait=yes'
	waiting orders 1
	echo -1 > "$m/orders/charge"
	wait "$asking"
	is status "$(cat "$d/asked")" 200
	counts orders refused 0
	asked 429 '/v1/take/orders?within=1s'
	asking '/v1/take/orders?within=50min'
	gone "$asking" 30
	is 'a wait that would be too long' "$(cat "$d/asked")" 429
	end_serve
}

case_a_wait_ends_when_its_time_is_over() {
	start
	limiter orders 1/5s
	: "$(cat "$m/orders/token")"
	serve
	asking '/v1/take/orders?within=10s'
	waiting orders 1
	echo 1/d > "$m/orders/rate"
	gone "$asking" 30
	is status "$(cat "$d/asked")" 429
	counts orders waiting 0
	end_serve
}

case_a_client_that_goes_away_costs_no_token() {
	start
	empty orders
	serve -l 127.0.0.1:0
	local port
	port=$(ss -H -t -l -n -p | sed -nE "s/.*127.0.0.1:([0-9]+) .*pid=$serve,.*/\1/p")
	asking '/v1/take/orders?wait=yes'
	waiting orders 1
	pkill -P "$asking" curl || kill "$asking"
	waiting orders 0
	exec 7<> "/dev/tcp/127.0.0.1/$port"
	printf 'GET /v1/take/orders?within=50min HTTP/1.1\r\nHost: localhost\r\n\r\n' >&7
	: "$(timeout 1 cat <&7)"
	exec 7>&-
	echo 1/h > "$m/orders/rate"
	exec 7<> "/dev/tcp/127.0.0.1/$port"
	printf 'GET /v1/take/orders?wait=yes HTTP/1.1\r\nHost: localhost\r\n\r\n' >&7
	waiting orders 1
	exec 7>&-
	waiting orders 0
	echo -1 > "$m/orders/charge"
	asked 200 /v1/take/orders
	taken orders 1
	end_serve
}

case_a_key_comes_in_the_URL_or_in_a_header_field() {
	start
	limiter orders 1/d 100
	echo 1/d > "$m/orders/key_rate"
	serve
	asked 200 '/v1/take/orders?key=ann'
	asked 429 '/v1/take/orders?key=ann'
	asked 200 '/v1/take/orders?key_from=X-Real-IP' -H 'x-real-ip: ::1'
	asked 429 '/v1/take/orders?key_from=x-real-ip' -H 'X-Real-IP: ::1'
	asked 200 '/v1/take/orders?key=%2e./%2F%25%0a'
	is keys "$(ls "$m/orders/keys" | sort | paste -s -d ' ')" '%2E.%2F%2F%25%0A ::1 ann'
	asked 400 '/v1/take/orders?key_from=X-Real-IP'
	asked 400 '/v1/take/orders?key_from=X-Real-IP' -H "X-Real-IP: $(printf %0300d)"
	asked 400 "/v1/take/orders?key=$(printf %0256d)"
	asked 400 '/v1/take/orders?key='
	# A field that the URL does not name is no key.
	asked 200 /v1/take/orders -H 'X-Real-IP: ::1'
	taken orders 4
	end_serve
}

# The two connections are of a thread each, where there are two processors.
case_a_client_with_many_keys_leaves_room_for_those_of_others() {
	start
	limiter orders 1M/s 1M
	echo 8 > "$m/orders/keys_max"
	echo 1M/s > "$m/orders/key_rate"
	serve
	python3 - "$d/socket" <<- 'END'
		import collections, socket, sys

		clients = [socket.socket(socket.AF_UNIX) for _ in range(2)]
		got = collections.Counter()

		def send(client, target):
		    client.sendall(f"GET /v1/take/{target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())

		def ask(client, target):
		    send(client, target)
		    got[client.recv(4096)[9:12]] += 1

		for client in clients:
		    client.settimeout(60)
		    client.connect(sys.argv[1])
		    ask(client, "orders?n=2")
		for number in range(100):
		    for key in range(20):
		        ask(clients[0], f"orders?key=many{number}-{key}&n=1")
		    ask(clients[1], f"orders?key=other{number}")
		    ask(clients[1], f"orders?key=later{number}&within=1s")
		for number in range(2000):
		    for n, client in enumerate(clients):
		        send(client, f"orders?key=both{n}-{number}")
		    for client in clients:
		        got[client.recv(4096)[9:12]] += 1
		assert got == {b"200": 2 + 100 * 22 + 2 * 2000}, got
	END
	end_serve
}

case_feedback_and_charges_are_written() {
	start
	limiter orders 1/d 10
	mkdir "$m/orders/batch"
	serve
	asked 204 /v1/feedback/orders/batch -d $'ok 3\n429 retry-after=2'
	counts orders ok 3
	counts orders throttled 1
	asked 400 /v1/feedback/orders -d 'well done'
	like body "$(cat "$d/body")" "'well': not an outcome"
	asked 204 /v1/charge/orders -d 4
	counts orders charged 4
	asked 413 /v1/feedback/orders -d "$(printf 'ok%04100d' 1)"
	# A body that no newline ends is whole.
	counts orders throttled 1
	asked 204 /v1/feedback/orders -d "$(printf '503\n%.0s' {1..150})"
	counts orders throttled 151
	asked 400 /v1/feedback/orders -d "$(printf 'ok\n%.0s' {1..170})no"
	asked 400 '/v1/charge/orders?n=2' -d 1
	asked 405 /v1/charge/orders
	asked 400 /v1/charge/orders -X POST
	asked 403 /v1/charge/orders -d 1 -H 'Sec-Fetch-Site: cross-site'
	counts orders charged 4
	end_serve
}

case_header_fields_are_feedback() {
	start
	limiter orders 1000/s 1000
	serve
	local type='Content-Type: message/http'
	printf 'HTTP/2 429\r\nretry-after: 5\r\nx-ratelimit-remaining: 7\r\n%s\r\n\r\n' \
		'x-ratelimit-reset: 3600' > "$d/dump"
	asked 204 /v1/feedback/orders -H "$type" --data-binary "@$d/dump"
	counts orders throttled 1
	counts orders service_left 7
	head -c 9000 /dev/zero | tr '\0' x > "$d/long"
	cat "$d/dump" "$d/long" > "$d/more"
	asked 204 /v1/feedback/orders -H "$type; msgtype=response" --data-binary "@$d/more"
	counts orders throttled 2
	echo '1000/s:1000 tokens=9/s tpm=9/s' > "$m/orders/rate"
	sed 's/429/200/; s/remaining:/remaining-tokens:/; s/reset:/reset-tokens:/' "$d/dump" \
		> "$d/tokens"
	asked 204 /v1/feedback/orders -H "$type" --data-binary "@$d/tokens"
	counts orders service_left.tokens 7
	asked 204 '/v1/feedback/orders?unit=tokens=tpm' -H "$type" --data-binary "@$d/tokens"
	counts orders service_left.tpm 7
	asked 400 '/v1/feedback/orders?unit=tokens' -H "$type" --data-binary "@$d/tokens"
	like body "$(cat "$d/body")" 'not unit=HEADER=UNIT'
	asked 400 /v1/feedback/orders -H "$type" -d 'ok'
	like body "$(cat "$d/body")" 'HTTP/... STATUS'
	asked 400 /v1/feedback/orders --data-binary "@$d/dump"
	cat "$d/long" >> "$d/more"
	asked 413 /v1/feedback/orders -H "$type" --data-binary "@$d/more"
	counts orders throttled 2
	end_serve
}

case_a_page_of_another_site_spends_no_token_and_reads_nothing() {
	start
	limiter orders 1/d 10
	serve -l 127.0.0.1:0
	local port site
	port=$(ss -H -t -l -n -p | sed -nE "s/.*127.0.0.1:([0-9]+) .*pid=$serve,.*/\1/p")
	# asks STATUS URL [OPTIONS OF CURL…]: by TCP
	asks() {
		is "status of $2 ${*:3}" "$(curl -s -m 3 -o "$d/body" -w '%{http_code}' \
			"${@:3}" "http://127.0.0.1:$port$2")" "$1"
	}
	# An image, a form and a stream in a page of another site.
	for site in cross-site same-site; do
		asks 403 /v1/take/orders -H "Sec-Fetch-Site: $site"
		like body "$(cat "$d/body")" 'page of another site'
		asks 403 /v1/charge/orders -d -5 -H "Sec-Fetch-Site: $site"
		asks 403 /v1/events/ -H "Sec-Fetch-Site: $site"
	done
	asks 403 /v1/charge/orders -d -5 -H 'Origin: http://evil.example'
	asks 403 /v1/charge/orders -d -5 -H 'Origin: null'
	asks 403 /v1/take/orders -H 'Origin: http://evil.example'
	# A page of a name that leads here.
	asks 403 / -H 'Host: evil.example'
	like body "$(cat "$d/body")" 'localhost'
	asks 403 /v1/events/ -H "Host: evil.example:$port"
	asks 403 /v1/charge/orders -d -5 -H 'Host: 127.0.0.1.evil.example'
	asks 403 /v1/take/orders -H "Host: evil.example:$port"
	asks 403 /v1/take/orders -H 'Host: evil.example' -H 'X-Forwarded-For: ::1'
	asks 403 /v1/take/orders -H 'Host: evil.example' -H 'Sec-Fetch-Site: same-origin'
	taken orders 0
	counts orders charged 0
	# Our own, a link, a program and a proxy.
	asks 204 /v1/charge/orders -d 1 -H "Origin: http://127.0.0.1:$port"
	asks 204 /v1/charge/orders -d 1 -H 'Sec-Fetch-Site: same-origin' -H 'Origin: null'
	asks 200 / -H 'Sec-Fetch-Site: cross-site' -H "Host: LocalHost:$port"
	asks 200 / -H 'Host: [::1]:80'
	asks 200 /v1/take/orders -H "Host: localhost:$port" -H 'Sec-Fetch-Site: none'
	asks 200 /v1/take/orders -H 'Sec-Fetch-Site: cross-site' -H 'X-Forwarded-For: ::1'
	asked 200 / -H 'Host: a.name.of.a.proxy'
	asked 200 /v1/take/orders -H 'Sec-Fetch-Site: cross-site' -H 'Host: service'
	taken orders 3
	end_serve
}

case_requests_that_are_not_understood_say_why() {
	start
	limiter orders 1/d 100
	serve
	local query
	for query in n=0 n=x n=5-2 n=1e30 key=a\&key=b key=a\&key_from=b key_from=a%20b within=1y \
		within=2h within=1us wait=maybe wait=yes\&within=1s refuse=200 \
		refuse=429\&refuse=403 nothing=1 n=%zz n=%00 key=%00; do
		asked 400 "/v1/take/orders?$query"
		like body "$(cat "$d/body")" '^.'.*': [a-z]+ [a-z]|not a parameter'
	done
	asked 400 /v1/take/
	asked 400 /v1/take/orders//batch
	asked 400 /v1/take/orders/keys/ann
	asked 400 /v1/take/../orders --path-as-is
	asked 404 /v1/take/none
	asked 404 /v1/nothing
	taken orders 0
	asked 200 '/v1/take/orders?&n=2&rest=/a/b?n=7&key=x'
	taken orders 2
	end_serve
}

case_HEAD_is_answered_as_GET_and_another_method_is_named() {
	start
	limiter orders 1/d 10
	serve
	asked 200 / -I
	[ "$(grep -c '<' "$d/body")" = 0 ] || fail "$(cat "$d/body")"
	like length "$(field content-length)" '^[0-9]{5}$'
	asked 200 /v1/events/ -I
	is type "$(field content-type)" text/event-stream
	asked 200 /v1/take/orders -I
	is length "$(field content-length)" 2
	taken orders 1
	asked 405 /v1/charge/orders -I
	is allow "$(field allow)" POST
	asked 405 /v1/feedback/orders
	is allow "$(field allow)" POST
	asked 405 / -d 1
	is allow "$(field allow)" 'GET, HEAD'
	asked 405 / -X GE
	asked 405 / -X HEADER
	end_serve
}

case_a_target_may_name_the_host() {
	start
	limiter orders 1/d 10
	limiter v1 1/d
	serve -l 127.0.0.1:0
	local port site
	port=$(ss -H -t -l -n -p | sed -nE "s/.*127.0.0.1:([0-9]+) .*pid=$serve,.*/\1/p")
	# asks STATUS TARGET [OPTIONS OF CURL…]: by TCP
	asks() {
		is "status of $2 ${*:3}" "$(curl -s -m 3 -o "$d/body" -w '%{http_code}' \
			--request-target "$2" "${@:3}" "http://127.0.0.1:$port/")" "$1"
	}
	asks 200 'http://localhost/v1/take/orders?n=2'
	is body "$(cat "$d/body")" 2
	asks 200 HTTPS://LOCALHOST:80/v1/take/v1
	asks 200 http://127.0.0.1
	asks 200 "http://127.0.0.1:$port?x"
	asks 404 http://localhost/none
	asks 404 ftp://rate/v1/take/orders
	# It counts, not the field.
	asks 403 http://evil.example/
	asks 403 http://rate/v1/take/orders -H "Host: 127.0.0.1:$port"
	asks 200 http://127.0.0.1/ -H 'Host: evil.example'
	asks 403 http://localhost/v1/take/orders -H 'Origin: http://evil.example' \
		-H 'Host: evil.example'
	taken orders 2
	end_serve
}

case_requests_whose_end_is_in_doubt_are_refused_and_the_connection_is_closed() {
	start
	limiter orders 1/d 10
	serve
	python3 - "$d/socket" <<- 'END'
		import socket, sys

		def answers(request):
		    client = socket.socket(socket.AF_UNIX)
		    client.settimeout(60)
		    client.connect(sys.argv[1])
		    client.sendall(request)
		    got = b""
		    while part := client.recv(65536):
		        got += part
		    parts = got.split(b"HTTP/1.1 ")
		    return [part[:3].decode() for part in parts if part[3:4] == b" "]

		charge = b"POST /v1/charge/orders HTTP/1.1\r\nHost: x\r\n"
		chunks = b"2\r\n1\n\r\n0\r\n\r\n"
		last = b"GET /v1/take/orders HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
		assert answers(charge + b"Content-Length: 2\r\n\r\n1\n" + last) == ["204", "200"]
		assert answers(charge + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + last) == \
		    ["204", "200"]
		two = b"Content-Length: 2\r\n"
		for fields, body in ((two * 2, b"1\n"),
		                     (b"Content-Length: 2\r\nContent-Length: 0\r\n", b"1\n"),
		                     (two + b"Transfer-Encoding: chunked\r\n", chunks),
		                     (b"Transfer-Encoding: chunked\r\n" * 2, chunks),
		                     (b"Transfer-Encoding: gzip, chunked\r\n", chunks),
		                     (b"Transfer-Encoding: xchunked\r\n", chunks),
		                     (b"Content-Length: 2, 2\r\n", b"1\n"),
		                     (b"Content-Length: +2\r\n", b"1\n"),
		                     (b"Content-Length: 0x2\r\n", b"1\n"),
		                     (b"Content-Length:\r\n 2\r\n", b"1\n"),
		                     (b"Content-Length : 2\r\n", b"1\n"),
		                     (b" Content-Length: 2\r\n", b"1\n"),
		                     (b"X: y\rContent-Length: 2\r\n", b"1\n"),
		                     (b"Host: y\r\nContent-Length: 2\r\n", b"1\n")):
		    got = answers(charge + fields + b"\r\n" + body + last)
		    assert set(got) == {"400"}, (fields, got)
		old = charge.replace(b"1.1", b"1.0") + b"Connection: keep-alive\r\n"
		old += b"Transfer-Encoding: chunked\r\n\r\n"
		assert answers(old + chunks + last) == ["400"]
	END
	taken orders 2
	counts orders charged 2
	end_serve
}

case_a_limiter_is_that_of_its_name_now() {
	start
	limiter orders 1/d
	serve
	asked 200 /v1/take/orders
	rmdir "$m/orders"
	asked 404 /v1/take/orders
	limiter orders 1/d 2
	asked 200 /v1/take/orders
	mv "$m/orders" "$m/batch"
	eventually 20 eval '[ "$(ask /v1/take/orders)" = 404 ]' || fail 'it has its old name'
	stop
	eventually 20 eval '[ "$(ask /v1/take/batch)" = 503 ]'
	is body "$(cat "$d/body")" 'no tree is mounted'
	start
	limiter batch 1/d
	asked 200 /v1/take/batch
	end_serve
}

case_it_gives_only_what_its_user_may_use() {
	start -o allow_other
	limiter orders 1/d 10
	limiter secret 1/d 10
	chmod 700 "$m/secret"
	chmod 711 "$d" "$(dirname "$d")"
	mkdir "$d/run" && chown nobody "$d/run"
	setpriv --reuid nobody --clear-groups "$RATEFS" serve -l "$d/run/socket" "$m" \
		2> "$d/err" &
	serve=$!
	eventually 30 [ -S "$d/run/socket" ]
	is 'who may connect' "$(stat -c '%U %a' "$d/run/socket")" 'nobody 755'
	ln -s run/socket "$d/socket"
	asked 200 /v1/take/orders
	asked 403 /v1/take/secret
	asked 403 '/v1/take/secret?wait=yes'
	asked 403 /v1/charge/secret -d -1
	taken secret 0
	kill "$serve"
	gone "$serve" 20
}

case_a_signal_ends_it_and_requests_that_wait() {
	start
	empty orders
	serve
	asking '/v1/take/orders?wait=yes'
	waiting orders 1
	end_serve
	gone "$asking" 20
	is status "$(cat "$d/asked")" 503
	waiting orders 0
	taken orders 1
}

case_a_frozen_mount_grants_nothing_and_has_a_thread_that_waits_answer_nothing() {
	start
	limiter orders 1/d 2
	empty mail
	serve_alone
	asked 200 /v1/take/orders
	"$RATEFS" --freeze "$m"
	asked 429 /v1/take/orders
	"$RATEFS" --thaw "$m"
	ask '/v1/take/mail?wait=yes' > "$d/mailed" &
	waiting mail 1
	"$RATEFS" --freeze "$m"
	asking /v1/take/orders
	sleep 2
	is answer "$(cat "$d/asked")" ''
	"$RATEFS" --thaw "$m"
	wait "$asking"
	is status "$(cat "$d/asked")" 200
	echo -1 > "$m/mail/charge"
	eventually 20 grep -q 200 "$d/mailed"
	end_serve
}

case_wrong_arguments_are_named() {
	start
	local status said wanted
	while IFS='|' read -r status wanted said; do
		local got=0
		# shellcheck disable=SC2086
		timeout 20 "$RATEFS" serve $wanted 2> "$d/err" || got=$?
		is "exit status of serve $wanted ($(cat "$d/err"))" $got "$status"
		like 'what it says' "$(cat "$d/err")" "$said"
	done <<- END
		2|$m more|too many: 'more'
		2|-x $m|invalid option
		1|$d|not where a tree of ratefs is mounted
		1|$d/none|No such file
		1|-l 7283 $m|not an address .*: '7283'
		1|-l host.example:80 $m|not an address
		1|-l $d/no/s $m|No such file
		1|-l $m $m|in use
		1|-l $d/$(printf %0200d) $m|107 bytes
	END
	serve
	"$RATEFS" serve -l "$d/socket" "$m" 2> "$d/said" && fail 'two listen at one socket'
	like 'what it says' "$(cat "$d/said")" 'socket: in use'
	kill -9 "$serve"
	gone "$serve" 20 || :
	[ -S "$d/socket" ]
	serve # in the place of the socket of one that died
	eventually 20 eval '[ "$(ask /v1/take/none)" = 404 ]'
	end_serve
}

# --- proxies, as ratefs-serve(1) sets them up

# shown PROXY FILE: puts what the page shows for PROXY into FILE, at $port and with our socket.
shown() {
	port=$(python3 -c 'import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
	awk -v wanted="$1" '
		$0 == ".\\\" proxy " wanted { next_display = 1 }
		next_display && /^\.Bd / { on = 1; next_display = 0; next }
		/^\.Ed/ { on = 0 }
		on' "$CASES/../../companions/ratefs-serve.1" |
		sed "s,/run/ratefs-serve/mnt-rate.sock,$d/socket,
			s/listen 80/listen 127.0.0.1:$port/" \
			> "$2"
	[ -s "$2" ]
}

# through STATUS: a request to the proxy.
through() {
	is "status ($(cat "$d/proxy.log"))" "$(curl -s -m 60 -D "$d/header" -o "$d/body" \
		-w '%{http_code}' "http://127.0.0.1:$port/some/page?n=9")" "$1"
}

# proxied COMMAND…: starts the proxy, and makes requests until the tokens are used up.
proxied() {
	HOME=$d "$@" > "$d/proxy.log" 2>&1 &
	local proxy=$!
	eventually 60 eval "(exec 3<> /dev/tcp/127.0.0.1/$port) 2> /dev/null || ! alive $proxy" &&
		alive $proxy || fail "no proxy: $(cat "$d/proxy.log")"
	through 200
	is body "$(cat "$d/body")" 'it is done'
	through 200
	through 429
	like 'retry after' "$(field retry-after)" '^[0-9]+$'
	taken web 2
	is keys "$(ls "$m/web/keys")" 127.0.0.1
	echo -1 > "$m/web/charge"
	through 200
	"${after_requests:-:}"
	kill "$serve"
	gone "$serve" 20
	# Without it no request passes.
	through "$failed_status"
	kill $proxy
	gone $proxy 20 || :
}

# kept: the proxy has its connection left after a check.
kept() { is connections "$(ss -H -x src "$d/socket" | grep -c ESTAB || :)" 1; }

case_nginx_asks_for_tokens() {
	local failed_status=500 after_requests=kept
	start
	limiter web 1/d 2
	serve
	shown nginx "$d/nginx.servers"
	cat > "$d/nginx.conf" <<- CONF
		daemon off;
		master_process off;
		pid $d/nginx.pid;
		error_log stderr;
		events { worker_connections 64; }
		http {
		    access_log off;
		    client_body_temp_path $d/body.temp;
		    proxy_temp_path $d/proxy.temp;
		    fastcgi_temp_path $d/fastcgi.temp;
		    uwsgi_temp_path $d/uwsgi.temp;
		    scgi_temp_path $d/scgi.temp;
		    upstream service { server unix:$d/service; }
		    server {
		        listen unix:$d/service;
		        return 200 'it is done';
		    }
		    include $d/nginx.servers;
		}
	CONF
	proxied nginx -p "$d" -c "$d/nginx.conf" -e stderr
}

case_caddy_asks_for_tokens() {
	local failed_status=502
	start
	limiter web 1/d 2
	serve
	shown caddy "$d/forward_auth"
	cat > "$d/Caddyfile" <<- END
		{
			admin off
			auto_https off
		}
		http://127.0.0.1:$port {
			import $d/forward_auth
			respond "it is done"
		}
	END
	proxied caddy run --config "$d/Caddyfile"
}

# --- hostile clients

case_slow_and_idle_clients_keep_no_other_client_from_its_token() {
	start
	limiter orders 1M/s 1000
	ulimit -n 12000
	local files=8192 # so few that not all connections can be kept, on any number of processors
	serve
	mkfifo "$d/go" "$d/gone"
	python3 - "$d/socket" "$d/go" "$d/gone" <<- 'END' &
		import socket, sys

		clients, lost = [], 0
		sent = (b"", b"GET /v1/take/orders?wait=ye", b"GET /v1/take/orders HTTP/1.1\r\nHos",
		        b"POST /v1/charge/orders HTTP/1.0\r\nContent-Length: 9\r\n\r\n1")
		for i in range(10000):
		    client = socket.socket(socket.AF_UNIX)
		    client.connect(sys.argv[1]) # waits for room, as it would not with a time limit
		    client.settimeout(60)
		    client.sendall(sent[i % len(sent)])
		    if i % 8 > 5:
		        client.shutdown(socket.SHUT_WR)
		    clients.append(client)
		open(sys.argv[2], "w").write("go\n")
		for i, client in enumerate(clients):
		    try:
		        client.sendall(b"x")
		    except OSError:
		        lost += 1
		open(sys.argv[3], "w").write(f"{lost}\n")
	END
	local crowd=$! lost n
	: "$(cat "$d/go")"
	for n in 1 2 3 4 5; do asked 200 /v1/take/orders; done
	read -r lost < "$d/gone"
	[ "$lost" -gt 0 ] || fail 'all 10,000 were kept'
	asked 200 '/v1/take/orders?wait=yes'
	gone "$crowd" 60
	taken orders 6
	end_serve
}

# A process with few descriptors, on one processor, has a thread of 64 connections.
case_as_many_requests_wait_as_may_and_others_are_served() {
	start
	empty orders
	limiter free 1M/s 1000
	local processor
	processor=$(taskset -c -p $$ | sed 's/.*: //; s/[-,].*//')
	(
		ulimit -n 1232
		exec env --default-signal taskset -c "$processor" "$RATEFS" serve \
			-l "$d/socket" "$m" 2> "$d/err"
	) &
	serve=$!
	eventually 30 [ -S "$d/socket" ]
	python3 - "$d/socket" > "$d/crowd" <<- 'END' &
		import select, socket, sys, time

		clients = []
		for _ in range(100):
		    client = socket.socket(socket.AF_UNIX)
		    client.connect(sys.argv[1])
		    client.sendall(b"GET /v1/take/orders?wait=yes HTTP/1.0\r\n\r\n")
		    clients.append(client)
		waiting, answers = set(clients), []
		while len(waiting) > 32:
		    for client in select.select(list(waiting), [], [])[0]:
		        answers.append(client.recv(12)[9:].decode())
		        waiting.remove(client)
		print(*set(answers), flush=True)
		time.sleep(100)
	END
	local crowd=$!
	eventually 60 [ -s "$d/crowd" ]
	is 'what the others get' "$(cat "$d/crowd")" 503
	waiting orders 32
	asked 200 /v1/take/free
	asked 503 '/v1/take/orders?wait=yes'
	kill "$crowd"
	gone "$crowd" 20 || :
	waiting orders 0
	taken orders 1
	end_serve
}

case_huge_names_and_fields_are_refused() {
	start
	limiter orders 1M/s 1000
	serve
	asked 400 "/v1/take/$(printf %05000d)"
	asked 400 "/v1/take/$(printf %0256d)"
	asked 400 "/v1/take/$(printf 'a/%.0s' {1..17})b"
	asked 414 "/v1/take/$(printf %020000d)"
	asked 431 /v1/take/orders -H "X: $(printf %020000d)"
	asked 404 "/v1/take/$(printf %0255d)"
	taken orders 0
	asked 200 /v1/take/orders
	end_serve
}

case_requests_that_come_together_are_answered_in_order() {
	start
	limiter orders 1/d 30
	serve
	python3 - "$d/socket" <<- 'END'
		import socket, sys

		client = socket.socket(socket.AF_UNIX)
		client.settimeout(60)
		client.connect(sys.argv[1])
		one = b"GET /v1/take/orders HTTP/1.1\r\nHost: x\r\n\r\n"
		last = one.replace(b"orders", b"none").replace(b": x", b": x\r\nConnection: close")
		client.sendall(one * 40 + last)
		got = b""
		while part := client.recv(65536):
		    got += part
		statuses = [part[:3] for part in got.split(b"HTTP/1.1 ")[1:]]
		assert statuses == [b"200"] * 30 + [b"429"] * 10 + [b"404"], statuses
	END
	taken orders 30
	end_serve
}

# crowd CLIENTS [STAYING]: stops the server until that many clients have asked for a token of
# /v1/take/orders at the same time, of which those that do not stay have gone again. Prints how many
# of the others got which status.
crowd() {
	kill -STOP "$serve"
	python3 - "$d/socket" "$1" "${2-$1}" "$serve" <<- 'END'
		import collections, os, signal, socket, sys

		path, count, staying, server = sys.argv[1], *map(int, sys.argv[2:])
		clients = []
		for _ in range(count):
		    client = socket.socket(socket.AF_UNIX)
		    client.settimeout(60)
		    client.connect(path)
		    client.sendall(b"GET /v1/take/orders HTTP/1.1\r\nHost: x\r\n\r\n")
		    clients.append(client)
		for client in clients[staying:]:
		    client.close()
		os.kill(server, signal.SIGCONT)
		answers = (client.recv(4096) for client in clients[:staying])
		got = collections.Counter(answer[9:12].decode() for answer in answers)
		print(*(f"{status}:{times}" for status, times in sorted(got.items())))
	END
}

case_requests_that_are_there_together_are_granted_together() {
	start
	limiter orders 1/d 130
	serve_alone
	asked 200 /v1/take/orders
	strace -q -f -e trace=pread64 -o "$d/calls" -p "$serve" &
	eventually 20 eval 'grep -q "^TracerPid:.*[1-9]" "/proc/$serve/status"'
	is answers "$(crowd 120)" 200:120
	kill $!
	wait $! || :
	[ "$(grep -c pread64 "$d/calls")" -lt 30 ] || fail "$(head -n 40 "$d/calls")"
	taken orders 121
	# Those that come too late are refused, each of them.
	is answers "$(crowd 20)" '200:9 429:11'
	is answers "$(crowd 7)" '429:7'
	taken orders 130
	counts orders refused 18
	rmdir "$m/orders"
	is answers "$(crowd 5)" '404:5'
	end_serve
}

case_requests_of_clients_that_went_away_cost_no_token() {
	start
	limiter orders 1/d 100
	serve
	is answers "$(crowd 80 20)" 200:20
	eventually 20 eval '[ $(($(counter orders granted) - $(counter orders returned))) = 20 ]' ||
		taken orders 20
	asked 200 '/v1/take/orders?n=80'
	end_serve
}

# Both kinds of requests: those that take a token together, and those that take theirs alone.
case_a_client_that_reads_no_answer_has_no_token_but_of_those_in_its_socket() {
	start
	limiter orders 1/d 1M
	serve
	local query read=0 more
	for query in '' '?n=1-1'; do
		python3 - "$d/socket" "$query" "$serve" "$m/orders/stat" <<- 'END' > "$d/read"
			import os, re, select, signal, socket, sys, time

			one = f"GET /v1/take/orders{sys.argv[2]} HTTP/1.1\r\nHost: x\r\n\r\n"
			one = one.encode()
			client = socket.socket(socket.AF_UNIX)
			client.connect(sys.argv[1])

			def granted():
			    stat = open(sys.argv[4]).read()
			    return re.search("^granted (.*)", stat, re.M)[1]

			# All that the server takes, until it grants no more.
			client.setblocking(False)
			while select.select([], [client], [], 1)[1]:
			    client.send(one * 20)
			before = None
			while (now := granted()) != before:
			    before = now
			    time.sleep(1)
			os.kill(int(sys.argv[3]), signal.SIGSTOP)
			got = b""
			while select.select([client], [], [], 0)[0]:
			    got += client.recv(1 << 20)
			client.close()
			os.kill(int(sys.argv[3]), signal.SIGCONT)
			print(got.count(b"HTTP/1.1 200"))
		END
		more=$(cat "$d/read")
		[ "$more" -gt 50 ] || fail "only $more answers"
		read=$((read + more))
		sleep 1
		taken orders $read
	done
	# One that reads late has all of its answers.
	python3 - "$d/socket" <<- 'END'
		import socket, sys, threading, time

		client = socket.socket(socket.AF_UNIX)
		client.settimeout(60)
		client.connect(sys.argv[1])
		one = b"GET /v1/take/orders HTTP/1.1\r\nHost: x\r\n\r\n"
		last = one.replace(b": x", b": x\r\nConnection: close")
		every = one * 9999 + last
		threading.Thread(target=client.sendall, args=(every,), daemon=True).start()
		time.sleep(2)
		got = b""
		while part := client.recv(65536):
		    got += part
		assert got.count(b"HTTP/1.1 200") == 10000, got.count(b"HTTP/1.1 200")
	END
	taken orders $((read + 10000))
	end_serve
}

case_all_amounts_of_an_answer_that_cannot_be_sent_come_back() {
	start
	limiter llm '1/d:9 tpm=1/d:1000 audio=1/d:50'
	serve
	python3 - "$d/socket" "$(server)" <<- 'END'
		import fcntl, os, signal, socket, struct, sys, termios, time

		client = socket.socket(socket.AF_UNIX)
		client.connect(sys.argv[1])
		os.kill(int(sys.argv[2]), signal.SIGSTOP)
		client.sendall(b"GET /v1/take/llm?n=2,tpm=600,audio=7 HTTP/1.1\r\nHost: x\r\n\r\n")
		# Until the request is read: then its tokens are taken.
		while struct.unpack("i", fcntl.ioctl(client, termios.TIOCOUTQ, bytes(4)))[0]:
		    time.sleep(0.01)
		client.close()
		os.kill(int(sys.argv[2]), signal.SIGCONT)
	END
	eventually 20 has llm returned 2 || counts llm returned 2
	counts llm granted.tpm 600
	counts llm returned.tpm 600
	counts llm returned.audio 7
	end_serve
}

# A thread that is given all of them would work alone.
case_connections_that_come_together_are_spread_over_the_threads() {
	start
	limiter orders 1M/s 1000
	serve
	python3 - "$d/socket" "$serve" <<- 'END'
		import os, re, signal, socket, sys

		COUNT, process = 64, f"/proc/{sys.argv[2]}"

		def name_of(file):
		    try:
		        return os.readlink(f"{process}/fd/{file}")
		    except FileNotFoundError:
		        return ""

		def connections():
		    """The connections of each thread: the sockets that it watches for requests."""
		    of_thread = []
		    names = {file: name_of(file) for file in os.listdir(f"{process}/fd")}
		    for file in (file for file in names if "eventpoll" in names[file]):
		        info = open(f"{process}/fdinfo/{file}").read()
		        watched = re.findall("^tfd: *([0-9]+)", info, re.M)
		        of_thread.append(sum("socket" in names.get(one, "") for one in watched))
		    return of_thread

		os.kill(int(sys.argv[2]), signal.SIGSTOP)
		clients = []
		for _ in range(COUNT):
		    client = socket.socket(socket.AF_UNIX)
		    client.settimeout(60)
		    client.connect(sys.argv[1])
		    client.sendall(b"GET /v1/take/orders HTTP/1.1\r\nHost: x\r\n\r\n")
		    clients.append(client)
		os.kill(int(sys.argv[2]), signal.SIGCONT)
		for client in clients:
		    assert client.recv(4096)[9:12] == b"200"
		found = connections()
		threads = len(found) // 2 # each has one for requests, and one for all else
		assert sum(found) == COUNT and max(found) <= 1.5 * COUNT / threads + 1, found
	END
	end_serve
}
