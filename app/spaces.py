"""What can be drawn on a map: the items as a model, their words or a tokenizer's latents arrange them, and codes of tokenizers.

places = spaces.able(models)                        # word in the address → Place
spaces.points(models, places["sasrec"])             # where its items lie
spaces.codes(models, places["codes.rqvae"])         # where its codes lie
spaces.mapped(models, "pca.sasrec")                 # word of a map in the address → Place
spaces.near(places["space.minilm"], 5, 8)           # neighbours: computed there, not on the map
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import numpy.typing as npt

from app import styles, zoo
from app.analysis import map_points, model_card
from app.analysis.cache import cached, of_digest, stamp
from app.figures import map_codes
from app.store.attributes import tidied
from app.styles import Style, tokenizer_style
from engine.bundle.embedding_spaces import Plane, pca
from engine.errors import SeqscopeError
from engine.runtime import Bundle, Neighbours, Projection, Space, Tokenization, Zoo

if TYPE_CHECKING:  # they load scipy, which the first page need not wait for
    from app.analysis import map_regions

ProjectionName = Literal["umap", "pca"]
PROJECTIONS: tuple[ProjectionName, ...] = get_args(ProjectionName)
_UNOWNED = Style("#6b7f2a", "star-diamond", "✦", "dot")
"""How vectors look that no model owns."""


@dataclass(frozen=True)
class Place:
    """Something that has a map, or could have one."""

    key: str
    """Its word in the address: a model's name, space.<name>, latents.<tokenizer> or codes.<tokenizer>."""
    title: str
    """Not escaped."""
    owner: Bundle | Space | Tokenization
    style: Style
    cannot: str | None
    """Why there is no map, in a sentence."""
    projection: ProjectionName = "umap"
    """umap: made at export; pca: the plane of the largest variance."""

    @property
    def of_codes(self) -> bool:
        """Whether its points are codes, not items."""
        return self.key.startswith("codes.")

    @property
    def model(self) -> Bundle | None:
        """The model whose items these are."""
        return self.owner if isinstance(self.owner, Bundle) else None

    @property
    def tokenizer(self) -> Tokenization | None:
        return self.owner if isinstance(self.owner, Tokenization) else None

    @property
    def slug(self) -> str:
        """For keys of widgets and names of files."""
        return self.area.replace(".", "-")

    @property
    def area(self) -> str:
        """The word for this map, whose places an address names: the key, with pca. before it where that is the projection."""
        return self.key if self.projection == "umap" else f"{self.projection}.{self.key}"

    @property
    def digest(self) -> str:
        """Changes with the content, for cache keys."""
        return f"{self.area} {self.owner.digest}"

    @property
    def geometry(self) -> str:
        """How its vectors are compared: "cosine", at length 1, or "euclidean"."""
        if isinstance(self.owner, Bundle):
            return self.owner.manifest.index.geometry
        return self.owner.about.geometry if isinstance(self.owner, Space) else "euclidean"

    @property
    def how(self) -> Projection | None:
        """How its map was made at export."""
        if isinstance(self.owner, Bundle):
            return self.owner.manifest.projection
        if isinstance(self.owner, Space):
            return self.owner.about.projection
        return self.owner.about.codebooks_map if self.of_codes else self.owner.about.latents_map


def every(models: Zoo) -> list[Place]:
    """The models first, then what no model owns, then each tokenizer's latents and codes."""
    places = [
        Place(name, _title(bundle), bundle, zoo.style(models, name), model_card.cannot(bundle, "map"))
        for name, bundle in models.bundles.items()
    ]
    places += [
        Place(f"space.{name}", space.about.title, space, _UNOWNED, None) for name, space in models.spaces.items()
    ]
    for name, tokenizer in models.tokenizations.items():
        look, title = tokenizer_style(models, name), tokenizer.about.title
        places += [
            Place(f"latents.{name}", f"{title}: latents", tokenizer, look, tokenizer.cannot("latents_map")),
            Place(f"codes.{name}", f"{title}: codes", tokenizer, look, tokenizer.cannot("codebooks_map")),
        ]
    return places


