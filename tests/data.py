"""Where the shared data lies: $DECISOR_DATA, else ../shared/data beside the project."""

import os
from pathlib import Path

DATA = Path(os.environ.get("DECISOR_DATA", Path(__file__).parent.parent.parent / "shared" / "data"))
