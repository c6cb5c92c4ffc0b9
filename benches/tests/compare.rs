//! What `compare` promises: a table, a page and a file for what was asked, and nothing for what was not.
