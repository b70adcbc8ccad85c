"""Renders the Grafana dashboards without Grafana: reads the JSON, queries a real Prometheus, and draws PNG files.

`python -m hack.pictures --prometheus URL --at TIME --to FOLDER FILE...`
"""
