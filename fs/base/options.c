/* options - the command line, see options.h. */
#include "fs/base/options.h"
#include "core/fleet/fleet.h"
#include "fs/base/addresses.h"

#include <errno.h>
#include <fuse_lowlevel.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	KEY_IGNORE,
	PATH_MOST = 255, /* bytes of a fleet's path */
};

static const uint64_t RIGHT_MAX_NS = 600 * NSEC_PER_SEC;
static const uint64_t SESSION_MAX_NS = 300 * NSEC_PER_SEC;

/* Options of mount(8) and fstab that say nothing to the file system. */
#define IGNORE(name)                                      \
	{                                                 \
		name, (unsigned long)UINT_MAX, KEY_IGNORE \
	}
#define OPTION(text, member, value)                           \
	{                                                     \
		text, offsetof(struct options, member), value \
	}

static const struct fuse_opt OPTIONS[] = {
	OPTION("-f", foreground, 1),
	OPTION("-h", help, 1),
	OPTION("--help", help, 1),
	OPTION("-V", version, 1),
	OPTION("--version", version, 1),
	OPTION("host=%s", host, 0),
	OPTION("config=%s", config, 0),
	OPTION("loglevel=%s", log_level_name, 0),
	OPTION("credentials=%s", credentials, 0),
	OPTION("weight=%s", weight_text, 0),
	OPTION("right=%s", right_text, 0),
	OPTION("session=%s", session_text, 0),
	OPTION("nowait", no_wait, 1),
	OPTION("readers_max=%s", bound_texts[BOUND_READERS][0], 0),
	OPTION("user_readers_max=%s", bound_texts[BOUND_READERS][1], 0),
	OPTION("limiters_max=%s", bound_texts[BOUND_LIMITERS][0], 0),
	OPTION("user_limiters_max=%s", bound_texts[BOUND_LIMITERS][1], 0),
	OPTION("keys_max=%s", bound_texts[BOUND_KEYS][0], 0),
	OPTION("user_keys_max=%s", bound_texts[BOUND_KEYS][1], 0),
	OPTION("files_max=%s", bound_texts[BOUND_FILES][0], 0),
	OPTION("user_files_max=%s", bound_texts[BOUND_FILES][1], 0),
	OPTION("names_max=%s", bound_texts[BOUND_NAMES][0], 0),
	OPTION("user_names_max=%s", bound_texts[BOUND_NAMES][1], 0),
	OPTION("texts_max=%s", bound_texts[BOUND_TEXTS][0], 0),
	OPTION("user_texts_max=%s", bound_texts[BOUND_TEXTS][1], 0),
	OPTION("user=%s", user, 0),
	OPTION("noallow_other", keeps_out, 1),
	IGNORE("auto"),
	IGNORE("noauto"),
	IGNORE("user"),
	IGNORE("nouser"),
	IGNORE("users"),
	IGNORE("nofail"),
	IGNORE("_netdev"),
	IGNORE("defaults"),
	IGNORE("x-"),
	FUSE_OPT_END,
};

static const char *const LOG_LEVELS[] = {"error", "warning", "info"};

