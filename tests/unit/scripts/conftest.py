"""The start scripts are no package: they find each other in their own folder, and so do their tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "scripts"))
