"""Practice: by pipe and at a terminal, with progress that survives whatever happens to it."""

import datetime
import fcntl
import json
import os
import math
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import termios
import threading
import time
import unittest

from program import POSENC, ProgramTest, run


class Practice(ProgramTest):
    def setUp(self):
        super().setUp()
        self.env = {**os.environ, "XDG_DATA_HOME": self.path("data"), "TZ": "UTC"}
        self.progress_path = self.path("data/posenc/practice.json")

    def plan(self, *arguments):
        return json.loads(self.succeeds("practice", "--json", *arguments, env=self.env).out)["items"]

    def practice(self, lines, *arguments, env=None):
        text = "".join(f"{line}\n" for line in lines)
        return self.succeeds("practice", *arguments, env=env or self.env, input=text.encode(), stdin=None)

    def progress(self):
        with open(self.progress_path, encoding="utf-8") as file:
            return json.load(file)

    @staticmethod
    def right_choice(item):
        return str([choice["right"] for choice in item["choices"]].index(True) + 1)

    def right_lines(self, item):
        if item["kind"] == "fill-in":
            return [item["shown"]]
        return [self.right_choice(item)] if item.get("choices") else ["", "4"]


class Json(Practice):
    def test_the_same_seed_gives_the_same(self):
        arguments = ("practice", "--json", "--seed", 7, "--count", 30)
        self.assertEqual(self.succeeds(*arguments).out, self.succeeds(*arguments).out)
        self.assertNotEqual(self.succeeds(*arguments).out, self.succeeds("practice", "--json", "--seed", 8, "--count", 30).out)
        self.assertFalse(self.files(), "no progress is read or kept")

    def test_kinds_and_counts(self):
        for kind, name in (("questions", "question"), ("cards", "card"), ("fill-ins", "fill-in")):
            items = self.plan("--kind", kind, "--count", 25, "--seed", 1)
            self.assertEqual([item["kind"] for item in items], [name] * 25)
        self.assertEqual({item["kind"] for item in self.plan("--seed", 1)}, {"question", "card", "fill-in"})
        self.assertEqual(len(self.plan("--kind", "fill-ins", "--count", 500, "--seed", 1)), 500, "endless")

    def test_questions_for_engineers_come_last(self):
        levels = [item["tags"][-1] for item in self.plan("--kind", "questions", "--count", 100, "--seed", 1)]
        self.assertEqual(levels, sorted(levels, reverse=True))
        self.assertEqual(set(levels), {"learner", "engineer"})
        for item in self.plan("--tag", "engineer", "--count", 5, "--seed", 1):
            self.assertIn("engineer", item["tags"])

    def test_tags(self):
        for item in self.plan("--tag", "alibi", "--count", 100, "--seed", 1, "--kind", "cards"):
            self.assertIn("alibi", item["tags"])
        for item in self.plan("--tag", "pe-value", "--count", 5, "--seed", 1):
            self.assertEqual(item["id"], "pe-value")

    def test_commands_of_fill_ins_show_the_answer(self):
        seen = set()
        for item in self.plan("--kind", "fill-ins", "--count", 40, "--seed", 3):
            if item["command"] and item["id"] not in seen:
                seen.add(item["id"])
                program, *arguments = shlex.split(item["command"])
                self.assertEqual(program, "posenc")
                text = self.succeeds(*arguments).text
                near = [word for word in text.replace("|", " ").split() if self.is_near(word, item)]
                self.assertTrue(near, f"{item['command']}\n{text}\n{item['shown']}")
        self.assertGreaterEqual(len(seen), 4)

    @staticmethod
    def is_near(word, item):
        try:
            return abs(float(word) - item["answer"]) <= max(item["tolerance"], 0.006 * abs(item["answer"]))
        except ValueError:
            return False

    def test_list(self):
        listed = json.loads(self.succeeds("practice", "--list", "--json").out)
        self.assertGreaterEqual(len(listed["questions"]), 40)
        self.assertGreaterEqual(len(listed["cards"]), 40)
        self.assertGreaterEqual(len(listed["fill_ins"]), 12)
        text = self.succeeds("practice", "--list", env=self.env).text
        self.assertEqual(len(text.splitlines()), sum(map(len, listed.values())))
        self.assertIn("  new ", text)