void options_usage(const char *program)
{
	printf("usage: %s [options] SOURCE MOUNTPOINT\n"
	       "\n"
	       "Shows rate limiters as directories: see ratefs(8), ratefs(5), and README in the "
	       "mount.\n"
	       "\n"
	       "SOURCE:\n"
	       "    local               one host, settings in memory\n"
	       "    local:DIR           one host, settings kept in DIR\n"
	       "    zk://HOST[:PORT][,HOST[:PORT]...][/PATH]\n"
	       "                        a fleet: hosts share through ZooKeeper, below PATH\n"
	       "\n"
	       "beside it, on a tree that is mounted; each has --help and a man page:\n"
	       "    ratefs run LIMITER COMMAND       wait for a token, run COMMAND, tell how "
	       "it went\n"
	       "    ratefs pipe LIMITER              copy input to output, a token a byte\n"
	       "    ratefs status [MOUNTPOINT]       what is wrong with the tree, if anything\n"
	       "    ratefs top [MOUNTPOINT]          what the limiters do, live\n"
	       "    ratefs rm [-r] LIMITER...        remove limiters, with -r those in them, too\n"
	       "    ratefs serve [MOUNTPOINT]        give tokens to HTTP clients, such as proxies\n"
	       "    ratefs plot LIMITER -o FILE      the same over time, drawn by gnuplot\n"
	       "    ratefs check FILE                what is wrong in a file for config=FILE\n"
	       "    ratefs save [MOUNTPOINT]         what all limiters are set to, as such a file\n"
	       "    ratefs apply FILE [MOUNTPOINT]   make them what such a file says\n"
	       "    ratefs simulate -c FILE --from-log LOG\n"
	       "                                     how readers of a log would fare with it\n"
	       "\n"
	       "options:\n"
	       "    -f                  stay in front\n"
	       "    -h, --help          print this, as ratefs help; of run: ratefs help run\n"
	       "    -V, --version       print the version, as ratefs version\n"
	       "    --reload            only a mount point: go on with the program now on disk\n"
	       "    --freeze            only a mount point: hold all that wait, before a sleep\n"
	       "    --thaw              only a mount point: let them go on, in their places\n"
	       "    -o host=NAME        name of this host (the hostname)\n"
	       "    -o config=FILE      limiters to make at mount: INI, a section per limiter\n"
	       "    -o loglevel=LEVEL   error, warning or info (default)\n"
	       "    -o credentials=FILE fleets: USER:PASSWORD for ZooKeeper, in a file of "
	       "mode 600\n"
	       "    -o weight=N         fleets: this host's share against others (1), 1 to 1000\n"
	       "    -o nowait           fleets: mount even if ZooKeeper does not answer\n"
	       "    -o right=DURATION   fleets: how long a host cut off goes on (8s), 2s to 10min\n"
	       "    -o session=DURATION fleets: until ZooKeeper gives a host up (15s), 2s to 5min\n"
	       "    -o user=NAME        when mounted, be this user and no longer root\n"
	       "    -o readers_max=N    readers that wait, of all users (1000000)\n"
	       "    -o user_readers_max=N    ... and of each but root and who mounts (100000)\n"
	       "    -o limiters_max=N   limiters (1000000)\n"
	       "    -o user_limiters_max=N   ... and of each user (100000)\n"
	       "    -o keys_max=N       keys that are remembered (4000000)\n"
	       "    -o user_keys_max=N  ... and of each user (1000000)\n"
	       "    -o files_max=N      open files, slots among them (2000000)\n"
	       "    -o user_files_max=N  ... and of each user (200000)\n"
	       "    -o names_max=N      names with a number, as take/5, that are known (1048576)\n"
	       "    -o user_names_max=N  ... and of each user (262144)\n"
	       "    -o texts_max=N      KiB of texts of open files, and of changes (1048576)\n"
	       "    -o user_texts_max=N  ... and of each user (65536)\n"
	       "    -o noallow_other    by root: let no other user in\n"
	       "    -o allow_other      by others: let other users in; and other options of FUSE\n",
	       program);
}

void options_version(void)
{
	printf("ratefs %s, libfuse %s\n", RATEFS_VERSION, fuse_pkgversion());
}

static int wrong(const char *what, const char *argument)
{
	fprintf(stderr, "ratefs: %s: '%s'\n", what, argument);
	return -1;
}

static int take_option(void *userdata, const char *argument, int key, struct fuse_args *outgoing)
{
	struct options *options = userdata;

	(void)outgoing;
	if (key == KEY_IGNORE)
		return 0;
	/* FUSE takes one of the two, once. */
	if (key == FUSE_OPT_KEY_OPT &&
	    (!strcmp(argument, "allow_other") || !strcmp(argument, "allow_root")))
		options->lets_in = true;
	if (key == FUSE_OPT_KEY_OPT)
		return strncmp(argument, "x-", 2) ? 1 : 0;
	if (!options->source)
		options->source = argument;
	else if (!options->mountpoint)
		options->mountpoint = strdup(argument);
	else
		return wrong("an argument too many", argument);
	return 0;
}

/*
 * Copies to @kept those arguments of a mount helper that are ours. mount(8) calls
 * `mount.fuse.ratefs SOURCE MOUNTPOINT [-sfnv] [-N NAMESPACE] [-o OPTIONS] [-t TYPE]`. Returns how
 * many there are.
 */
static int take_helper_arguments(struct options *options, int argc, char *argv[], char *kept[])
{
	int count = 1;

	kept[0] = argv[0];
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-t") || !strcmp(argv[i], "-N")) {
			i++;
		} else if (!strcmp(argv[i], "-o") && i + 1 < argc) {
			kept[count++] = argv[i++];
			kept[count++] = argv[i];
		} else if (argv[i][0] == '-' &&
			   strspn(argv[i] + 1, "sfnv") == strlen(argv[i] + 1)) {
			if (strchr(argv[i], 'f'))
				options->fake = 1;
		} else {
			kept[count++] = argv[i];
		}
	}
	return count;
}

