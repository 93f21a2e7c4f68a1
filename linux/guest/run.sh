# SPDX-License-Identifier: MIT
#
# Runs one command in the guest under one policy: run.sh SEED COMMAND [OPTION]...
# The options are those of `schedlab-linux serve`. What came of it is left in /result: the trace,
# what the command printed (output), what the daemon said (daemon), and the status at the end.
#
# Exit status: 0; 1, the command failed; 103, the policy could not be loaded.

seed=$1 command=$2
shift 2

here=$(pwd)
control=/run/schedlab
export PATH="$here/workloads:$here:$PATH"
export WORKLOAD_SEED="$seed" WORKLOAD_TICK_US=4000 TMPDIR=/tmp
mkdir -p /tmp

# Who looks after the run must not depend on the policy that it is about.
chrt --fifo --pid 80 $$

schedlab-linux serve --control "$control" --objects "$here/bpf" --seed "$seed" \
    --trace /result/trace.bin --trace-memory "$@" >/result/daemon 2>&1 &
daemon=$!
until [ -e "$control/sched_status" ]; do
    kill -0 "$daemon" 2>/dev/null || exit 103
    sleep 0.1
done

chrt --other 0 sh -c "$command" >/result/output 2>&1 </dev/null
status=$?

cat "$control/sched_status" >/result/status
kill -TERM "$daemon"
wait "$daemon" || exit 103
[ "$status" -eq 0 ] || exit 1
