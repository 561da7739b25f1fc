"""The results as a static website: campaigns in, a directory out that any web server, or none, can show."""
