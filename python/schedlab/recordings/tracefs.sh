# SPDX-License-Identifier: MIT
#
# Records scheduler events of the whole machine: tracefs.sh NAME EVENT... Prints them as text on
# standard output, until its standard input ends. Prints "ready" on standard error when it records.
# Uses a separate instance of the kernel's tracer, which it removes, so other users of the tracer are
# not disturbed. Needs root rights.

name=$1
shift
tracing=/sys/kernel/tracing
[ -d "$tracing"/events ] || mount -t tracefs nodev "$tracing" || exit 1
# A recorder that was killed left its instance, which would record on.
for left in "$tracing"/instances/"${name%-*}"-*; do
    [ ! -d "$left" ] || [ -d /proc/"${left##*-}" ] || rmdir "$left" 2>/dev/null # fails while it is read
done
instance=$tracing/instances/$name
mkdir "$instance" || exit 1
reader=
remove() {
    [ -z "$reader" ] || { kill -s KILL $reader && wait $reader; } 2>/dev/null
    echo 0 >"$instance"/tracing_on
    rmdir "$instance"
}
trap remove EXIT
trap 'exit 143' TERM HUP
trap '' INT # Ctrl-C ends the recorded command; then standard input ends

echo 0 >"$instance"/tracing_on
echo mono >"$instance"/trace_clock
echo 16384 >"$instance"/buffer_size_kb
for event in "$@"; do
    echo 1 >"$instance"/events/sched/"$event"/enable || exit 1
done

# A reader that waits at the pipe would be woken by each event, and cause more of them.
read_events() {
    last=
    trap 'last=1' TERM
    while [ -z "$last" ]; do
        sleep 0.5 &
        wait $!
        dd if="$instance"/trace_pipe iflag=nonblock bs=64k 2>/dev/null
    done
}

echo "cpus=$(nproc --all)"
echo 1 >"$instance"/tracing_on
read_events &
reader=$!
echo ready >&2
cat >/dev/null # until standard input ends
echo 0 >"$instance"/tracing_on
kill -s TERM $reader
wait $reader
reader=