def _title(bundle: Bundle) -> str:
    return f"{bundle.manifest.title}: items" if bundle.cannot("identifiers") is not None else styles.space(bundle)


def able(models: Zoo) -> dict[str, Place]:
    """Those that have a map, by their word in the address."""
    return {place.key: place for place in every(models) if place.cannot is None}


def with_neighbours(models: Zoo) -> dict[str, Place]:
    """Those whose items have neighbours, by their word in the address."""
    return {
        place.key: place
        for place in every(models)
        if not place.of_codes and (isinstance(place.owner, Space) or place.owner.cannot("neighbours") is None)
    }


def mapped(models: Zoo, area: str) -> Place | None:
    """The place that has this map; None where there is none."""
    key = area.removeprefix("pca.")
    place = able(models).get(key)
    return place if place is None or key == area else replace(place, projection="pca")


def points(models: Zoo, place: Place) -> map_points.Points:
    """Where the items lie; of codes: where they lie, by their row in `codes`."""
    if place.of_codes:
        return codes(models, place).points
    return _points(models, place)


@cached(16, by=lambda models, place: (stamp(models), place.digest))
def codes(models: Zoo, place: Place) -> map_codes.Codes:
    """The codes of a place of codes."""
    table = place.tokenizer.codebooks_map() if place.tokenizer is not None else None
    if place.tokenizer is None or table is None:
        raise SeqscopeError("This export has no map of codes. Export the tokenizer again.")
    codes = map_codes.Codes.read(table, place.tokenizer.plane, place.tokenizer.learned, models.popularity)
    return (
        codes
        if place.projection == "umap"
        else replace(codes, points=map_points.Points(*plane(models, place).places.T))
    )


@cached(8, by=stamp)
def attributes(models: Zoo) -> list[map_regions.Attribute]:
    """What items have in common; nothing of more items than a map draws one by one."""
    from app.analysis import map_regions

    return map_regions.attributes(tidied(models.items)) if len(models) <= map_points.ALL else []


@cached(
    32, by=lambda models, place, among=None: (stamp(models), place.digest, None if among is None else among.tobytes())
)
def regions(models: Zoo, place: Place, among: npt.NDArray[np.bool_] | None = None) -> list[map_regions.Region]:
    """The named regions of a map of items; none where there are no attributes. among: bool [items], those that it shows."""
    from app.analysis import map_regions

    values = [attribute for attribute in attributes(models) if not attribute.ranges]
    if not values:
        return []
    shown = points(models, place)
    if among is not None:
        shown = map_points.Points(*(np.where(among, axis, np.float32(np.nan)) for axis in (shown.x, shown.y)))
    return map_regions.regions(shown, [*values, map_regions.title_words(models.titles)])


@cached(1_000, by=of_digest)
def near(place: Place, item: int, k: int) -> Neighbours:
    """The nearest items in the space itself. Raises SeqscopeError where the item or all items have none."""
    return place.owner.neighbours(item, k)


@cached(32, by=lambda models, place: (str(models.path), place.digest))
def plane(models: Zoo, place: Place) -> Plane:
    """The principal components of the vectors that a map shows, of items or codes. Raises SeqscopeError where there are none."""
    owner = place.owner
    if isinstance(owner, (Bundle, Space)):
        return pca(owner.vectors, place.geometry)
    if not place.of_codes:
        vectors = owner.latents
    else:
        table, codebooks = owner.codebooks_map(), owner.codebooks
        vectors = None
        if table is not None and codebooks is not None:
            vectors = codebooks[table["level"].to_numpy(), table["code"].to_numpy()]
    if vectors is None:
        raise SeqscopeError("This export has no vectors to project. Export the tokenizer again.")
    return pca(vectors, place.geometry)


@cached(32, by=lambda models, place: (str(models.path), place.digest))
def _points(models: Zoo, place: Place) -> map_points.Points:
    if place.projection == "pca":
        return map_points.Points(*plane(models, place).places.T)
    owner = place.owner
    table = owner.latents_map() if isinstance(owner, Tokenization) else owner.map_table()
    if table is None:
        raise SeqscopeError("This export has no map. Export it again.")
    return map_points.Points.read(table, len(models))
