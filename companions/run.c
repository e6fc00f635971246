/*
 * run - takes tokens, runs a command, tells how it went, and runs it again when it was throttled.
 *
 * Tokens come first and the slot second, so that a slot is held for the work alone. If there is no
 * slot in time, the tokens go back. While the
 * command runs, signals are passed on to it; at all other times they have the action that they had
 * before, so one that ends a program ends the wait for tokens, and none is spent.
 */
#include "companions/child.h"
#include "companions/companion.h"
#include "companions/home.h"
#include "companions/run.h"
#include "companions/run_output.h"

#include "core/limiter/feedback.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	STATUS_LATE = 124,	 /* no tokens within the time, or no room for one more that waits */
	STATUS_FAILED = 125,	 /* our own failure */
	STATUS_CANNOT_RUN = 126, /* as shells, env(1) and timeout(1) have it */
	STATUS_NOT_FOUND = 127,
	STATUS_SIGNAL = 128, /* and the number */
	PIECE = 65536,	     /* of output */
	LINE_BYTES = 512,
	STATUS_ERRORS = 400, /* of HTTP */
	MSEC_NS = 1000000,
	SHORT_NS = 10 * MSEC_NS, /* a wait for tokens that takes nothing off the time */
};

/* How the work went, and what the header fields of its answer said. */
struct ending {
	struct outcome outcome;
	bool has_headers;
	struct header_report headers;
};

static const char BLANKS[] = " \t\r\v\f";

static const int PASSED_ON[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

static volatile pid_t worker;
static volatile sig_atomic_t told_to_end;
static volatile sig_atomic_t missed; /* a signal that came before the command was there */

static void pass_on(int number, siginfo_t *info, void *context)
{
	int saved = errno;

	(void)context;
	if (number != SIGUSR1 && number != SIGUSR2)
		told_to_end = 1;
	if (!worker)
		missed = number;
	else if (info->si_code != SI_KERNEL) /* the signals of a terminal are sent to both */
		kill(worker, number);
	errno = saved;
}

/* Unlike a signal that is ignored, one with a handler has its default action in the command. */
static void do_nothing(int number)
{
	(void)number;
}

/* Passes signals on, or gives them back the action in @before, which it fills in first. */
static void handle_signals(bool on, struct sigaction before[])
{
	struct sigaction action = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO};

	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof(PASSED_ON) / sizeof(PASSED_ON[0]); i++) {
		if (!on)
			sigaction(PASSED_ON[i], &before[i], NULL);
		else if (!sigaction(PASSED_ON[i], NULL, &before[i]) &&
			 before[i].sa_handler != SIG_IGN) /* as under nohup(1) */
			sigaction(PASSED_ON[i], &action, NULL);
	}
}

/* 0, or an exit status after a message. */
static int take_tokens(const struct job *job)
{
	char text[QUANTITY_TEXT], reason[ERROR_TEXT];
	ssize_t got;
	int file, error;

	do {
		file = open(job->source, O_RDONLY | O_CLOEXEC);
	} while (file < 0 && errno == EINTR);
	if (file < 0) {
		warn("%s", job->source);
		return STATUS_FAILED;
	}
	do {
		got = read(file, text, sizeof(text));
	} while (got < 0 && errno == EINTR);
	error = errno;
	close(file);
	if (got > 0)
		return 0;
	if (got < 0 && error == EBUSY && job->within) {
		duration_print(job->within_ns, text);
		warnx("%s: no tokens within %s", job->limiter, text);
		return STATUS_LATE;
	}
	if (got < 0 && error == EBUSY) {
		home_explain(job->limiter, EBUSY, reason);
		warnx("%s: no tokens: %s", job->limiter, reason);
		return STATUS_LATE;
	}
	warnx("%s: %s", job->source, got < 0 ? strerror(error) : "gives no token");
	return STATUS_FAILED;
}

