"""What ResourceQuotas and PodDisruptionBudgets allow."""
