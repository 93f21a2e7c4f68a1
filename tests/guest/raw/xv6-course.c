/* SPDX-License-Identifier: MIT */

/*
 * A program like those of a course that added calls to xv6: lotteries, priorities, waiting times.
 * COURSE_CALLS in tests/guest/test_course_programs.py defines the numbers of the calls.
 */

#include "tests/guest/raw/xv6.h"

enum {
    SET_TICKETS = 22,
    GET_PINFO,
    SET_PRIORITY,
    GET_PRIORITY,
    SET_PRIORITY_OWN,
    SET_PRIORITY_SWAP,
    PS,
    WAITX,
    WAITX_TIMES,
    GET_TICKETS,
    GET_PARENT,
    COUNT,
    YIELD,
    PRINT_TIME,
    GET_ROWS,
    LAST_SCHEDULED,
    NOT_THERE,

    PROCESSES = 64,
    NOT_MINE = 1 << 30, /* an address */
};

struct pstat {
    int in_use[PROCESSES];
    int tickets[PROCESSES];
    int pid[PROCESSES];
    int ticks[PROCESSES];
};

struct pinfo {
    int pid;
    int tickets;
    int ticks_scheduled;
};

static struct pstat table;
static struct pinfo rows[PROCESSES];

static void use_ticks(long ticks)
{
    long end = call(UPTIME, 0, 0, 0) + ticks;
    while (call(UPTIME, 0, 0, 0) < end)
        ;
}

/* Starts a child with 10 tickets that runs for a while, then waits for a byte. */
static long start_child(int go[2])
{
    int ready[2];
    char byte = 'r';
    call(PIPE, (long)ready, 0, 0);
    call(PIPE, (long)go, 0, 0);
    long pid = call(FORK, 0, 0, 0);
    if (pid == 0) {
        call(SET_TICKETS, 10, 0, 0);
        use_ticks(10);
        call(WRITE, ready[1], (long)&byte, 1);
        call(READ, go[0], (long)&byte, 1);
        call(EXIT, 5, 0, 0);
    }
    call(READ, ready[0], (long)&byte, 1);
    return pid;
}

static int row_of(long pid)
{
    for (int i = 0; i < PROCESSES; i++) {
        if (table.in_use[i] && table.pid[i] == pid)
            return i;
    }
    return -1;
}

static void try_lottery(long child)
{
    expect(call(SET_TICKETS, 0, 0, 0) == -1, "no tickets");
    expect(call(SET_TICKETS, 30, 0, 0) == 0, "settickets");
    expect(call(GET_TICKETS, 0, 0, 0) == 30, "the caller's tickets");
    expect(call(GET_TICKETS, child, 0, 0) == 10, "a child's tickets");
    expect(call(GET_PINFO, NOT_MINE, 0, 0) == -1, "getpinfo to a bad address");
    expect(call(GET_PINFO, (long)&table, 0, 0) == 0, "getpinfo");
    int self_pid = row_of(call(GETPID, 0, 0, 0));
    int of_child = row_of(child);
    expect(self_pid >= 0 && table.tickets[self_pid] == 30, "its own row");
    expect(of_child >= 0 && table.tickets[of_child] == 10, "a child's row");
    expect(of_child >= 0 && table.ticks[of_child] > 0, "a child's ticks");
    int count = 0;
    for (int i = 0; i < PROCESSES; i++) {
        count += table.in_use[i];
        expect(table.in_use[i] || !table.pid[i], "a row that is not in use is empty");
    }
    expect(call(COUNT, 0, 0, 0) == count, "the number of processes");
}

/* Equals study 1's version. */
static void try_rows(long child)
{
    int match = 0;
    expect(call(GET_ROWS, NOT_MINE, 0, 0) == -1, "getpinfo of rows to a bad address");
    expect(call(GET_ROWS, (long)rows, 0, 0) == 0, "getpinfo of rows");
    for (int i = 0; i < PROCESSES; i++) {
        if (rows[i].pid == child) {
            match++;
            expect(rows[i].tickets == 10 && rows[i].ticks_scheduled > 0, "a child's row");
        }
    }
    expect(match == 1, "each process has one row");
    long now = call(UPTIME, 0, 0, 0);
    long self_pid = call(LAST_SCHEDULED, 0, 0, 0);
    long of_child = call(LAST_SCHEDULED, child, 0, 0);
    expect(self_pid <= now + 1 && of_child > 0 && of_child <= self_pid,
           "when both were picked last");
    expect(call(LAST_SCHEDULED, 999999, 0, 0) == -1, "when nobody was");
}

