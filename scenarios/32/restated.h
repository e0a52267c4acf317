/* What the cases over the like system state differently on a design, and which of them it leaves nothing of. */
#ifndef COUNTERPROOF_RESTATED_H
#define COUNTERPROOF_RESTATED_H

#include "design.h"
#include "scenario.h"

/* For the case of this scene, before its first check: skips it where the design leaves nothing of what it is about. */
extern void restate(Scene *scene, const LikeDesign *design);

#endif