/* Checks that ZooKeeper takes @path as that of a node, and that all its characters can be seen. */
static int check_path(const char *path)
{
	static const char reserved[] = "/zookeeper";

	if (strlen(path) > PATH_MOST)
		return wrong("the path in the source is too long", path);
	for (const char *c = path; *c; c++) {
		if ((unsigned char)*c <= ' ' || *c == '\x7f')
			return wrong("a character in the path of the source is not allowed", path);
	}
	if (!strncmp(path, reserved, strlen(reserved)) && strchr("/", path[strlen(reserved)]))
		return wrong("/zookeeper is ZooKeeper's own", path);
	while (*path) {
		size_t length = strcspn(++path, "/");

		if (!length)
			return wrong("an empty name in the path of the source", path - 1);
		if (!strncmp(path, "..", length) && length <= 2)
			return wrong("'.' and '..' are not allowed in the path of the source",
				     path - 1);
		path += length;
	}
	return 0;
}

static int check_fleet_source(struct options *options, const char *text)
{
	const char *path = strchrnul(text, '/');
	char error[ERROR_TEXT];
	struct addresses *servers;

	options->path = strdup(path);
	options->servers = strndup(text, (size_t)(path - text));
	if (!options->path || !options->servers)
		return wrong("no memory", text);
	servers = addresses_new(options->servers, error);
	if (!servers) {
		fprintf(stderr, "ratefs: %s\n", error);
		return -1;
	}
	addresses_free(servers);
	return check_path(path);
}

static int check_directory(struct options *options, const char *text)
{
	if (!*text)
		return wrong("no directory given in the source", options->source);
	options->directory = strdup(text);
	return options->directory ? 0 : wrong("no memory", text);
}

static int check_source(struct options *options)
{
	static const struct {
		const char *prefix;
		int (*check)(struct options *options, const char *rest);
	} kinds[] = {{"local:", check_directory}, {"zk://", check_fleet_source}};

	if (!strcmp(options->source, "local"))
		return 0;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t length = strlen(kinds[i].prefix);

		if (!strncmp(options->source, kinds[i].prefix, length))
			return kinds[i].check(options, options->source + length);
	}
	return wrong("not a source (local, local:DIR or zk://HOST:PORT/PATH) or command (apply, "
		     "check, pipe, plot, rm, run, save, serve, simulate, status or top)",
		     options->source);
}

static int check_weight(struct options *options)
{
	uint64_t weight = 1;

	if (options->weight_text &&
	    (count_parse(options->weight_text, &weight) || weight < 1 || weight > WEIGHT_MAX))
		return wrong("not a weight (1 to 1000)", options->weight_text);
	options->weight = (uint32_t)weight;
	return 0;
}

/* Parses @text into @ns, which is the default already. */
static int check_duration(const char *text, uint64_t most_ns, const char *what, uint64_t *ns)
{
	if (text && (duration_parse(text, ns) || *ns < 2 * NSEC_PER_SEC || *ns > most_ns))
		return wrong(what, text);
	return 0;
}

/* Options that mean nothing to one host alone are refused there: it was meant to be in a fleet. */
static int check_fleet(struct options *options)
{
	const struct {
		const char *name;
		bool given;
	} fleet_only[] = {
		{"credentials=", options->credentials}, {"weight=", options->weight_text},
		{"right=", options->right_text},	{"session=", options->session_text},
		{"nowait", options->no_wait},
	};

	for (size_t i = 0; !options->servers && i < sizeof(fleet_only) / sizeof(*fleet_only); i++) {
		if (fleet_only[i].given)
			return wrong("only for a fleet (zk://)", fleet_only[i].name);
	}
	options->right_ns = FLEET_RIGHT_NS;
	options->session_ns = FLEET_SESSION_NS;
	if (options->credentials && !*options->credentials)
		return wrong("no file given", "credentials=");
	if (check_weight(options) ||
	    check_duration(options->right_text, RIGHT_MAX_NS, "not a right (2s to 10min)",
			   &options->right_ns) ||
	    check_duration(options->session_text, SESSION_MAX_NS, "not a session (2s to 5min)",
			   &options->session_ns))
		return -1;
	return 0;
}

static int check_bounds(struct options *options)
{
	memcpy(options->bounds, BOUNDS_DEFAULT, sizeof(options->bounds));
	for (int i = 0; i < BOUND_COUNT * 2; i++) {
		struct bound *bound = &options->bounds[i / 2];
		const char *text = options->bound_texts[i / 2][i % 2];
		uint64_t count;

		if (!text)
			continue;
		if (count_parse(text, &count) || count < 1 || count > BOUNDS_MAX[i / 2]) {
			fprintf(stderr, "ratefs: %s%s_max: not a bound (1 to %u): '%s'\n",
				i % 2 ? "user_" : "", users_bound_name((enum bound_id)(i / 2)),
				BOUNDS_MAX[i / 2], text);
			return -1;
		}
		*(i % 2 ? &bound->each : &bound->all) = (uint32_t)count;
	}
	return 0;
}

