"""The implementations and images that names on the command line select, and the faults."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from quicsat.config.releases import release_named
from quicsat.config.variants import variant_named
from quicsat.model.errors import InputError
from quicsat.model.implementation import OWN_IMAGES, Implementation, Role
from quicsat.model.names import IMAGE_RULE, RELEASE_SIGN, VARIANT_SIGN, base_name, did_you_mean, is_image
from quicsat.model.text import quoted
from quicsat.plan.select_names import listed, split


def select_implementations(
    names: Sequence[str], known: Mapping[str, Implementation], role: Role
) -> tuple[tuple[Implementation, ...], list[str]]:
    """The implementations that ``names`` select, and the faults.

    A name is that of an implementation, of a variant, ``picoquic:bbr``, or of a release, ``quinn@0.11.5``. No names
    select all implementations that support ``role``, without their variants and releases.
    """
    able = {name: implementation for name, implementation in known.items() if role in implementation.roles}
    if not names:
        return tuple(able.values()), [] if able else [f"No implementation can be a {role}."]
    problems = [] if split(names) else [f"No {role} was named. Known: {listed(able)}."]
    selected: dict[str, Implementation] = {}
    for word in split(names):
        try:
            base, chosen = _named(word, known, able, role)
        except InputError as error:
            problems += error.problems
            continue
        if role in chosen.roles:
            selected[chosen.name] = chosen
        elif role in base.roles:
            problems.append(f"{chosen.name} changes nothing in a {role}; name {base.name}.")
        elif not base.roles:
            problems.append(
                f"{base.name} has no role in WebTransport tests. Implementations that have one: {listed(able)}."
            )
        else:
            roles = " and ".join(sorted(base.roles))
            problems.append(f"{base.name} is only a {roles}; it cannot be a {role}.")
    return tuple(selected.values()), list(dict.fromkeys(problems))


def _named(
    word: str, known: Mapping[str, Implementation], offered: Collection[str], what: str
) -> tuple[Implementation, Implementation]:
    """The implementation that a word names, and its release and variant if it names one, else the same again."""
    whole, colon, variant = (part.strip() for part in word.partition(VARIANT_SIGN))
    name, sign, version = (part.strip() for part in whole.partition(RELEASE_SIGN))
    base = {each.casefold(): implementation for each, implementation in known.items()}.get(name.casefold())
    if base is None:
        raise InputError(f"No {what} {quoted(name)}.{did_you_mean(name, offered)} Known: {listed(offered)}.")
    chosen = release_named(base, version) if sign else base
    return base, variant_named(chosen, variant) if colon else chosen


def without_variants(chosen: Iterable[Implementation], known: Mapping[str, Implementation]) -> list[Implementation]:
    """Each of ``chosen``, and the implementation or release that a variant belongs to, each once."""
    return list({each.name: each for one in chosen for each in [_without_variant(one, known)]}.values())


def _without_variant(chosen: Implementation, known: Mapping[str, Implementation]) -> Implementation:
    base = known[base_name(chosen.name)]
    if not chosen.is_variant:
        return chosen
    return release_named(base, chosen.release) if chosen.release else base


def select_images(
    names: Sequence[str], known: Mapping[str, Implementation]
) -> tuple[tuple[Implementation, ...], tuple[str, ...]]:
    """The implementations, variants too, and those of ``OWN_IMAGES`` that ``names`` select.

    No names select all implementations and the simulator. Raises :class:`InputError` with every fault.
    """
    if not names:
        return tuple(known.values()), ("simulator",)
    selected: dict[str, Implementation] = {}
    problems = [] if split(names) else ["No image was named."]
    words = split(names)
    for word in words:
        if word.casefold() not in OWN_IMAGES:
            try:
                chosen = _named(word, known, [*known, *OWN_IMAGES], "image")[1]
            except InputError as error:
                problems += error.problems
            else:
                selected[chosen.name] = chosen
    if problems:
        raise InputError(*dict.fromkeys(problems))
    return tuple(selected.values()), tuple(name for name in OWN_IMAGES if name in map(str.casefold, words))


def replace_images(
    implementations: Mapping[str, Implementation], replacements: Sequence[str]
) -> tuple[dict[str, Implementation], list[str]]:
    """The implementations with the images of ``name=image`` words (comma lists too), and the faults."""
    result = dict(implementations)
    spellings = {name.casefold(): name for name in implementations}
    words = split(replacements)
    problems = ['No image was named to replace another; write "name=image".'] if replacements and not words else []
    images: dict[str, str] = {}
    for word in words:
        given, _, image = word.partition("=")
        given, image = given.strip(), image.strip()
        name = spellings.get(given.casefold())
        if not given or not image:
            problems.append(f'{quoted(word)} is no replacement; write "name=image".')
        elif RELEASE_SIGN in given:
            problems.append(f"{quoted(given)} is built here; write {quoted(f'{base_name(given)}=image')}.")
        elif VARIANT_SIGN in given:
            right = quoted(f"{base_name(given)}=image")
            problems.append(f"{quoted(given)} has the image of its implementation; write {right}.")
        elif name is None:
            hint = did_you_mean(given, implementations)
            problems.append(f"No implementation {quoted(given)} to replace.{hint} Known: {listed(implementations)}.")
        elif not is_image(image):
            problems.append(f"{name}: {quoted(image)} is no image reference, which is {IMAGE_RULE}.")
        elif images.setdefault(name, image) != image:
            problems.append(f"{name} is to be replaced by two images, {images[name]} and {image}.")
        else:
            result[name] = replace(implementations[name], image=image, replaced=True)
    return result, problems
