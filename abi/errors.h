/* SPDX-License-Identifier: MIT */
#ifndef SCHEDLAB_ABI_ERRORS_H
#define SCHEDLAB_ABI_ERRORS_H

/*
 * Why a system call failed. The kernel's functions return the negative of
 * these; a system call returns -1 and last_error() returns the positive number.
 * Numbers and names are Linux's, where Linux has the case.
 */
#define EPERM        1  /* not permitted */
#define ENOENT       2  /* no such file or directory */
#define ESRCH        3  /* no such process */
#define EINTR        4  /* killed while waiting */
#define EIO          5  /* the device failed */
#define E2BIG        7  /* argument list too long */
#define ENOEXEC      8  /* not an executable of this machine */
#define EBADF        9  /* not an open file, or not open for that */
#define ECHILD       10 /* no child to wait for */
#define EAGAIN       11 /* no more processes */
#define ENOMEM       12 /* out of memory */
#define EFAULT       14 /* bad address */
#define EBUSY        16 /* in use */
#define EEXIST       17 /* exists already */
#define EXDEV        18 /* on another device */
#define ENODEV       19 /* no such device */
#define ENOTDIR      20 /* not a directory */
#define EISDIR       21 /* is a directory */
#define EINVAL       22 /* invalid argument */
#define ENFILE       23 /* too many open files in the system */
#define EMFILE       24 /* too many open files in this process */
#define EFBIG        27 /* file too large */
#define ENOSPC       28 /* no space left on the disk */
#define EMLINK       31 /* too many links */
#define EPIPE        32 /* no reader at the other end */
#define ERANGE       34 /* out of range */
#define ENAMETOOLONG 36 /* name too long */
#define ENOSYS       38 /* no such system call */
#define ENOTEMPTY    39 /* directory not empty */

/* Ours */
#define EPOLICY  160 /* no such policy or preset */
#define ETUNABLE 161 /* the policy has no such tunable */

#endif
