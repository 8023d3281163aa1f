"""Run with: python3 -m unittest discover tests"""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from tinynn import loss


class Softmax(unittest.TestCase):
    def test_sums_to_one(self):
        self.assertAlmostEqual(sum(loss.softmax([0.5, -1.0, 2.0])), 1.0)


if __name__ == "__main__":
    unittest.main()
