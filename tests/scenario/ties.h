/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SCENARIO_TIES_H
#define TESTS_SCENARIO_TIES_H

#include "tests/scenario/scenario.h"

/*
 * Many things at one tick. At the ticks 4, 8 and 12 three or four sleepers wake
 * while A and B compute and their slices end; those that wake fork, yield and
 * change attributes at once.
 */
enum { TIES_ROOT, TIES_A, TIES_B, TIES_X, TIES_Y, TIES_Z, TIES_CHILD, TIES_ROLES };

static const struct role ties_roles[TIES_ROLES] = {
    [TIES_ROOT] = {"root",
                   {{2, ACT_FORK, TIES_A, 0},
                    {2, ACT_FORK, TIES_B, 0},
                    {2, ACT_FORK, TIES_X, 0},
                    {2, ACT_FORK, TIES_Y, 0},
                    {2, ACT_FORK, TIES_Z, 0},
                    {2, ACT_SLEEP_UNTIL, 0, 4},
                    {2, ACT_SET_WEIGHT, TIES_B, 1},
                    {2, ACT_SLEEP_UNTIL, 0, 12},
                    {2, ACT_WAIT, 0, 0},
                    {2, ACT_WAIT, 0, 0},
                    {2, ACT_WAIT, 0, 0},
                    {2, ACT_WAIT, 0, 0},
                    {2, ACT_WAIT, 0, 0},
                    {2, ACT_END, 0, 0}}},
    [TIES_A] = {"A",
                {{6, ACT_WORK_UNTIL, 0, 5},
                 {6, ACT_SET_TICKETS, TIES_A, 5},
                 {6, ACT_WORK_UNTIL, 0, 13},
                 {6, ACT_END, 0, 0}}},
    [TIES_B] = {"B", {{7, ACT_WORK_UNTIL, 0, 15}, {7, ACT_END, 0, 0}}},
    [TIES_X] = {"X",
                {{3, ACT_SLEEP_UNTIL, 0, 4},
                 {3, ACT_FORK, TIES_CHILD, 0},
                 {3, ACT_YIELD, 0, 0},
                 {3, ACT_SLEEP_UNTIL, 0, 8},
                 {3, ACT_SET_PRIORITY, TIES_B, 7},
                 {3, ACT_SLEEP_UNTIL, 0, 12},
                 {3, ACT_WAIT, 0, 0},
                 {3, ACT_END, 0, 0}}},
    [TIES_Y] = {"Y",
                {{4, ACT_SLEEP_UNTIL, 0, 4},
                 {4, ACT_YIELD, 0, 0},
                 {4, ACT_SLEEP_UNTIL, 0, 8},
                 {4, ACT_SET_PRIORITY, TIES_Y, 2},
                 {4, ACT_SLEEP_UNTIL, 0, 12},
                 {4, ACT_YIELD, 0, 0},
                 {4, ACT_END, 0, 0}}},
    [TIES_Z] = {"Z",
                {{5, ACT_SLEEP_UNTIL, 0, 4},
                 {5, ACT_SET_WEIGHT, TIES_A, 2},
                 {5, ACT_SLEEP_UNTIL, 0, 8},
                 {5, ACT_YIELD, 0, 0},
                 {5, ACT_SLEEP_UNTIL, 0, 12},
                 {5, ACT_END, 0, 0}}},
    [TIES_CHILD] = {"child",
                    {{8, ACT_WORK_UNTIL, 0, 6},
                     {8, ACT_YIELD, 0, 0},
                     {8, ACT_WORK_UNTIL, 0, 10},
                     {8, ACT_END, 0, 0}}},
};

static const struct scenario ties = {"ties", ties_roles, TIES_ROLES};

#endif