class Piped(Practice):
    def test_all_right(self):
        items = self.plan("--seed", 11, "--count", 12)
        text = self.practice([line for item in items for line in self.right_lines(item)], "--seed", 11, "--count", 12).text
        self.assertIn("12 answered, 12 correct.", text)
        self.assertIn("12 of 12 ·", text)
        self.assertNotIn("\x1b", text, "no colour in a pipe")
        self.assertRegex(text, r"Due: 6 on [0-9-]+, 6 on [0-9-]+\.")
        progress = self.progress()
        self.assertEqual((progress["format"], progress["version"]), ("posenc-practice", 2))
        self.assertEqual(sorted(progress["items"]), sorted(item["id"] for item in items))
        self.assertEqual([entry[2] for entry in progress["log"]], [item["id"] for item in items])
        for entry in progress["log"]:
            self.assertAlmostEqual(entry[0], time.time(), delta=600)
            self.assertIn(entry[3], (3, 4))

    def test_every_mistake_is_named(self):
        named = 0
        for item in self.plan("--kind", "fill-ins", "--seed", 5, "--count", 18):
            seed = int(item["seed"])
            for mistake in item["mistakes"][:3]:
                typed = f"{mistake['value']:.{item['decimals']}f}"
                arguments = ("--kind", "fill-ins", "--tag", item["id"], "--seed", seed, "--count", 1, "--no-progress")
                if self.plan(*arguments)[0]["prompt"] != item["prompt"]:
                    continue
                # twice wrong; then the same kind with other numbers, where the input ends
                text = " ".join(self.practice([typed, typed], *arguments).text.split())
                self.assertIn(f"{mistake['name']}: {mistake['because']}", text)
                self.assertIn(f"The answer is {item['shown']}.", text)
                self.assertIn("again · fill-in", text)
                self.assertIn(mistake["name"] + " (2 times)", text.partition("Mistakes")[2])
                named += 1
        self.assertGreaterEqual(named, 30)

    def test_wrong_choice_is_explained_and_comes_again(self):
        arguments = ("--kind", "questions", "--tag", "order-equivariant", "--seed", 2)
        (item,) = self.plan(*arguments)
        wrong = next(i for i, choice in enumerate(item["choices"]) if not choice["right"])
        # when it comes back, the choices are shuffled again and the right one has moved
        again = self.practice([wrong + 1], *arguments).text.partition("again · question")[2]
        right = next(choice["text"] for choice in item["choices"] if choice["right"])
        shown = " ".join(again.split())
        (moved,) = re.findall(r"(\d) " + re.escape(right.replace("`", "")), shown)
        self.assertNotEqual(moved, self.right_choice(item))
        os.remove(self.progress_path)
        text = " ".join(self.practice([wrong + 1, moved], *arguments).text.split())
        self.assertEqual(text.count("Source: " + item["source"]), 2)
        self.assertIn("Not that one. " + item["choices"][wrong]["because"], text.replace("`", ""))
        self.assertIn("again · question", text)
        self.assertIn("1 answered, 0 correct.", text)
        self.assertEqual([entry[3:5] for entry in self.progress()["log"]], [[1, 0], [3, 1]])
        self.assertEqual(self.progress()["items"]["order-equivariant"]["lapses"], 1)

    def test_keys(self):
        arguments = ("--kind", "questions", "--tag", "order-equivariant", "--seed", 2)
        (item,) = self.plan(*arguments)
        text = self.practice(["9", "x", "", "?", self.right_choice(item), "q"], *arguments).text
        self.assertEqual(text.count("ype a number from 1 to 4"), 3)
        self.assertIn("Hint: ", text)
        self.assertEqual(self.progress()["log"][0][3], 2, "with a hint it was hard")
        self.assertIn("No answers.", self.practice(["s"], "--kind", "cards", "--count", 1).text)
        self.assertIn("No answers.", self.practice(["q"], "--kind", "cards").text)
        text = self.practice(["", "5", "0", "2", "", "4"], "--kind", "cards", "--count", 1, "--no-progress").text
        self.assertEqual(text.count("Type a number from 1 to 4, or s, q."), 2)
        self.assertIn("Progress was not saved", text)
        text = self.practice(["?", "abc", "1e9", "q"], "--kind", "fill-ins", "--count", 1, "--no-progress").text
        for words in ("Hint: ", "That is not a number.", "it matches no common mistake", "Try again."):
            self.assertIn(words, text)

    def test_a_path_for_beginners(self):
        text = self.practice(["q"], "--path").text
        self.assertIn("> 1. Why position matters", text)
        self.assertIn("Goal: Explain what attention does to a permuted sentence", text)
        self.assertIn("Read: posenc explain dog-bites-man", text)
        self.assertIn("1 of 10 · question · Why position matters", text)
        listed = self.practice([], "--path", "--list").text
        self.assertIn("order-why", listed)
        self.assertNotIn("rope-what", listed)
        fill_ins = [line for line in listed.splitlines() if line.startswith("fill-in ")]
        self.assertTrue(fill_ins and all("softmax-weight" in line for line in fill_ins), "only of topics already met")

    def test_the_solution_on_request(self):
        arguments = ("--kind", "fill-ins", "--tag", "pe-value", "--count", 1, "--seed", 3, "--no-progress")
        (item,) = self.plan(*arguments[:-1])
        text = " ".join(self.practice(["?", "?", "q"], *arguments).text.split())
        self.assertIn(f"The answer is {item['shown']}.", text)
        self.assertIn("1 answered, 0 correct.", text)
        # of a question with choices, of an open one and of a card
        arguments = ("--kind", "questions", "--tag", "order-equivariant", "--seed", 2, "--no-progress")
        (item,) = self.plan(*arguments[:-1])
        text = " ".join(self.practice(["?", "?", "q"], *arguments).text.split())
        self.assertIn(f"Type ? again to see the solution. > ? The answer is {self.right_choice(item)}: Attention is", text)
        self.assertIn("again · question", text)
        text = self.practice(["?", "?", "3"], "--kind", "questions", "--tag", "order-why", "--no-progress").text
        self.assertIn("Hint: ", text)
        self.assertIn("Attention compares tokens", text)
        text = self.practice(["?", "3"], "--kind", "cards", "--tag", "card-yarn", "--no-progress").text
        self.assertIn("How well did you know it?", text)

    def test_choices_are_shuffled_for_every_seed(self):
        places = {self.right_choice(self.plan("--kind", "questions", "--tag", "order-equivariant", "--seed", seed)[0])
                  for seed in range(20)}
        self.assertEqual(places, {"1", "2", "3", "4"})

    def test_two_rows_with_eight_blanks(self):
        rows = [[wave(m / scale) for scale in (1, 100) for wave in (math.sin, math.cos)] for m in (1, 2)]
        typed = [f"{value:.3f}" for row in rows for value in row]
        text = self.practice([*typed, ""], "--walkthrough", "sinusoidal-rows").text
        self.assertEqual(text.count("Right."), 8)
        self.assertIn("8 of 8 filled in correctly.", text)
        for m, row in enumerate(rows, 1):
            self.assertIn(f"PE({m}) = ({', '.join(f'{value:.3f}' for value in row)})", text)
        self.assertIn("which columns change a lot", text)
        self.assertIn("High frequencies separate adjacent positions", " ".join(text.split()))
        self.assertFalse(self.files(), "no progress is kept")
        # a mistake is named; the solution is shown; what is skipped or cut short does not count
        text = " ".join(self.practice(["0.540", "0.841", "?", "?", "s"], "--walkthrough", "sinusoidal-rows").text.split())
        self.assertIn("sin and cos swapped", text)
        self.assertIn("The answer is 0.540.", text)
        self.assertIn("1 of 4 filled in correctly.", text)
        chosen = json.loads(self.succeeds("practice", "--walkthrough", "sinusoidal-rows", "--json").out)
        answers = [blank["exercise"]["answer"] for step in chosen["steps"] for blank in step["blanks"]]
        for got, expected in zip(answers, (value for row in rows for value in row), strict=True):
            self.assertAlmostEqual(got, expected, delta=1e-12)
        self.refused("practice", "--walkthrough", "sinusoidal-row", says="did you mean 'sinusoidal-rows'?")

    def test_end_of_input(self):
        for lines, says in (([], "No answers."), ([""], "No answers."), (["", "3"], "1 answered, 1 correct.")):
            outcome = self.practice(lines, "--kind", "cards", "--count", 3)
            self.assertIn(says, outcome.text)
        self.assertEqual(len(self.progress()["log"]), 1)
        # no end of line at the end, and lines that are far too long
        outcome = self.succeeds("practice", "--kind", "cards", env=self.env, input=b"x" * 100000 + b"\n4", stdin=None)
        self.assertIn("1 answered, 1 correct", outcome.text)
        outcome = self.succeeds("practice", "--kind", "fill-ins", "--no-progress", input=b"\x00\xff\x1b[2J\n", stdin=None)
        self.assertNotIn(b"\x1b", outcome.out, "what is typed is not sent back to a terminal as it is")


