"""Puts things that the demo has into generated calls, in place of the examples of the description, so that some calls succeed.

schemathesis loads this module (SCHEMATHESIS_HOOKS). WAYBILL_EXAMPLES holds the replacements as JSON: example to value.
"""

import json
import os

import schemathesis

REPLACEMENTS = json.loads(os.environ["WAYBILL_EXAMPLES"])


def replaced(value):
    if isinstance(value, str):
        for example, real in REPLACEMENTS.items():
            value = value.replace(example, real)
        return value
    if isinstance(value, list):
        return [replaced(each) for each in value]
    if isinstance(value, dict):
        return {name: replaced(each) for name, each in value.items()}
    return value


@schemathesis.hook
def before_call(context, case, kwargs):
    case.path_parameters = replaced(case.path_parameters)
    case.query = replaced(case.query)
    case.body = replaced(case.body)
