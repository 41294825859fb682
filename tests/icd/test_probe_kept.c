/* SPDX-License-Identifier: Apache-2.0 */
/* Kept answers of probes: which answers are kept, for how long, and for which environment. */
#include "probe.h"
#include "process.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

TEST(kept_answer, "A kept answer serves later processes.")
{
	probe_create_cache();
	EXPECT_EQ(probe_run_program(probe_query_kept), 1);
	EXPECT_EQ(probe_run_answered(probe_query_platform), 0);
	EXPECT_EQ(probe_run_program(probe_query_kept), 0);
}

static int query_twice(void)
{
	return probe_platform_reports() && probe_device_reports() ? probe_query_platform() : 1;
}

TEST(not_kept, "If no answer can be kept, a probe answers each program.")
{
	probe_create_cache();
	rmdir(probe_cache);
	strcpy(probe_cache, "/proc/nothing");
	EXPECT_EQ(probe_run_answered(query_twice), 0);
	*probe_cache = '\0';
}

/* Probes run @script.  One that hangs is given up when @is_time is true. */
static int kept_run_silent(const char *script, bool (*is_time)(void))
{
	return strstr(script, PROBE_HANGS)
		       ? probe_run_given_up(probe_silent_with_installed, is_time)
		       : probe_run_answered(probe_silent_with_installed);
}

static bool probes_have_run(void *count)
{
	return probe_count_runs() >= *(int *)count;
}

/* A probe may note a run after the program has given the probe up. */
static void expect_probes(int count)
{
	process_settles(probes_have_run, &count);
	EXPECT_EQ(probe_count_runs(), count);
}

static bool has_run_twice(void)
{
	return probe_count_runs() == 2;
}

static const struct broken {
	const char *name, *script;
} broken[] = {
	{ "killed", "echo ran >> $XDG_CACHE_HOME/ran; kill -KILL $$" },
	{ "crashes", "echo ran >> $XDG_CACHE_HOME/ran; kill -SEGV $$" },
	{ "exits", "echo ran >> $XDG_CACHE_HOME/ran; exit 1" },
	{ "hangs", "echo ran >> $XDG_CACHE_HOME/ran; " PROBE_HANGS },
	{ "says_nothing", "echo ran >> $XDG_CACHE_HOME/ran" },
	{ "floods", "echo ran >> $XDG_CACHE_HOME/ran; head -c 90000 /dev/zero >&3; exit 127" },
	{ "lies", "echo ran >> $XDG_CACHE_HOME/ran; head -c 9000 /dev/urandom >&3" },
};

TEST_EACH(
	broken_probe, struct broken, broken,
	"If a probe crashes, hangs or answers nonsense, the name is missing in this program only, "
	"and the next program starts a probe.")
{
	probe_create_cache();
	probe_install_layer(row->script);
	EXPECT_EQ(kept_run_silent(row->script, probe_has_run), 0);
	expect_probes(1);
	EXPECT_EQ(kept_run_silent(row->script, has_run_twice), 0);
	expect_probes(2);
	EXPECT_EQ(probe_count_kept(), 0);
}

TEST(missing_probe, "If the probe's file is missing, the name is missing.")
{
	probe_create_cache();
	probe_install_layer("rm $0; exit 127");
	EXPECT_EQ(probe_run_answered(probe_silent_with_installed), 0);
	/* The first run has removed the probe. */
	EXPECT_EQ(probe_run_program(probe_silent_with_installed), 0);
}

/* Runs @command for each kept file, whose path is $f. */
static void kept_damage(const char *command)
{
	char text[512];

	snprintf(text, sizeof(text), "for f in %s/climport/results/*; do %s || exit; done",
		 probe_cache, command);
	EXPECT_EQ(system(text), 0);
}

static __typeof__(posix_spawn) *real_posix_spawn;
static atomic_bool spawn_is_held, spawn_has_begun;

/* The layer calls posix_spawn() too, in a process with shared memory. */
__attribute__((visibility("default"), no_sanitize("address", "thread", "undefined"))) int
posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
	    const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
	const struct timespec pause = { 0, 10000000 };

	atomic_store(&spawn_has_begun, true);
	while (atomic_load(&spawn_is_held)) /* time: between two looks at the flag */
		syscall(SYS_nanosleep, &pause, NULL);
	return real_posix_spawn(pid, path, actions, attributes, argv, envp);
}

