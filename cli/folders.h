/* Where things lie: what the options do not name is found from where this program lies. */
#ifndef COUNTERPROOF_FOLDERS_H
#define COUNTERPROOF_FOLDERS_H

#include "options.h"

/* Fill what is missing of programs, home, sql, evidence_root and pg_bin; make all of them absolute. */
extern void folders_find(Options *options);

#endif
