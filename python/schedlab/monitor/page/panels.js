// SPDX-License-Identifier: MIT
//
// The panels in their order: title, short description, and definitions of the contents. docs/metrics.md has
// them in full.

/** @type {{name: string, key: string, scrollsInside?: boolean, title: string, about: string, help: string}[]} */
export const PANELS = [
    {
        name: "timeline",
        key: "1",
        scrollsInside: true,
        title: "Time line",
        about: "The process on each CPU over time.",
        help: "A bar is a run of a process; under a policy with levels, its height shows the level. Marks are switches of policy, new values and other user actions. Hatched: a CPU idled while a process waited on another CPU.",
    },
    {
        name: "queues",
        key: "2",
        scrollsInside: true,
        title: "Run queues",
        about: "The processes that wait on each CPU.",
        help: "Runnable processes that do not run, in order of arrival. The running process is in front.",
    },
    {
        name: "policy",
        key: "3",
        title: "Policy",
        about: "How CPUs choose. A change takes effect at once.",
        help: "A preset is a named set of values, such as the scheduler of a study. A tunable that differs from its default is marked, and can be reset.",
    },
    {
        name: "shares",
        key: "4",
        title: "Tickets and shares",
        about: "Ideal and actual share of each process.",
        help: "The ideal share is the weighted max-min allocation: no process gets more than one CPU or more than it asks for; the others share the rest by their tickets or weights.",
    },
    {
        name: "processes",
        key: "5",
        scrollsInside: true,
        title: "Processes",
        about: "All processes. Choose one to follow it; set attributes in the table.",
        help: "Share: share of all CPU time of processes in the window, as a bar; the tick mark is the ideal share. Waited: time spent runnable and not running. Picked: number of times it was picked.",
    },
    {
        name: "metrics",
        key: "6",
        title: "Metrics",
        about: "Performance over a sliding window.",
        help: "Response: from fork to first run. Wake-up latency: from a wake-up to the next run. Throughput: processes that ended per second. Fairness: Jain's index over share ÷ ideal share, 1 is best. Overhead: CPU time between leaving one process and entering the next.",
    },
    {
        name: "waits",
        key: "7",
        title: "Waiting, explained",
        about: "What ran while the selected process waited; single waits, broken down.",
        help: "The upper part counts only runnable time, and lists separately the time when another CPU idled. A broken-down wait lasts until the process runs, over all CPUs. If another process blocks it, the causes are what that process did. The causes sum to the wait, to the nanosecond.",
    },
    {
        name: "decisions",
        key: "8",
        title: "Decisions",
        about: "The policy's latest decisions, with their reasons and the other candidates.",
        help: "A decision is made whenever a CPU is free. Each candidate is shown with its level or tickets.",
    },
    {
        name: "selections",
        key: "9",
        title: "Selections",
        about: "How often each process was picked.",
        help: "A process that blocks early is picked often and runs little: compare with its share.",
    },
    {
        name: "log",
        key: "0",
        scrollsInside: true,
        title: "Console",
        about: "Output of the kernel and its programs.",
        help: "Stores the last 2,000 lines.",
    },
    {
        name: "workloads",
        key: "w",
        title: "Workloads",
        about: "Start processes, end them, or restart the system.",
        help: "A group contains the processes that one workload started.",
    },
    {
        name: "cost",
        key: "c",
        title: "Cost of watching",
        about: "CPU time used by the monitor: at most 5 %.",
        help: "Control: CPU time of the monitor's processes. Tracing: number of records × cost of a record.",
    },
];