__attribute__((constructor)) static void find_posix_spawn(void)
{
	real_posix_spawn = (__typeof__(posix_spawn) *)dlsym(RTLD_NEXT, "posix_spawn");
}

static int silent_and_slow(void)
{
	int ret;

	atomic_store(&spawn_is_held, true);
	ret = probe_is_silent();
	atomic_store(&spawn_is_held, false);
	return ret;
}

static bool spawn_is_time(void)
{
	return atomic_load(&spawn_has_begun);
}

TEST(not_started,
     "If a busy machine does not start a probe within ten seconds, the next process starts a "
     "probe.")
{
	probe_create_cache();
	EXPECT_EQ(probe_run_given_up(silent_and_slow, spawn_is_time), 0);
	/*
	 * Either no answer is kept, or the answer of the late probe; a refusal is kept in neither
	 * case.
	 */
	EXPECT_EQ(probe_run_answered(probe_query_platform), 0);
}

static const struct age {
	const char *name, *time; /* of touch(1) */
	bool is_believed;
} ages[] = {
	{ "of_50_minutes", "50 minutes ago", true },
	{ "of_2_hours", "2 hours ago", false },
	{ "if_the_clock_goes_back_10_minutes", "now 10 minutes", true },
	{ "if_the_clock_goes_back_2_hours", "now 2 hours", false },
};

/* The kept record is replaced by a refusal, as if the driver had been repaired since. */
TEST_EACH(refusal, struct age, ages, "A kept refusal is believed for an hour.")
{
	char command[128];

	probe_create_cache();
	EXPECT_EQ(probe_run_answered(probe_query_platform), 0);
	kept_damage(EDIT_PATH " $f host=- dma_buf=- best=0");
	EXPECT_EQ(probe_run_program(probe_is_silent), 0);
	snprintf(command, sizeof(command), "touch -d '%s' $f", row->time);
	kept_damage(command);
	if (!row->is_believed) {
		EXPECT_EQ(probe_run_answered(probe_query_platform), 0);
		return;
	}
	EXPECT_EQ(probe_run_answered(probe_is_silent), 0);
	EXPECT_EQ(probe_run_answered(probe_device_is_silent), 0);
}

static const struct change_for_worse {
	const char *name, *change; /* of record_edit */
	bool is_lasting;
} changes_for_worse[] = {
	{ "none", "best=1", true },
	{ "less", "best=0", false },
};

TEST_EACH(could_be_better, struct change_for_worse, changes_for_worse,
	  "A driver whose record could be better is tested again after an hour; until then, and "
	  "where nobody may test "
	  "it, the record counts.")
{
	char command[128];

	probe_create_cache();
	EXPECT_EQ(probe_run_answered(probe_query_platform), 0);
	snprintf(command, sizeof(command), EDIT_PATH " $f %s", row->change);
	kept_damage(command);
	EXPECT_EQ(probe_run_program(probe_query_kept), 0);
	kept_damage("touch -d '2 hours ago' $f");
	EXPECT_EQ(probe_run_program(probe_query_kept), 0);
	EXPECT_EQ(probe_run_to_end(probe_query_device, NULL), 0);
	kept_damage(row->is_lasting ? "find $f -mmin +60 | grep -q ."
				    : "find $f -mmin -60 | grep -q .");
}

static int query_in_a_second(void)
{
	probe_use_installed_layer();
	return probe_query_device() || probe_query_device() || probe_count_waits() != 1 ||
	       probe_longest_wait() > 1;
}

TEST(aged, "A record that is an hour old serves queries a second later, while the driver is tested "
	   "again.")
{
	probe_create_cache();
	probe_install_layer("exec " PROBE_ANSWERS);
	EXPECT_EQ(probe_run_answered(probe_query_with_installed), 0);
	kept_damage(EDIT_PATH " $f best=0; touch -d '2 hours ago' $f");
	probe_install_layer("echo ran >> $XDG_CACHE_HOME/ran; " PROBE_HANGS);
	EXPECT_EQ(probe_run_program(query_in_a_second), 0);
	expect_probes(1);
}

static int query_as_nobody(void)
{
	if (!getuid() && (setgid(65534) || setuid(65534)))
		return 77;
	if (access(STUB_PATH, R_OK))
		return 77;
	probe_use_installed_layer();
	return probe_query_device();
}

