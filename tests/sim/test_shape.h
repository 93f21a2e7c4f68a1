/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SIM_TEST_SHAPE_H
#define TESTS_SIM_TEST_SHAPE_H

/* A shape with any number of CPUs that uses every feature. */
#define TEST_SHAPE                                                                                 \
    "core/2,cache/4,node%8/4,kind%8/2,speed1024:700.300:1000.900:40,distance10.21:30.10,"          \
    "threads600,cold100.5000.40000,demand"

#endif
