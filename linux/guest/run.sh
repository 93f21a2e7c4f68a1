# SPDX-License-Identifier: MIT
#
# Runs one command under one policy, in a guest or on this machine: run.sh SEED SECONDS POLICY
# COMMAND [OPTION]... The options are those of `schedlab-linux serve`. The results are in /result:
# the trace, the command's output (output), the server's messages (server).
#
# With BEGIN_AT, the command starts at the earliest this many seconds after the machine. The
# kernel's periodic work, some milliseconds every few seconds, then falls into the same parts of all
# runs, regardless of the policies' load times.
#
# A policy "scx:NAME" is a scheduler of sched_ext that the program $SCHEDULER loads into the kernel.
# The server then only watches.
#
# Exit status: 0; 1, the command failed; 102, it had not finished after SECONDS; 103, the policy
# could not be loaded; 104, the kernel unloaded it while the command ran; 105, the server had ended
# before the command, for example because its trace was full.

seed=$1 seconds=$2 policy=$3 command=$4
shift 4

here=$(pwd)
control=${WORKLOAD_CONTROL:-/run/schedlab} result=${RESULT:-/result}
export PATH="$here/workloads:$here:$PATH"
export WORKLOAD_SEED="$seed" WORKLOAD_TICK_US="${WORKLOAD_TICK_US:-4000}"

# The process that controls the run must not depend on the policy under test.
chrt --fifo --pid 80 $$

served=$policy
[ -z "$SCHEDULER" ] || served=fair

in_force() {
    sed -n 's/^Policy: //p' "$control/sched_status"
}

# Loads another program's scheduler, if one is wanted.
begin_scheduler() {
    [ -n "$SCHEDULER" ] || return 0
    setsid "$SCHEDULER" >"$result"/scheduler 2>&1 &
    scheduler=$!
    rounds=0
    until in_force | grep -q '^scx:'; do
        rounds=$((rounds + 1))
        [ "$rounds" -lt 600 ] && kill -0 "$scheduler" 2>/dev/null || return 1
        sleep 0.1
    done
}

# It unloads its scheduler when it is asked to end; else the kernel does.
end_scheduler() {
    [ -n "$scheduler" ] || return 0
    kill -s TERM "$scheduler" 2>/dev/null
    rounds=0
    while kill -0 "$scheduler" 2>/dev/null && [ "$rounds" -lt 50 ]; do
        rounds=$((rounds + 1))
        sleep 0.1
    done
    end_all "$scheduler"
    cat "$result"/scheduler >>"$result"/server
    scheduler=
}

# Each process is the first of a separate session, or is about to be.
end_all() {
    for first in "$@"; do
        [ -z "$first" ] || kill -s KILL -- "-$first" "$first" 2>/dev/null
    done
}

# When asked to end, leaves no process behind. The server ends with this process in any case.
workload= scheduler= watch= alive=
leave() {
    end_all "$workload" "$watch" "$alive"
    end_scheduler
    schedlab-linux stop
    exit 143
}
trap leave TERM INT HUP

# Open for as long as the server lives.
mkfifo alive
schedlab-linux serve --background --while $$ --seed "$seed" --policy "$served" "$@" \
    --trace "$result"/trace.bin --trace-memory >>"$result"/server 2>&1 9<>alive || exit 103
if ! begin_scheduler; then
    end_scheduler
    schedlab-linux stop
    exit 103
fi

if [ -n "$BEGIN_AT" ]; then
    read -r up idle <"${UPTIME:-/proc/uptime}"
    left=$((BEGIN_AT * 100 - ${up%.*}${up#*.})) # hundredths of a second
    [ "$left" -gt 0 ] && sleep "$((left / 100)).$(printf %02d $((left % 100)))"
fi

setsid chrt --other 0 sh -c "$command" >"$result"/output 2>&1 </dev/null &
workload=$!
setsid sh -c 'sleep "$1" && touch late && kill -KILL "-$2"' watch "$seconds" "$workload" &
watch=$!
setsid sh -c 'read -r line <alive; kill -KILL "-$1"' alive "$workload" &
alive=$!
wait "$workload"
status=$?
end_all "$watch" "$alive" "$workload" # and its background processes

[ -e "$control/sched_status" ] || exit 105
ruled=$(in_force)
why=$(cat "$control/sched_problem")
end_scheduler
schedlab-linux stop
[ "$ruled" = fair ] && [ "$policy" != fair ] && [ -n "$why$SCHEDULER" ] && exit 104
[ ! -e late ] || exit 102
[ "$status" -eq 0 ] || exit 1
