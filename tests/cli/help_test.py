"""Help that a newcomer understands: everywhere, complete, and true."""

import json
import re
import shlex
import unittest

from program import ProgramTest, npy, run, safetensors

VERBS = ("tour", "explain", "prove", "plot", "practice", "cards", "explore", "lab", "list", "table", "apply", "attend", "inspect",
         "compare", "check", "diagnose", "positions", "convert")


def cards():
    """What `posenc list --json` says of each scheme: the one list."""
    return {card["scheme"]: card for card in json.loads(run("list", "--json").out)}


def flags_of(card):
    """The flags that a scheme's help must list: its fields as JSON has them, and a trained table that a file holds."""
    flags = [field.replace("_", "-") for field in card["defaults"] if field != "scheme"]
    table = card["trained_table"]
    return flags + (["table"] if table and None not in table["shape"] else [])


class Help(ProgramTest):
    def help(self, *arguments):
        outcome = self.succeeds(*arguments)
        self.assertEqual(outcome.err, "")
        for line in outcome.text.splitlines():
            self.assertLessEqual(len(line), 100, line)
            self.assertEqual(line, line.rstrip())
        self.assertNotIn("\x1b", outcome.text, "no colour in a pipe")
        return outcome.text

    def test_overview(self):
        text = self.help()
        self.assertEqual(text, self.help("--help"))
        self.assertEqual(text, self.help("-h"))
        self.assertEqual(text, self.help("help"))
        for verb in VERBS:
            self.assertRegex(text, rf"(?m)^  {verb} +\S")
        self.assertIn("Examples:", text)

    def test_every_verb(self):
        for verb in VERBS:
            text = self.help(verb, "--help")
            self.assertEqual(text, self.help("help", verb))
            self.assertTrue(text.startswith(f"posenc {verb}: "))
            for part in (f"Usage: posenc {verb}", "Options:", "--help", "Examples:"):
                self.assertIn(part, text)

    def test_every_scheme_lists_exactly_its_fields(self):
        for verb in ("table", "apply", "attend", "prove", "plot"):
            for scheme, card in cards().items():
                text = self.help(verb, scheme, "--help")
                own = text.split(f"Fields of {scheme}:")[1].split("Options of")[0]
                self.assertEqual(re.findall(r"(?m)^  --([a-z0-9_-]+)", own), flags_of(card))

    def test_the_list_itself(self):
        listed = cards()
        self.assertEqual(flags_of(listed["none"]), [])
        self.assertEqual(flags_of(listed["learned"]), ["rows", "width", "offset", "table"])
        self.assertEqual(flags_of(listed["rope"]), ["dims", "base", "layout", "sign", "first-dim", "sections",
                                                    "section-order", "scaling"])
        self.assertEqual(flags_of(listed["t5"]), ["heads", "buckets", "max-distance", "bidirectional", "table"])
        self.assertEqual(flags_of(listed["shaw"]), ["left", "right", "order", "with-keys", "with-values", "beyond"])
        tables = {name: card["trained_table"]["axes"] for name, card in listed.items() if card["trained_table"]}
        known = {"learned": ["rows", "width"], "t5": ["buckets", "heads"], "shaw": ["rows", "features"],
                 "deberta": ["rows", "features"], "swin": ["rows", "heads"]}
        self.assertEqual(tables, tables | known)
        self.assertEqual(listed["swin"]["trained_table"]["shape"], [169, 4])
        self.assertEqual([card["scheme"] for card in listed.values() if (card["trained_table"] or {}).get("for_keys_too")],
                         ["deberta"])
        needs = {name: card["needs_length"] for name, card in listed.items()}
        self.assertEqual(needs, needs | {"rope": None, "alibi": None, "kerple": "distances", "sandwich": "distances",
                                         "fire": "positions"})

    def test_defaults_are_those_of_the_scheme(self):
        for scheme, card in cards().items():
            text = " ".join(self.help("table", scheme, "--help").split())
            for field in flags_of(card):
                value = card["defaults"].get(field.replace("-", "_"))
                if field == "table" or isinstance(value, (list, dict)):
                    continue
                (shown,) = re.findall(rf"--{field} [A-Z]+ .*?\(default ([^)]+)\)", text)[:1]
                if isinstance(value, bool):
                    value = str(value).lower()
                self.assertEqual(shown, value if isinstance(value, str) else f"{value:g}")

    def test_choices_name_their_values(self):
        text = self.help("table", "sinusoidal", "--help")
        self.assertIn("one of interleaved, sin-cos, cos-sin (default interleaved)", text)
        self.assertIn("one of paper, inclusive (default paper)", text)
        self.assertIn("one of refuse, trim, zero (default refuse)", text)

    def test_examples_work(self):
        self.write("x.npy", npy("f32", [2, 4096, 4], [0] * (2 * 4096 * 4)))
        self.write("wpe.npy", npy("f32", [4096, 4], [0] * (4096 * 4)))
        self.write("q.npy", npy("f32", [1, 2, 16, 8], [0] * 256))
        self.write("ids.npy", npy("i64", [4096], range(4096)))
        self.write("model.safetensors", safetensors({"wpe.weight": ("F32", [4096, 4], [0] * (4096 * 4))}))
        self.write("t5.npy", npy("f32", [32, 8], [0] * 256))
        llama = '{"model_type": "llama", "head_dim": %d, "num_hidden_layers": 1}'
        self.write("config.json", (llama % 8).encode())
        for verb in ("list", "table", "apply", "attend", "plot"):
            if verb == "attend":
                self.write("config.json", (llama % 64).encode())
                for name in "qkv":
                    self.write(f"{name}.npy", npy("f32", [8, 16, 64], [0.5] * (8 * 16 * 64)))
            examples = self.help(verb, "--help").split("Examples:\n")[1].strip().splitlines()
            self.assertGreaterEqual(len(examples), 2)
            for example in examples:
                program, *arguments = shlex.split(example)
                self.assertEqual(program, "posenc")
                if "-o" in arguments:
                    arguments.append("--force")
                self.succeeds(*arguments, cwd=self.folder)

    def test_version(self):
        self.assertRegex(self.help("--version"), r"\Aposenc \d+\.\d+\.\d+\n\Z")


