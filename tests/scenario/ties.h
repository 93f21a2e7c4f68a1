/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SCENARIO_TIES_H
#define TESTS_SCENARIO_TIES_H

#include "tests/scenario/scenario.h"

/*
 * Many events at one tick. At the ticks 4, 8 and 12 three or four sleepers wake while A and B
 * compute and their slices end; the woken processes fork, yield and change attributes at once.
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
                {{16, ACT_WORK_UNTIL, 0, 5},
                 {16, ACT_SET_TICKETS, TIES_A, 5},
                 {16, ACT_WORK_UNTIL, 0, 13},
                 {16, ACT_END, 0, 0}}},
    [TIES_B] = {"B", {{20, ACT_WORK_UNTIL, 0, 15}, {20, ACT_END, 0, 0}}},
    [TIES_X] = {"X",
                {{11, ACT_SLEEP_UNTIL, 0, 4},
                 {11, ACT_FORK, TIES_CHILD, 0},
                 {11, ACT_YIELD, 0, 0},
                 {11, ACT_SLEEP_UNTIL, 0, 8},
                 {11, ACT_SET_PRIORITY, TIES_B, 7},
                 {11, ACT_SLEEP_UNTIL, 0, 12},
                 {11, ACT_WAIT, 0, 0},
                 {11, ACT_END, 0, 0}}},
    [TIES_Y] = {"Y",
                {{23, ACT_SLEEP_UNTIL, 0, 4},
                 {23, ACT_YIELD, 0, 0},
                 {23, ACT_SLEEP_UNTIL, 0, 8},
                 {23, ACT_SET_PRIORITY, TIES_Y, 2},
                 {23, ACT_SLEEP_UNTIL, 0, 12},
                 {23, ACT_YIELD, 0, 0},
                 {23, ACT_END, 0, 0}}},
    [TIES_Z] = {"Z",
                {{14, ACT_SLEEP_UNTIL, 0, 4},
                 {14, ACT_SET_WEIGHT, TIES_A, 2},
                 {14, ACT_SLEEP_UNTIL, 0, 8},
                 {14, ACT_YIELD, 0, 0},
                 {14, ACT_SLEEP_UNTIL, 0, 12},
                 {14, ACT_END, 0, 0}}},
    [TIES_CHILD] = {"child",
                    {{15, ACT_WORK_UNTIL, 0, 6},
                     {15, ACT_YIELD, 0, 0},
                     {15, ACT_WORK_UNTIL, 0, 10},
                     {15, ACT_END, 0, 0}}},
};

static const struct scenario ties = {"ties", ties_roles, TIES_ROLES};

#endif
