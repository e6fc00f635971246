# shellcheck shell=bash
# The page of ratefs serve, in a headless Chromium.

# serve_page [PORT]: ratefs serve on $address; its pid in $serve.
serve_page() {
	address=127.0.0.1:${1-$(free_port)}
	env --default-signal "$RATEFS" serve -l "$address" "$m" 2> "$d/err" &
	serve=$!
	eventually 30 eval 'curl -s -o "$d/page" "http://$address/" || ! alive "$serve"'
	alive "$serve" || fail "it ended: $(cat "$d/err")"
}

free_port() {
	python3 -c 'import socket
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    print(probe.getsockname()[1])'
}

# browse: runs the Python of its input with the page open as `page`, its URL as `url` and the mount
# as `mount`. Nothing may be in the console in the end.
browse() {
	{
		cat <<- 'END'
			import os, sys, time
			from browser import Browser
			url, directory, mount = sys.argv[1:]
			STATE = "document.getElementById('state').textContent"
			NAMES = """[...document.querySelectorAll("[role=treeitem]")]
			    .filter(row => !row.hidden)
			    .map(row => [row.getBoundingClientRect().top, row.innerText])
			    .sort((a, b) => a[0] - b[0]).map(row => row[1].split("\\n")[0])"""
			CHOSEN = "document.getElementById('path').textContent"
			def chart(title):
			    return f"""[...document.querySelectorAll('.chart')].find(
			        chart => chart.innerText.startsWith({title!r})).innerText"""
			def check(page):
			    page.until(STATE, "live")
		END
		sed 's/^/    /'
		cat <<- 'END'
			with Browser(directory) as page:
			    page.open(url)
			    check(page)
			    assert not page.complaints, page.complaints
		END
	} > "$d/browse.py"
	PYTHONPATH=$CASES timeout 100 python3 -B "$d/browse.py" "http://$address/" "$d" "$m" \
		2> "$d/wrong" || fail "$(cat "$d/wrong")"
}

case_page_shows_limiters_and_follows_them() {
	start
	limiter orders 50/s
	limiter orders/batch
	empty mail
	reader mail/token
	waiting mail 1
	(while cat "$m/orders/batch/token"; do :; done) > "$d/reader" &
	serve_page
	browse <<- 'END'
		page.until(NAMES, ["mail", "orders", "batch"])
		page.until(CHOSEN, "mail")
		page.until(f"{chart('Readers')}.includes('waiting\\n1')")
		page.value("document.querySelectorAll('[role=treeitem]')[2].click()")
		page.until("document.querySelector('[aria-selected=true] i').textContent > '0'")
		os.mkdir(f"{mount}/new")
		page.until(NAMES, ["mail", "new", "orders", "batch"])
		os.rmdir(f"{mount}/new")
		page.until(NAMES, ["mail", "orders", "batch"])
	END
}

case_page_shows_throttling_and_the_delay_of_backoff() {
	start
	limiter orders 50/s
	echo 'exponential initial=1ms up=1.5 down=0.6 after=5 jitter=0' > "$m/orders/backoff"
	serve_page
	browse <<- 'END'
		page.until(f"{chart('Delay')}.includes('none in this time')")
		with open(f"{mount}/orders/feedback", "w") as feedback:
		    feedback.write("throttled 15")
		page.until(f"{chart('Delay')}.includes('291.9 ms')")
		page.until(f"{chart('Throttled')}.includes('in a pause')")
		page.until("document.getElementById('facts').innerText.includes('throttled\\n15')")
		page.value("document.querySelector('#numbers summary').click()")
		page.until("document.getElementById('numbers').innerText.includes('291.9 ms')")
	END
}

case_names_of_limiters_are_text_in_the_page() {
	local name names=('<img src=x onerror="document.title=1">' "';alert(1);'" '</script><b>'
		$'\u202eright to left' '%00&lt;' '__proto__' '"quoted\back"')
	start
	for name in "${names[@]//\//|}"; do
		limiter "$name" 10/s
	done
	serve_page
	browse <<- 'END'
		names = sorted(os.listdir(mount), key=lambda name: name.encode("utf-16-be"))
		names = [name for name in names if os.path.exists(f"{mount}/{name}/token")]
		page.until(NAMES, names)
		for name in names:
		    page.value(f"choose(limiters.get({name!r}))" if "'" not in name
		               else f'choose(limiters.get("{name}"))')
		    page.until(CHOSEN, name)
		    page.until(f"{STATE}", "live")
		assert page.value("document.querySelectorAll('img').length") == 0
		assert page.value("document.title").endswith("ratefs")
	END
}

