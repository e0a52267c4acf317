/*
 * The list as an array, alone in its file so that a program may link a list of its own instead.
 */
#include "registry.h"

#define DECLARE(name) extern const Scenario scenario_##name;
#define ENTRY(name) &scenario_##name,

SCENARIO_LIST(DECLARE)

const Scenario *const registry_scenarios[] = {SCENARIO_LIST(ENTRY) NULL};