TEST(unwritable, "A record that is an hour old stays where no other could be kept.")
{
	int status;

	probe_create_cache();
	probe_install_layer("echo ran >> $XDG_CACHE_HOME/ran; exec " PROBE_ANSWERS);
	EXPECT_EQ(probe_run_answered(probe_query_with_installed), 0);
	kept_damage(EDIT_PATH " $f best=0; touch -d '2 hours ago' $f; chmod 644 $f; "
			      "cd $(dirname $f); chmod 555 .; chmod 755 .. ../..; "
			      "chmod 666 ../../ran; chmod -R a+rX ../../lib");
	status = probe_run_program(query_as_nobody);
	kept_damage("chmod 755 $(dirname $f)");
	if (status == 77)
		test_skip("the user cannot be changed, or another cannot read the build");
	EXPECT_EQ(status, 0);
	expect_probes(1);
}

TEST(unknown_method, "A kept record of a method that this version does not have gives no name.")
{
	probe_create_cache();
	EXPECT_EQ(probe_run_answered(probe_query_platform), 0);
	kept_damage(EDIT_PATH " $f host=other");
	EXPECT_EQ(probe_run_program(probe_is_silent), 0);
}

static int query_second_device(void)
{
	cl_device_id devices[2];
	char text[4096] = "";

	if (clGetDeviceIDs(probe_get_platform(), CL_DEVICE_TYPE_ALL, 2, devices, NULL))
		return 2;
	clGetDeviceInfo(devices[1], CL_DEVICE_EXTENSIONS, sizeof(text), text, NULL);
	return strstr(text, "cl_arm_import_memory_host") ? 0 : 1;
}

TEST(more_devices, "If a device has been added, the driver is tested again.")
{
	setenv("STUB_DEVICES", "2", 1);
	probe_create_cache();
	EXPECT_EQ(probe_run_answered(query_second_device), 0);
	kept_damage(EDIT_PATH " $f count=1");
	EXPECT_EQ(probe_run_answered(query_second_device), 0);
	kept_damage("grep -q 'device 1,' $f");
	unsetenv("STUB_DEVICES");
}

static int probe_keep_with_installed(void)
{
	probe_use_installed_layer();
	setenv("CLIMPORT_PROBE", "off", 1);
	return probe_query_platform();
}

TEST(late_answer,
     "If a probe answers too late for its program, the answer is kept for the next process.")
{
	char script[1024], late[64];
	int status = 1;

	probe_create_cache();
	snprintf(late, sizeof(late), "/tmp/climport-late-%d", (int)getpid());
	snprintf(script, sizeof(script),
		 "echo ran >> $XDG_CACHE_HOME/ran; "
		 /* time: between two looks */
		 "for i in $(seq 12000); do test -d $XDG_CACHE_HOME -a ! -e %s || break; sleep "
		 "0.05; "
		 "done; exec %s \"$@\"",
		 late, PROBE_PATH);
	probe_install_layer(script);
	EXPECT_EQ(probe_run_given_up(probe_silent_with_installed, probe_has_run), 0);
	close(creat(late, 0600));
	for (int i = 0; i < 1200 && status; i++) {
		status = probe_run_program(probe_keep_with_installed);
		usleep(50000); /* time: between two looks at the kept answer */
	}
	unlink(late);
	EXPECT_EQ(status, 0);
}

static void expect_probed_each_time(void)
{
	char ran[128];

	snprintf(ran, sizeof(ran), "%s/ran", probe_cache);
	for (int time = 0; time < 2; time++) {
		unlink(ran);
		EXPECT_EQ(probe_run_answered(probe_query_with_installed), 0);
		EXPECT_EQ(probe_count_runs(), 1);
	}
}

TEST(no_library,
     "If a driver's library cannot be found, a probe tests the driver, and the answer is not kept.")
{
	probe_create_cache();
	probe_install_layer("echo ran >> $XDG_CACHE_HOME/ran; " PROBE_ANSWERS);
	setenv("STUB_UNNAMED", "2", 1);
	expect_probed_each_time();
	EXPECT_EQ(probe_count_kept(), 0);
	probe_create_cache();
	/* The probe finds the platform by itself. */
	EXPECT_EQ(probe_run_answered(probe_query_platform), 0);
	EXPECT_EQ(probe_run_program(probe_query_kept), 1);
	unsetenv("STUB_UNNAMED");
}

TEST(other_function,
     "If a driver does not name clIcdGetPlatformIDsKHR, another function identifies the driver, "
     "and the answer is kept.")
{
	probe_create_cache();
	setenv("STUB_UNNAMED", "1", 1);
	EXPECT_EQ(probe_run_answered(probe_query_platform), 0);
	EXPECT_EQ(probe_run_program(probe_query_kept), 0);
	unsetenv("STUB_UNNAMED");
}

