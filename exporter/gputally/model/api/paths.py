"""The paths of the aggregator's HTTP API, which its server, its clients and the policy of access name."""

from typing import Final

ALLOCATIONS_PATH: Final = "/api/v1/allocations"
AT_RISK_PATH: Final = "/api/v1/at-risk"
FITS_PATH: Final = "/api/v1/fits"
PENDING_PATH: Final = "/api/v1/pending"
PREEMPTIONS_PATH: Final = "/api/v1/preemptions"
REPORT_PATH: Final = "/api/v1/report"
WAITS_PATH: Final = "/api/v1/waits"
WHAT_IF_PATH: Final = "/api/v1/what-if"
WHY_PATH: Final = "/api/v1/why"
