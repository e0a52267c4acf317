/* A client that sends each wish under one identity, however often it has to be sent. */
#include "request.h"

int
main(int argc, char **argv)
{
	return (int) request_client_main(argc, argv, request_identity);
}