/* Gives back the tokens that were taken for work that is not done. Trouble is reported. */
static void return_tokens(const struct job *job)
{
	char text[LINE_BYTES] = "";
	const char *amount = job->tokens;
	size_t used = 0;
	int file, err;

	/* 2,tpm=250 were taken: -2 tpm=-250 come back. */
	for (size_t length; *amount && used < sizeof(text); amount += length) {
		size_t unit;

		amount += *amount == ',';
		length = strcspn(amount, ",");
		unit = strcspn(amount, "=,");
		unit = unit < length ? unit + 1 : 0;
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%.*s-%.*s ", (int)unit,
					 amount, (int)(length - unit), amount + unit);
	}
	file = home_open(job->home, "charge");
	err = file < 0 ? file : run_output_write(file, text, strlen(text));
	if (err)
		warnx("the tokens are spent: %s/charge: %s", job->home, strerror(-err));
	if (file >= 0)
		close(file);
}

/*
 * Names the file whose open waits for a slot: for what is left of the time since @began_ns, in two
 * digits. So there are few names: the mount remembers each.
 */
static void name_slot(const struct job *job, uint64_t began_ns, char path[PATH_MAX])
{
	uint64_t passed_ns = companion_now_ns() - began_ns, left_ns, unit_ns = MSEC_NS;
	char left[QUANTITY_TEXT];

	snprintf(path, PATH_MAX, "%.*s/slot", PATH_MAX - 2 * QUANTITY_TEXT, job->home);
	if (!job->within)
		return;
	left_ns = passed_ns < job->within_ns ? job->within_ns - passed_ns : 0;
	while (left_ns / unit_ns >= 100)
		unit_ns *= 10;
	duration_print(passed_ns < SHORT_NS ? job->within_ns : left_ns - left_ns % unit_ns, left);
	snprintf(path + strlen(path), PATH_MAX - strlen(path), ",within=%s", left);
}

/*
 * Takes a slot, if one is wanted, in what is left of the time since @began_ns. Returns its
 * descriptor, -1 without one, or -2 after a message; then @status is that of the exit.
 */
static int take_slot(const struct job *job, uint64_t began_ns, int *status)
{
	char path[PATH_MAX], reason[ERROR_TEXT];
	struct slot_wait wait;
	int slot;

	if (!job->with_slot)
		return -1;
	run_wait_slot_begin(&wait, job);
	name_slot(job, began_ns, path);
	do {
		slot = open(path, O_RDONLY | O_CLOEXEC);
	} while (slot < 0 && errno == EINTR);
	run_wait_slot_end(&wait);
	if (slot >= 0)
		return slot;
	*status = errno == EBUSY ? STATUS_LATE : STATUS_FAILED;
	if (errno != EBUSY)
		warn("no slot: %s", path);
	else if (job->within)
		duration_print(job->within_ns, reason);
	else
		home_explain(job->limiter, EBUSY, reason);
	if (*status == STATUS_LATE && job->within)
		warnx("%s: no slot within %s", job->limiter, reason);
	else if (*status == STATUS_LATE)
		warnx("no slot: %s: %s", path, reason);
	return_tokens(job);
	return -2;
}

/* Prints the first words for feedback: a piece of work is what one token was taken for. */
static int print_words(const struct job *job, const struct outcome *outcome, char text[LINE_BYTES])
{
	static const char *const words[] = {
		[OUTCOME_OK] = "ok", [OUTCOME_THROTTLED] = "throttled", [OUTCOME_ERROR] = "error"};
	uint64_t count = outcome->count > 1 ? outcome->count : job->count;

	if (count <= 1)
		return snprintf(text, LINE_BYTES, "%s", words[outcome->kind]);
	return snprintf(text, LINE_BYTES, "%s %llu", words[outcome->kind],
			(unsigned long long)(count < OUTCOMES_MAX ? count : OUTCOMES_MAX));
}

/* Prints the lines for feedback. */
static void print_outcome(const struct job *job, const struct ending *ending,
			  char text[HEADERS_TEXT])
{
	const struct outcome *outcome = &ending->outcome;
	char words[LINE_BYTES], duration[QUANTITY_TEXT];

	print_words(job, outcome, words);
	if (ending->has_headers) {
		headers_print(&ending->headers, words, text);
	} else if (outcome->kind == OUTCOME_THROTTLED && outcome->retry_after_ns) {
		duration_print(outcome->retry_after_ns, duration);
		snprintf(text, HEADERS_TEXT, "%s retry-after=%s\n", words, duration);
	} else {
		snprintf(text, HEADERS_TEXT, "%s\n", words);
	}
}

