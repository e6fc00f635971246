/* line - one line of a trace that is being read, word by word, see trace.h. */
#include "tests/sim/language/trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char SPACE[] = " \t\r";

int line_refuse(struct line *line, const char *format, ...)
{
	char *problem = line->trace->problem;
	int used = snprintf(problem, PROBLEM_TEXT, "%u: ", line->command->line);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(problem + used, PROBLEM_TEXT - (size_t)used, format, arguments);
	va_end(arguments);
	return -1;
}

/* The next word, cut out of the line; NULL at its end. */
char *line_word(struct line *line)
{
	char *word = line->rest + strspn(line->rest, SPACE);

	if (!*word)
		return NULL;
	line->rest = word + strcspn(word, SPACE);
	if (*line->rest)
		*line->rest++ = '\0';
	return word;
}

int line_duration(struct line *line, const char *word, uint64_t *ns)
{
	if (!word)
		return line_refuse(line, "a time is missing");
	if (duration_parse(word, ns))
		return line_refuse(line, "'%.100s' is no time: such as 0, 250ms or 1h", word);
	return 0;
}

int line_amounts(struct line *line, const char *word, uint64_t *tokens, struct amounts *amounts)
{
	if (!word)
		return line_refuse(line, "a number is missing");
	if (amounts_parse(word, tokens, amounts))
		return line_refuse(line, "'%.100s' is no take: N, or N,UNIT=N", word);
	return 0;
}

int line_tokens(struct line *line, const char *word, uint64_t *tokens)
{
	if (!word)
		return line_refuse(line, "a number is missing");
	if (tokens_parse(word, tokens))
		return line_refuse(line, "'%.100s' is no whole number", word);
	return 0;
}
