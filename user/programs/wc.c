/* SPDX-License-Identifier: MIT */

/* Counts lines, words and bytes. */

#include "user/library/user.h"

struct counts {
    uint64_t lines;
    uint64_t words;
    uint64_t bytes;
};

static char buffer[4096];

static int count(int descriptor, const char *name, struct counts *total)
{
    struct counts counts = {0};
    bool in_word = false;
    int n;
    while ((n = read(descriptor, buffer, sizeof(buffer))) > 0) {
        for (int i = 0; i < n; i++) {
            bool blank = strchr(" \t\r\n\v\f", buffer[i]) && buffer[i];
            counts.words += !blank && !in_word;
            in_word = !blank;
            counts.lines += buffer[i] == '\n';
        }
        counts.bytes += (uint64_t)n;
    }
    if (n < 0)
        return complain("wc", name);
    printf("%lu %lu %lu %s\n", counts.lines, counts.words, counts.bytes, name);
    total->lines += counts.lines;
    total->words += counts.words;
    total->bytes += counts.bytes;
    return 0;
}

int main(int argc, char *argv[])
{
    struct counts total = {0};
    if (argc > 1 && argv[1][0] == '-')
        usage("wc [FILE]...");
    if (argc == 1)
        return count(0, "", &total);

    int status = 0;
    for (int i = 1; i < argc; i++) {
        int descriptor = open(argv[i], OPEN_READ);
        if (descriptor < 0) {
            status = complain("wc", argv[i]);
            continue;
        }
        status |= count(descriptor, argv[i], &total);
        close(descriptor);
    }
    if (argc > 2)
        printf("%lu %lu %lu total\n", total.lines, total.words, total.bytes);
    return status;
}
