"""Upstream's specs against Berth, by one command; e2e.test, which no package registry has, is a stand-in."""

import subprocess
import sys

import pytest

from tests.e2e.api_servers import api_server_called
from tests.e2e.operated_installation import controller_manager
from tests.e2e.upstream_specs import outcomes

pytestmark = pytest.mark.e2e
REPORT = """<?xml version="1.0"?>
<testsuites><testsuite>
<testcase name="[SynchronizedBeforeSuite]"/>
<testcase name="[It] [sig-scheduling] fits"/>
<testcase name="[It] [sig-scheduling] is refused"><failure message="no">no</failure></testcase>
<testcase name="[It] [sig-apps] other"><skipped message="left out"/></testcase>
</testsuite></testsuites>
"""
# Schedules a pod as the administrator, and says who holds kube-scheduler's lease.
PROGRAM = f"""#!/bin/sh
set -e
for flag; do case $flag in
--kubeconfig=*) export KUBECONFIG=${{flag#*=}};;
--report-dir=*) report=${{flag#*=}};;
esac; done
until kubectl get serviceaccount default >/dev/null 2>&1; do sleep 0.2; done
kubectl run spec --image=app:1
kubectl wait --for=condition=Ready --timeout=60s pod/spec
kubectl get events --field-selector reason=Scheduled -o jsonpath='{{.items[0].message}}'
mkdir -p $report
cat > $report/junit_01.xml <<'END'
{REPORT}END
"""


def test_outcomes(tmp_path):
    """Specs that ran count, and nothing else of the report."""
    path = tmp_path / "junit_01.xml"
    path.write_text(REPORT)

    assert [("passed", "[sig-scheduling] fits"), ("failed", "[sig-scheduling] is refused")] == list(
        outcomes(path)
    )


def test_against_berth(tmp_path):
    """Control plane, fake kubelets and Berth as system:kube-scheduler are there for the specs."""
    api_server_called("real")
    controller_manager()
    specs = tmp_path / "e2e.test"
    specs.write_text(PROGRAM)
    specs.chmod(0o755)
    command = (
        sys.executable,
        "-m",
        "tests.e2e.upstream_specs",
        f"--e2e-test={specs}",
        f"--folder={tmp_path / 'run'}",
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)

    assert 0 == done.returncode, done.stdout + done.stderr
    assert "pod/spec condition met" in done.stdout
    assert "Successfully assigned default/spec to worker-" in done.stdout
    assert "passed: [sig-scheduling] fits\n1 failed, 1 passed" in done.stdout
    log = (tmp_path / "run" / "berth.log").read_text()
    assert 'lease="kube-system/kube-scheduler"' in log
    assert "forbidden" not in log
