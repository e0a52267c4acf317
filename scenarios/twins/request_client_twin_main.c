/*
 * A client that sends a request again under another identity: request-client-twin, which takes what request-client takes.
 */
#include "client_steps.h"

int
main(int argc, char **argv)
{
	return (int) request_client_main(argc, argv, fresh_identity_steps.request_identity);
}
