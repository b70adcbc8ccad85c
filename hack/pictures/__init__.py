"""Pictures of our Grafana dashboards without Grafana: committed JSON, queried on a real Prometheus, drawn to PNG.

`python -m hack.pictures --prometheus URL --at TIME --to FOLDER FILE...`
"""
