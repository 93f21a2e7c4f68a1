# SPDX-License-Identifier: MIT
#
# make page        build/page/machine.wasm: the simulator, with all policies, and the monitor's model,
#                  for page/schedlab.html
#                  build/page/apart.wasm: the same with one policy, which runs in a separate instance
#                  build/page/module.o: the part of that instance that no policy changes
#
# Included by the Makefile, after sim/sim.mk, whose rules it uses. A page has no files and no
# processes: traces go to memory, and there are no checkpoints.

WASM_C := $(filter-out -g,$(HOST_C)) -D_WASI_EMULATED_MMAN \
          -D_WASI_EMULATED_GETPID

.PHONY: page
page: $B/page/machine.wasm $B/page/apart.wasm $B/page/module.o

$(eval $(call SIMULATOR_RULES,wasm,WASI_CC,$(WASM_C)))

$B/wasm/page/%.o: page/%.c Makefile page/page.mk
	@mkdir -p $(@D)
	@echo "  $@"
	@$(WASI_CC) $(WASM_C) -c $< -o $@

$B/wasm/model/%.o: model/%.c Makefile page/page.mk
	@mkdir -p $(@D)
	@echo "  $@"
	@$(WASI_CC) $(WASM_C) $(MODEL_FLAGS) -c $< -o $@

$B/wasm/page/policy_list.o: tools/policy_list.c Makefile page/page.mk
	@mkdir -p $(@D)
	@echo "  $@"
	@$(WASI_CC) $(WASM_C) -Dmain=policy_list -c $< -o $@

# The page's own objects come first, so the linker uses their trace functions and leaves
# sim/trace_file.c out. It also leaves sim/sched_ext/ out, which reads files.
PAGE_OBJECTS := $(addprefix $B/wasm/page/,machine.o memory_trace.o policy_list.o watch.o) \
                $B/wasm/sched_ext/absent.o \
                $(patsubst model/%.c,$B/wasm/model/%.o,$(wildcard model/*.c))
LINK_PAGE = $(WASI_CC) -mexec-model=reactor -O2 -Wl,--strip-all -Wl,--gc-sections $^ -lwasi-emulated-mman -o $@

$B/page/machine.wasm: $(PAGE_OBJECTS) $B/wasm/simulator.a
	@mkdir -p $(@D)
	@echo "  $@"
	@$(LINK_PAGE)

$B/wasm-apart/engine.o: sim/engine.c sim/apart/policy.h Makefile page/page.mk
	@mkdir -p $(@D)
	@echo "  $@"
	@$(WASI_CC) $(WASM_C) -DENGINE=engine_separate -DPOLICY=policy_separate -include sim/apart/policy.h \
	    -c sim/engine.c -o $@

$B/wasm-apart/policy.o: sim/apart/policy.c Makefile page/page.mk
	@mkdir -p $(@D)
	@echo "  $@"
	@$(WASI_CC) $(WASM_C) -c $< -o $@

$B/wasm-apart/costs_table.o: $B/apart/costs_table.c
	@mkdir -p $(@D)
	@echo "  $@"
	@$(WASI_CC) $(filter-out -MMD -MP,$(WASM_C)) -c $< -o $@

# In the same way, the policy's tables come before those of all policies.
$B/page/apart.wasm: $(PAGE_OBJECTS) $B/wasm/page/policy_machine.o \
                    $(addprefix $B/wasm-apart/,engine.o policy.o costs_table.o) $B/wasm/simulator.a
	@mkdir -p $(@D)
	@echo "  $@"
	@$(LINK_PAGE)

# The page's compiler links it with a policy that is called policy_edited.
$B/page/module.o: sim/apart/module.c Makefile page/page.mk
	@mkdir -p $(@D)
	@echo "  $@"
	@$(CLANG) --target=wasm32-unknown-unknown -std=c17 -O2 -ffreestanding -Wall -Wextra -Werror -I. -Ipolicies \
	    -MMD -MP -DPOLICY=policy_edited -c $< -o $@
