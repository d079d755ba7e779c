"""A claim's opaque values byte for byte, from an answer that kube-apiserver 1.36.2 gave."""

from base64 import b64decode

import msgspec
import pytest

from berth.client.errors import ConflictError
from berth.client.resources import RESOURCE_CLAIMS
from berth.objects.api_object import ObjectMeta
from berth.objects.devices.resource_claims import ResourceClaim
from berth.scheduler.writing.claim_documents import read_claim

RECORDED = b64decode(
    "azhzAAojChJyZXNvdXJjZS5rOHMuaW8vdjESDVJlc291cmNlQ2xhaW0SgAYK2AQKAWMSABoHZGVmYXVsdCIAKiRkNDJkYjBhOC0w"
    "MTMxLTRjZTYtYTYwMi1mODMzZjA0Mzc3YzMyAzI3OTgAQggIyq+q2AYQAIoBdQoFYmVydGgSBlVwZGF0ZRoScmVzb3VyY2Uuazhz"
    "LmlvL3YxIggIyq+q2AYQADIIRmllbGRzVjE6Ogo4eyJmOnNwZWMiOnsiZjpkZXZpY2VzIjp7ImY6Y29uZmlnIjp7fSwiZjpyZXF1"
    "ZXN0cyI6e319fX1CAIoBlQMKBWJlcnRoEgZVcGRhdGUaEnJlc291cmNlLms4cy5pby92MSIICMqvqtgGEAAyCEZpZWxkc1YxOtMC"
    "CtACeyJmOnN0YXR1cyI6eyJmOmFsbG9jYXRpb24iOnsiLiI6e30sImY6ZGV2aWNlcyI6eyIuIjp7fSwiZjpjb25maWciOnt9LCJm"
    "OnJlc3VsdHMiOnt9fX0sImY6ZGV2aWNlcyI6eyIuIjp7fSwiazp7XCJkZXZpY2VcIjpcInhcIixcImRyaXZlclwiOlwiZFwiLFwi"
    "cG9vbFwiOlwicFwifSI6eyIuIjp7fSwiZjpjb25kaXRpb25zIjp7fSwiZjpkYXRhIjp7fSwiZjpkZXZpY2UiOnt9LCJmOmRyaXZl"
    "ciI6e30sImY6cG9vbCI6e319fSwiZjpyZXNlcnZlZEZvciI6eyIuIjp7fSwiazp7XCJ1aWRcIjpcImFcIn0iOnsiLiI6e30sImY6"
    "bmFtZSI6e30sImY6cmVzb3VyY2UiOnt9LCJmOnVpZCI6e319fX19QgZzdGF0dXMSSApGChYKAXISEQoBYxoKRXhhY3RDb3VudCAB"
    "GhUSEwoRCgFkEgwKCnsiYSI6ICI8In0aFRITChEKAWQSDAoKeyJiIjogMWUyfRpZCjAKLgoMCgFyEgFkGgFwIgF4Eh4KCUZyb21D"
    "bGFpbRoRCg8KAWQSCgoIeyJjIjogM30SDgoAGgRwb2RzIgFhKgFhIhUKAWQSAXAaAXgqCgoIeyJkIjogNH0aACIA"
)
"""A claim of two configurations, allocated with one, of which one device has data."""
VERSION = "279"
CLAIM = ResourceClaim(ObjectMeta(name="c", namespace="default"))


class Server:
    """An API with that claim, by what it accepts."""

    def __init__(self, protobuf=RECORDED, version=VERSION, **parts):
        opaque = lambda value: {"opaque": {"driver": "d", "parameters": value}}  # noqa: E731
        config = [opaque({"a": "<"}), {"requests": ["r"]}, opaque({"b": 100.0})]
        allocated = {"devices": {"config": [opaque({"c": 3})]}}
        devices = [{"driver": "e"}, {"driver": "d", "data": {"d": 4}}]
        self.protobuf, self.asked = protobuf, []
        self.document = {
            "metadata": {"name": "c", "resourceVersion": version},
            "spec": {"devices": {"config": config}},
            "status": {"allocation": allocated, "devices": devices},
            **parts,
        }

    async def get(self, resource, namespace, name):
        assert (RESOURCE_CLAIMS, "default", "c") == (resource, namespace, name)
        return msgspec.json.encode(self.document)

    async def call(self, method, path, *, content_type):
        self.asked.append((method, path, content_type))
        return self.protobuf


async def test_opaque_values_are_the_very_bytes():
    """In each place, and nothing else is another."""
    server = Server()
    document = await read_claim(server, CLAIM)
    spec, status = document["spec"], document["status"]

    given = [
        spec["devices"]["config"][0]["opaque"]["parameters"],
        spec["devices"]["config"][2]["opaque"]["parameters"],
        status["allocation"]["devices"]["config"][0]["opaque"]["parameters"],
        status["devices"][1]["data"],
    ]
    assert [b'{"a": "<"}', b'{"b": 1e2}', b'{"c": 3}', b'{"d": 4}'] == [bytes(raw) for raw in given]
    written = msgspec.json.decode(msgspec.json.encode(document))
    assert server.document == written
    assert 1 == len(server.asked)


async def test_a_claim_without_opaque_values_is_read_once():
    server = Server(spec={"devices": {}}, status={})

    assert server.document == await read_claim(server, CLAIM)
    assert [] == server.asked


async def test_a_server_without_protobuf_keeps_json():
    server = Server()
    server.protobuf = msgspec.json.encode(server.document)

    assert server.document == await read_claim(server, CLAIM)


async def test_a_claim_that_is_written_meanwhile_is_a_conflict():
    """So that it is read again."""
    with pytest.raises(ConflictError):
        await read_claim(Server(version="1"), CLAIM)


async def test_a_cut_answer_is_an_error():
    """Wherever it is cut: no value is half of what it was."""
    end = RECORDED.index(b'{"d": 4}') + len(b'{"d": 4}')
    for cut in range(4, end):
        with pytest.raises((ValueError, IndexError)):
            await read_claim(Server(RECORDED[:cut]), CLAIM)


async def test_a_number_without_end_is_refused():
    with pytest.raises(ValueError, match="does not end"):
        await read_claim(Server(b"k8s\x00" + b"\xff" * 1_000_000), CLAIM)