/* Trouble is reported but changes nothing: the work has been done. */
static void report_outcome(const struct job *job, const struct ending *ending)
{
	char text[HEADERS_TEXT];
	ssize_t written;
	int file;

	print_outcome(job, ending, text);
	do {
		file = home_open(job->home, "feedback");
	} while (file == -EINTR);
	if (file < 0) {
		if (job->must_report || file != -ENOENT)
			warnx("cannot report: %s/feedback: %s", job->home, strerror(-file));
		return;
	}
	do {
		written = write(file, text, strlen(text));
	} while (written < 0 && errno == EINTR);
	if (written < 0)
		warn("cannot report: %s/feedback", job->home);
	close(file);
}

/* Copies what begins the output up to the end of its first line; how much there is of it. */
static size_t read_first_line(int from, char line[LINE_BYTES])
{
	size_t used = 0;
	ssize_t got = 1;

	while (got && used < LINE_BYTES - 1 && !memchr(line, '\n', used)) {
		got = read(from, line + used, LINE_BYTES - 1 - used);
		if (got > 0)
			used += (size_t)got;
		else if (got < 0 && errno != EINTR)
			break;
	}
	line[used] = '\0';
	return used;
}

/*
 * How its first line says that it went. Of one that is understood in part, and does not begin with
 * a HTTP status, the first word counts.
 */
static bool parse_outcome(const char *line, struct outcome *outcome)
{
	char first[LINE_BYTES], error[ERROR_TEXT], *end;
	const char *text = first;

	snprintf(first, sizeof(first), "%.*s", (int)strcspn(line, "\n"), line);
	if (!feedback_parse(&text, outcome, error)) {
		feedback_at(outcome, time(NULL));
		return outcome->kind != OUTCOME_NONE;
	}
	end = first + strspn(first, BLANKS);
	end[strcspn(end, BLANKS)] = '\0';
	text = first;
	return !feedback_parse(&text, outcome, error);
}

/*
 * Reads what the command prints, to the end, and passes it on, unless it says at once that it was
 * throttled and is to be run again. True if its first line says how it went.
 */
static bool relay_signal(int from, bool again, struct outcome *outcome)
{
	static char piece[PIECE];
	char line[LINE_BYTES];
	size_t used = read_first_line(from, line);
	bool told = parse_outcome(line, outcome);
	bool drop = told && outcome->kind == OUTCOME_THROTTLED && again && !told_to_end;
	int err = drop ? 0 : run_output_write(STDOUT_FILENO, line, used);
	ssize_t got;

	while (!err && (got = read(from, piece, sizeof(piece)))) {
		if (got < 0 && errno != EINTR)
			break;
		if (got > 0 && !drop)
			err = run_output_write(STDOUT_FILENO, piece, (size_t)got);
	}
	return told;
}

static struct outcome outcome_of(const struct job *job, int status)
{
	struct outcome outcome = {.kind = OUTCOME_ERROR};

	if (WIFEXITED(status) && WEXITSTATUS(status) == job->throttled)
		outcome.kind = OUTCOME_THROTTLED;
	else if (WIFEXITED(status) && !WEXITSTATUS(status))
		outcome.kind = OUTCOME_OK;
	return outcome;
}

/* Has the quotas of @report be of units of the limiter. */
static void name_units(const struct job *job, struct header_report *report)
{
	struct settings settings = SETTINGS_DEFAULT;

	if (headers_have_units(report, &job->names))
		home_rate(job->home, &settings);
	headers_name_units(report, &job->names, &settings);
}

