/* SPDX-License-Identifier: MIT */

#include "user/library/system.h"

int main(int argc, char *argv[]);
_Noreturn void _start(int argc, char *argv[]);

/* The kernel enters a program here. */
__attribute__((section(".text.start"))) void _start(int argc, char *argv[])
{
    exit(main(argc, argv));
}
