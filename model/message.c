/* SPDX-License-Identifier: MIT */

#include "model/message.h"

#define COLUMNS_MAX 96
#define TABLE_BYTES (sizeof(struct model_message) + COLUMNS_MAX * sizeof(struct model_column))

/* Reserves memory for a part of a message. If a message does not fit, it is discarded: further
 * parts overwrite it, and `used` shows it. Any single column fits. */
static void *take(struct message *message, uint32_t bytes)
{
    uint64_t begin = ((uint64_t)message->used + 7) & ~UINT64_C(7);
    if (begin + bytes > message->bytes) {
        message->used = UINT32_MAX - 16;
        return message->base + TABLE_BYTES;
    }
    message->used = (uint32_t)(begin + bytes);
    return message->base + begin;
}

static uint32_t place_of(const struct message *message, const void *pointer)
{
    return (uint32_t)((const char *)pointer - message->base);
}

struct message message_begin(struct model *model)
{
    return (struct message){.base = at(model, model->message_at),
                            .bytes = (uint32_t)model->message_bytes,
                            .used = TABLE_BYTES};
}

const void *message_end(struct message *message)
{
    if (message->used > message->bytes)
        return NULL;
    *(struct model_message *)message->base =
        (struct model_message){.bytes = message->used, .columns = message->columns};
    return message->base;
}

static uint32_t length_of(const char *text)
{
    uint32_t length = 0;
    while (text[length] != '\0')
        length++;
    return length;
}

static uint32_t value_bytes(enum model_kind kind)
{
    switch (kind) {
    case MODEL_I64:
    case MODEL_F64:
        return 8;
    case MODEL_I32:
    case MODEL_TEXT:
        return 4;
    case MODEL_BOOL:
        return 1;
    case MODEL_NULL:
    case MODEL_LIST:
        break;
    }
    return 0;
}

void *message_add(struct message *message, const char *name, enum model_kind kind, uint32_t width,
                  uint32_t count, uint32_t records)
{
    uint32_t bytes = length_of(name);
    char *text = take(message, bytes);
    __builtin_memcpy(text, name, bytes);
    char *data = take(message, value_bytes(kind) * (width > 0 ? width : 1) * count);
    struct model_column *table =
        (struct model_column *)(message->base + sizeof(struct model_message));
    message->column = &table[message->columns++];
    *message->column = (struct model_column){
        .name = place_of(message, text),
        .name_bytes = bytes,
        .kind = kind,
        .width = width,
        .count = count,
        .data = place_of(message, data),
        .records = records,
    };
    return data;
}

uint32_t *message_ends(struct message *message)
{
    uint32_t *ends = take(message, message->column->records * sizeof(uint32_t));
    message->column->ends = place_of(message, ends);
    return ends;
}

void message_number(struct message *message, const char *name, int64_t value)
{
    *(int64_t *)message_add(message, name, MODEL_I64, 0, 1, 1) = value;
}

void message_real(struct message *message, const char *name, double value)
{
    *(double *)message_add(message, name, MODEL_F64, 0, 1, 1) = value;
}

void message_flag(struct message *message, const char *name, bool value)
{
    *(bool *)message_add(message, name, MODEL_BOOL, 0, 1, 1) = value;
}

void message_null(struct message *message, const char *name)
{
    message_add(message, name, MODEL_NULL, 0, 1, 1);
}

void *message_several(struct message *message, const char *name, enum model_kind kind,
                      uint32_t width, uint32_t count)
{
    uint32_t *end = take(message, sizeof(*end)); /* in front of the values; the texts follow
                                                  * after them */
    *end = count;
    void *data = message_add(message, name, kind, width, count, 1);
    message->column->ends = place_of(message, end);
    return data;
}

void message_texts(struct message *message, const char *name, uint32_t count)
{
    message_add(message, name, MODEL_TEXT, 0, count, count);
}

void text_end(struct message *message, uint32_t index)
{
    uint32_t *ends = (uint32_t *)(message->base + message->column->data);
    uint32_t begin = message->column->data + message->column->count * sizeof(uint32_t);
    ends[index] = message->used - begin;
}

void message_text(struct message *message, const char *name, const char *text)
{
    message_texts(message, name, 1);
    write_words(message, text);
    text_end(message, 0);
}

/* If a text would overlap numbers, it is truncated. */
void write_byte(struct message *message, char byte)
{
    if (message->used < message->bytes / 4 * 3)
        message->base[message->used++] = byte;
}

void write_words(struct message *message, const char *words)
{
    for (; *words != '\0'; words++)
        write_byte(message, *words);
}
