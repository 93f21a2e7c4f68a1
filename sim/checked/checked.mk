# SPDX-License-Identifier: MIT
#
# make checked CHECKED=FILE.c   build/checked/NAME/schedlab-sim: the simulator with this one policy,
#                               under sanitizers, with each of its hooks checked
#                               (sim/checked/hooks.h).
#                               CHECKED_NAME=NAME: the policy that FILE.c defines, if it is not
#                               policy_FILE.
#                               SANITIZED=: build/plainly-checked/NAME/schedlab-sim, by the pinned
#                               compiler, which has no address sanitizer; undefined behaviour of C
#                               traps
#
# Included by the Makefile, after sim/sim.mk. The other objects are those of the safe simulator, or
# of the default one.

SANITIZED       := yes
CHECKED_NAME    := $(basename $(notdir $(CHECKED)))
CHECKED_IN      := $B/$(if $(SANITIZED),checked,plainly-checked)/$(CHECKED_NAME)
CHECKED_CC      := $(if $(SANITIZED),$(SYSTEM_CLANG),$(HOST_CC))
CHECKED_SAFE    := $(if $(SANITIZED),$(SIMULATOR_SAFE),-DUNSANITIZED -O1)
CHECKED_C       := $(filter-out -O2,$(SIMULATOR_C)) $(CHECKED_SAFE)
CHECKED_PARTS   := $B/$(if $(SANITIZED),sim-safe,sim)
CHECKED_OBJECTS := $(addprefix $(CHECKED_PARTS)/,$(SIMULATOR_SOURCES:sim/%.c=%.o) registry.o costs_table.o)
CHECKED_WATCH   := $(if $(SANITIZED),$B/sim-safe/checked/watch.o,sim/checked/watch.c)
CHECKED_WRAPS   := $(if $(SANITIZED),\
                     -fsanitize=unsigned-integer-overflow -fsanitize-recover=unsigned-integer-overflow,\
                     -fsanitize=undefined -fsanitize-trap=undefined)

.PHONY: checked
checked: $(CHECKED_IN)/schedlab-sim

$(CHECKED_IN)/engine.o: $(CHECKED) sim/engine.c Makefile sim/sim.mk sim/checked/checked.mk
	@mkdir -p $(@D)
	@echo "  $@"
	@$(CHECKED_CC) $(filter-out -O1 -g,$(CHECKED_C)) -gline-tables-only $(CHECKED_WRAPS) -Ipolicies -DCHECKED -DENGINE=engine_$(call engine_of,$(CHECKED_NAME)) \
	    -DPOLICY=policy_$(call engine_of,$(CHECKED_NAME)) -include $< -c sim/engine.c -o $@

$(CHECKED_IN)/policy_table.c: tools/make_policy_table.sh
	@mkdir -p $(@D)
	@sh $< $(CHECKED_NAME).c > $@

$(CHECKED_IN)/engine_table.c: sim/make_engine_table.sh $(CHECKED_IN)/policy_table.c
	@sh $^ > $@

$(CHECKED_IN)/schedlab-sim: $(CHECKED_IN)/engine.o $(CHECKED_IN)/policy_table.c \
                            $(CHECKED_IN)/engine_table.c sim/checked/main.c $(CHECKED_WATCH) $(CHECKED_OBJECTS)
	@echo "  $@"
	@$(CHECKED_CC) $(filter-out -MMD -MP,$(CHECKED_C)) -rdynamic $^ -o $@
