"""What job frameworks, queues and gang schedulers say about pods, a module for each, and the table of all of them."""
