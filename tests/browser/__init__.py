"""The admin as a person has it: in a browser, with a policy that drops whatever is inline."""
