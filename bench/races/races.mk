# SPDX-License-Identifier: MIT
#
# make build/races/NAME.elf     the kernel with a race that bench/races/NAME.patch plants in a copy
# of it
#
# Included by the Makefile, after sim/apart/apart.mk: files that the patch does not change are
# compiled there.

$B/races/%.elf: bench/races/%.patch bench/races/races.mk $(APART_WHOLE) kernel/boot/kernel.ld
	@echo "  $@"
	@rm -rf $B/races/$*; mkdir -p $B/races/$*; cp -R kernel $B/races/$*/
	@root=$$(pwd) && cd $B/races/$* && \
	    GIT_CEILING_DIRECTORIES="$$root/$B/races" git apply --unidiff-zero "$$root/$<"
	@file=$$(sed -n 's,^+++ b/,,p' $<) && \
	    $(CLANG) -I$B/races/$*/kernel $(filter-out -flto -MMD -MP,$(KERNEL_C)) -c $B/races/$*/$$file -o $B/races/$*.o && \
	    $(LINKER) -T kernel/boot/kernel.ld --no-relax -z max-page-size=4096 --fatal-warnings $B/races/$*.o \
	    $$(printf '%s\n' $(APART_WHOLE) | grep -v "/$$file\.o$$") -o $@
	@rm -rf $B/races/$* $B/races/$*.o
