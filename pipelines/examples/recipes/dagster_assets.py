"""formetl in Dagster: an asset for each form of a definition, brought up to date each hour.

The machine has formetl on its PATH, and below /etc/formetl the definition and the key. The forms
are asked for when the code is loaded: reload it after a form was added.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile

from dagster import (
    AssetExecutionContext,
    Definitions,
    Failure,
    MaterializeResult,
    PipesEnvContextInjector,
    PipesTempFileMessageReader,
    RetryRequested,
    ScheduleDefinition,
    asset,
    define_asset_job,
    open_pipes_session,
)

# The exit codes after which the next run continues where this one ended. Any other code
# needs a person first, and a retry would only waste requests.
RUN_AGAIN = {75, 129, 130, 143}

DEFINITION = "/etc/formetl/hourly-s3.yaml"
KEY = ["--api-key-file", "/etc/formetl/key"]


def runs_again(code: int) -> bool:
    """Tells whether a retry helps. A code below 0 is a signal: the system ended the run."""
    return code in RUN_AGAIN or code < 0


def list_forms() -> list[str]:
    """Asks which forms the definition reads now."""
    listed = subprocess.run(["formetl", "forms", DEFINITION, "--json", *KEY], check=True, stdout=subprocess.PIPE)
    return [form["directory"] for form in json.loads(listed.stdout)]


def asset_of(form: str):
    """Makes the asset of a form. Its process runs in a session of Pipes, and its report is the asset's metadata."""

    @asset(name=re.sub(r"\W", "_", form), group_name="formetl", pool="formetl", kinds={"s3"})
    def run(context: AssetExecutionContext) -> MaterializeResult:
        with tempfile.TemporaryDirectory() as folder:
            report = os.path.join(folder, "report.json")
            metrics = f"/var/lib/prometheus/node-exporter/formetl-{form}.prom"
            command = ["formetl", "run", DEFINITION, "--form", form, "--report", report, "--metrics", metrics, "--log-format", "json", *KEY]
            with open_pipes_session(
                context=context,
                context_injector=PipesEnvContextInjector(),
                message_reader=PipesTempFileMessageReader(),
            ) as session:
                code = subprocess.run(command, env={**os.environ, **session.get_bootstrap_env_vars()}).returncode
            if runs_again(code):
                raise RetryRequested(max_retries=5, seconds_to_wait=300)
            if code != 0:
                raise Failure(f"formetl ended with {code}; its last line says what to do", allow_retries=False)
            with open(report, encoding="utf-8") as file:
                told = json.load(file)["forms"][0]
        return MaterializeResult(metadata={"rows": told["rows"], "rejected": told["rejected"], "requests": told["requests"]["results"]})

    return run


hourly = define_asset_job("formetl_hourly_s3", selection="group:formetl")
definitions = Definitions(
    assets=[asset_of(form) for form in list_forms()],
    schedules=[ScheduleDefinition(job=hourly, cron_schedule="17 * * * *")],
)
