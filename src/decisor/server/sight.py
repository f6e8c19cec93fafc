"""What a run may have seen of the data, and whether another user may see all of that too."""

from __future__ import annotations

from collections.abc import Sequence

from decisor.history.past_run import Sight
from decisor.server.users import User
from decisor.session.pool import Pool
from decisor.session.readers import Reader
from decisor.session.sources import with_connections


def sight_of(pool: Pool, names: Sequence[str], reader: Reader) -> Sight:
    """Of a run on these connections, for whom that asks."""
    sources = with_connections(pool.sources_of(names, reader))
    kept_back = {f"without {name}" for name in sources.deny_tables}
    if sources.tables:
        kept_back.add(f"only {', '.join(sorted(sources.tables))}")
    for place in sources.places:
        rows, mask = list(place.policy.rows), list(place.policy.mask)
        if place.connection is not None:
            rows += place.connection.rows.items()
            mask += place.connection.mask
        kept_back |= {f"{place.name}.{table} where {condition}" for table, condition in rows}
        kept_back |= {f"{place.name}.{column} masked" for column in mask}
    return Sight(tuple(names), tuple(sorted(kept_back)))


def both(one: Sight, before: Sight | None) -> Sight:
    """Of a run that goes on from another one. Without connections where what that one saw is not known."""
    if before is None or not before.connections:
        return Sight()
    kept_back = tuple(name for name in one.kept_back if name in before.kept_back)
    return Sight(tuple(dict.fromkeys([*one.connections, *before.connections])), kept_back)


def may_see(user: User, sight: Sight | None, pool: Pool) -> bool:
    """Whether nothing that such a run may have seen is kept from them."""
    if sight is None or not sight.connections:
        return False
    if not all(name in pool.members and user.may_use(name) for name in sight.connections):
        return False
    return set(sight_of(pool, sight.connections, user.reader).kept_back) <= set(sight.kept_back)
