"""What PodDisruptionBudgets, ResourceQuotas and PriorityClasses allow, and how that changes."""
