"""Which project is searched if nobody names one: that of the folder of whoever asks."""

from dataclasses import replace

from memsvc.api.operation import Operation
from memsvc.api.requests import Call
from memsvc.application.services import Services
from memsvc.application.status import project_of_folder
from memsvc.core.query import parse
from memsvc.core.records import Ref
from memsvc.schemas.parameters import FOLDER

WIDER = "--all-projects widens"
"""How to search all projects instead; tools know it as project=*."""


def scoped(operation: Operation, services: Services, call: Call) -> tuple[Call, str]:
    """The call within the project of the folder that it names, and what the answer says of that.

    Around a record it is the record's project. A call that names a project stays as it is, and so
    does one from a folder of which nothing is stored: an empty answer would help nobody.
    """
    folder = call.values.get(FOLDER)
    if not (operation.by_folder and folder) or _names_project(call):
        return call, ""
    anchor = call.values.get("anchor")
    if isinstance(anchor, Ref) and (record := services.store.records([anchor]).get(anchor)):
        project, whose = record.project, f"of {anchor}; "
    else:
        project, whose = project_of_folder(services.store, folder), ""
    if not project:
        return call, f"all projects (nothing is stored of {folder}, this folder)"
    within = replace(call, values={**call.values, "project": [project]})
    return within, f"{project} ({whose}{WIDER})"


def _names_project(call: Call) -> bool:
    query = parse(call.values.get("query") or "")
    return bool(call.values.get("project")) or "project" in dict(query.filters)
