"""Plans to circuits; each kind of plan node has its function in one of these modules."""

from viewkeeper.plan.compile import aggregate, join, linear
from viewkeeper.plan.compile.compiler import Compilation, CompiledView, compile_views, states_of_operator

__all__ = ["Compilation", "CompiledView", "aggregate", "compile_views", "join", "linear", "states_of_operator"]
