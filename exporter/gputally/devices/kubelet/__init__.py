"""GPU assignments of this node's containers, from the kubelet's PodResources API."""
