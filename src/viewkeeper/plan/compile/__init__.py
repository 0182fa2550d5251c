"""Plans to circuits; each kind of plan node has its function in one of these modules."""

from viewkeeper.plan.compile import aggregate, join, linear, recursion  # noqa: F401 - they register themselves
from viewkeeper.plan.compile.compiler import Compilation, CompiledView, compile_views, states_of_operator

# The modules register what they compile.
__all__ = ["Compilation", "CompiledView", "compile_views", "states_of_operator"]