/* Reads the header fields that the command left: how it went. False: they do not say so. */
static bool hear_headers(const struct job *job, struct ending *ending)
{
	const struct header_report *headers = &ending->headers;

	ending->has_headers = run_headers_read(job, &ending->headers);
	if (!ending->has_headers)
		return false;
	name_units(job, &ending->headers);
	ending->outcome = (struct outcome){.kind = OUTCOME_ERROR};
	if (headers->is_throttled) {
		ending->outcome.kind = OUTCOME_THROTTLED;
		ending->outcome.retry_after_ns = headers->retry_after_ns;
	} else if (headers->status < STATUS_ERRORS) {
		ending->outcome.kind = OUTCOME_OK;
	}
	return true;
}

/* Starts the command with pipes for what we read of it: @from, -1 for none. 0 or -errno. */
static int start_command(const struct job *job, int from[2])
{
	const bool wanted[] = {job->by_output || job->has_words, job->has_words};
	int to[2] = {-1, -1}, pair[2], err = 0;

	for (int i = 0; i < 2; i++) {
		from[i] = -1;
		if (!wanted[i] || err)
			continue;
		err = pipe2(pair, O_CLOEXEC) ? -errno : 0;
		if (err)
			continue;
		from[i] = pair[0];
		to[i] = pair[1];
	}
	if (!err)
		err = child_start(job->command, -1, to[0], to[1], &worker);
	for (int i = 0; i < 2; i++) {
		if (to[i] >= 0)
			close(to[i]);
	}
	return err;
}

/* Runs the command once: @ending, and the exit status that goes with it. False: nothing was run. */
static bool run_command(const struct job *job, bool again, struct ending *ending, int *status)
{
	struct outcome *outcome = &ending->outcome;
	bool told = false, said = false;
	int from[2], err, ended;

	if (job->headers)
		run_headers_empty(job);
	err = start_command(job, from);
	if (!err && missed) {
		int number = missed;

		missed = 0;
		kill(worker, number);
	}
	if (!err && job->by_output)
		told = relay_signal(from[0], again, outcome);
	else if (!err && job->has_words)
		said = run_output_relay(from, worker, &told_to_end, &job->words);
	for (int i = 0; i < 2; i++) {
		if (from[i] >= 0 && (err || job->by_output))
			close(from[i]);
	}
	if (err) {
		warnx("%s: %s", job->command[0], strerror(-err));
		*status = err == -ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN;
		return false;
	}
	ended = child_wait(&worker);
	*status = WIFSIGNALED(ended) ? STATUS_SIGNAL + WTERMSIG(ended) : WEXITSTATUS(ended);
	if (job->headers)
		told = hear_headers(job, ending);
	if (!told)
		*outcome = outcome_of(job, ended);
	if (said && WIFEXITED(ended) && *status)
		outcome->kind = OUTCOME_THROTTLED;
	if (job->by_output && !told)
		warnx("%s: the output does not begin with how it went", job->command[0]);
	/* It was not done, whatever the command says of itself. */
	if (!*status && outcome->kind == OUTCOME_THROTTLED)
		*status = job->throttled;
	return true;
}

/* Puts the number of the slot that is open as @slot into the command's environment. */
static void export_number(int slot)
{
	char number[QUANTITY_TEXT];
	ssize_t length = read(slot, number, sizeof(number) - 1);

	if (length < 0) {
		warn("no number of the slot");
	} else if (length < 2 || number[length - 1] != '\n') {
		warnx("no number of the slot");
	} else {
		number[length - 1] = '\0';
		if (!setenv("RATEFS_SLOT", number, true))
			return;
		warn("no number of the slot");
	}
	unsetenv("RATEFS_SLOT");
}

/* Takes tokens and slot, works and reports, once. True: it was throttled and may be tried again. */
static bool try_once(const struct job *job, bool again, uint64_t *retry_after_ns, int *status)
{
	struct sigaction before[sizeof(PASSED_ON) / sizeof(PASSED_ON[0])];
	struct ending ending = {.has_headers = false};
	uint64_t began_ns = companion_now_ns();
	uint64_t slot_ns;
	bool ran;
	int slot;

	run_wait_announce(job);
	*status = take_tokens(job);
	if (*status)
		return false;
	slot_ns = companion_now_ns();
	slot = take_slot(job, began_ns, status);
	if (slot < -1)
		return false;
	run_wait_tell(job, began_ns, slot_ns);
	if (slot >= 0)
		export_number(slot);
	handle_signals(true, before);
	ran = run_command(job, again, &ending, status);
	if (slot >= 0)
		close(slot);
	if (ran)
		report_outcome(job, &ending);
	handle_signals(false, before);
	if (!ran)
		return_tokens(job);
	*retry_after_ns = ending.outcome.retry_after_ns;
	return ran && ending.outcome.kind == OUTCOME_THROTTLED;
}

