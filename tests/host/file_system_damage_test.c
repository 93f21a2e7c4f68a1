/* SPDX-License-Identifier: MIT */

/*
 * Tests damaged disks: regardless of their content, mounting and each call give a result or an
 * error, and access no other memory (the sanitizers check this).
 */
#include "file_system_machine.h"

static uint8_t *good_disk;
static uint32_t mounted;
static uint32_t refused;

static void fill_disk(void *unused)
{
    static uint8_t data[200 * 1024];
    char name[16];
    (void)unused;

    check(do_mkdir("d") == 0 && do_mkdir("d/e") == 0 && do_mkdir("d/e/f") == 0);
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "d/%d", i);
        check(do_open(name, OPEN_CREATE | OPEN_WRITE) == 0);
        check(do_write(0, data, i * 9000) == i * 9000);
        check(do_close(0) == 0);
    }
    check(do_link("d/3", "three") == 0);
    check(do_open("d/19", OPEN_READ) == 0 && do_unlink("d/19") == 0);
}

static size_t disk_size(void)
{
    return (size_t)disk.blocks * BLOCK_BYTES;
}

static void make_good_disk(void)
{
    disk_make(700, 96, 64);
    check(machine_boot() == 0);
    run_session(fill_disk, NULL);
    good_disk = malloc(disk_size()); /* much of it only in the journal */
    memcpy(good_disk, disk.bytes, disk_size());
    check_settled_disk();
}

/* Makes all calls on all paths that exist, to the full depth; any result is accepted. */
static void wander(const char *directory, int *budget)
{
    static uint8_t data[9000];
    struct directory_entry entry;
    struct file_status status;
    char path[PATH_BYTES + 32];
    int64_t descriptor = do_open(directory, OPEN_READ);

    while (descriptor >= 0 && *budget > 0 &&
           do_read(descriptor, &entry, sizeof(entry)) == sizeof(entry)) {
        --*budget;
        snprintf(path, sizeof(path), "%s/%.14s", directory, entry.name);
        int64_t file = do_open(path, random_chance(2) ? OPEN_READ : OPEN_BOTH);
        if (file < 0)
            file = do_open(path, OPEN_READ);
        if (file < 0)
            continue;
        system_fstat((int)file, user(&status));
        do_read(file, data, sizeof(data));
        do_write(file, data, (int)random_below(sizeof(data)));
        if (random_chance(4))
            do_link(path, "/new");
        if (random_chance(6))
            do_unlink(path);
        do_close(file);
        if (random_chance(6))
            do_close(do_open(path, OPEN_BOTH | OPEN_TRUNCATE));
        if (status.type == FILE_DIRECTORY) {
            if (random_chance(4) && do_chdir(path) == 0)
                do_mkdir("../made");
            if (strlen(path) < PATH_BYTES && entry.name[0] != '.')
                wander(path, budget);
        }
    }
    do_close(descriptor);
}

static void use_disk(void *unused)
{
    int budget = 200;
    (void)unused;
    wander("/", &budget);
    do_close(do_open("/fresh", OPEN_CREATE | OPEN_BOTH));
    do_mkdir("/directory");
    do_unlink("/fresh");
    do_unlink("/d/e/f");
    system_sync();
}

static void *block_of(uint32_t block)
{
    return disk.bytes + (size_t)block * BLOCK_BYTES;
}

static struct superblock *super_of(void)
{
    return block_of(0);
}

static void damage_anywhere(void)
{
    for (uint32_t i = 1 + random_below(200); i > 0; i--)
        disk.bytes[random_below((uint32_t)disk_size())] ^= (uint8_t)(1u << random_below(8));
}

static void damage_superblock(void)
{
    struct superblock *super = super_of();
    uint32_t *words = (uint32_t *)super;
    words[random_below(sizeof(*super) / 4)] =
        random_chance(2) ? (uint32_t)random_next() : random_below(2000);
    if (!random_chance(3))
        super->checksum = superblock_checksum(super);
}

static uint32_t odd_number(void)
{
    static const uint32_t odd[] = {0, 1, 2, 0xffff, 0xffffffff, 0x80000000, 700, 699, 32768};
    return random_chance(2) ? random_below(800) : odd[random_below(sizeof(odd) / sizeof(*odd))];
}

