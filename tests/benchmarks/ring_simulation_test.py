"""benchmarks/ring_simulation.py: cases whose answer is a formula."""

import contextlib
import io
import os
import sys
import unittest
from pathlib import Path

ROOT = Path(os.environ.get("POSENC_ROOT", Path(__file__).parents[2]))
sys.path.insert(0, str(ROOT / "benchmarks"))
import ring_simulation as simulation
from ring_simulation import Layer, Machine, closed_form, run_with_failures

FREE = {"latency": 0.0, "copy": float("inf")}


class Simulation(unittest.TestCase):
    def test_a_ring_takes_the_longer_of_computing_and_sending(self):
        for tokens in (2**14, 2**17, 2**20, 2**23):
            for ranks in (1, 2, 5, 8):
                layer, machine = Layer(tokens), Machine(**FREE)
                compute = layer.operations(ranks) / ranks / machine.flops
                send = layer.step_bytes(ranks) / machine.link
                wanted = (ranks - 1) * max(compute, send) + compute
                self.assertAlmostEqual(simulation.ring(layer, machine, ranks) / wanted, 1)

    def test_both_sides_of_the_limit_occur(self):
        """Above so many tokens a rank messages are hidden, below they are not."""
        machine = Machine(**FREE)
        for tokens, hidden in ((2**23, True), (2**12, False)):
            layer = Layer(tokens)
            alone = layer.operations(8) / machine.flops
            self.assertEqual(simulation.ring(layer, machine, 8) < 1.0001 * alone, hidden)

    def test_the_closed_form_is_the_simulation(self):
        for method, function in simulation.METHODS.items():
            for tokens in (2**17, 2**20, 2**24):
                for ranks in (2, 8, 16, 32):
                    for machine in (Machine(), Machine(cards=1), Machine(latency=1e-3)):
                        if method == "ring" or ranks <= 32:
                            found, wanted = function(Layer(tokens), machine, ranks), closed_form(method, Layer(tokens), machine, ranks)
                            self.assertAlmostEqual(found / wanted, 1, msg=(method, tokens, ranks, machine))

    def test_merging_takes_its_bytes(self):
        layer, slow = Layer(2**20), Machine(latency=0.0, copy=1e9)
        more = simulation.ring(layer, slow, 4) - simulation.ring(layer, Machine(**FREE), 4)
        self.assertAlmostEqual(more, 4 * 10 * 128 * 32 * 2**18 / 1e9)
        self.assertEqual(simulation.ring(layer, slow, 1), simulation.ring(layer, Machine(**FREE), 1))

    def test_messages_may_take_cores(self):
        layer = Layer(2**23)
        more = simulation.ring(layer, Machine(message_work=0.5, **FREE), 4) - simulation.ring(layer, Machine(**FREE), 4)
        self.assertAlmostEqual(more, 3 * 0.5)

    def test_latency_counts_once_a_step_if_messages_are_not_hidden(self):
        layer, slow = Layer(2**14), Machine(latency=1.0, copy=float("inf"))
        self.assertAlmostEqual(simulation.ring(layer, slow, 4), 3 * (1.0 + layer.step_bytes(4) / slow.link) + layer.operations(4) / 4 / slow.flops)

    def test_a_straggler_makes_everybody_wait(self):
        layer, machine = Layer(2**23), Machine(stragglers={3: 2.0}, **FREE)
        self.assertAlmostEqual(simulation.ring(layer, machine, 8) / (2 * layer.operations(8) / machine.flops), 1)

    def test_shared_cores_divide_the_speed(self):
        layer = Layer(2**23)
        alone = simulation.ring(layer, Machine(**FREE), 4)
        self.assertAlmostEqual(simulation.ring(layer, Machine(cores=2, **FREE), 4) / alone, 2)
        self.assertAlmostEqual(simulation.ring(layer, Machine(cores=3, **FREE), 4) / alone, 4 / 3)

    def test_a_network_card_for_all_divides_its_speed(self):
        layer, times = Layer(2**20), []
        for cards in (8, 1):
            machine = Machine(cards=cards, **FREE)
            times.append(simulation.all_to_all(layer, machine, 16) - layer.operations(16) / machine.flops)
        self.assertAlmostEqual(times[1] / times[0], 8)

    def test_jitter_slows_a_ring_and_repeats_with_its_seed(self):
        layer = Layer(2**23)
        once, again = (simulation.ring(layer, Machine(jitter=0.2, seed=4), 8) for _ in range(2))
        self.assertEqual(once, again)
        self.assertNotEqual(once, simulation.ring(layer, Machine(jitter=0.2, seed=5), 8))
        self.assertGreater(once, simulation.ring(layer, Machine(), 8))

    def test_equal_shares_of_a_pool(self):
        clock, ends = simulation.Clock(), {}
        pool = simulation.Pool(clock, 10.0, 4.0)
        for name, work in (("a", 8.0), ("b", 20.0), ("c", 20.0), ("d", 20.0)):
            pool.start(work, lambda name=name: ends.__setitem__(name, clock.now))
        clock.run()
        self.assertAlmostEqual(ends["a"], 3.2)  # four at 2.5
        self.assertAlmostEqual(ends["d"], 3.2 + 12 / (10 / 3))  # three at 3.3

    def test_a_run_without_failures_and_with_one(self):
        self.assertAlmostEqual(run_with_failures(100, 2.0, [], 10, 5.0, 60.0), 100 * 2 + 10 * 5)
        # It fails 1 second into step 16: six steps, of which five were complete, are done again after the restart.
        at = 15 * 2 + 5 + 1
        self.assertAlmostEqual(run_with_failures(100, 2.0, [at], 10, 5.0, 60.0), 100 * 2 + 10 * 5 + 5 * 2 + 1 + 60)
        self.assertAlmostEqual(run_with_failures(100, 2.0, [at, at + 30], 10, 5.0, 60.0), 100 * 2 + 10 * 5 + 5 * 2 + 1 + 60)

    def test_failures_come_as_often_as_they_should(self):
        found = simulation.failures_of(1000, 5000.0, 1000 * 3600, 1)
        self.assertTrue(150 < len(found) < 250, len(found))  # 200 on average
        self.assertEqual(simulation.failures_of(1000, 0.0, 1e9, 1), [])

    def test_all_to_all_stops_at_the_number_of_heads(self):
        self.assertIsNone(simulation.limit_of("all-to-all", Layer(), 8))
        self.assertEqual(simulation.limit_of("all-to-all", Layer(), 64), "heads")
        self.assertIsNone(simulation.limit_of("ring", Layer(), 64))

    def test_the_guide_has_this_table(self):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            simulation.main(["--table"])
        self.assertIn(printed.getvalue(), (ROOT / "docs/guide/scaling.md").read_text("utf-8"))

    def test_memory_is_a_limit(self):
        self.assertEqual(Layer(8, 2, 1, 4).memory("ring", 2), 4 * 4 * (2 * (2 * 2 + 2) + 4 * 2 + 6 * 2))
        for method in simulation.METHODS:
            self.assertEqual(simulation.limit_of(method, Layer(2**27), 8), "memory")
            self.assertIsNone(simulation.limit_of(method, Layer(2**24), 8))


if __name__ == "__main__":
    unittest.main()
