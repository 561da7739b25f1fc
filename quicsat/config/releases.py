"""Releases of implementations: another version of the package, built with the same wrapper, under a name of its own."""

from dataclasses import replace

from quicsat.model.errors import InputError
from quicsat.model.implementation import NOTHING_KNOWN, BuildArgument, Implementation, ReleaseSeries
from quicsat.model.names import RELEASE_SIGN, VERSION_RULE, is_version
from quicsat.model.package import Package, Registry, release_order
from quicsat.model.text import quoted


def release_named(implementation: Implementation, version: str) -> Implementation:
    """A release of an implementation, as an implementation; it is looked up in the registry when it is built.

    The facts about its congestion control are unknown: they were found in another version. Raises
    :class:`InputError` if ``version`` is no version, or no folder can build it.
    """
    name, version = implementation.name, version.casefold()
    if not is_version(version):
        raise InputError(f"{name}: {quoted(version)} is no version, which is {VERSION_RULE}.")
    package, series = package_of(implementation), implementation.releases
    if package.registry is Registry.GO and version[0].isdigit():
        version = f"v{version}"
    if (own := series_of(implementation, version)) is None:
        raise InputError(
            f"{name}: {version} is older than {series[0].first}, the oldest release that its folder builds."
        )
    arguments = {each.name: each.value for each in (*implementation.build_arguments, *own.build_arguments)}
    arguments[package.argument] = version
    return replace(
        implementation,
        name=f"{name}{RELEASE_SIGN}{version}",
        image="",
        build=own.build or implementation.build,
        replaced=False,
        congestion_control=None,
        virtual_only=NOTHING_KNOWN,
        build_arguments=tuple(BuildArgument(*each) for each in sorted(arguments.items())),
        releases=(),
        release=version,
    )


def package_of(implementation: Implementation) -> Package:
    """The package whose releases can be built; raises :class:`InputError` if there is none."""
    if implementation.package is None or not implementation.releases:
        raise InputError(f"{implementation.name}: its folder builds one version only, and no other releases.")
    return implementation.package


def series_of(implementation: Implementation, version: str) -> ReleaseSeries | None:
    """The series to which a release belongs; None if it is older than all."""
    order = release_order(version)
    return next((each for each in reversed(implementation.releases) if release_order(each.first) <= order), None)
