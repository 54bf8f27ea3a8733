"""formetl in Airflow 3: a DAG that runs each form of a definition each hour, as a task of its own.

It lies in the folder of the DAGs. The workers have formetl on their PATH, and below
/etc/formetl the definition and the key. The definition's state is a bucket, so that all workers
keep to one budget and go on from what another one had read. The pool `formetl` bounds how many
forms are done at once; requests are bounded by the budget.
"""

from __future__ import annotations

import json
import subprocess
from datetime import datetime, timedelta
from functools import cached_property

from airflow.providers.standard.hooks.subprocess import SubprocessHook
from airflow.sdk import DAG, BaseOperator, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException

# The exit codes after which the next run continues where this one ended. Any other code
# needs a person first, and a retry would only waste requests.
RUN_AGAIN = {75, 129, 130, 143}

DEFINITION = "/etc/formetl/hourly-s3.yaml"
KEY = ["--api-key-file", "/etc/formetl/key"]


def runs_again(code: int) -> bool:
    """Tells whether a retry helps. A code below 0 is a signal: the system ended the run."""
    return code in RUN_AGAIN or code < 0


class FormetlOperator(BaseOperator):
    """Runs one form of a definition, and stops it in order when the task is killed."""

    template_fields = ("definition", "form", "arguments")
    map_index_template = "{{ task.form }}"

    def __init__(self, *, definition: str, form: str, arguments: list[str] | None = None, **kwargs):
        super().__init__(**kwargs)
        self.definition = definition
        self.form = form
        self.arguments = arguments or []

    @cached_property
    def hook(self):
        return SubprocessHook()

    def execute(self, context):
        metrics = f"/var/lib/prometheus/node-exporter/formetl-{self.form}.prom"
        command = ["formetl", "run", self.definition, "--form", self.form, "--metrics", metrics, "--log-format", "json", *self.arguments]
        code = self.hook.run_command(command=command).exit_code
        if runs_again(code):
            raise AirflowException(f"formetl ended with {code}: run again")
        if code != 0:
            raise AirflowFailException(f"formetl ended with {code}; its last line says what to do")

    def on_kill(self):
        self.hook.send_sigterm()


@task(retries=3, retry_delay=timedelta(minutes=5))
def list_forms() -> list[str]:
    """Asks which forms the definition reads now."""
    listed = subprocess.run(["formetl", "forms", DEFINITION, "--json", *KEY], check=True, stdout=subprocess.PIPE)
    return [form["directory"] for form in json.loads(listed.stdout)]


with DAG(
    dag_id="formetl_hourly_s3",
    schedule="17 * * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,  # a run reads everything since the last one
    max_active_runs=1,
    tags=["formetl"],
):
    FormetlOperator.partial(
        task_id="run",
        definition=DEFINITION,
        arguments=KEY,
        pool="formetl",
        retries=5,
        retry_delay=timedelta(minutes=5),
        retry_exponential_backoff=True,
        max_retry_delay=timedelta(minutes=20),
        execution_timeout=timedelta(minutes=55),
    ).expand(form=list_forms())