class Days(Practice):
    def day(self, date, *lines, **options):
        return self.practice(lines, "--kind", "cards", "--tag", "card-yarn", "--today", date, **options).text

    def state(self):
        return self.progress()["items"]["card-yarn"]

    def test_intervals(self):
        day = datetime.date(2026, 1, 1)
        for interval in (2, 11, 46, 163):
            self.day(day, "", "3")
            self.assertEqual(self.state()["due"], (day - datetime.date(1970, 1, 1)).days + interval)
            eve = day + datetime.timedelta(interval - 1)
            self.assertIn("Nothing is due", self.day(eve))
            day += datetime.timedelta(interval)
        self.assertIn(" due ", self.succeeds("practice", "--list", "--today", day, "--tag", "card-yarn", env=self.env).text)
        self.day(day, "", "1", "", "4")
        self.assertEqual((self.state()["due"] - self.state()["last"], self.state()["lapses"]), (8, 1))

    def test_outlook(self):
        self.assertIn("Due: 1 tomorrow.", self.day("2026-02-28", "", "2"))
        self.assertIn("Due: 1 on 2026-03-08.", self.day("2026-03-01", "", "4"))

    def test_dates_that_are_none(self):
        for date in ("2026-02-30", "2026-13-01", "tomorrow", "2026-1-1", "20260101", "1969-12-31", "9999999999"):
            self.refused("practice", "--today", date, says="is not a date")


