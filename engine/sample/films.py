"""The sample's catalogue: real films in ``films.jsonl``, read strictly and as columns; and which of them a rating table has.

One film per line, a JSON object with the fields of `Film`. The facts are public; the descriptions were written for this project.
`match` finds films by title and year.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError, model_validator

from engine.bundle.errors import complaints
from engine.bundle.manifest import Strict
from engine.errors import SeqscopeError

GENRES = (
    "Action", "Adventure", "Animation", "Biography", "Comedy", "Crime", "Documentary", "Drama", "Family", "Fantasy",
    "History", "Horror", "Music", "Musical", "Mystery", "Romance", "Science Fiction", "Sport", "Thriller", "War", "Western",
)  # fmt: skip

Words = Annotated[str, Field(pattern=r"^\S(.*\S)?$")]
"""Text without blanks at its ends."""


class Film(Strict):
    """One line of films.jsonl."""

    item_id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    title: Words
    year: int = Field(ge=1890, le=2026)
    """Of first release."""
    genres: list[Words] = Field(min_length=1, max_length=4)
    """Of `GENRES`, the most telling first."""
    director: Words
    country: Words
    franchise: Words | None
    """Name of the series that this film belongs to."""
    franchise_order: int | None
    """Its place among the parts of the series that are in this catalogue, in order of release, without gaps from 1."""
    keywords: list[Words] = Field(min_length=3, max_length=8)
    description: Words = Field(min_length=50, max_length=240)
    """One sentence about what happens, without praise."""
    fame: int = Field(ge=1, le=5)
    """1 (known to few) to 5 (known to nearly everybody)."""

    @model_validator(mode="after")
    def _agrees(self) -> Film:
        if unknown := [genre for genre in self.genres if genre not in GENRES]:
            raise ValueError(f"unknown genres {unknown}")
        if any(len(set(words)) < len(words) for words in (self.genres, self.keywords)):
            raise ValueError("a genre or a keyword stands twice")
        if not self.description.endswith((".", "!", "?")):
            raise ValueError("the description must end like a sentence")
        if (self.franchise is None) != (self.franchise_order is None):
            raise ValueError("franchise and franchise_order belong together")
        return self


def read_films(path: Path) -> list[Film]:
    """The films of `path`, sorted by year and title; raises `SeqscopeError` naming every fault found."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        raise SeqscopeError(
            f"{path} cannot be read ({error.strerror}). It is the source of the sample's catalogue."
        ) from error
    films, faults = [], []
    for number, line in enumerate(lines, start=1):
        try:
            films.append(Film.model_validate_json(line))
        except ValidationError as error:
            faults.append(f"line {number}: {complaints(error)}")
    faults += check_films(films)
    if faults:
        shown = "\n  ".join(faults[:20])
        raise SeqscopeError(f"{path}: {len(faults)} faults; mend these first:\n  {shown}")
    return sorted(films, key=lambda film: (film.year, film.title))


def check_films(films: Sequence[Film]) -> list[str]:
    """What is wrong between these films, one sentence each; empty when all is well."""
    faults = []
    for name, key in (
        ("item_id", lambda film: film.item_id),
        ("title and year", lambda film: (film.title.casefold(), film.year)),
        ("description", lambda film: film.description.casefold()),
    ):
        groups = defaultdict(list)
        for film in films:
            groups[key(film)].append(film.item_id)
        faults += [f"same {name}: {', '.join(ids)}" for ids in groups.values() if len(ids) > 1]
    series: dict[str, list[Film]] = defaultdict(list)
    for film in films:
        if film.franchise is not None:
            series[film.franchise].append(film)
    for name, parts in series.items():
        parts.sort(key=lambda film: film.franchise_order or 0)
        if [film.franchise_order for film in parts] != list(range(1, len(parts) + 1)):
            faults.append(
                f"franchise {name}: orders {[film.franchise_order for film in parts]} are not 1 to {len(parts)}"
            )
        elif any(a.year > b.year for a, b in itertools.pairwise(parts)):
            faults.append(f"franchise {name}: a part is older than the one before it")
    return faults


