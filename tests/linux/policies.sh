# SPDX-License-Identifier: MIT
#
# In a guest: brings every policy and preset to the kernel, one after the other, while processes
# compute, sleep, fork and are bound to CPUs; then lets hogs of unlike weights compete. What came of
# it is left in /result; tests/test_linux_policies.py reads it.

control=/run/schedlab

look() {
    cat /sys/kernel/sched_ext/state /sys/kernel/sched_ext/root/ops 2>/dev/null | tr '\n' ' '
    sed -n 2,3p "$control/sched_status" | tr '\n' ' '
    echo
}

hog() {
    exec chrt --other 0 sh -c 'while :; do :; done'
}

# Nanoseconds on a CPU of each process that is named.
run_times() {
    for pid; do
        cut -d ' ' -f 1 "/proc/$pid/schedstat"
    done
}

# This one tells what comes of it: none of the policies is to rule it.
chrt --fifo --pid 80 $$
schedlab-linux serve --policy fair --seed 1 --background || exit 1

# The verifier has its say while nothing else computes, which is sooner.
for name in $POLICIES; do
    [ "$name" != "${name%:*}" ] || schedlab-linux policy "$name"
done

for _ in 1 2 3; do
    hog &
done
chrt --other 0 sh -c 'while :; do sleep 0.01; done' &
chrt --other 0 sh -c 'while :; do true | cat >/dev/null; done' &
chrt --other 0 sh -c 'while :; do taskset -p 1 $$; sleep 0.03; taskset -p 2 $$; sleep 0.03; taskset -p 3 $$; done' >/dev/null &

for name in $POLICIES; do
    echo "$name" >"$control/sched_status" || echo "refused: $(cat "$control/sched_problem")"
    sleep "$TURN"
    echo "$name: $(look)"
done >/result/policies
dmesg | grep -E 'WARNING|BUG|stall|sched_ext.*error' >/result/complaints
pkill -P $$ sh
sleep 0.2

# Hogs of weights 1, 3 and 6, and as many tickets, on two CPUs.
hogs=
for value in 1 3 6; do
    hog &
    schedlab-linux set $! weight $value
    schedlab-linux set $! tickets $value
    hogs="$hogs $!"
done
for name in wrr lottery; do
    schedlab-linux policy "$name"
    sleep 0.5
    run_times $hogs >"/result/$name.begin"
    sleep 4
    run_times $hogs >"/result/$name.end"
done
schedlab-linux stop
cat /sys/kernel/sched_ext/state >/result/ended
kill $hogs