case_an_address_that_names_no_limiter_chooses_the_first_one() {
	start
	limiter mail
	limiter orders
	serve_page
	address+=/#%
	browse <<- 'END'
		page.until(CHOSEN, "mail")
		page.value("location.hash = 'orders'")
		page.until(CHOSEN, "orders")
		page.value("location.hash = '%zz'")
		page.until("location.hash", "#%zz")
		page.until(CHOSEN, "orders")
	END
}

case_keys_walk_the_tree_of_the_page() {
	start
	limiter a
	limiter a/b
	limiter a/b/c
	limiter z
	serve_page
	browse <<- 'END'
		def press(keys, chosen, names):
		    for key in keys.split():
		        page.press(key)
		    page.until(CHOSEN, chosen)
		    page.until(NAMES, names)
		    page.until("""document.getElementById(document.getElementById("tree")
		        .getAttribute("aria-activedescendant")).ariaSelected""", "true")
		page.until(NAMES, ["a", "b", "z"])
		page.value("document.querySelector('[role=tree]').focus()")
		press("ArrowDown", "a/b", ["a", "b", "z"])
		press("ArrowRight", "a/b", ["a", "b", "c", "z"])
		press("ArrowRight", "a/b/c", ["a", "b", "c", "z"])
		press("ArrowLeft", "a/b", ["a", "b", "c", "z"])
		press("ArrowLeft", "a/b", ["a", "b", "z"])
		press("ArrowLeft ArrowLeft", "a", ["a", "z"])
		press("End", "z", ["a", "z"])
		press("ArrowDown Home", "a", ["a", "z"])
		press("z", "z", ["a", "z"])
		page.press("/")
		page.press("B")
		page.until(NAMES, ["a", "b", "c"])
		page.press("ArrowDown")
		page.until(CHOSEN, "a")
	END
}

case_page_filters_a_thousand_limiters() {
	local i
	start
	for ((i = 0; i < 50; i++)); do
		mkdir "$m/tenant-$i" "$m/tenant-$i/"{a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s}
	done
	serve_page
	browse <<- 'END'
		page.value("""new PerformanceObserver(list => list.getEntries().forEach(
		    task => window.longest = Math.max(window.longest || 0, task.duration)))
		    .observe({type: "longtask", buffered: true})""")
		page.until("document.getElementById('count').textContent", "1,000")
		page.value("roots.forEach(limiter => limiter.open = true), drawTree()")
		page.value("document.querySelector('[role=tree]').focus()")
		page.press("End")
		page.until(CHOSEN, "tenant-9/s")
		assert page.value("document.querySelectorAll('[role=treeitem]').length") < 100
		page.value("""document.getElementById("filter").value = "7/Q",
		    document.getElementById("filter").dispatchEvent(new Event("input"))""")
		tenants = [f"tenant-{number}" for number in (17, 27, 37, 47, 7)]
		page.until(NAMES, [word for tenant in tenants for word in (tenant, "q")])
		time.sleep(3)
		# 600 looks at a number that changes are 2,400 bytes; idle limiters have none.
		page.value("""window.bytes = history => history.byteLength || [...history].reduce(
		    (sum, column) => sum + (column.all ? column.all.byteLength : 0), 0)""")
		kept = page.value("""[...limiters.values()].reduce(
		    (sum, limiter) => sum + bytes(limiter.history), 0)""")
		assert kept < 100000, kept
		print("longest task:", page.value("window.longest || 'below 50'"), "ms")
	END
}

case_page_says_that_the_connection_is_lost_and_comes_back() {
	start
	limiter orders
	serve_page
	browse <<- END
		page.until(STATE, "live")
		os.kill($serve, 15)
		page.until(STATE + ".includes('lost')")
		os.mkdir(f"{mount}/later")
		import subprocess
		again = subprocess.Popen(["$RATEFS", "serve", "-l", "$address", mount])
		page.until(STATE, "live")
		page.until(NAMES, ["later", "orders"])
		page.complaints.clear() # of addresses that cannot be reached
		again.terminate()
		again.wait()
	END
}

case_page_needs_nothing_from_elsewhere() {
	start
	serve_page
	curl -s -D "$d/header" -o "$d/page" "http://$address/"
	like policy "$(tr -d '\r' < "$d/header")" "Content-Security-Policy: default-src 'none'; .*"
	[ "$(grep -c unsafe "$d/header")" = 0 ] || fail "$(cat "$d/header")"
	is addresses "$(grep -oE 'https?://[^"]*' "$d/page" | sort -u)" 'http://www.w3.org/2000/svg'
	browse <<- 'END'
		page.until("document.getElementById('none').textContent.includes('No limiter yet')")
	END
}

# events SECONDS: copies the stream to $d/events for that time, at most.
events() { exec curl -sN -m "$1" -o "$d/events" "http://$address/v1/events/"; }