static const struct damage {
	const char *name, *command; /* the kept file is $f */
} damages[] = {
	{ "cut", "truncate -s -3 $f" },
	{ "longer", "echo >> $f" },
	{ "byte", "sed -i 's/host_ptr/host_par/' $f" },
	{ "empty", ": > $f" },
	{ "fifo", "rm $f; mkfifo $f" },
	{ "folder", "rm $f; mkdir $f" },
	{ "writable", "chmod 0666 $f" },
	{ "link", "mv $f $f.x; ln -s $f.x $f" },
};

TEST_EACH(damaged, struct damage, damages,
	  "A kept file is ignored if the file is cut off, damaged, not a regular file, or writable "
	  "by other users.")
{
	probe_create_cache();
	EXPECT_EQ(probe_run_answered(probe_query_platform), 0);
	EXPECT_EQ(probe_run_program(probe_query_kept), 0);
	kept_damage(row->command);
	EXPECT_EQ(probe_run_program(probe_query_kept), 1);
}

TEST(other_device,
     "What a record says of a device that is there no longer does not hold for another.")
{
	probe_create_cache();
	EXPECT_EQ(probe_run_answered(probe_query_device), 0);
	kept_damage(EDIT_PATH " $f name=other");
	setenv("CLIMPORT_PROBE", "off", 1);
	EXPECT_EQ(probe_run_program(probe_query_device), 1);
	unsetenv("CLIMPORT_PROBE");
	EXPECT_EQ(probe_run_answered(probe_query_device), 0);
}

TEST(foreign_answers, "A kept file of another user is ignored.")
{
	if (getuid())
		test_skip("only root can give files away");
	probe_create_cache();
	EXPECT_EQ(probe_run_answered(probe_query_platform), 0);
	kept_damage("chown 12345 $f");
	EXPECT_EQ(probe_run_program(probe_query_kept), 1);
}

static const struct choice {
	const char *name; /* of an environment variable */
} choices[] = {
	{ "POCL_DEVICES" },	     { "HSA_ENABLE_SDMA" }, { "AMD_DEBUG" },
	{ "INTEL_DEBUG" },	     { "IGC_EnableX" },	    { "NEOReadDebugKeys" },
	{ "LIBGL_ALWAYS_SOFTWARE" }, { "RADEON_THREAD" },   { "NV_X" },
};

TEST_EACH(another_choice, struct choice, choices,
	  "An answer is kept for the environment variables that choose devices; another choice is "
	  "probed again.")
{
	probe_create_cache();
	EXPECT_EQ(probe_run_answered(probe_query_platform), 0);
	setenv(row->name, "1", 1);
	EXPECT_EQ(probe_run_program(probe_query_kept), 1);
	unsetenv(row->name);
}

TEST(log_is_no_choice,
     "A variable of the log is not part of the choice of devices, and the kept answer serves.")
{
	probe_create_cache();
	EXPECT_EQ(probe_run_answered(probe_query_platform), 0);
	setenv("CLIMPORT_LOG", "off", 1);
	EXPECT_EQ(probe_run_program(probe_query_kept), 0);
	unsetenv("CLIMPORT_LOG");
}

