/* SPDX-License-Identifier: MIT */

/* The shell and the programs: their output and exit status. */

#include "tests/guest/shell.h"

static void words_and_quotes(void)
{
    static const struct run runs[] = {
        {"echo hello", 0, "hello\n"},
        {"  echo   a  b ", 0, "a b\n"},
        {"echo 'a  b' \"c  d\" e' 'f", 0, "a  b c  d e f\n"},
        {"echo a\\ b \\; '\\' \"'\" '\"'", 0, "a b ; \\ ' \"\n"},
        {"echo '' x", 0, " x\n"},
        {"echo a#b # c", 0, "a#b\n"},
        {"# nothing", 0, ""},
        {"", 0, ""},
        {"'echo' x", 0, "x\n"},
        {"echo a;echo b", 0, "a\nb\n"},
        {"echo '>' '|' ';' '&'", 0, "> | ; &\n"},
    };
    CHECK_RUNS(runs);
}

static void statuses(void)
{
    static const struct run runs[] = {
        {"true", 0, ""},
        {"false", 1, ""},
        {"exit 5", 5, ""},
        {"exit", 0, ""},
        {"(exit 7)", 7, ""},
        {"false; true", 0, ""},
        {"true; false", 1, ""},
        {"false | true", 0, ""},
        {"true | false", 1, ""},
        {"no-such-program", 127, "sh: no-such-program: no such file or directory\n"},
        {"/", 126, NULL},
        {"exit x", 2, "usage: exit [STATUS]\n"},
        {"echo a; exit 3; echo b", 3, "a\n"},
    };
    CHECK_RUNS(runs);
}

static void conditions(void)
{
    static const struct run runs[] = {
        {"true && echo yes", 0, "yes\n"},         {"false && echo yes", 1, ""},
        {"false || echo no", 0, "no\n"},          {"true || echo no", 0, ""},
        {"false && echo a || echo b", 0, "b\n"},  {"true && false || true && echo c", 0, "c\n"},
        {"(false || false) || echo d", 0, "d\n"},
    };
    CHECK_RUNS(runs);
}

static void redirections(void)
{
    static const struct run runs[] = {
        {"echo one > f; cat f", 0, "one\n"},
        {"echo two >> f; echo three>>f; cat < f", 0, "one\ntwo\nthree\n"},
        {"echo new > f; cat < f", 0, "new\n"},
        {"> f; wc < f", 0, "0 0 0 \n"},
        {"> f echo first; cat f", 0, "first\n"},
        {"(echo a; echo b) > f; cat f", 0, "a\nb\n"},
        {"(cat) < f > g; cat g", 0, "a\nb\n"},
        {"echo x > f > g; cat f g", 0, "x\n"},
        {"cat < missing", 1, "sh: missing: no such file or directory\n"},
        {"echo x > missing/f", 1, "sh: missing/f: no such file or directory\n"},
        {"cat < f < missing; echo on", 0, "sh: missing: no such file or directory\non\n"},
        {"rm f g", 0, ""},
    };
    CHECK_RUNS(runs);
}

static void pipelines(void)
{
    static const struct run runs[] = {
        {"echo hello | cat", 0, "hello\n"},
        {"echo hello | cat | cat | cat | cat | cat", 0, "hello\n"},
        {"(echo a; echo b; echo ab) | grep a", 0, "a\nab\n"},
        {"(echo a; echo b) | (cat; echo c) | wc", 0, "3 3 6 \n"},
        {"true | no-such-program", 127, "sh: no-such-program: no such file or directory\n"},
        {"cat /true /true /true /true | wc | grep -c", 1, ""},
        {"cd / | echo stays", 0, "stays\n"},
        {"echo a | cat > f; cat < f | cat; rm f", 0, "a\n"},
    };
    CHECK_RUNS(runs);
}

static void directories_change(void)
{
    static const struct run runs[] = {
        {"mkdir d; cd d; echo x > f; cd ..; cat d/f; rm d/f d", 0, "x\n"},
        {"cd missing", 1, "cd: missing: no such file or directory\n"},
        {"cd a b", 2, "usage: cd [DIRECTORY]\n"},
        {"cd; cat true > gone-t; cd -gone; rm gone-t; echo back", 0, NULL},
        {"(cd /; true); echo here > f; cat f; rm f", 0, "here\n"},
        {"mkdir e; cd e; ls missing; cd ..; rm e", 0, "ls: missing: no such file or directory\n"},
    };
    CHECK_RUNS(runs);
}

static void background(void)
{
    static const struct run runs[] = {
        {"sleep 1 & echo first; wait; echo then", 0, "first\nthen\n"},
        {"(sleep 3; echo child) & wait; echo then", 0, "child\nthen\n"},
        {"true & false & wait", 0, ""},
        {"false & true", 0, ""},
        {"sleep 2 && echo a & wait; echo b", 0, "a\nb\n"},
        {"wait", 0, ""},
    };
    CHECK_RUNS(runs);
}

