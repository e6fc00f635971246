/* rows - the numbers of rows of the table of files, see state.h. */
#include "fs/state/inside.h"

#include <string.h>

/* Rows have the numbers that they were given first; new ones get those that follow. */
void state_number_rows(struct state *state)
{
	struct header *header = state->header;
	char path[STATE_ROW_TEXT];

	if (!header->row_count)
		header->row_count = STATE_FIRST_ROW;
	for (unsigned int i = STATE_FIRST_ROW; i < state->server.row_count; i++) {
		uint32_t number = STATE_FIRST_ROW;

		state->server.row_path(i, path);
		while (number < header->row_count && strcmp(header->rows[number], path) != 0)
			number++;
		if (number == header->row_count && number < STATE_ROWS_MAX) {
			strcpy(header->rows[number], path);
			header->row_count++;
		}
		if (number == STATE_ROWS_MAX)
			continue; /* too many upgrades: it cannot be told to the kernel */
		state->numbers[i] = (uint8_t)number;
		state->rows[number] = (uint8_t)i;
	}
}

uint8_t state_row_number(const struct state *state, unsigned int row)
{
	return state->numbers[row];
}

uint8_t state_row(const struct state *state, uint8_t number)
{
	return state->rows[number];
}
