"""The Docker API: containers, images and archives of local and remote daemons."""
