"""formetl in Airflow 3: a DAG that runs a definition each hour.

It lies in the folder of the DAGs. The workers have formetl on their PATH, and below
/etc/formetl the definition and the key.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cached_property

from airflow.providers.standard.hooks.subprocess import SubprocessHook
from airflow.sdk import DAG, BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

# The exit codes after which the next run goes on where this one ended. Every other
# one wants a person first, and a retry would only spend requests.
RUN_AGAIN = {75, 129, 130, 143}


def runs_again(code: int) -> bool:
    """Tells whether a retry helps. A code below 0 is a signal: the system ended the run."""
    return code in RUN_AGAIN or code < 0


class FormetlOperator(BaseOperator):
    """Runs one definition, and stops it in order when the task is killed."""

    template_fields = ("definition", "arguments")

    def __init__(self, *, definition: str, arguments: list[str] | None = None, **kwargs):
        super().__init__(**kwargs)
        self.definition = definition
        self.arguments = arguments or []

    @cached_property
    def hook(self):
        return SubprocessHook()

    def execute(self, context):
        command = ["formetl", "run", self.definition, "--log-format", "json", *self.arguments]
        code = self.hook.run_command(command=command).exit_code
        if runs_again(code):
            raise AirflowException(f"formetl ended with {code}: run again")
        if code != 0:
            raise AirflowFailException(f"formetl ended with {code}; its last line says what to do")

    def on_kill(self):
        self.hook.send_sigterm()


with DAG(
    dag_id="formetl_hourly_s3",
    schedule="17 * * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,  # a run reads everything since the last one
    max_active_runs=1,
    tags=["formetl"],
):
    FormetlOperator(
        task_id="run",
        definition="/etc/formetl/hourly-s3.yaml",
        arguments=["--api-key-file", "/etc/formetl/key"],
        retries=5,
        retry_delay=timedelta(minutes=5),
        retry_exponential_backoff=True,
        max_retry_delay=timedelta(minutes=20),
        execution_timeout=timedelta(minutes=55),
    )
