"""What moves batches and keeps state: the stages that every engine has, and the local one. Nothing is decided here."""
