// The table of commands: words, operands, options and help. See arguments.h.
#include "client/commands.h"

namespace phybin::client {
namespace {

constexpr OptionRule kCommon[] = {
    {"--socket", "PATH", "the daemon's socket"},
    {"--json", nullptr, "print JSON, with numbers unrounded"},
    {"--help", nullptr, "say this and exit"},
    {"--version", nullptr, "say the version and exit"},
};

constexpr OptionRule kStatusOptions[] = {
    {"--wait", nullptr, "first wait until the daemon is idle (as settle)"},
    {"--timeout", "SECONDS", "with --wait: give up after that long, with status 1"},
};

constexpr OptionRule kSettleOptions[] = {
    {"--timeout", "SECONDS", "give up after that long, with status 1"},
};

constexpr OptionRule kTopOptions[] = {
    {"--once", nullptr, "print one round and exit"},
    {"--interval", "SECONDS", "time between rounds: 0.1 to 3600, default 2"},
};

constexpr OptionRule kScopeOptions[] = {
    {"--program", "NAME", "of programs of this name only (the file's name, without its folders)"},
    {"--uid", "USER", "of this user only: a number or a name"},
};

constexpr OptionRule kPolicySetOptions[] = {
    {"--shared-translation-cache", "VALUE", "auto, on, read or off"},
    {"--program", "NAME", "for programs of this name only (the file's name, without its folders)"},
    {"--uid", "USER", "for this user only: a number or a name"},
};

constexpr OptionRule kModuleOption[] = {
    {"--module", "PATH", "images of this program or library only"},
};

constexpr OptionRule kPurgeOptions[] = {
    {"--older-than", "AGE", "what nobody used for so long: a number with s, m, h, d or w"},
    {"--module", "PATH", "images of this program or library"},
    {"--all", nullptr, "every image"},
};

constexpr OptionRule kExportOptions[] = {
    {"--module", "PATH", "of this program or library only"},
    {"--key", "FILE", "the secret key that signs the archive (`phybinctl key generate`)"},
    {"--profiles-only", nullptr, "no images, only entry points"},
};

constexpr OptionRule kImportOptions[] = {
    {"--profiles-only", nullptr, "leave out the images"},
};

constexpr OptionRule kDoctorOptions[] = {
    {"--root", "DIR",
     "look at the files of a machine recorded below DIR (/proc, /sys, /etc,\n"
     "/var/log) instead of this machine"},
    {"--worker", "COMMAND", "what to start x86_64 programs with, default /usr/bin/phybin"},
    {"--strict", nullptr, "exit status 1 for warnings too"},
};

constexpr OptionRule kGpuOptions[] = {
    {"--root", "DIR", "look at the files of a machine recorded below DIR (/proc, /sys)"},
    {"--warn", "PERCENT", "warn where so much of a memory is used, default 90"},
};

constexpr OptionRule kMaintenanceOptions[] = {
    {"--older-than", "AGE",
     "remove images that nobody used for so long, default 90d: a number with\n"
     "s, m, h, d or w"},
    {"--dry-run", nullptr, "only say what would be removed; nothing is verified"},
    {"--tmp-only", nullptr, "clean up left-over folders only; no daemon is needed"},
    {"--tmp", "DIR", "where left-over folders are, default /tmp"},
    {"--tmp-older-than", "AGE", "leave folders in which anything changed since then, default 1d"},
};

constexpr OptionRule kMetricsOptions[] = {
    {"--textfile", "FILE", "write to FILE, at once as a whole; for node-exporter's textfile collector"},
};

constexpr Command kCommands[] = {
    {"status", "", 0, 0, kStatusOptions, "what the daemon is doing", "", run_status},
    {"settle", "", 0, 0, kSettleOptions, "wait until the daemon has nothing left to do",
     "Images that it would make a little later are begun at once. For scripts: what ran before is in the cache\n"
     "afterwards.",
     run_settle},
    {"top", "", 0, 0, kTopOptions, "translated programs, live",
     "On a terminal until q is pressed. In a pipe each round is printed below the last one, with --json as one\n"
     "line. Users see their own programs; root, the daemon's user and the group phybin see all.\n\n"
     "  NODE        memory node (NUMA) that the program runs on\n"
     "  MAPPED      bytes of the images it uses, shared with others\n"
     "  PRIVATE     bytes of code it translated for itself\n"
     "  HITS        share of its guest instructions that came from images\n"
     "  TRANSLATED  guest instructions that it translated itself, and how many in a second",
     run_top},
    {"policy get", "", 0, 0, kScopeOptions, "show who may share translations",
     "With --program or --uid: the value that holds for such a program. Without: all settings, and what is in\n"
     "force for the programs that run now.",
     run_policy_get},
    {"policy set", "", 0, 0, kPolicySetOptions, "say who may share translations",
     "At once, for running programs too, and until it is set again or unset.\n\n"
     "  on    use shared images and contribute to them\n"
     "  read  use shared images, contribute nothing\n"
     "  off   private translations only\n"
     "  auto  the daemon decides by what it measures\n\n"
     "The most specific setting wins: program and user, then program, then user, then the general one. A program\n"
     "started with --shared-translation-cache gets no more than it asked for and no more than is set here. Users\n"
     "may set what holds for themselves (--uid is their own if it is left out); everything else needs root or\n"
     "the group phybin.",
     run_policy_set},
    {"policy unset", "", 0, 0, kScopeOptions, "remove a setting", "", run_policy_unset},
    {"cache list", "", 0, 0, kModuleOption, "list the images", "", run_cache_list},
    {"cache show", "ID", 1, 1, {}, "show everything about one image", "", run_cache_show},
    {"cache verify",
     "",
     0,
     0,
     {},
     "read every image and compare it with its digest",
     "Damaged images are removed. Needs root or the group phybin. Exit status 1 if there were any.",
     run_cache_verify},
    {"cache purge", "", 0, 0, kPurgeOptions, "remove images",
     "Running programs go on with the images that they have mapped. Needs root or the group phybin.",
     run_cache_purge},
    {"cache export", "FILE", 1, 1, kExportOptions, "write images and profiles to a file",
     "Images that serve everybody, and the entry points that they are made from (profiles). Users export what they\n"
     "see with `cache list`, and their own profiles; root and the group phybin all.",
     run_cache_export},
    {"cache import", "FILE", 1, 1, kImportOptions, "take images and profiles over from a file",
     "Images need root, and a signature by a key in /etc/phybin/keys; some are translated again and compared.\n"
     "Everybody may import profiles for his own programs. An archive with anything wrong in it is refused whole.",
     run_cache_import},
    {"doctor", "", 0, 0, kDoctorOptions, "check whether this machine is set up well for x86_64 programs",
     "One line for each check: OK, warn (programs run, but slower or not all of them) or fail, the name of the\n"
     "check, what is the case, and what to do. What a user may open is checked for the user who asks, and the\n"
     "kernel's log may be root's: run it as both.\n\n"
     "  cpu, kernel, page-size      what translations need\n"
     "  binfmt, binfmt-others       the kernel starts PhyBin for x86_64 programs, and nothing else\n"
     "  vm.*, kernel.*              settings of the kernel (sysctl)\n"
     "  configuration, loader       /etc/phybin.conf; the loader of dynamic x86_64 programs\n"
     "  pci-bars                    memory windows of cards that got no room, by the kernel's log\n"
     "  amdgpu-*, dev/*             driver and devices of AMD GPUs\n"
     "  daemon, version, cache, compiler\n"
     "                              the daemon\n"
     "  run-by-worker, run-by-kernel\n"
     "                              a small x86_64 program is run\n\n"
     "With --root the daemon is asked only if --socket is given, and the program run only if --worker is.\n"
     "Exit status 1 if a check failed; warnings count with --strict.",
     run_doctor},
    {"gpu", "", 0, 0, kGpuOptions, "memory of graphics cards, and who holds it",
     "  VRAM           the card's own memory\n"
     "  GTT            memory of the machine that the card reaches\n"
     "  fragmentation  how much of free VRAM is in pieces under 2 MiB, which cost the card more translations of\n"
     "                 addresses; the kernel tells root alone\n\n"
     "Processes are those that the kernel tells this user of. Exit status 1 if there is a warning.",
     run_gpu},
    {"metrics", "", 0, 0, kMetricsOptions, "counters and gauges of the daemon, as OpenMetrics text",
     "For Prometheus and what understands its format: sums over the machine, for everybody, without names of\n"
     "programs and users. With --json the text is a member of an object.",
     run_metrics},
    {"maintenance", "", 0, 0, kMaintenanceOptions, "verify images, remove what serves nobody",
     "What phybin-maintenance.timer has run each week. Running programs are not disturbed.\n\n"
     "Images are removed when they are damaged, when another build of the translator made them, when nobody used\n"
     "them for --older-than, and when nobody used them for a week and their program or library has changed or is\n"
     "gone. This needs root or the group phybin. Images whose file system does not answer within 10 seconds stay.\n\n"
     "Folders /tmp/phybin-jit-* that translators left behind are removed unless a process uses them, a lock is\n"
     "held on anything in them, something in them changed lately, or they hold another user's files or another\n"
     "file system. Root cleans up after everybody, others after themselves.\n\n"
     "Exit status: 0 all done, whatever was found; 1 something could not be done; 3 no daemon answers, and the\n"
     "folders were cleaned up all the same.",
     run_maintenance},
    {"config check",
     "[FILE]",
     0,
     1,
     {},
     "check /etc/phybin.conf, or FILE",
     "Prints every line that is wrong, whatever section it stands in. Exit status 1 if there is one. No daemon is\n"
     "needed.",
     run_config_check},
    {"key generate",
     "FILE",
     1,
     1,
     {},
     "make a key for signing exports",
     "Writes the secret key to FILE and the public one to FILE.pub. Machines that have FILE.pub in\n"
     "/etc/phybin/keys accept archives signed with FILE.",
     run_key_generate},
};

}  // namespace

std::span<const Command> commands() { return kCommands; }
std::span<const OptionRule> common_options() { return kCommon; }

}  // namespace phybin::client