class Files(Practice):
    def answer_one(self, **options):
        return self.practice(["", "3"], "--kind", "cards", "--count", 1, **options)

    def test_places(self):
        home = {key: value for key, value in self.env.items() if key != "XDG_DATA_HOME"}
        self.answer_one(env={**home, "HOME": self.path("home")})
        self.assertTrue(os.path.exists(self.path("home/.local/share/posenc/practice.json")))
        self.answer_one(env={**home, "HOME": self.path("home2"), "XDG_DATA_HOME": "not/absolute"})
        self.assertTrue(os.path.exists(self.path("home2/.local/share/posenc/practice.json")))
        home.pop("HOME")
        self.refused("practice", env=home, says="--no-progress")
        self.assertEqual(os.stat(self.path("home/.local/share/posenc")).st_mode & 0o777, 0o700)

    def test_a_damaged_file_is_kept(self):
        self.answer_one()
        good = self.read("data/posenc/practice.json")
        for damaged in (b"", b"{", good[:-20], good.replace(b'"due":', b'"dew":'), b"\xff" * 100, b"[" * 5000,
                        b'{"format":"posenc-practice","version":2,"items":[],"log":{}}'):
            self.write("data/posenc/practice.json", damaged)
            outcome = self.answer_one()
            self.assertRegex(outcome.err, r"\Aposenc: .*practice\.json is damaged \(.*\); kept as .*\n\Z")
            kept = outcome.err.split("kept as ")[1].split(", starting")[0]
            with open(kept, "rb") as file:
                self.assertEqual(file.read(), damaged)
            self.assertEqual(len(self.progress()["log"]), 1, "started afresh")
        aside = [name for name in os.listdir(self.path("data/posenc")) if "damaged" in name]
        self.assertEqual(len(aside), 7, "none replaced another")

    def test_a_newer_file_is_left_alone(self):
        self.answer_one()
        newer = b'{"format": "posenc-practice", "version": 3, "something": "else"}'
        self.write("data/posenc/practice.json", newer)
        self.refused("practice", env=self.env, says="newer posenc")
        self.assertEqual(self.read("data/posenc/practice.json"), newer)

    def test_what_is_no_file(self):
        os.makedirs(self.progress_path)
        self.refused("practice", env=self.env, says="not a regular file")
        os.rmdir(self.progress_path)
        os.mkfifo(self.progress_path)
        self.refused("practice", env=self.env, says="not a regular file")
        self.write("blocked", b"")
        self.refused("practice", env={**self.env, "XDG_DATA_HOME": self.path("blocked")}, code=3, says="Not a directory")

    def test_two_at_once_lose_nothing(self):
        def many(tag):
            run("practice", "--kind", "cards", "--tag", tag, "--count", 40, "--seed", 1, env=self.env,
                input=b"\n3\n" * 40, stdin=None)

        tags = ("sinusoidal", "rope", "attention", "alibi")
        threads = [threading.Thread(target=many, args=(tag,)) for tag in tags]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        cards = json.loads(self.succeeds("practice", "--list", "--json").out)["cards"]
        expected = {card["id"] for card in cards if {*card["tags"], card["topic"]} & set(tags)}
        progress = self.progress()
        self.assertEqual(set(progress["items"]), expected)
        self.assertGreaterEqual(len(progress["log"]), len(expected))
        self.assertEqual(sorted(os.listdir(self.path("data/posenc"))), ["practice.json", "practice.lock"])

    def test_refusals(self):
        self.refused("practice", "--kind", "cakes", says="'cakes' is not one of questions, cards, fill-ins")
        self.refused("practice", "--count", 0, says="--count")
        self.refused("practice", "--count", 10001, says="--count")
        self.refused("practice", "--count", "many", says="--count")
        self.refused("practice", "--seed", -1, says="--seed")
        self.refused("practice", "--seed", "1.5", says="--seed")
        self.refused("practice", "--tag", "alibbi", "--no-progress", says="did you mean 'alibi'?")
        self.refused("practice", "--tag", "zzzzzzzzzz", "--no-progress", says="--list")
        self.refused("practice", "more", says="unexpected argument")