/* Sleeps for as long as the service asked, up to what back-offs let it ask. */
static void wait_to_retry(const struct job *job, uint64_t asked_ns)
{
	uint64_t most_ns = asked_ns ? home_retry_max(job->home) : 0;
	uint64_t wait_ns = asked_ns < most_ns ? asked_ns : most_ns;
	struct timespec pause = {
		.tv_sec = (time_t)(wait_ns / NSEC_PER_SEC),
		.tv_nsec = (long)(wait_ns % NSEC_PER_SEC),
	};

	while (nanosleep(&pause, &pause) && errno == EINTR)
		;
}

static int run_with_token(const struct job *job)
{
	uint64_t retry_after_ns;
	int status;

	for (uint64_t left = job->retries;
	     try_once(job, left > 0, &retry_after_ns, &status) && left && !told_to_end; left--)
		wait_to_retry(job, retry_after_ns);
	return status;
}

/* Names the files that the job uses. 0, or -1 after a message. */
static int find_files(struct job *job)
{
	if (home_find(job->limiter, job->home))
		return -1;
	snprintf(job->source, sizeof(job->source), "%s/token", job->limiter);
	if (job->within)
		snprintf(job->source, sizeof(job->source), "%s/take/%s,within=%s", job->limiter,
			 job->tokens, job->within);
	else if (job->count != 1 || job->has_units)
		snprintf(job->source, sizeof(job->source), "%s/take/%s", job->limiter, job->tokens);
	return 0;
}

/* Looks for the files that the job needs, before a token is spent. */
static int check_files(const struct job *job)
{
	char path[PATH_MAX];
	int file;

	if (job->must_report) {
		file = home_open(job->home, "feedback");
		if (file < 0) {
			warnx("%s/feedback: %s", job->home, strerror(-file));
			return -1;
		}
		close(file);
	}
	snprintf(path, sizeof(path), "%.*s/slot", PATH_MAX - 12, job->home);
	if (!job->with_slot || !access(path, R_OK))
		return 0;
	warn("%s", path);
	return -1;
}

/* Looks for the units that the arguments name. 0, or -1 after a message. */
static int check_units(const struct job *job)
{
	struct settings settings = SETTINGS_DEFAULT;

	if (job->names.count)
		home_rate(job->home, &settings);
	for (uint32_t i = 0; i < job->names.count; i++) {
		if (settings_have_unit(&settings, job->names.of[i].limiter))
			continue;
		warnx("%s: its rate has no unit '%s'", job->limiter, job->names.of[i].limiter);
		return -1;
	}
	return 0;
}

int run_main(int argc, char *argv[])
{
	static struct job job = {.tokens = "1",
				 .count = 1,
				 .tell_ns = TELL_DEFAULT_S * NSEC_PER_SEC,
				 .throttled = THROTTLED_DEFAULT};
	bool help = false;
	int status = run_parse(&job, argc, argv, &help);

	if (status)
		return status;
	if (help) {
		run_usage();
		return EXIT_SUCCESS;
	}
	if (find_files(&job) || check_files(&job) || check_units(&job))
		return STATUS_FAILED;
	/* It is not to wait for that. */
	if (!child_exists(*job.command)) {
		warnx("%s: %s", *job.command, strerror(ENOENT));
		return STATUS_NOT_FOUND;
	}
	/* The readers of our output may go; the command's end is waited for, and reported. */
	if (signal(SIGPIPE, do_nothing) == SIG_IGN)
		signal(SIGPIPE, SIG_IGN);
	return run_with_token(&job);
}
