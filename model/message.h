/* SPDX-License-Identifier: MIT */
#ifndef MODEL_MESSAGE_H
#define MODEL_MESSAGE_H

/* Writes messages, column by column; model.h describes their layout. */

#include "model/inside.h"

struct message {
    char *base;
    uint32_t used;
    uint32_t bytes;
    uint32_t columns;
    struct model_column *column; /* the last one */
};

struct message message_begin(struct model *model);
/* Completes the message and returns it, or null if it did not fit. */
const void *message_end(struct message *message);

/* Adds a column to a list: one value per record, or several (see message_ends()). Returns where
 * to write the values. */
void *message_add(struct message *message, const char *name, enum model_kind kind, uint32_t width,
                  uint32_t count, uint32_t records);
/* Declares that the last column has several values per record. Returns where to write, for each
 * record, the end of its values. */
uint32_t *message_ends(struct message *message);

/* Add columns to the root: one value, or several. */
void message_number(struct message *message, const char *name, int64_t value);
void message_real(struct message *message, const char *name, double value);
void message_flag(struct message *message, const char *name, bool value);
void message_null(struct message *message, const char *name);
void *message_several(struct message *message, const char *name, enum model_kind kind,
                      uint32_t width, uint32_t count);

/*
 * Adds a column of texts, one per record. Write each text and end it with text_end(), before the
 * next column begins.
 */
void message_texts(struct message *message, const char *name, uint32_t count);
void text_end(struct message *message, uint32_t index);
/* Adds one text to the root. */
void message_text(struct message *message, const char *name, const char *text);

/* Appends to the text that is being written. */
void write_words(struct message *message, const char *words);
void write_byte(struct message *message, char byte);

/* Functions of words.c that write parts of texts. They escape invisible characters in names,
 * like schedlab.base.display.names. */
void write_number(struct message *message, uint64_t number);
void write_signed(struct message *message, int64_t number);
void write_thousands(struct message *message, uint64_t number);
void write_name(struct message *message, const struct text *name);
/* Writes up to eight characters of a number, the first one in its lowest byte. */
void write_label(struct message *message, uint64_t label);
/* Writes the name of a process, or "process PID" if it has none. */
void write_process(struct message *message, bool named, const struct text *name, uint32_t pid);

/* marks.c, choices.c */
void write_mark(struct message *message, const struct mark *mark);
const char *mark_kind(const struct mark *mark);
void write_decision(struct message *message, const struct decision *decision);

/* present.c */
void write_cpus(struct model *model, struct message *message);
void write_processes(struct model *model, struct message *message);

/* measures.c */
void write_metrics(struct model *model, struct message *message);

#endif