static void what_is_no_line_is_refused(void)
{
    static const struct run runs[] = {
        {"echo 'open", 2, "sh: a quote is not closed\n"},
        {"(echo a", 2, "sh: a ) is missing\n"},
        {"echo a)", 2, "sh: a ) too many\n"},
        {"echo >", 2, "sh: a file name is missing\n"},
        {"| cat", 2, "sh: a command is missing\n"},
        {"echo a |", 2, "sh: a command is missing\n"},
        {"echo a && ; echo b", 2, "sh: a command is missing\n"},
        {"; echo a", 2, "sh: a command is missing\n"},
        {"(echo a) echo b", 2, "sh: ; or & or | is missing\n"},
        {"()", 2, "sh: a command is missing\n"},
        {"((((((((((echo deep))))))))))", 2, "sh: too many parentheses\n"},
        {"((((echo deep))))", 0, "deep\n"},
        {"echo 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31",
         0, NULL},
        {"echo 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31"
         " 32",
         2, "sh: too many words\n"},
    };
    CHECK_RUNS(runs);
}

/* More than the shell's arena holds. */
static void endless_lines_are_refused(void)
{
    static char line[2000];
    char *const arguments[] = {"sh", "-c", line, NULL};
    for (size_t i = 0; i + 4 < sizeof(line); i += 2)
        memcpy(line + i, "a;", 2);
    check(run_without_input(arguments) == 2);
    check(strcmp(output, "sh: the line is too long\n") == 0);
    memset(line, '(', sizeof(line) - 1);
    check(run_without_input(arguments) == 2);
    memset(line, '|', sizeof(line) - 1);
    check(run_without_input(arguments) == 2);
}

/* In piped lines, the lines after a command are the command's input. */
static void lines_come_from_the_input(void)
{
    static const char lines[] = "echo a\nread-by-nobody\ncat\nthis is for cat\n";
    static char *const arguments[] = {"sh", NULL};
    int ends[2];
    check(pipe(ends) == 0);
    check(write(ends[1], lines, sizeof(lines) - 1) == (int)sizeof(lines) - 1);
    close(ends[1]);
    check(run_program(arguments, ends[0]) == 0);
    close(ends[0]);
    check(strcmp(output, "a\nsh: read-by-nobody: no such file or directory\nthis is for cat\n") ==
          0);
}

static void lines_come_from_a_file(void)
{
    static const char lines[] = "echo a\n\n# nothing\ncat\necho b; exit 4\necho c\n";
    static char *const arguments[] = {"sh", "/sh.script", NULL};
    static char *const missing[] = {"sh", "/missing", NULL};
    int file = open("/sh.script", OPEN_WRITE | OPEN_CREATE | OPEN_TRUNCATE);
    check(write(file, lines, sizeof(lines) - 1) == (int)sizeof(lines) - 1);
    close(file);
    int status = run_without_input(arguments);
    check(status == 4 && strcmp(output, "a\nb\n") == 0);
    check(unlink("/sh.script") == 0);
    check(run_without_input(missing) == 127);
}

/* Programs */

static void grep_matches(void)
{
    static const struct run runs[] = {
        {"(echo hello; echo world) > f", 0, ""},
        {"grep hello f", 0, "hello\n"},
        {"grep ^w f", 0, "world\n"},
        {"grep o$ f", 0, "hello\n"},
        {"grep l.*o f", 0, "hello\n"},
        {"grep ^.....$ f", 0, "hello\nworld\n"},
        {"grep x*l f", 0, "hello\nworld\n"},
        {"grep hel*o f", 0, "hello\n"},
        {"grep '^hello world$' f", 1, ""},
        {"grep '' f", 0, "hello\nworld\n"},
        {"grep '^$' f", 1, ""},
        {"grep nothing f", 1, ""},
        {"echo 'a.c' | grep 'a\\.c'", 0, "a.c\n"},
        {"echo 'abc' | grep 'a\\.c'", 1, ""},
        {"echo 'a*c' | grep '\\*'", 0, "a*c\n"},
        {"echo aaaaaaaaaaaaaaaaaaaaaaaaaa | grep a*a*a*a*a*a*a*a*b", 1, ""},
        {"grep hello f missing", 2, "f:hello\ngrep: missing: no such file or directory\n"},
        {"grep", 2, "usage: grep PATTERN [FILE]...\n"},
        {"rm f", 0, ""},
    };
    CHECK_RUNS(runs);
}

