"""Pictures of the Grafana dashboards from a real run, without a Grafana: `python -m tests.dashboards`.

A sandbox, a scheduler and plugins work for some minutes, a real Prometheus scrapes them every second. It is
asked what Grafana would ask for each panel; panels are drawn at their places, and Chromium photographs them.
"""

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
from PIL import Image

from berth.demo.processes import Child
from berth.sandbox.free_port import free_port
from tests.chromium import browser, found
from tests.dashboards.page import WIDTH, page
from tests.dashboards.queries import STEP, answers
from tests.dashboards.work import Work
from tests.e2e.promql import MONITORING, dashboards

IMAGES = MONITORING.parents[2] / "docs/images"
WARM_SECONDS = 10


def main():
    """0 with the pictures, 2 where a program is missing."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.dashboards", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--seconds", type=int, default=150, help="how long the scheduler works (150)")
    parser.add_argument("--to", type=Path, default=IMAGES, help="the folder of the pictures (docs/images)")
    options = parser.parse_args()
    missing = [
        name for name, path in (("prometheus", shutil.which("prometheus")), ("chromium", found())) if not path
    ]
    if missing:
        print(f"not on the PATH: {', '.join(missing)} (Debian: packages of these names)", file=sys.stderr)  # noqa: T201
        return 2
    # A unix socket's path is to be short.
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        asyncio.run(pictures(Path(folder), options.seconds, options.to))
    return 0


async def pictures(folder, seconds, to):
    """Run, ask, draw."""
    async with AsyncExitStack() as stack:
        work = Work(folder, stack)
        await work.start(folder)
        ask = await prometheus(folder, stack, work.targets())
        start = time.time() + WARM_SECONDS
        await work.run(seconds + WARM_SECONDS)
        end = int(time.time())
        answered = {name: await answers(ask, each, start, end) for name, each in dashboards().items()}
    async with browser(folder / "chromium") as open_page:
        for name, dashboard in dashboards().items():
            text, height = page(dashboard, answered[name], start, end)
            file = folder / f"{name}.html"
            file.write_text(text, encoding="utf-8")
            shown = await open_page(file.as_uri(), width=WIDTH, height=height)
            picture = to / f"dashboard-{name}.png"
            await shown.picture(picture)
            # A picture of few colours is less than half the size.
            Image.open(picture).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(
                picture, optimize=True
            )
            for panel in dashboard["panels"]:
                if "targets" in panel and not any(each.points for each in answered[name][panel["id"]]):
                    print(f"{name}: {panel['title']}: no data")  # noqa: T201 - a command talks on its streams


async def prometheus(folder, stack, targets):
    """Start a Prometheus that scrapes the targets; a function that asks it for a range."""
    jobs = [
        {
            "job_name": instance,
            "scheme": scheme,
            "tls_config": {"insecure_skip_verify": True},
            "static_configs": [
                {
                    "targets": [address],
                    "labels": {"namespace": "berth-system", "job": "berth-main", "instance": instance},
                }
            ],
        }
        for address, scheme, instance in targets
    ]
    file, port = folder / "prometheus.yaml", free_port()
    interval = f"{STEP}s"
    file.write_text(
        json.dumps(
            {"global": {"scrape_interval": interval, "scrape_timeout": interval}, "scrape_configs": jobs}
        )
    )
    command = [
        shutil.which("prometheus"),
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    child = await Child.start("prometheus", command, folder / "prometheus.log")
    stack.push_async_callback(child.stop)
    client = await stack.enter_async_context(aiohttp.ClientSession())

    async def ask(expression, start, end):
        asked = {"query": expression, "start": start, "end": end, "step": STEP}
        async with client.post(f"http://127.0.0.1:{port}/api/v1/query_range", data=asked) as answer:
            said = await answer.json()
        assert said["status"] == "success", (expression, said)
        return said["data"]["result"]

    return ask


if __name__ == "__main__":
    sys.exit(main())
