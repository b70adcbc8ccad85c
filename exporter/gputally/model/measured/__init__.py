"""What agents measure: devices, who holds them, usage reports, and the usage that is stored."""
