"""What an LLM reads where a decision model cannot be computed."""

import pytest

from decisor.decision_models.ranking import rank_what_if
from decisor.errors import SetupError, ToolError
from decisor.tools.whatif import WhatIfTool
from decisor.types import WhatIf


async def test_a_model_that_cannot_be_computed_is_an_error_for_the_llm_and_does_not_end_the_run() -> None:
    def find(semantics: str) -> WhatIf:
        raise SetupError("The decision model cannot be computed: change fails.")

    with pytest.raises(ToolError, match="change fails"):
        await WhatIfTool(find, rank_what_if).call("rank")
