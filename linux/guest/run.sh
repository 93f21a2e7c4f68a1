# SPDX-License-Identifier: MIT
#
# Runs one command in the guest under one policy: run.sh SEED SECONDS POLICY COMMAND [OPTION]...
# The options are those of `schedlab-linux serve`. What came of it is left in /result: the trace,
# what the command printed (output), what the server said (server).
#
# With BEGIN_AT, the command begins so many seconds after the machine, at the earliest. What the kernel
# does of its own, some milliseconds every few seconds, then falls into the same parts of all runs,
# however long their policies took to be loaded.
#
# Exit status: 0; 1, the command failed; 102, it was not done after SECONDS; 103, the policy could
# not be brought to the kernel; 104, the kernel threw it out while the command ran.

seed=$1 seconds=$2 policy=$3 command=$4
shift 4

here=$(pwd)
control=${WORKLOAD_CONTROL:-/run/schedlab} result=${RESULT:-/result}
export PATH="$here/workloads:$here:$PATH"
export WORKLOAD_SEED="$seed" WORKLOAD_TICK_US=4000

# The process that looks after the run must not depend on the policy that it is about.
chrt --fifo --pid 80 $$

schedlab-linux serve --background --seed "$seed" --policy "$policy" "$@" \
    --trace "$result"/trace.bin --trace-memory >"$result"/server 2>&1 || exit 103

if [ -n "$BEGIN_AT" ]; then
    read -r up idle <"${UPTIME:-/proc/uptime}"
    left=$((BEGIN_AT * 100 - ${up%.*}${up#*.})) # hundredths of a second
    [ "$left" -gt 0 ] && sleep "$((left / 100)).$(printf %02d $((left % 100)))"
fi

chrt --other 0 sh -c "$command" >"$result"/output 2>&1 </dev/null &
workload=$!
(sleep "$seconds" && touch late && kill -KILL "$workload") &
watch=$!
wait "$workload"
status=$?
kill "$watch" 2>/dev/null

in_force=$(sed -n 's/^Policy: //p' "$control/sched_status")
why=$(cat "$control/sched_problem")
schedlab-linux stop
[ "$in_force" = fair ] && [ "$policy" != fair ] && [ -n "$why" ] && exit 104
[ ! -e late ] || exit 102
[ "$status" -eq 0 ] || exit 1
