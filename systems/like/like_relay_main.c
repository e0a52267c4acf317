/* The relay as a program. Killed at any point it is run again; beside another one neither publishes twice. */
#include "relay.h"

int
main(int argc, char **argv)
{
	return (int) relay_main(argc, argv, &relay_right_steps);
}
