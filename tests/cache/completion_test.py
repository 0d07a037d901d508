"""The completion script of bash offers every command and option that --help knows, and no others."""

import re
import subprocess
import unittest

from phybind import PHYBINCTL, ROOT

SCRIPT = ROOT / "etc/completion/phybinctl"


def complete(*words):
    """What bash offers behind these words; the last one is begun."""
    quoted = " ".join(f"'{word}'" for word in (PHYBINCTL, *words))
    program = f"""source {SCRIPT}
        COMP_WORDS=({quoted}) COMP_CWORD={len(words)}
        _phybinctl
        printf '%s\\n' "${{COMPREPLY[@]}}" """
    result = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)
    assert result.stderr == "", result.stderr
    return result.stdout.split()


def help_of(*words):
    return subprocess.run([PHYBINCTL, *words, "--help"], capture_output=True, text=True, check=True).stdout


class Completion(unittest.TestCase):
    def commands(self):
        lines = help_of().split("Commands:\n")[1].split("\n\n")[0].splitlines()
        return [tuple(word for word in line[2:25].split("  ")[0].split() if re.fullmatch("[a-z]+", word))
                for line in lines]

    def test_commands(self):
        commands = self.commands()
        self.assertEqual({word for word in complete("") if word[0] != "-"}, {command[0] for command in commands})
        for first in {command[0] for command in commands if len(command) == 2}:
            self.assertEqual({word for word in complete(first, "") if word[0] != "-"},
                             {command[1] for command in commands if command[0] == first}, first)

    def test_options(self):
        for command in self.commands():
            known = set(re.findall(r"^  (--[a-z-]+)", help_of(*command).split("Options:")[1], re.MULTILINE))
            self.assertEqual(set(complete(*command, "--")), known, command)

    def test_options_with_values_are_known(self):
        script = SCRIPT.read_text()
        for command in self.commands():
            for option in re.findall(r"^  (--[a-z-]+)=", help_of(*command), re.MULTILINE):
                self.assertIn(f" {option} ", re.search(r"valued='(.*)'", script).group(1))

    def test_values(self):
        self.assertEqual(complete("policy", "set", "--shared-translation-cache", "=", "o"), ["on", "off"])
        self.assertEqual(complete("policy", "set", "--shared-translation-cache", "="), ["auto", "on", "read", "off"])
        self.assertIn("root", complete("policy", "get", "--uid", "ro"))
        self.assertEqual(complete("--socket", "/some/where", "cache", "pur"), ["purge"])
        self.assertEqual(complete("top", "--interval", ""), [])


if __name__ == "__main__":
    unittest.main()
