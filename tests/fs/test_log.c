/* Messages that nobody reads. */
#include "fs/base/log.h"

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

enum { TEXT = 1 << 20 };

static char text[TEXT];

/* The ends of a new standard error of a kind. */
struct ends {
	int reader, writer;
};

static struct ends new_pipe(void)
{
	int both[2];

	assert_int_equal(pipe(both), 0);
	return (struct ends){both[0], both[1]};
}

static struct ends new_stream(void)
{
	int both[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, both), 0);
	return (struct ends){both[0], both[1]};
}

static struct ends new_terminal(void)
{
	struct ends ends = {.reader = posix_openpt(O_RDWR | O_NOCTTY)};
	struct termios mode;

	assert_true(ends.reader >= 0);
	assert_int_equal(grantpt(ends.reader) || unlockpt(ends.reader), 0);
	ends.writer = open(ptsname(ends.reader), O_RDWR | O_NOCTTY);
	assert_int_equal(tcgetattr(ends.writer, &mode), 0);
	cfmakeraw(&mode);
	assert_int_equal(tcsetattr(ends.writer, TCSANOW, &mode), 0);
	return ends;
}

/* Starts a child of which it is the standard error, and that runs @say. Returns its pid. */
static pid_t start_child(struct ends ends, void (*say)(void))
{
	pid_t child = fork();

	if (!child) {
		alarm(60); /* one that waits ends by it */
		dup2(ends.writer, STDERR_FILENO);
		log_prepare();
		log_stop_waiting(false);
		say();
		_exit(0);
	}
	close(ends.writer);
	return child;
}

/* Returns all that a child says, as a string. */
static const char *read_child(struct ends ends, void (*say)(void))
{
	pid_t child = start_child(ends, say);
	size_t length = 0;
	ssize_t got;
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	while ((got = read(ends.reader, text + length, TEXT - 1 - length)) > 0)
		length += (size_t)got;
	text[length] = '\0';
	close(ends.reader);
	return text;
}

/* More than anything takes, and then more for as long as it is asked to. */
static void say_too_much(void)
{
	for (int i = 0; i < 20000; i++)
		log_info("message %d, which nobody reads for now", i);
	raise(SIGSTOP);
	while (!usleep(1000))
		log_info("read again");
}

/*
 * Tells whether a line with a number of losses has come, and behind it a message. A terminal may
 * take half of a line before.
 */
static bool has_told(void)
{
	static const char format[] =
		"ratefs: messages that the log did not take are lost: %lu\nratefs: read again%n";
	const char *line = text;

	while ((line = strstr(line, "ratefs: messages"))) {
		unsigned long lost;
		int end = 0;

		if (sscanf(line, format, &lost, &end) == 1 && end) {
			assert_true(lost > 0);
			return true;
		}
		line++;
	}
	return false;
}

static void losses_are_told(struct ends ends)
{
	pid_t child = start_child(ends, say_too_much);
	size_t length = 0;
	ssize_t got = 1;
	int status;

	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	assert_true(WIFSTOPPED(status));
	kill(child, SIGCONT);
	*text = '\0';
	while (!has_told() && got > 0) {
		got = read(ends.reader, text + length, TEXT - 1 - length);
		length += got > 0 ? (size_t)got : 0;
		text[length] = '\0';
	}
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(got > 0);
	close(ends.reader);
}

static void test_a_pipe_that_nobody_reads_stops_nobody(void **unused)
{
	(void)unused;
	losses_are_told(new_pipe());
}

static void test_a_socket_that_nobody_reads_stops_nobody(void **unused)
{
	(void)unused;
	losses_are_told(new_stream());
}

static void test_a_terminal_that_nobody_reads_stops_nobody(void **unused)
{
	(void)unused;
	losses_are_told(new_terminal());
}

static void say_long(void)
{
	static char word[2 * PIPE_BUF];

	memset(word, 'x', sizeof(word) - 1);
	log_error("%s", word);
}

static void test_a_long_line_is_cut(void **unused)
{
	const char *got = read_child(new_pipe(), say_long);

	(void)unused;
	assert_int_equal(strlen(got), PIPE_BUF);
	assert_int_equal(strchr(got, '\n') - got, PIPE_BUF - 1);
}

static void say_control(void)
{
	log_error("limiter '%s'", "a\nratefs: b\033[2J\177\xc3\xa4");
}

static void test_no_text_makes_a_line_of_its_own(void **unused)
{
	(void)unused;
	assert_string_equal(read_child(new_pipe(), say_control),
			    "ratefs: limiter 'a?ratefs: b?[2J?\xc3\xa4'\n");
}

static void say_one(void)
{
	log_info("one");
}

static void test_a_file_description_of_others_stays_as_it_is(void **unused)
{
	struct ends ends = new_pipe();
	int other = dup(ends.writer);

	(void)unused;
	assert_int_equal(waitpid(start_child(ends, say_one), NULL, 0) > 0, true);
	assert_int_equal(fcntl(other, F_GETFL) & O_NONBLOCK, 0);
	close(other);
	close(ends.reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_pipe_that_nobody_reads_stops_nobody),
		cmocka_unit_test(test_a_socket_that_nobody_reads_stops_nobody),
		cmocka_unit_test(test_a_terminal_that_nobody_reads_stops_nobody),
		cmocka_unit_test(test_a_long_line_is_cut),
		cmocka_unit_test(test_no_text_makes_a_line_of_its_own),
		cmocka_unit_test(test_a_file_description_of_others_stays_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
