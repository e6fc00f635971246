# shellcheck shell=bash
# A reader keeps its place: what interrupts it and does not end it costs it nothing but the way.

# first COMMAND…: it waits for a token of orders, its pid in $first; another reader waits behind it.
first() {
	env --default-signal "$@" > "$d/first" 2> "$d/complaints" &
	first=$!
	waiting orders 1
	reader orders/token
	waiting orders 2
}

# interrupted N: the first one was interrupted N times at least, and waits again.
interrupted() {
	eventually 20 eval "[ \"\$(counter orders cancelled)\" -ge $1 ]" ||
		fail "interrupted only $(counter orders cancelled) times"
	waiting orders 2
}

# give [N]: tokens for those whose turn it is.
give() { echo "-${1-1}" > "$m/orders/charge"; }

# served_first [WHAT]: the next token is that of the one that came first, and the one after that of the other.
served_first() {
	give
	gone "$first" 20 || fail "the first one failed: $(cat "$d/complaints")"
	is 'what came first' "$(cat "$d/first")" "${1-1}"
	counts orders waiting 1
	is 'what came second' "$(cat "$d/got")" ''
	give
	gone "$reader" 20
	is 'what came second' "$(cat "$d/got")" 1
}

# ending_jobs: the beginning of a shell script with jobs that end while it does what follows.
ending_jobs() { printf 'sleep 0.%s & ' 5 7 9 11 13 15 17 19; }

case_a_script_of_bash_with_ending_jobs_waits_as_long_as_a_plain_one() {
	start
	empty orders 2
	first bash -c "$(ending_jobs) read -r got < '$m/orders/token'; echo \$got"
	interrupted 3
	served_first
}

case_a_script_of_dash_with_ending_jobs_keeps_its_place() {
	start
	empty orders 2
	first dash -c "$(ending_jobs) read -r got < '$m/orders/token'; echo \$got"
	interrupted 1
	served_first
}

case_a_reader_stopped_and_continued_keeps_its_place() {
	start
	empty orders 2
	first cat "$m/orders/token"
	local i
	for i in 1 2 3 4 5; do
		kill -STOP "$first"
		eventually 10 grep -q '^State:.*T' "/proc/$first/status"
		kill -CONT "$first"
		waiting orders 2
	done
	interrupted 5
	served_first
}

case_a_traced_reader_keeps_its_place() {
	start
	empty orders 2
	first cat "$m/orders/token"
	python3 - "$first" <<- 'EOF'
		import ctypes, os, sys
		SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17
		libc = ctypes.CDLL(None, use_errno=True)
		libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
		pid = int(sys.argv[1])
		def ptrace(request):
		    assert libc.ptrace(request, pid, None, None) == 0, os.strerror(ctypes.get_errno())
		ptrace(SEIZE)
		ptrace(INTERRUPT)
		os.waitpid(pid, 0x40000000)
		ptrace(DETACH)
	EOF
	interrupted 1
	served_first
}

# program TEXT: the first one is a program of python, with read(FD), which tells of EINTR, and interrupts(SECONDS).
program() {
	cat - <(echo "$1") > "$d/first.py" <<- 'EOF'
		import ctypes, errno, os, signal, sys, threading, time
		libc = ctypes.CDLL(None, use_errno=True)
		limiter = sys.argv[1]
		def read(fd):
		    text = ctypes.create_string_buffer(16)
		    got = libc.read(fd, text, 16)
		    return text.value.decode().strip() if got >= 0 else errno.errorcode[ctypes.get_errno()]
		def interrupts(seconds):
		    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
		signal.signal(signal.SIGALRM, lambda *_: None)
		signal.siginterrupt(signal.SIGALRM, True)
	EOF
	first python3 -u "$d/first.py" "$m/orders"
}

case_a_python_program_with_a_handler_keeps_its_place() {
	start
	empty orders 2
	program '
interrupts(0.1)
threading.Timer(1, interrupts, [0]).start()
print(open(limiter + "/token").read().strip())'
	interrupted 5
	served_first
}
