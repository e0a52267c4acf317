/*
 * The commands of the command line: a row each in main.c, a short file each for what they do.
 */
#ifndef COUNTERPROOF_COMMANDS_H
#define COUNTERPROOF_COMMANDS_H

#include "base.h"
#include "options.h"

typedef struct
{
	const char *name;
	const char *usage; /* after run.sh */
	const char *summary;
	ExitCode (*run)(const Options *options, const char *const *words, int word_count); /* NULL: run.sh does it */
	int options; /* whose rows it takes: FOR_..., FOR_NONE when it is none of ours */
} Command;

extern const Command commands[]; /* ended by a row without a name */

/* The names of all commands, ended by NULL. The caller frees the array. */
extern const char **command_names(void);

/* What the words select, all without any. false: reported; an empty selection too (EXIT_CODE_NO_MATCH). */
extern bool command_select(const Options *options, const char *const *words, int word_count, const Scenario ***selected,
						   int *count) MUST_CHECK;

/* Append the command that does the same again: ./run.sh <name, if not NULL> WORD... with the options that it needs. */
extern void command_replay(Text *text, const Options *options, const char *name, const char *const *words,
						   int word_count);

/*
 * Files as ./run.sh of the checkout finds them, wherever they were named; and for each the command that runs it again. Free
 * with paths_free().
 */
extern char **command_files_from_home(const Options *options, const char *const *files, int count);
extern char **command_replays(const Options *options, const char *name, const char *const *files, int count);

/* false: there is neither a server nor the binaries of one; reported (EXIT_CODE_BROKEN). */
extern bool command_has_server(const Options *options) MUST_CHECK;

extern ExitCode command_all(const Options *options, const char *const *words, int word_count);
extern ExitCode command_run(const Options *options, const char *const *words, int word_count);
extern ExitCode command_mutants(const Options *options, const char *const *words, int word_count);
extern ExitCode command_crashpoints(const Options *options, const char *const *words, int word_count);
extern ExitCode command_spec(const Options *options, const char *const *words, int word_count);
extern ExitCode command_counters(const Options *options, const char *const *words, int word_count);
extern ExitCode command_report(const Options *options, const char *const *words, int word_count);
extern ExitCode command_list(const Options *options, const char *const *words, int word_count);
extern ExitCode command_trace(const Options *options, const char *const *words, int word_count);
extern ExitCode command_isolationtester(int argc, char **argv); /* has options of its own */
extern ExitCode command_help(const Options *options, const char *const *words, int word_count);

#endif
