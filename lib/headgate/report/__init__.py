"""What people see: lines while a job runs, tables when it ends."""