class CommandTable(ProgramTest):
    """`posenc help --json`: the declarations that help, range messages and completions follow from."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.table = json.loads(run("help", "--json").out)

    def flags(self):
        for verb in self.table["verbs"]:
            for flag in verb["flags"]:
                yield verb["name"], flag

    def test_every_verb_flag_and_field_is_there(self):
        self.assertEqual(tuple(verb["name"] for verb in self.table["verbs"]), VERBS)
        for verb in self.table["verbs"]:
            text = self.succeeds(verb["name"], "--help").text
            shown = re.findall(r"(?m)^  (?:-\w, |    )(--[a-z0-9-]+)", text.split("Options:")[1])
            self.assertEqual(sorted(shown), sorted(flag["names"][0] for flag in verb["flags"]))
            self.assertEqual("Schemes:" in text, verb["takes_scheme"])
        for scheme in self.table["schemes"]:
            card = cards()[scheme["name"]]
            self.assertEqual([field["names"][0][2:] for field in scheme["fields"]], flags_of(card))

    def test_help_says_the_default(self):
        seen = 0
        for verb, flag in self.flags():
            if "default" not in flag:
                continue
            seen += 1
            self.assertTrue(flag["help"].endswith(f"(default {flag['default']})"), flag)
        self.assertGreater(seen, 15)
        for verb, flag in self.flags():
            self.assertLessEqual(len(re.findall(r"\bdefault\b", flag["help"])), 1, f"{verb}: two defaults: {flag}")

    def test_values_outside_a_range_are_refused(self):
        seen = 0
        for verb, flag in self.flags():
            name = flag["names"][0]
            for bound, step in (("least", -1), ("most", 1)):
                if bound not in flag:
                    continue
                seen += 1
                value = f"{float(flag[bound]) + step:.17g}" if flag["metavar"] == "X" else str(int(flag[bound]) + step)
                self.refused(verb, f"{name}={value}", says=f"{name}: {value}")
        self.assertGreater(seen, 20)

    def test_words_that_are_no_choice_are_refused(self):
        later = {"--backend", "--engine", "--table-type", "--arithmetic"}  # refused by the library, when they are used
        seen = 0
        for verb, flag in self.flags():
            name = flag["names"][0]
            if "choices" not in flag or name in later:
                continue
            seen += 1
            self.refused(verb, name, "zzz", says=f"{name}: 'zzz' is not one of {', '.join(flag['choices'])}")
        self.assertGreater(seen, 10)

    def test_arguments_name_their_choices(self):
        (plot,) = (verb for verb in self.table["verbs"] if verb["name"] == "plot")
        (kind,) = plot["arguments"]
        self.assertEqual(kind["names"], ["KIND"])
        self.assertIn("waves", kind["choices"])


class UnknownVerb(ProgramTest):
    def test_suggestion(self):
        self.refused("tabel", "sinusoidal", says="unknown command 'tabel' (did you mean 'table'?)")
        self.refused("lsit", says="did you mean 'list'?")

    def test_bench_is_elsewhere(self):
        for words in (("bench",), ("bench", "table", "--json"), ("bench", "--help"), ("help", "bench")):
            self.refused(*words, says="unknown command 'bench' (in posenc's source tree, ./run bench measures speed)")

    def test_nothing_near(self):
        self.refused("frobnicate", says=f"unknown command 'frobnicate' (choose from: {', '.join(VERBS)})")
        self.refused("--frobnicate", says="unknown option '--frobnicate'")
        self.refused("", says="unknown command ''")

    def test_words_that_a_verb_does_not_take(self):
        self.refused("list", "sinusoidal", "rope", says="unexpected argument 'rope'")
        self.refused("tour", "--fast", says="unknown option --fast")


class List(ProgramTest):
    def test_backends_say_why_they_are_absent(self):
        backends = {entry["backend"]: entry for entry in json.loads(self.succeeds("list", "--backends", "--json").out)}
        self.assertEqual(list(backends), ["cpu", "reference", "cuda"])
        lines = self.succeeds("list", "--backends").text.splitlines()
        self.assertEqual(len(lines), 3)
        for line, entry in zip(lines, backends.values()):
            self.assertTrue(line.startswith(entry["backend"]))
            self.assertEqual("absent: " in line, not entry["can_run"])
            self.assertIn(entry["why_absent"], line)
        if not backends["cuda"]["can_run"]:
            reason = backends["cuda"]["why_absent"]
            self.refused("table", "sinusoidal", "--backend", "cuda", says=f"cuda cannot run here: {reason}")

    def test_every_scheme_with_its_family_formula_and_users(self):
        text = self.succeeds("list").text
        for card in json.loads(self.succeeds("list", "--json").out):
            line = next(line for line in text.splitlines() if line.startswith(card["scheme"] + " "))
            self.assertEqual(line.split()[1], card["family"])
            words = " ".join(text[text.index(line):].split())
            self.assertIn(card["formula"], words)
            self.assertIn("used by: " + card["used_by"], words)
        self.assertLessEqual(max(map(len, text.splitlines())), 100)

    def test_json(self):
        cards = json.loads(self.succeeds("list", "--json").out)
        names = [card["scheme"] for card in cards]
        self.assertEqual(names[:4], ["none", "sinusoidal", "learned", "rope"])
        self.assertEqual(len(names), len(set(names)))
        self.assertGreaterEqual(len(names), 14)
        for card in cards:
            self.assertEqual(list(card), ["scheme", "family", "formula", "used_by", "trained_table", "needs_length",
                                          "defaults"])
            self.assertEqual(card["defaults"]["scheme"], card["scheme"])


if __name__ == "__main__":
    unittest.main()