case_events_tell_all_and_then_what_changes() {
	start
	limiter orders 10/s
	limiter mail
	serve_page
	events 60 &
	eventually 20 grep -qs '^event: all' "$d/events"
	limiter later
	cat "$m/mail/token" > "$d/token"
	eventually 20 grep -qF '["mail",1,' "$d/events"
	kill $!
	wait $! || :
	is first "$(head -n 1 "$d/events")" 'event: all'
	python3 - "$d/events" <<- 'END'
		import json, sys
		whole = open(sys.argv[1]).read().split("\n\n")[:-1]
		messages = [message.split("\n") for message in whole]
		told = [(event[7:], json.loads(data[6:])["limiters"]) for event, data in messages]
		assert [row[0] for row in told[0][1]] == ["mail", "orders"], told[0]
		# A viewer that was too slow for a look is told of all again.
		changed = {row[0] for event, rows in told if event == "changes" for row in rows}
		assert changed <= {"later", "mail"}, changed
	END
}

# A tree of files, as that of a host to which ZooKeeper does not answer.
case_page_says_since_when_hosts_are_not_known() {
	m=$d/tree
	mkdir "$m"
	printf '%s\n' 'version 9.9' 'host h1' 'coordinator disconnected' > "$m/status"
	printf '%s\n' '# as of 23 s ago: ZooKeeper does not answer' \
		'# host weight held seconds id' 'h1 1 20 1 a' 'h2 2 5 24 b' > "$m/hosts"
	echo 'ratefs_granted_total{limiter="orders"} 1' > "$m/metrics"
	: > "$m/last_error"
	serve_page
	browse <<- 'END'
		words = f"{chart('Hosts of the fleet')}.split(/\\s+/).join(' ')"
		page.until(words, "Hosts of the fleet as of 23 s ago: ZooKeeper does not answer "
		           "host share tokens/s weight last heard "
		           "h1 0 % 0 1 1 s ago h2 0 % 0 2 24 s ago")
		with open(f"{mount}/hosts", "w") as hosts:
		    hosts.write("# host weight held seconds id\nh1 1 20 1 a\n")
		page.until(f"{chart('Hosts of the fleet')}.includes('ZooKeeper')", False)
	END
}

case_no_more_than_64_viewers_are_told() {
	start
	serve_page
	python3 - "${address#*:}" <<- 'END'
		import socket, sys
		viewers, answers = [], []
		for _ in range(66):
		    viewer = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
		    viewer.sendall(b"GET /v1/events/ HTTP/1.1\r\nHost: localhost\r\n\r\n")
		    viewers.append(viewer)
		    answers.append(viewer.recv(12).split()[1])
		assert answers == [b"200"] * 64 + [b"503"] * 2, answers
		viewers[0].close()
		import time
		for _ in range(600):
		    viewer = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
		    viewer.sendall(b"GET /v1/events/ HTTP/1.1\r\nHost: localhost\r\n\r\n")
		    if viewer.recv(12).split()[1] == b"200":
		        break
		    time.sleep(0.1)
		else:
		    sys.exit("the place of a viewer that went away is not free")
	END
}

case_events_say_that_the_tree_does_not_answer() {
	start
	limiter orders
	serve_page
	events 60 &
	eventually 20 grep -qs '^event: all' "$d/events"
	umount -l "$m"
	ended
	eventually 20 grep -q '^event: trouble' "$d/events" || fail "$(tail -n 2 "$d/events")"
}

case_viewers_that_do_not_read_are_cut_off_before_their_messages_fill_the_memory() {
	start
	local i long
	long=$(printf %0240d)
	for ((i = 0; i < 1000; i++)); do
		echo "$m/$i.$long"
	done | xargs mkdir
	"$RATEFS" serve -l "$d/socket" "$m" &
	eventually 30 [ -S "$d/socket" ]
	python3 - "$d/socket" <<- 'END'
		import select, socket, sys

		def viewer():
		    opened = socket.socket(socket.AF_UNIX)
		    opened.settimeout(60)
		    opened.connect(sys.argv[1])
		    opened.sendall(b"GET /v1/events/ HTTP/1.1\r\nHost: localhost\r\n\r\n")
		    return opened

		def is_cut(opened):
		    poll = select.poll()
		    poll.register(opened, select.POLLRDHUP)
		    return bool(poll.poll(0))

		def message(opened):
		    got = b""
		    while not got.endswith(b"\n\n\r\n"): # and of its chunk
		        got += opened.recv(65536)
		    return got

		first, slow = viewer(), []
		assert len(message(first)) > 200000
		while not slow or not is_cut(slow[0]):
		    assert len(slow) < 60, "none is cut off"
		    slow.append(viewer())
		    message(first) # of the next look
		print("# cut off:", sum(map(is_cut, slow)), "of", len(slow))
		assert len(slow) > 5 and not is_cut(slow[-1])
	END
}
