"""Floor 6: an API server in memory, with fake kubelets, for development on one machine.

`serve` starts one in the running event loop; `berth sandbox up` runs one as a process. A request goes
http.py → api.py → rest.py → store.py, and its answer back through views.py.
"""

from berth.sandbox.errors import SandboxError
from berth.sandbox.server import RunningSandbox, SandboxOptions, serve

__all__ = ["RunningSandbox", "SandboxError", "SandboxOptions", "serve"]
