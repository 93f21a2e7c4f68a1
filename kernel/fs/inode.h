/* SPDX-License-Identifier: MIT */
#ifndef KERNEL_FS_INODE_H
#define KERNEL_FS_INODE_H

#include "file.h"
#include "journal.h"
#include "sync/mutex.h"

/*
 * A file, directory or device in use. It is in memory while it has users; its data on the disk lie
 * in its cached block and are not copied.
 *
 * The mutex guards *disk and the contents. Of two inodes, the mutex of the lower number is taken
 * first. The type does not change while the inode has links or users. But a damaged disk may name a
 * free inode, so types are checked with the mutex held.
 */
struct inode {
    uint32_t number;
    uint32_t users; /* guarded by the inode cache's lock, as are the links */
    struct inode *hash_next;
    struct list doomed; /* in the list of inodes without links and users */
    struct mutex mutex;
    struct cached_block *home; /* null until it has been read */
    struct disk_inode *disk;   /* in home */
};

/* The most blocks that an operation changes in its own inode and the bitmaps when it frees
 * blocks. */
#define CREDITS_RECLAIM 16u

void inode_cache_init(void);

/* Finds the inode, and adds a user. Returns 0, -EIO (no such inode) or -ENOMEM. */
int inode_get(uint32_t number, struct inode **inode);
struct inode *inode_share(struct inode *inode);
/* Removes a user. The last user of an inode without links leaves it to inode_reclaim_doomed(). */
void inode_put(struct inode *inode);
/*
 * Frees inodes that have neither links nor users, with all their blocks. Called at the end of each
 * call that may have put such an inode, outside of operations.
 */
void inode_reclaim_doomed(void);
/* Frees at mount the inodes that a crash left unfinished. Returns 0 or an error. */
int inode_reclaim_marked(void);

static inline void inode_lock(struct inode *inode)
{
    mutex_acquire(&inode->mutex);
}

static inline void inode_unlock(struct inode *inode)
{
    mutex_release(&inode->mutex);
}

/* The functions below require the inode's mutex. */

/* Creates an inode with one link, locked. Six credits including undoing it. Returns 0, -ENOSPC,
 * -EIO or -ENOMEM. */
int inode_create(struct operation *operation, uint16_t type, struct inode **inode);
/* Undoes inode_create(), and one inode_append() to it, in the same operation; puts the inode. */
void inode_uncreate(struct operation *operation, struct inode *inode);

/* The inode has lost its last link: frees as much as possible now, if this is its only user. */
void inode_unlinked(struct operation *operation, struct inode *inode);

/* Empties the file, without the mutex held, in separate operations. */
int inode_truncate(struct inode *inode);

#endif
