"""An evaluation holds rows of all its data, so it is shown to those who may see all."""

import pytest

from decisor.lab.evaluation_pages import find_evaluation
from decisor.server.routes import AppState
from decisor.server.runs import NotThere
from decisor.server.settings import ServerSettings
from decisor.server.users import User
from decisor.session.access import Reader


def test_an_evaluation_is_shown_only_to_those_from_whom_nothing_is_kept() -> None:
    here = AppState(ServerSettings(evaluations={"trade": "trade.db"}), "cookie")
    assert find_evaluation("trade", here, User("ann")) == "trade.db"
    for user in (User("bob", ("sites",)), User("cyd", reader=Reader("cyd", mask=("site.name",)))):
        with pytest.raises(NotThere):
            find_evaluation("trade", here, user)
