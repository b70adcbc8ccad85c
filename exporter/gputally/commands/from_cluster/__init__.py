"""What commands do that read a cluster, or manifests in its place."""