static void small_programs_do_their_work(void)
{
    static const struct run runs[] = {
        {"echo a b > f; echo c >> f; wc f", 0, "2 3 6 f\n"},
        {"wc f f", 0, "2 3 6 f\n2 3 6 f\n4 6 12 total\n"},
        {"ln f g; cat g; rm f; cat g; rm g", 0, "a b\nc\na b\nc\n"},
        {"mkdir a b a/c; ls a", 0, NULL},
        {"rm a", 1, "rm: a: directory not empty\n"},
        {"rm a/c a b; rm a", 1, "rm: a: no such file or directory\n"},
        {"mkdir x; mkdir x; rm x", 0, "mkdir: x: exists already\n"},
        {"ls missing", 1, "ls: missing: no such file or directory\n"},
        {"ls / | grep console | wc", 0, NULL},
        {"cat missing", 1, "cat: missing: no such file or directory\n"},
        {"kill 2147483647", 1, "kill: 2147483647: no such process\n"},
        {"ps | grep ' init$' | grep ' 1 '", 0, NULL},
        {"nice 3 ps | grep 'ps$' | grep ' 3 '", 0, NULL},
        {"nice 11 true", 1, "nice: 11: out of range\n"},
        {"tickets 50 ps | grep 'ps$' | grep ' 50 '", 0, NULL},
        {"weight 9 ps | grep 'ps$' | grep ' 9 '", 0, NULL},
        {"weight 0 true", 1, "weight: 0: out of range\n"},
        {"tickets 0 true", 1, "tickets: 0: out of range\n"},
        {"tickets -5 true", 1, "tickets: -5: out of range\n"},
        {"tickets 1000001 true", 1, "tickets: 1000001: out of range\n"},
        {"nice 4 tickets 3 weight 2 ps | grep 'ps$' | grep ' 4 .* 3 .* 2 '", 0, NULL},
        {"nice -p 1 7; ps | grep ' init$' | grep ' 7 '", 0, NULL},
        {"nice -p 1 5 && tickets -p 1 1 && weight -p 1 5", 0, ""},
        {"nice -p 1 11", 1, "nice: 11: out of range\n"},
        {"weight -p 1 0", 1, "weight: 0: out of range\n"},
        {"tickets -p 1 0", 1, "tickets: 0: out of range\n"},
        {"nice -p 2147483647 3", 1, "nice: 2147483647: no such process\n"},
        {"weight -p 2147483647 3", 1, "weight: 2147483647: no such process\n"},
        {"tickets -p 2147483647 3", 1, "tickets: 2147483647: no such process\n"},
        {"nice 3 no-such", 127, "nice: no-such: no such file or directory\n"},
        {"setattr 2147483647 priority 3", 1, "setattr: 2147483647: no such process\n"},
        {"policy no-such", 1, "policy: no-such: no such policy or preset\n"},
        {"policy rr:no-such", 1, "policy: rr:no-such: no such policy or preset\n"},
        {"tunable no-such", 1, "tunable: no-such: the policy has no such tunable\n"},
        {"sync; uptime | grep ticks", 0, NULL},
        {"stats | grep cpus", 0, NULL},
        {"stress-fork 20", 0, "stress-fork: 20 forked, 20 ended well (no error)\n"},
    };
    CHECK_RUNS(runs);
}

static void wrong_usage_has_status_2(void)
{
    static const char *const lines[] = {
        "kill",
        "kill x",
        "kill 0",
        "ln a",
        "mkdir",
        "rm",
        "ps x",
        "nice 3",
        "nice x true",
        "nice 99999999999 true",
        "nice -p 1",
        "nice -p 1 3 4",
        "nice -p x 3",
        "nice -p 0 3",
        "nice -p 1 x",
        "tickets",
        "weight 1",
        "setattr 1 2",
        "policy a b",
        "tunable",
        "sync x",
        "setattr 1 size 3",
        "sleep",
        "sleep x",
        "poweroff x",
        "poweroff 1 2",
        "poweroff 128",
        "uptime x",
        "stats x",
        "sh -x",
        "sh -c",
        "stress-fork 0",
        "ls -l",
        "cat -x",
        "wc -l",
        "grep",
        "cpu-bound -x",
        "cpu-bound -n",
        "cpu-bound -n x",
        "cpu-bound -n 0",
        "mixed 5",
        "io-bound -b -1",
        "microbench x",
        "fuzz-calls x",
        "setattr 1 priority",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct run run = {lines[i], 2, NULL};
        check_run(&run);
        check(output[0] != 0);
    }
}

static void workloads_explain_themselves(void)
{
    static const char *const lines[] = {"cpu-bound --help", "io-bound --help", "mixed --help"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct run run = {lines[i], 0, NULL};
        check_run(&run);
        check(strncmp(output, "usage: ", 7) == 0);
    }
}

int main(int argc, char *argv[])
{
    static const struct test tests[] = {
        TEST(words_and_quotes),
        TEST(statuses),
        TEST(conditions),
        TEST(redirections),
        TEST(pipelines),
        TEST(directories_change),
        TEST(background),
        TEST(what_is_no_line_is_refused),
        TEST(endless_lines_are_refused),
        TEST(lines_come_from_the_input),
        TEST(lines_come_from_a_file),
        TEST(grep_matches),
        TEST(small_programs_do_their_work),
        TEST(wrong_usage_has_status_2),
        TEST(workloads_explain_themselves),
    };
    return RUN_TESTS(tests, argc, argv);
}
