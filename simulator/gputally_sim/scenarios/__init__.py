"""What happens in a cluster, as users and operators have it happen."""
