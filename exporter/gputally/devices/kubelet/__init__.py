"""Which container holds which GPU of this node, as the kubelet's PodResources API tells it."""