static void damage_inodes(void)
{
    for (int i = 0; i < 8; i++) {
        uint32_t number = random_below(40);
        struct disk_inode *inode =
            (struct disk_inode *)block_of(super_of()->inode_table_start) + number % 32;
        switch (random_below(6)) {
        case 0:
            inode->type = (uint16_t)random_below(5);
            break;
        case 1:
            inode->links = (uint16_t)odd_number();
            break;
        case 2:
            inode->size = random_chance(2) ? random_next() >> 20 : odd_number() * 16ull;
            break;
        case 3:
            inode->blocks = odd_number();
            break;
        case 4:
            inode->direct[random_below(DIRECT_BLOCKS)] = odd_number();
            break;
        default:
            *(random_chance(2) ? &inode->indirect : &inode->double_indirect) = odd_number();
            break;
        }
    }
}

static void damage_directories(void)
{
    for (int i = 0; i < 12; i++) {
        struct disk_inode *inode =
            (struct disk_inode *)block_of(super_of()->inode_table_start) + random_below(32);
        if (inode->type != FILE_DIRECTORY || inode->direct[0] >= disk.blocks)
            continue;
        struct directory_entry *entry =
            (struct directory_entry *)block_of(inode->direct[0]) + random_below(24);
        if (random_chance(2))
            entry->inode = (uint16_t)(random_chance(4) ? odd_number() : random_below(32));
        else
            entry->name[random_below(DIRECTORY_NAME_BYTES)] = (char)random_next();
    }
}

static void damage_bitmaps(void)
{
    uint32_t first = super_of()->inode_map_start;
    uint32_t blocks = super_of()->inode_table_start - first;
    for (int i = 0; i < 300; i++) {
        uint8_t *map = block_of(first + random_below(blocks));
        map[random_below(100)] = (uint8_t)random_next();
    }
}

/* Complete transactions with wrong content. */
static void damage_journal(void)
{
    struct journal_header *header = block_of(super_of()->journal_start + random_below(2));
    struct journal_record *record = block_of(super_of()->log_start + random_below(3));

    header->magic = JOURNAL_HEADER_MAGIC;
    header->sequence = random_chance(2) ? UINT64_MAX : random_next() >> 20;
    header->position = random_chance(2) ? random_below(3) : odd_number();
    header->checksum = journal_header_checksum(header);
    record->magic = JOURNAL_RECORD_MAGIC;
    record->sequence = header->sequence;
    record->count = random_chance(2) ? random_below(70) : odd_number();
    for (int i = 0; i < 70; i++)
        record->home[i] = random_chance(40) ? odd_number() : 100 + random_below(600);
    record->checksum = 0;
    uint64_t sum = checksum_add(CHECKSUM_START, record, BLOCK_BYTES);
    uint64_t position = (uint64_t)((uint8_t *)record - disk.bytes) / BLOCK_BYTES;
    for (uint32_t i = 1; i <= record->count && i < 64; i++) {
        uint64_t from_start = (position - super_of()->log_start + i) % super_of()->log_blocks;
        void *contents = block_of(super_of()->log_start + (uint32_t)from_start);
        sum = checksum_add(sum, contents, BLOCK_BYTES);
    }
    record->checksum = sum;
}

static void try_damaged(uint64_t seed, void (*damage)(void))
{
    random_seed(seed);
    disk.blocks = 700;
    memcpy(disk.bytes, good_disk, disk_size());
    if (random_chance(2)) { /* replayed first, or the journal would repair most damage */
        check(machine_boot() == 0);
        check_nothing_leaks();
        check(super_of()->block_count == 700);
    }
    damage();
    static uint8_t copy[700 * BLOCK_BYTES];
    memcpy(copy, disk.bytes, disk_size());
    check_image(copy, disk.blocks, NULL); /* the checker must also distrust the content */
    for (int mounts = 0; mounts < 2; mounts++) {
        if (machine_boot() == 0) {
            mounted++;
            run_session(use_disk, NULL);
        } else {
            refused++;
        }
    }
}

static void test_damage(void)
{
    void (*damages[])(void) = {damage_anywhere,    damage_superblock, damage_inodes,
                               damage_directories, damage_bitmaps,    damage_journal};
    make_good_disk();
    for (uint64_t seed = 1; seed <= 600; seed++)
        try_damaged(seed, damages[seed % 6]);
    printf("%u mounted, %u refused\n", mounted, refused);
    check(mounted > 400 && refused > 100);
}

static void test_no_file_system(void)
{
    disk.blocks = 0;
    check(machine_boot() == -ENODEV);
    disk.blocks = 700;
    memset(disk.bytes, 0, disk_size());
    check(machine_boot() == -EIO);
    memcpy(disk.bytes, good_disk, disk_size());
    disk.blocks = 699; /* a disk that has shrunk */
    check(machine_boot() == -EIO);
    disk.blocks = 700;
    check(machine_boot() == 0);
}

int main(void)
{
    run_test(test_damage);
    run_test(test_no_file_system);
    return 0;
}
