# SPDX-License-Identifier: MIT
#
# make explorer EXPLORED=FILE.c   build/explore/NAME/schedlab-explore: explores every sequence of
#                                operations on this one policy, under sanitizers.
#                                EXPLORED_NAME=NAME: the policy that FILE.c defines, if it is not
#                                policy_FILE
#
# Included by the Makefile, after sim/checked/checked.mk. A policy's invariants are in
# explore/laws/NAME.h, or in a file NAME.law.h next to FILE.c.

EXPLORED_NAME := $(basename $(notdir $(EXPLORED)))
EXPLORED_IN   := $B/explore/$(EXPLORED_NAME)
LAW           := $(firstword $(wildcard $(EXPLORED:.c=.law.h) explore/laws/$(EXPLORED_NAME).h))
EXPLORE_C     := $(filter-out -g,$(HOST_C)) -gline-tables-only
EXPLORE_SAFE  := -fno-omit-frame-pointer -fstrict-flex-arrays=3 -fsanitize=address,undefined -fno-sanitize-recover=all
EXPLORE_PARTS := $(addprefix $B/explore/,main.o search.o walk.o image.o watch.o)

.PHONY: explorer
explorer: $(EXPLORED_IN)/schedlab-explore

# The code that copies and compares states is not under test.
$B/explore/%.o: explore/%.c Makefile explore/explore.mk
	@mkdir -p $(@D)
	@echo "  $@"
	@$(SYSTEM_CLANG) $(EXPLORE_C) -c $< -o $@

$B/explore/watch.o: sim/checked/watch.c Makefile explore/explore.mk
	@mkdir -p $(@D)
	@echo "  $@"
	@$(SYSTEM_CLANG) $(EXPLORE_C) -c $< -o $@

$(EXPLORED_IN)/engine.o: $(EXPLORED) $(LAW) explore/engine.c Makefile explore/explore.mk
	@mkdir -p $(@D)
	@echo "  $@"
	@$(SYSTEM_CLANG) $(EXPLORE_C) $(EXPLORE_SAFE) -Ipolicies -DCHECKED -DPOLICY=policy_$(call engine_of,$(EXPLORED_NAME)) \
	    $(if $(LAW),-DLAW='"$(LAW)"') -include explore/draws.h -include $< -c explore/engine.c -o $@

$(EXPLORED_IN)/policy_table.c: tools/make_policy_table.sh
	@mkdir -p $(@D)
	@sh $< $(EXPLORED_NAME).c > $@

$(EXPLORED_IN)/schedlab-explore: $(EXPLORED_IN)/engine.o $(EXPLORED_IN)/policy_table.c $(EXPLORE_PARTS) \
                                 $B/sim-safe/registry.o
	@echo "  $@"
	@$(SYSTEM_CLANG) $(filter-out -MMD -MP,$(EXPLORE_C)) $(EXPLORE_SAFE) -rdynamic $^ -o $@

