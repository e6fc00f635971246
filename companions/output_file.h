/*
 * output_file - the file that a command writes at its end: the content that was there before stays
 * until then, and for good if the command fails or is interrupted before. It removes and replaces
 * none.
 */
#ifndef RATEFS_COMPANIONS_OUTPUT_FILE_H
#define RATEFS_COMPANIONS_OUTPUT_FILE_H

#include <stdbool.h>

struct output_file {
	const char *path; /* borrowed; NULL: standard output */
	int target;	  /* its descriptor; -1: it is not there yet */
	int file;	  /* the descriptor to write to: that, or memory */
};

/*
 * Opens @path, or standard output if it is NULL. A device or a pipe is written to at once. 0, or -1
 * after a message.
 */
int output_file_begin(struct output_file *output, const char *path);

/*
 * Puts into the file, if @keep, all that was written, in place of its content; ends. 0, or -1 after
 * a message.
 */
int output_file_end(struct output_file *output, bool keep);

#endif
