// SPDX-License-Identifier: MIT
//
// The panels in their order: title, short description, and definitions of the contents. docs/metrics.md has
// them in full.

/** @type {{name: string, key: string, title: string, about: string, help: string}[]} */
export const PANELS = [
    {
        name: "timeline",
        key: "1",
        title: "Time line",
        about: "Which process ran on which CPU, and when.",
        help: "A bar is a run of a process; under a policy with levels it stands at the height of its level. Marks are switches of policy, new values and other acts from outside. Hatched: a CPU idled while a process waited at another.",
    },
    {
        name: "queues",
        key: "2",
        title: "Run queues",
        about: "Which processes wait at each CPU now.",
        help: "Runnable processes that do not run, in the order in which they came. The one that runs is in front.",
    },
    {
        name: "policy",
        key: "3",
        title: "Policy",
        about: "How CPUs choose. A change counts at once.",
        help: "A preset is a named set of values, such as the scheduler of a study. A tunable that is not as the policy or preset has it is marked, and can be set back.",
    },
    {
        name: "shares",
        key: "4",
        title: "Tickets and shares",
        about: "What each should get, and what it got.",
        help: "The ideal share is the weighted max-min allocation: no process gets more than one CPU, nor more than it asks for; what it leaves is shared among the others by their tickets or weights.",
    },
    {
        name: "processes",
        key: "5",
        title: "Processes",
        about: "All that live. Choose one to follow it; set attributes in the table.",
        help: "Share: of all CPU time that processes got in the window, as a bar; the tick is the ideal share. Waited: time spent runnable and not running. Picked: how often a CPU chose it.",
    },
    {
        name: "metrics",
        key: "6",
        title: "Metrics",
        about: "How well it goes, over a sliding window.",
        help: "Response: from fork to first run. Wake-up latency: from waking to the next run. Throughput: processes that ended a second. Fairness: Jain's index over share ÷ ideal share, 1 is best. Overhead: CPU time between leaving one process and entering the next.",
    },
    {
        name: "waits",
        key: "7",
        title: "Waiting, explained",
        about: "What ran while the chosen process waited; single waits, taken apart.",
        help: "Above, only time spent runnable counts, and time in which another CPU idled is summed apart. A wait that is taken apart is one until the process runs, over all CPUs; through a process that it is blocked for, it is told what that one did. Its parts add up to it, to the nanosecond.",
    },
    {
        name: "decisions",
        key: "8",
        title: "Decisions",
        about: "The policy's last choices, with its reason and what else waited.",
        help: "A choice is made whenever a CPU is free. Beside each candidate stands its level, or its tickets.",
    },
    {
        name: "selections",
        key: "9",
        title: "Selections",
        about: "How often each process was picked.",
        help: "A process that blocks early is picked often and runs little: compare it with its share.",
    },
    {
        name: "log",
        key: "0",
        title: "Console",
        about: "What the kernel and its programs print.",
        help: "The last 2,000 lines are kept.",
    },
    {
        name: "workloads",
        key: "w",
        title: "Workloads",
        about: "Start processes to schedule, end them, or start the system again.",
        help: "A group is what one workload started.",
    },
    {
        name: "cost",
        key: "c",
        title: "Cost of watching",
        about: "CPU time that goes to the monitor: at most 5 %.",
        help: "Steering: time that the monitor's own processes ran. Tracing: records × what one takes.",
    },
];
