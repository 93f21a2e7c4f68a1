// SPDX-License-Identifier: MIT

#include "branches.h"

#include <csignal>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/machine_commands.h"
#include "failure.h"

static int make_file(const std::string &path)
{
    int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file < 0)
        throw failure(path);
    return file;
}

static std::string read_commands(const std::string &path)
{
    std::ifstream file(path);
    std::ostringstream text;
    if (!file)
        throw failure(path);
    text << file.rdbuf();
    if (text.str().size() >= MACHINE_COMMANDS_BYTES)
        throw std::runtime_error(path + ": too long for the kernel");
    return text.str();
}

branches::branches(uint64_t at_ns, size_t jobs, const std::vector<std::string> &folders,
                   const std::string &trace)
    : at_ns(at_ns), jobs(jobs)
{
    struct stat output;
    if (fstat(STDOUT_FILENO, &output) < 0 || !S_ISREG(output.st_mode))
        throw std::runtime_error("--branch: standard output must be a file");
    for (const auto &folder : folders)
        list.push_back({folder, read_commands(folder + "/commands"),
                        make_file(folder + "/console.log"),
                        trace.empty() ? -1 : make_file(folder + "/" + trace)});
}

static void write_all(int to, const char *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t written = write(to, data, bytes);
        if (written < 0)
            throw failure("a branch's file");
        data += written;
        bytes -= static_cast<size_t>(written);
    }
}

// Copies the bytes written to `descriptor` so far, and continues writing in the other file.
static void go_on_in(int file, int descriptor)
{
    char piece[1 << 16];
    int past = open(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), O_RDONLY | O_CLOEXEC);
    ssize_t count;
    if (past < 0)
        throw failure("what was written so far");
    while ((count = read(past, piece, sizeof(piece))) > 0)
        write_all(file, piece, static_cast<size_t>(count));
    close(past);
    if (count < 0 || dup2(file, descriptor) < 0)
        throw failure("what was written so far");
}

void branches::become(const branch &chosen, int trace, pid_t parent) const
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    for (const branch &other : list) {
        if (&other == &chosen)
            continue;
        close(other.console);
        if (other.trace >= 0)
            close(other.trace);
    }
    go_on_in(chosen.console, STDOUT_FILENO);
    dup2(STDOUT_FILENO, STDERR_FILENO);
    if (trace >= 0 && chosen.trace >= 0)
        go_on_in(chosen.trace, trace);
}

// Waits until one child has ended, and records its status.
static void await_one(std::map<pid_t, const branch *> &running)
{
    int ended;
    pid_t child = wait(&ended);
    if (child < 0)
        throw failure("waiting for a branch");
    const branch &done = *running.at(child);
    int status = WIFEXITED(ended) ? WEXITSTATUS(ended) : -WTERMSIG(ended);
    running.erase(child);
    if (status != 0)
        fprintf(stderr, "schedlab-spike: branch %s ended with status %d\n", done.folder.c_str(),
                status);
    std::ofstream file(done.folder + "/status");
    file << status << '\n';
    if (!file.flush())
        throw failure(done.folder + "/status");
}

const branch *branches::begin(int trace) const
{
    std::map<pid_t, const branch *> running;
    pid_t parent = getpid();

    fflush(nullptr);
    for (const branch &next : list) {
        if (running.size() == jobs)
            await_one(running);
        pid_t child = fork();
        if (child < 0)
            throw failure("fork");
        if (child == 0) {
            become(next, trace, parent);
            return &next;
        }
        // The library catches the signals that ask a process to end, and checks for them between
        // two rounds. No rounds follow here. The children end with their parent.
        for (int number : {SIGINT, SIGTERM})
            signal(number, SIG_DFL);
        running[child] = &next;
    }
    while (!running.empty())
        await_one(running);
    return nullptr;
}
