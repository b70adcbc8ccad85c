"""The HTTP server of a process, with access policy and pages; the routes serve what `answers` and `reports` say."""