OTHER_TITLES = {
    "the-cabinet-of-dr-caligari-1920": "Das Cabinet des Dr. Caligari",
    "battleship-potemkin-1925": "Bronenosets Potyomkin",
    "the-passion-of-joan-of-arc-1928": "La passion de Jeanne d'Arc",
    "man-with-a-movie-camera-1929": "Chelovek s kino-apparatom",
    "m-1931": "M - Eine Stadt sucht einen Mörder",
    "the-rules-of-the-game-1939": "La règle du jeu",
    "beauty-and-the-beast-1946": "La belle et la bête",
    "bicycle-thieves-1948": "Ladri di biciclette",
    "sunset-boulevard-1950": "Sunset Blvd.",
    "the-wages-of-fear-1953": "Le salaire de la peur",
    "tokyo-story-1953": "Tôkyô monogatari",
    "ugetsu-1953": "Ugetsu monogatari",
    "godzilla-1954": "Gojira",
    "seven-samurai-1954": "Shichinin no samurai",
    "diabolique-1955": "Les diaboliques",
    "rififi-1955": "Du rififi chez les hommes",
    "a-man-escaped-1956": "Un condamné à mort s'est échappé ou Le vent souffle où il veut",
    "the-cranes-are-flying-1957": "Letyat zhuravli",
    "the-seventh-seal-1957": "Det sjunde inseglet",
    "wild-strawberries-1957": "Smultronstället",
    "breathless-1960": "À bout de souffle",
    "eyes-without-a-face-1960": "Les yeux sans visage",
    "cleo-from-5-to-7-1962": "Cléo de 5 à 7",
    "harakiri-1962": "Seppuku",
    "jules-and-jim-1962": "Jules et Jim",
    "high-and-low-1963": "Tengoku to jigoku",
    "the-leopard-1963": "Il gattopardo",
    "a-fistful-of-dollars-1964": "Per un pugno di dollari",
    "dr-strangelove-1964": "Dr. Strangelove or: How I Learned to Stop Worrying and Love the Bomb",
    "the-umbrellas-of-cherbourg-1964": "Les parapluies de Cherbourg",
    "for-a-few-dollars-more-1965": "Per qualche dollaro in più",
    "blow-up-1966": "Blowup",
    "closely-watched-trains-1966": "Ostre sledované vlaky",
    "the-battle-of-algiers-1966": "La battaglia di Algeri",
    "the-good-the-bad-and-the-ugly-1966": "Il buono, il brutto, il cattivo",
    "the-conformist-1970": "Il conformista",
    "aguirre-the-wrath-of-god-1972": "Aguirre, der Zorn Gottes",
    "the-discreet-charm-of-the-bourgeoisie-1972": "Le charme discret de la bourgeoisie",
    "fantastic-planet-1973": "La planète sauvage",
    "the-spirit-of-the-beehive-1973": "El espíritu de la colmena",
    "ali-fear-eats-the-soul-1974": "Angst essen Seele auf",
    "house-1977": "Hausu",
    "the-tin-drum-1979": "Die Blechtrommel",
    "the-empire-strikes-back-1980": "Star Wars: Episode V - The Empire Strikes Back",
    "fanny-and-alexander-1982": "Fanny och Alexander",
    "star-trek-ii-the-wrath-of-khan-1982": "Star Trek: The Wrath of Khan",
    "return-of-the-jedi-1983": "Star Wars: Episode VI - Return of the Jedi",
    "nausicaa-of-the-valley-of-the-wind-1984": "Kaze no tani no Naushika",
    "come-and-see-1985": "Idi i smotri",
    "castle-in-the-sky-1986": "Tenkû no shiro Rapyuta",
    "grave-of-the-fireflies-1988": "Hotaru no haka",
    "my-neighbor-totoro-1988": "Tonari no Totoro",
    "women-on-the-verge-of-a-nervous-breakdown-1988": 'Mujeres al borde de un ataque de "nervios"',
    "kikis-delivery-service-1989": "Majo no takkyûbin",
    "my-left-foot-1989": "My Left Foot: The Story of Christy Brown",
    "close-up-1990": "Nema-ye Nazdik",
    "raise-the-red-lantern-1991": "Da hong deng long gao gao gua",
    "alien-3-1992": "Alien³",
    "hard-boiled-1992": "Lat sau san taam",
    "like-water-for-chocolate-1992": "Como agua para chocolate",
    "porco-rosso-1992": "Kurenai no buta",
    "three-colours-blue-1993": "Trois couleurs: Bleu",
    "three-colours-red-1994": "Trois couleurs: Rouge",
    "chungking-express-1994": "Chung Hing sam lam",
    "naked-gun-33-1-3-the-final-insult-1994": "Naked Gun 33 1/3: The Final Insult",
    "children-of-heaven-1997": "Bacheha-Ye aseman",
    "life-is-beautiful-1997": "La vita è bella",
    "open-your-eyes-1997": "Abre los ojos",
    "perfect-blue-1997": "Pâfekuto burû",
    "princess-mononoke-1997": "Mononoke-hime",
    "taste-of-cherry-1997": "Ta'm e guilass",
    "central-station-1998": "Central do Brasil",
    "run-lola-run-1998": "Lola rennt",
    "the-celebration-1998": "Festen",
    "all-about-my-mother-1999": "Todo sobre mi madre",
    "audition-1999": "Ôdishon",
    "crouching-tiger-hidden-dragon-2000": "Wo hu cang long",
    "in-the-mood-for-love-2000": "Faa yeung nin wa",
    "mission-impossible-2-2000": "Mission: Impossible II",
    "nine-queens-2000": "Nueve reinas",
    "harry-potter-and-the-philosophers-stone-2001": "Harry Potter and the Sorcerer's Stone",
    "lagaan-2001": "Lagaan: Once Upon a Time in India",
    "mulholland-drive-2001": "Mulholland Dr.",
    "my-sassy-girl-2001": "Yeopgijeogin geunyeo",
    "shaolin-soccer-2001": "Siu lam juk kau",
    "spirited-away-2001": "Sen to Chihiro no kamikakushi",
    "the-devils-backbone-2001": "El espinazo del diablo",
    "the-piano-teacher-2001": "La pianiste",
    "city-of-god-2002": "Cidade de Deus",
    "hero-2002": "Ying xiong",
    "infernal-affairs-2002": "Mou gaan dou",
    "sympathy-for-mr-vengeance-2002": "Boksuneun naui geot",
    "talk-to-her-2002": "Hable con ella",
    "a-tale-of-two-sisters-2003": "Janghwa, Hongryeon",
    "memories-of-murder-2003": "Salinui chueok",
    "oldboy-2003": "Oldeuboi",
    "school-of-rock-2003": "The School of Rock",
    "spring-summer-fall-winter-and-spring-2003": "Bom yeoreum gaeul gyeoul geurigo bom",
    "the-best-of-youth-2003": "La meglio gioventù",
    "the-fog-of-war-2003": "The Fog of War: Eleven Lessons from the Life of Robert S. McNamara",
    "downfall-2004": "Der Untergang",
    "house-of-flying-daggers-2004": "Shi mian mai fu",
    "howls-moving-castle-2004": "Hauru no ugoku shiro",
    "kung-fu-hustle-2004": "Kung fu",
    "the-chorus-2004": "Les choristes",
    "the-motorcycle-diaries-2004": "Diarios de motocicleta",
    "lady-vengeance-2005": "Chinjeolhan geumjassi",
    "the-host-2006": "Gwoemul",
    "4-months-3-weeks-and-2-days-2007": "4 luni, 3 saptamâni si 2 zile",
    "la-vie-en-rose-2007": "La môme",
    "the-king-of-kong-a-fistful-of-quarters-2007": "The King of Kong",
    "the-orphanage-2007": "El orfanato",
    "departures-2008": "Okuribito",
    "ip-man-2008": "Yip Man",
    "ip-man-2-2010": "Yip Man 2",
    "ip-man-3-2015": "Yip Man 3",
    "let-the-right-one-in-2008": "Låt den rätte komma in",
    "ponyo-2008": "Gake no ue no Ponyo",
    "a-prophet-2009": "Un prophète",
    "dogtooth-2009": "Kynodontas",
    "the-girl-who-kicked-the-hornets-nest-2009": "Luftslottet som sprängdes",
    "the-girl-who-played-with-fire-2009": "Flickan som lekte med elden",
    "the-girl-with-the-dragon-tattoo-2009": "Män som hatar kvinnor",
    "the-secret-in-their-eyes-2009": "El secreto de sus ojos",
    "the-white-ribbon-2009": "Das weisse Band - Eine deutsche Kindergeschichte",
    "i-saw-the-devil-2010": "Ang-ma-reul bo-at-da",
    "trollhunter-2010": "Trolljegeren",
    "tron-legacy-2010": "Tron",
    "uncle-boonmee-who-can-recall-his-past-lives-2010": "Loong Boonmee raleuk chat",
    "a-separation-2011": "Jodaeiye Nader az Simin",
    "once-upon-a-time-in-anatolia-2011": "Bir zamanlar Anadolu'da",
    "the-skin-i-live-in-2011": "La piel que habito",
    "x-men-first-class-2011": "X: First Class",
    "the-hunt-2012": "Jagten",
    "blue-is-the-warmest-colour-2013": "La vie d'Adèle",
    "iron-man-3-2013": "Iron Man Three",
    "tangerines-2013": "Mandariinid",
    "the-great-beauty-2013": "La grande bellezza",
    "the-lunchbox-2013": "Dabba",
    "the-tale-of-the-princess-kaguya-2013": "Kaguyahime no monogatari",
    "the-wind-rises-2013": "Kaze tachinu",
    "force-majeure-2014": "Turist",
    "two-days-one-night-2014": "Deux jours, une nuit",
    "wild-tales-2014": "Relatos salvajes",
    "a-man-called-ove-2015": "En man som heter Ove",
    "baahubali-the-beginning-2015": "Bahubali: The Beginning",
    "embrace-of-the-serpent-2015": "El abrazo de la serpiente",
    "furious-7-2015": "Fast & Furious 7",
    "star-wars-the-force-awakens-2015": "Star Wars: Episode VII - The Force Awakens",
    "the-witch-2015": "The VVitch: A New-England Folktale",
    "perfect-strangers-2016": "Perfetti sconosciuti",
    "the-handmaiden-2016": "Ah-ga-ssi",
    "train-to-busan-2016": "Busanhaeng",
}
"""item_id in films.jsonl → the title under which MovieTweetings, which follows IMDb, has the film: mostly the original one."""


