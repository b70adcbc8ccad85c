"""What dashboards and alerts are made with: declarations in, Grafana's JSON and Prometheus' YAML out."""
