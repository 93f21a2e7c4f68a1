/* SPDX-License-Identifier: MIT */
#ifndef SCHEDLAB_ABI_FILES_H
#define SCHEDLAB_ABI_FILES_H

#include <stdint.h>

/* open() flags, as in xv6 for RISC-V */
#define OPEN_READ     0x000
#define OPEN_WRITE    0x001
#define OPEN_BOTH     0x002
#define OPEN_CREATE   0x200
#define OPEN_TRUNCATE 0x400

/* struct file_status.type, as in xv6 for RISC-V */
#define FILE_DIRECTORY 1
#define FILE_REGULAR   2
#define FILE_DEVICE    3

/* what fstat() fills: the layout of xv6's struct stat */
struct file_status {
    int32_t device;
    uint32_t inode;
    int16_t type;
    int16_t links;
    uint64_t size;
};

/* what read() returns for a directory: the layout of xv6's struct dirent; inode 0 is a free slot */
#define DIRECTORY_NAME_BYTES 14
struct directory_entry {
    uint16_t inode;
    char name[DIRECTORY_NAME_BYTES]; /* without a final 0 when all 14 are used */
};

/* limits of the interface */
#define PATH_BYTES        128 /* a path, with its final 0 */
#define ARGUMENTS_MAX     32  /* of exec() */
#define FILES_PER_PROCESS 16

/* device numbers for mknod() */
#define DEVICE_CONSOLE 1
#define DEVICE_TEXT                                                                                \
    2 /* a file of /proc, which the kernel makes; identified by the minor                          \
       * number */

#endif
