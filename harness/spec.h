/*
 * The scenario language: sessions, steps and permutations in SQL.
 *
 * The compatible mode runs a file as PostgreSQL 16's isolationtester does, down to the byte and the exit status. What it
 * does otherwise: locks are looked at from 0.2 ms on, not every 10 ms; a COPY is ended and said once, not for ever.
 */
#ifndef COUNTERPROOF_SPEC_H
#define COUNTERPROOF_SPEC_H

#include <stdio.h>

#include "base.h"

#define SPEC_ISOLATIONTESTER_VERSION "16.14"
#define SPEC_CONNINFO_DEFAULT "dbname = postgres"

/*
 * Run a file's text in the compatible mode. Results go to `out`, what it complains of to `err`; they may be the same.
 * EXIT_CODE_FAIL: it complained.
 */
extern ExitCode spec_run_compatible(const char *text, size_t length, const char *conninfo, FILE *out, FILE *err);

/*
 * Run files so, spread over as many databases as there are jobs, the longest first. The first database is the one that
 * conninfo means, which alone runs files that name it; the others are made beside it, <name>_2 and so on, and dropped.
 * Each file's output, under a line `== FILE (exit N)`, comes in the order of the files, whenever it ran. Files that share
 * what belongs to the whole server, roles say, must not be run side by side.
 * EXIT_CODE_FAIL: one of them did. EXIT_CODE_BROKEN: a file or a database could not be had, reported.
 */
extern ExitCode spec_run_compatible_files(const char *const *files, int count, const char *conninfo, int jobs,
										  FILE *out);

#endif