def plain_words(text: str) -> list[str]:
    """The words of a title without accents, apostrophes, case and punctuation; & reads "and"."""
    text = text.casefold().replace("&", " and ").translate(_LETTERS)
    text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.findall(r"[a-z0-9]+", text)


_LETTERS = str.maketrans(
    {"ø": "o", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th", "ł": "l", "đ": "d", "ı": "i", "·": " ", "'": "", "’": ""}
)
"""What Unicode does not take apart into a letter and an accent, and what is no border between words."""


def match(rows: Iterable[tuple[str, int]], films: Sequence[Film]) -> dict[int, Film]:
    """Row number → its film, where title (or other title) and year agree; each film once.

    The year of first release is that of a festival to some and of the cinemas to others, so a year apart is the same film, after
    those of the same year have been given away. Where a row could be two films, or a film two rows, it is none: a wrong
    description is worse than none.

    rows: (title, year).
    """
    titled: dict[str, list[Film]] = defaultdict(list)
    for film in films:
        titled[_key(OTHER_TITLES.get(film.item_id, film.title))].append(film)
    candidates = [
        (row, film, abs(film.year - year)) for row, (title, year) in enumerate(rows) for film in titled[_key(title)]
    ]
    matched: dict[int, Film] = {}
    for years_apart in (0, 1):
        used_ids = {film.item_id for film in matched.values()}
        pairs = [
            (row, film)
            for row, film, apart in candidates
            if apart == years_apart and row not in matched and film.item_id not in used_ids
        ]
        per_row, per_film = Counter(row for row, _ in pairs), Counter(film.item_id for _, film in pairs)
        matched |= {row: film for row, film in pairs if per_row[row] == per_film[film.item_id] == 1}
    return matched


def _key(title: str) -> str:
    return " ".join(plain_words(title))
