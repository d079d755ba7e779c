"""What comes along with an image: an SBOM for each platform, and the provenance. Neither is signed.

Source: SPDX 2.3 (spdx.github.io/spdx-spec/v2.3), in-toto Statement v1, SLSA provenance v1
(slsa.dev/spec/v1.0/provenance).
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

from berth_images.bases import lock
from berth_images.debian import Package, address
from berth_images.layout import CREATED, Image, Json
from berth_images.python_packages import Wheel

BUILD_TYPE = "https://berth.dev/images/build/v1"
_NAMESPACE = "https://berth.dev/spdx"
_IMAGE = "SPDXRef-image"


def bill_of_materials(
    name: str, version: str, image: Image, debian: Sequence[Package], wheels: Sequence[tuple[Wheel, str]]
) -> Json:
    """Return an SPDX document of one platform's image; a wheel comes with its licence."""
    digest = image.descriptor["digest"].removeprefix("sha256:")
    packages = [
        _package(_IMAGE, name, version, f"pkg:oci/{name.rpartition('/')[2]}@sha256%3A{digest}", digest),
        *map(_debian, debian),
        *(_wheel(each, licence) for each, licence in wheels),
    ]
    relations = [_relation("SPDXRef-DOCUMENT", "DESCRIBES", _IMAGE)]
    relations += [_relation(_IMAGE, "CONTAINS", each["SPDXID"]) for each in packages[1:]]
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{name}:{version} {image.platform.name}",
        "documentNamespace": f"{_NAMESPACE}/{quote(name)}/{digest}",
        "creationInfo": {"created": CREATED, "creators": ["Tool: berth-images"]},
        "packages": packages,
        "relationships": relations,
    }


def provenance(
    name: str, index: Json, recipe: Path, parameters: Json, inputs: Sequence[tuple[str, str]]
) -> Json:
    """Return a statement of what the image was built of; inputs are addresses or names with their SHA-256."""
    recipe_digest = hashlib.sha256(recipe.read_bytes()).hexdigest()
    every = [(recipe.name, recipe_digest), *inputs]
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": index["digest"].removeprefix("sha256:")}}],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"recipe": recipe.name, **parameters},
                "resolvedDependencies": [_input(where, digest) for where, digest in dict.fromkeys(every)],
            },
            "runDetails": {"builder": {"id": "https://berth.dev/images"}},
        },
    }


def _input(where: str, digest: str) -> Json:
    key = "uri" if "://" in where else "name"
    return {key: where, "digest": {"sha256": digest}}


def inputs_of(debian: Sequence[Package], wheels: Sequence[Wheel]) -> Iterator[tuple[str, str]]:
    """Give each package's address, or its file's name, with its SHA-256."""
    yield from ((address(each), each.sha256) for each in debian)
    yield from ((each.address or each.file, each.sha256) for each in wheels)


def _debian(package: Package) -> Json:
    architecture = package.path.rpartition("_")[2].removesuffix(".deb")
    distribution = f"debian-{lock().release.split('.')[0]}"
    version = quote(package.version, safe="")
    purl = f"pkg:deb/debian/{quote(package.name)}@{version}?arch={architecture}&distro={distribution}"
    found = _package(
        _identifier("deb", package.name),
        package.name,
        package.version,
        purl,
        package.sha256,
        where=address(package),
    )
    return {
        **found,
        "supplier": "Organization: Debian",
        "sourceInfo": f"built of the source package {package.source}",
    }


def _wheel(wheel: Wheel, licence: str) -> Json:
    purl = f"pkg:pypi/{wheel.name}@{quote(wheel.version, safe='')}"
    found = _package(
        _identifier("pypi", wheel.name), wheel.name, wheel.version, purl, wheel.sha256, where=wheel.address
    )
    return {**found, "packageFileName": wheel.file, "licenseDeclared": licence or "NOASSERTION"}


def _package(identifier: str, name: str, version: str, purl: str, digest: str, *, where: str = "") -> Json:
    reference = {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}
    return {
        "SPDXID": identifier,
        "name": name,
        "versionInfo": version,
        "downloadLocation": where or "NOASSERTION",
        "filesAnalyzed": False,
        "checksums": [{"algorithm": "SHA256", "checksumValue": digest}],
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "externalRefs": [reference],
    }


def _identifier(kind: str, name: str) -> str:
    return f"SPDXRef-{kind}-{''.join(each if each.isalnum() or each in '.-' else '-' for each in name)}"


def _relation(one: str, kind: str, other: str) -> Json:
    return {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}
