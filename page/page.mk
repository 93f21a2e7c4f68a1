# SPDX-License-Identifier: MIT
#
# make page        build/page/machine.wasm: the simulator, with all policies, and the monitor's model,
#                  for page/schedlab.html
#
# Included by the Makefile, after sim/sim.mk, whose rules it uses. A page has no files and no
# processes: traces go to memory, and there are no checkpoints.

WASM_C := $(filter-out -g,$(HOST_C)) -D_WASI_EMULATED_MMAN \
          -D_WASI_EMULATED_GETPID

.PHONY: page
page: $B/page/machine.wasm

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
# sim/trace_file.c out.
$B/page/machine.wasm: $(addprefix $B/wasm/page/,machine.o memory_trace.o policy_list.o watch.o) \
                      $(patsubst model/%.c,$B/wasm/model/%.o,$(wildcard model/*.c)) $B/wasm/simulator.a
	@mkdir -p $(@D)
	@echo "  $@"
	@$(WASI_CC) -mexec-model=reactor -O2 -Wl,--strip-all -Wl,--gc-sections \
	    $^ -lwasi-emulated-mman -o $@
