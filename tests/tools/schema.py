# SPDX-License-Identifier: Apache-2.0
"""What the tool's --json writes, by docs/schema."""
import json
import pathlib
import sys

try:
    import jsonschema
except ModuleNotFoundError:
    print("skipped: python3-jsonschema is not installed")
    sys.exit(77)

SCHEMAS = pathlib.Path(__file__).resolve().parents[2] / "docs/schema"


def loose(schema):
    """Objects that take members without a description, or need not have those with one."""
    if isinstance(schema, list):
        return [found for part in schema for found in loose(part)]
    if not isinstance(schema, dict):
        return []
    found = loose(list(schema.values()))
    if schema.get("type") == "object" and (schema.get("additionalProperties", True)
                                           or set(schema["required"]) != set(schema["properties"])):
        found.append(f"not strict: {sorted(schema['properties'])}")
    return found


def wrong(command, text):
    """What of the text is not as the command's schema says; the schema itself is judged, too."""
    schema = json.loads((SCHEMAS / f"{command}.json").read_text())
    checker = jsonschema.validators.validator_for(schema)
    checker.check_schema(schema)
    return loose(schema) + [f"{error.json_path}: {error.message}"
                            for error in checker(schema).iter_errors(json.loads(text))]
