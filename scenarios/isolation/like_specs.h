/*
 * What the cases about the like system's own transactions share: the database that their specs are run over, and twins
 * loaded into it.
 */
#ifndef COUNTERPROOF_LIKE_SPECS_H
#define COUNTERPROOF_LIKE_SPECS_H

#include "lab.h"

/*
 * The case's database with the like system, items 1 and 2, and the invariants of sql/isolation/like_judged.sql; nobody is
 * connected to it. Its name stays valid.
 */
extern const char *like_prepared(Scene *scene);

/*
 * Judge sql/isolation/FILE over that database with one file of the like system exchanged for the twin's:
 * sql/like/mutants/TWIN/SQL. The right one is loaded again afterwards. Free with spec_report_free().
 */
extern SpecReport *judge_twin(Scene *scene, const char *file, const char *prepared, const char *twin, const char *sql);

#endif
