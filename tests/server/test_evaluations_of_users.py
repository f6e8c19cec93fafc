"""An evaluation holds rows of all its data, so it is shown to those who may see all."""

import pytest

from decisor.server.here import Here
from decisor.server.routes.evaluations import place_of
from decisor.server.runs import NotThere
from decisor.server.serving import Serving
from decisor.server.users import User
from decisor.session.readers import Reader


def test_an_evaluation_is_shown_only_to_those_from_whom_nothing_is_kept() -> None:
    here = Here(Serving(evaluations={"trade": "trade.db"}), "cookie")
    assert place_of("trade", here, User("ann")) == "trade.db"
    for user in (User("bob", ("sites",)), User("cyd", reader=Reader("cyd", mask=("site.name",)))):
        with pytest.raises(NotThere):
            place_of("trade", here, user)