static const struct choice_pair {
	const char *name, *first, *second;
} choice_pairs[] = {
	{ "amd", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES" },
	{ "cuda_and_ordinal", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL" },
	{ "cuda_and_nvidia", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES" },
	{ "pocl_and_copies", "POCL_AFFINITY", "CL_NO_ZERO_COPY" },
};

TEST_EACH(another_choice_of_two, struct choice_pair, choice_pairs,
	  "If two variables change to the same value together, the choice of devices is another.")
{
	static const char *const values[] = { "0", "1", "2", "4", "8" };

	probe_create_cache();
	for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
		setenv(row->first, values[v], 1);
		setenv(row->second, values[v], 1);
		EXPECT_EQ(probe_run_program(probe_query_kept), 1);
		EXPECT_EQ(probe_run_program(probe_query_platform), 0);
		EXPECT_EQ(probe_run_program(probe_query_kept), 0);
	}
	unsetenv(row->first);
	unsetenv(row->second);
}

TEST(another_key,
     "Intel's debug keys have no common prefix, and are part of the choice if NEOReadDebugKeys is "
     "set.")
{
	probe_create_cache();
	setenv("NEOReadDebugKeys", "1", 1);
	EXPECT_EQ(probe_run_answered(probe_query_platform), 0);
	EXPECT_EQ(probe_run_program(probe_query_kept), 0);
	setenv("DisableZeroCopyForUseHostPtr", "1", 1);
	EXPECT_EQ(probe_run_program(probe_query_kept), 1);
	unsetenv("NEOReadDebugKeys");
	unsetenv("DisableZeroCopyForUseHostPtr");
}

static void list_devices(void)
{
	cl_device_id device;

	clGetDeviceIDs(probe_get_platform(), CL_DEVICE_TYPE_ALL, 1, &device, NULL);
}

static int query_listed(void)
{
	list_devices();
	return probe_query_platform();
}

static int query_kept_listed(void)
{
	list_devices();
	return probe_query_kept();
}

static const struct change {
	const char *name, *when; /* STUB_ADDS_VARIABLE */
	int (*program)(void);
} changes[] = {
	{ "while_devices_are_listed", "1", probe_query_platform },
	{ "before_the_query", "1", query_listed },
	{ "at_the_start", "2", probe_query_platform },
};

TEST_EACH(changed_by_driver, struct change, changes,
	  "A driver that changes the environment changes no choice of the program's: the platform "
	  "has "
	  "the name, and the kept answer serves programs before and after the change.")
{
	probe_create_cache();
	setenv("STUB_ADDS_VARIABLE", row->when, 1);
	setenv("NEOReadDebugKeys", "1", 1); /* all variables count */
	EXPECT_EQ(probe_run_answered(row->program), 0);
	EXPECT_EQ(probe_run_program(probe_query_kept), 0);
	EXPECT_EQ(probe_run_program(query_kept_listed), 0);
	unsetenv("STUB_ADDS_VARIABLE");
	unsetenv("NEOReadDebugKeys");
}

static int query_after(const char *name)
{
	probe_get_platform();
	setenv(name, "7", 1);
	return probe_query_device();
}

static int query_then_change(void)
{
	int ret = probe_query_platform();

	setenv("CL_STUB_LATE", "7", 1);
	return ret || probe_query_device();
}

static int query_after_change(void)
{
	return query_after("CL_STUB_LATE");
}

static int query_after_other_change(void)
{
	return query_after("LATE");
}

static int query_changed_kept(void)
{
	setenv("CL_STUB_LATE", "7", 1);
	return probe_query_kept();
}

TEST(changed_by_program, "If the program changes a variable of drivers after the start, the record "
			 "is kept for programs that "
			 "start with the change.")
{
	probe_create_cache();
	EXPECT_EQ(probe_run_answered(query_after_change), 0);
	EXPECT_EQ(probe_run_program(probe_query_kept), 1);
	EXPECT_EQ(probe_run_program(query_changed_kept), 0);
}

TEST(changed_without_influence,
     "If the program changes another variable, the record is kept for all programs.")
{
	probe_create_cache();
	EXPECT_EQ(probe_run_answered(query_after_other_change), 0);
	EXPECT_EQ(probe_run_program(probe_query_kept), 0);
}

TEST(changed_after_query, "A record from before a change by the program stays, and none is added.")
{
	int before;

	probe_create_cache();
	EXPECT_EQ(probe_run_answered(probe_query_platform), 0);
	before = probe_count_kept();
	EXPECT_EQ(probe_run_program(query_then_change), 0);
	EXPECT_EQ(probe_count_kept(), before);
}

static int with_layer_below(void)
{
	setenv("OPENCL_LAYERS", OTHER_LAYER_PATH ":" LAYER_PATH, 1);
	return probe_query_kept();
}

static int probe_with_layer_below(void)
{
	setenv("OPENCL_LAYERS", OTHER_LAYER_PATH ":" LAYER_PATH, 1);
	return probe_query_platform();
}

static int with_layer_above(void)
{
	setenv("OPENCL_LAYERS", LAYER_PATH ":" OTHER_LAYER_PATH, 1);
	return probe_query_kept();
}

TEST(another_layer,
     "A kept answer holds for a driver together with the layers below; layers above do not matter.")
{
	probe_create_cache();
	EXPECT_EQ(probe_run_answered(probe_query_platform), 0);
	EXPECT_EQ(probe_run_program(with_layer_above), 0);
	EXPECT_EQ(probe_run_program(with_layer_below), 1);
	EXPECT_EQ(probe_run_answered(probe_with_layer_below), 0);
	EXPECT_EQ(probe_run_program(with_layer_below), 0);
}
