"""Parts of the specs of API objects. Like those of `model.kube`, they are not tracked by the garbage collector."""