class Terminal(Practice):
    """A person at a terminal: types, sees colour, presses Ctrl-C and Ctrl-D."""

    def start(self, *arguments, columns=80, **environment):
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        env = {**self.env, "TERM": "xterm", **environment}
        if "NO_COLOR" not in environment:
            env.pop("NO_COLOR", None)

        def own_terminal():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen([POSENC, "practice", *map(str, arguments)], stdin=theirs, stdout=theirs,
                                        stderr=theirs, env=env, preexec_fn=own_terminal)
        os.close(theirs)
        self.text = self.unseen = ""
        self.addCleanup(self.process.wait)
        self.addCleanup(os.close, self.ours)

    def sees(self, words):
        """Reads until the words appear; returns what came before and with them, and keeps the rest for the next."""
        limit = time.monotonic() + 20
        while words not in self.unseen:
            if not select.select([self.ours], [], [], max(0, limit - time.monotonic()))[0]:
                self.fail(f"{words!r} did not appear: {self.unseen!r}")
            try:
                piece = os.read(self.ours, 4096).decode(errors="replace").replace("\r\n", "\n")
            except OSError:
                self.fail(f"the program ended before {words!r}: {self.unseen!r}")
            self.unseen += piece
            self.text += piece
        end = self.unseen.index(words) + len(words)
        seen, self.unseen = self.unseen[:end], self.unseen[end:]
        return seen

    def types(self, text):
        os.write(self.ours, text.encode())

    def ends(self):
        code = self.process.wait(timeout=60)
        rest = b""
        while True:
            try:
                piece = os.read(self.ours, 4096)
            except OSError:
                break
            if not piece:
                break
            rest += piece
        self.text += rest.decode(errors="replace").replace("\r\n", "\n")
        return code

    def test_a_sitting(self):
        items = self.plan("--seed", 4, "--count", 6)
        self.start("--seed", 4, "--count", 6)
        for number, item in enumerate(items, 1):
            self.assertIn("\x1b[1m", self.sees(f"{number} of 6"))
            for line in self.right_lines(item):
                self.sees("> ")
                self.types(line + "\n")
        self.assertEqual(self.ends(), 0)
        self.assertIn("6 answered, 6 correct.", self.text)
        self.assertEqual(len(self.progress()["log"]), 6)
        plain = self.text.replace("\x1b[1m", "").replace("\x1b[0m", "").replace("\x1b[2m", "")
        self.assertLessEqual(max(map(len, plain.splitlines())), 80)

    def test_control_c_keeps_what_was_answered(self):
        self.start("--kind", "cards", "--count", 5, NO_COLOR="1")
        self.sees("> ")
        self.types("\n")
        self.sees("4 easy > ")
        self.types("3\n")
        self.sees("2 of 5")
        self.sees("> ")
        self.types("\x03")
        self.assertEqual(self.ends(), 130)
        self.assertIn("1 answered, 1 correct.", self.text)
        self.assertNotIn("\x1b", self.text)
        self.assertEqual(len(self.progress()["log"]), 1)

    def test_control_d_ends_well(self):
        self.start("--kind", "fill-ins", "--count", 5)
        self.sees("> ")
        self.types("\x04")
        self.assertEqual(self.ends(), 0)
        self.assertIn("No answers.", self.text)

    def test_a_terminal_that_goes_away(self):
        self.start("--kind", "cards", "--count", 5)
        self.sees("> ")
        self.types("\n")
        self.sees("4 easy > ")
        self.types("4\n")
        self.sees("2 of 5")
        self.process.send_signal(signal.SIGHUP)
        self.assertEqual(self.process.wait(timeout=60), 129)
        self.assertEqual(len(self.progress()["log"]), 1)

    def test_narrow_and_wide(self):
        for columns in (40, 120):
            self.start("--kind", "questions", "--tag", "order-equivariant", columns=columns, NO_COLOR="1")
            text = self.sees("> ")
            self.types("q\n")
            self.assertEqual(self.ends(), 0)
            self.assertLessEqual(max(map(len, text.splitlines())), min(columns, 100))


if __name__ == "__main__":
    unittest.main()