static int check_log_level(struct options *options)
{
	options->log_level = LOG_LEVEL_INFO;
	if (!options->log_level_name)
		return 0;
	for (size_t i = 0; i < sizeof(LOG_LEVELS) / sizeof(LOG_LEVELS[0]); i++) {
		if (!strcmp(options->log_level_name, LOG_LEVELS[i])) {
			options->log_level = (enum log_level)i;
			return 0;
		}
	}
	return wrong("not a log level (error, warning, info)", options->log_level_name);
}

/* A word of a line of text. */
static bool is_plain(const char *name)
{
	while ((unsigned char)*name > ' ' && *name != 0x7f)
		name++;
	return !*name;
}

static int check_host(struct options *options)
{
	char name[256];

	if (!options->host) {
		if (gethostname(name, sizeof(name)))
			return wrong("no hostname", strerror(errno));
		name[sizeof(name) - 1] = '\0';
		options->host = strdup(name);
	}
	if (!options->host || !*options->host || strlen(options->host) >= sizeof(name) ||
	    *options->host == '#' || !is_plain(options->host))
		return wrong("not a host name", options->host ? options->host : "");
	return 0;
}

/*
 * Adds the name that the kernel shows as the device, unless one is given; a comma in it would begin
 * another option. A mount by root lets others in: the modes of limiters say what they may do.
 */
static int add_fuse_options(struct options *options)
{
	char *list = NULL, *name = NULL;
	int err = 0;

	if (asprintf(&name, "fsname=%s", options->source) < 0)
		return -1;
	if (!geteuid() && !options->lets_in && !options->keeps_out)
		err = fuse_opt_add_opt(&list, "allow_other");
	/* Last, whatever options there are: commands find a ratefs by that type. */
	if (err || fuse_opt_add_opt(&list, "default_permissions") ||
	    fuse_opt_add_opt_escaped(&list, name) || fuse_opt_insert_arg(&options->fuse, 1, "-o") ||
	    fuse_opt_insert_arg(&options->fuse, 2, list) ||
	    fuse_opt_add_arg(&options->fuse, "-osubtype=ratefs"))
		err = -1;
	free(list);
	free(name);
	return err;
}

static int check(struct options *options)
{
	if (!options->source)
		return wrong("no source given", "SOURCE");
	if (check_source(options) || check_fleet(options))
		return -1;
	if (!options->mountpoint)
		return wrong("no mount point given", "MOUNTPOINT");
	if (options->config && !*options->config)
		return wrong("no file given", "config=");
	if (options->keeps_out && options->lets_in)
		return wrong("not with allow_other or allow_root", "noallow_other");
	if (check_bounds(options) || check_log_level(options) || check_host(options) ||
	    add_fuse_options(options))
		return -1;
	return 0;
}

int options_parse(struct options *options, int argc, char *argv[])
{
	/* A server gets the arguments as they are. */
	char **kept = calloc((size_t)argc + 1, sizeof(*kept));
	int err = kept ? 0 : -ENOMEM;

	*options = (struct options){0};
	if (kept && !strncmp(basename(argv[0]), "mount.", 6))
		argc = take_helper_arguments(options, argc, argv, kept);
	else if (kept)
		memcpy(kept, argv, (size_t)argc * sizeof(*kept));
	options->fuse = (struct fuse_args)FUSE_ARGS_INIT(argc, kept);
	if (!err)
		err = fuse_opt_parse(&options->fuse, options, OPTIONS, take_option);
	free(kept);
	if (!err && !options->help && !options->version)
		err = check(options);
	if (err)
		fprintf(stderr, "Try 'ratefs --help'.\n");
	return err ? EXIT_USAGE : 0;
}

void options_free(struct options *options)
{
	free(options->directory);
	free(options->servers);
	free(options->path);
	free(options->credentials);
	free(options->weight_text);
	free(options->right_text);
	free(options->session_text);
	for (int i = 0; i < BOUND_COUNT * 2; i++)
		free(options->bound_texts[i / 2][i % 2]);
	free(options->user);
	free(options->mountpoint);
	free(options->host);
	free(options->config);
	free(options->log_level_name);
	fuse_opt_free_args(&options->fuse);
}
