import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # ranks.py, also in the processes that the tests start
