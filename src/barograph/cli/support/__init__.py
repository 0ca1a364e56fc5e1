"""What several commands share: tables and options as they are written on the command line."""