/* The course's priorities go from 20, the highest, to 0; the kernel has eleven priorities. */
static void try_priorities(long child)
{
    expect(call(GET_PRIORITY, child, 0, 0) == 10, "the default priority");
    expect(call(SET_PRIORITY, child, 20, 0) == 0, "the highest priority");
    expect(call(GET_PRIORITY, child, 0, 0) == 20, "it stays the highest");
    expect(call(SET_PRIORITY_SWAP, 0, child, 0) == 20, "the lowest, for the highest");
    expect(call(GET_PRIORITY, child, 0, 0) == 0, "it stays the lowest");
    expect(call(SET_PRIORITY, child, 7, 0) == 0, "one between");
    expect(call(GET_PRIORITY, child, 0, 0) == 6, "the nearest there is");
    expect(call(SET_PRIORITY, child, 21, 0) == -1, "beyond the highest");
    expect(call(SET_PRIORITY, child, -1, 0) == -1, "below the lowest");
    expect(call(SET_PRIORITY_SWAP, 21, child, 0) == -1, "beyond, in the other order");
    expect(call(GET_PRIORITY, child, 0, 0) == 6, "nothing has changed");
    expect(call(SET_PRIORITY, 999999, 7, 0) == -1, "of nobody");
    expect(call(GET_PRIORITY, 999999, 0, 0) == -1, "nobody's priority");
    expect(call(SET_PRIORITY_OWN, 12, 0, 0) == 0, "its own priority");
    expect(call(GET_PRIORITY, call(GETPID, 0, 0, 0), 0, 0) == 12, "its own priority is told");
}

static void try_waiting(long child, int go[2])
{
    int status = 0;
    int waited = -1;
    int ran = -1;
    expect(call(WAITX, (long)&status, NOT_MINE, (long)&ran) == -1, "waitx to a bad address");
    call(WRITE, go[1], (long)"g", 1);
    expect(call(WAITX, (long)&status, (long)&waited, (long)&ran) == child, "waitx");
    expect(status == 5 && waited >= 0 && ran > 0, "what waitx tells");
    long pid = call(FORK, 0, 0, 0);
    if (pid == 0) {
        use_ticks(5);
        call(EXIT, 0, 0, 0);
    }
    ran = -1;
    expect(call(WAITX_TIMES, (long)&waited, (long)&ran, 0) == pid && ran >= 0,
           "waitx, times alone");
    expect(call(WAITX, (long)&status, (long)&waited, (long)&ran) == -1, "waitx without a child");
}

static void try_family(void)
{
    long self_pid = call(GETPID, 0, 0, 0);
    int status = 1;
    long pid = call(FORK, 0, 0, 0);
    if (pid == 0)
        call(EXIT, call(GET_PARENT, 0, 0, 0) != self_pid, 0, 0);
    expect(call(WAIT, (long)&status, 0, 0) == pid && status == 0, "the parent's PID");
    expect(call(PS, 0, 0, 0) == 0, "a list on the console");
    expect(call(YIELD, 0, 0, 0) == 0, "yield");
    expect(call(NOT_THERE, 0, 0, 0) == -1, "a number without a call");
}

/* Three children sleep one after the other. The first child and its child do not print. */
static void try_print_time(void)
{
    for (int asks = 0; asks < 3; asks++) {
        if (call(FORK, 0, 0, 0) == 0) {
            call(SLEEP, 3 + 4 * asks, 0, 0);
            if (asks > 0)
                expect(call(PRINT_TIME, 0, 0, 0) == 0, "printtime");
            if (call(FORK, 0, 0, 0) == 0)
                call(EXIT, 0, 0, 0);
            call(WAIT, 0, 0, 0);
            call(EXIT, 0, 0, 0);
        }
        call(WAIT, 0, 0, 0);
    }
}

void begin(void);

void begin(void)
{
    int go[2];
    long child = start_child(go);
    try_lottery(child);
    try_rows(child);
    try_priorities(child);
    try_waiting(child, go);
    try_family();
    try_print_time();
    if (!failures)
        print("ok xv6-course\n");
    call(EXIT, failures != 0, 0, 0);
}
