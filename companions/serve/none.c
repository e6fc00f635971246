/* none - what `ratefs serve` is in a build without libmicrohttpd. */
#include "companions/companion.h"

#include <err.h>
#include <stdlib.h>

int serve_main(int argc, char *argv[])
{
	(void)argc;
	(void)argv;
	warnx("built without libmicrohttpd (-Dserve=disabled)");
	return EXIT_FAILURE;
}
